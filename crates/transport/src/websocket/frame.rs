//! Headers of frames (RFC 6455, section 5).

use super::mask::Mask;
use crate::settings::Payload;

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
const LENGTH_U16: u8 = 126;
const LENGTH_U64: u8 = 127;
const CONTINUATION: u8 = 0;
const TEXT: u8 = 1;
const BINARY: u8 = 2;

/// A frame's header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Header {
    first: u8,
    pub(super) mask: Option<Mask>,
    pub(super) payload_bytes: u64,
    /// The header's.
    pub(super) own_bytes: usize,
}

impl Header {
    /// Of a message in one frame.
    pub(super) fn whole(kind: Payload, payload_bytes: usize, mask: Option<Mask>) -> Self {
        let opcode = if kind == Payload::Text { TEXT } else { BINARY };
        Self { first: FIN | opcode, mask, payload_bytes: payload_bytes as u64, own_bytes: 0 }
    }

    /// The header that `bytes` begin with, once it is there.
    pub(super) fn parse(bytes: &[u8]) -> Option<Self> {
        let (&[first, second], rest) = bytes.split_first_chunk()?;
        let (payload_bytes, length_bytes) = match second & !MASKED {
            LENGTH_U16 => (u64::from(u16::from_be_bytes(*rest.first_chunk()?)), 2),
            LENGTH_U64 => (u64::from_be_bytes(*rest.first_chunk()?), 8),
            length => (u64::from(length), 0),
        };
        let mask = if second & MASKED == 0 { None } else { Some(Mask(*rest.get(length_bytes..)?.first_chunk()?)) };
        let own_bytes = 2 + length_bytes + mask.map_or(0, |mask| mask.0.len());
        Some(Self { first, mask, payload_bytes, own_bytes })
    }

    /// Appends it to `out`.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        out.push(self.first);
        match (u8::try_from(self.payload_bytes), u16::try_from(self.payload_bytes)) {
            (Ok(length), _) if length < LENGTH_U16 => out.push(masked | length),
            (_, Ok(length)) => {
                out.push(masked | LENGTH_U16);
                out.extend_from_slice(&length.to_be_bytes());
            }
            _ => {
                out.push(masked | LENGTH_U64);
                out.extend_from_slice(&self.payload_bytes.to_be_bytes());
            }
        }
        if let Some(mask) = self.mask {
            out.extend_from_slice(&mask.0);
        }
    }

    /// What a message in this one frame is; nothing for any other frame.
    pub(super) fn message(&self) -> Option<Payload> {
        match self.first {
            first if first == FIN | TEXT => Some(Payload::Text),
            first if first == FIN | BINARY => Some(Payload::Binary),
            _ => None,
        }
    }

    /// Whether a message has begun that is not whole, once this frame has come.
    pub(super) fn leaves_message_open(&self, open: bool) -> bool {
        match self.first & 0x0f {
            CONTINUATION | TEXT | BINARY => self.first & FIN == 0,
            _ => open,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_as_it_was_written() {
        for payload_bytes in [0, 125, 126, 65_535, 65_536, usize::MAX] {
            for mask in [None, Some(Mask([1, 2, 3, 4]))] {
                let mut bytes = Vec::new();
                let header = Header::whole(Payload::Text, payload_bytes, mask);
                header.write(&mut bytes);
                for cut in 0..bytes.len() {
                    assert_eq!(Header::parse(&bytes[..cut]), None);
                }
                assert_eq!(Header::parse(&bytes), Some(Header { own_bytes: bytes.len(), ..header }));
            }
        }
    }
}
