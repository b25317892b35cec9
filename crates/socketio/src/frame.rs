//! Engine.IO frames on a WebTransport stream, as engine.io-parser 5.2 defines them.
//!
//! A frame is a header and a payload. Header byte: bit 7 set for binary, the low 7 bits a length; after 126 a
//! big-endian u16 length follows, after 127 a u64. A length of 0 is an error. A receiver takes a longer header than
//! needed, as the original does; a sender writes the shortest.

use crate::{Error, Payload};
use bytes::{Buf, BufMut, BytesMut};

const BINARY: u8 = 0x80;
const LENGTH_U16: u8 = 126;
const LENGTH_U64: u8 = 127;

/// Cuts a byte stream into frames.
///
/// Invariant: it holds no more than one incomplete frame and the last chunk, if every chunk is followed by
/// [`poll_frame`](Self::poll_frame) until `None`. It never reserves memory for an announced length.
#[derive(Debug)]
pub struct FrameDecoder {
    max_payload_bytes: u64,
    received: BytesMut,
    failed: Option<Error>,
}

impl FrameDecoder {
    /// A decoder at the start of a stream, which refuses payloads above `max_payload_bytes`.
    pub fn new(max_payload_bytes: u64) -> Self {
        Self { max_payload_bytes, received: BytesMut::new(), failed: None }
    }

    /// Takes the next bytes of the stream, in chunks of any size.
    pub fn handle_bytes(&mut self, chunk: &[u8]) {
        if self.failed.is_none() {
            self.received.extend_from_slice(chunk);
        }
    }

    /// The next complete frame, or `None` until more bytes are received.
    ///
    /// Errors: a length of 0 or above the maximum, as soon as the header is known; text that is not UTF-8. The stream
    /// has no meaning after an error, so every later call returns the same one.
    pub fn poll_frame(&mut self) -> Result<Option<Payload>, Error> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        self.next_frame().inspect_err(|error| {
            self.received = BytesMut::new();
            self.failed = Some(error.clone());
        })
    }

    /// Whether the stream may end here: no frame is incomplete.
    pub fn is_between_frames(&self) -> bool {
        self.received.is_empty() && self.failed.is_none()
    }

    fn next_frame(&mut self) -> Result<Option<Payload>, Error> {
        let Some((header_bytes, length_bytes)) = header(&self.received) else { return Ok(None) };
        if length_bytes == 0 {
            return Err(Error::EmptyFrame);
        }
        if length_bytes > self.max_payload_bytes {
            return Err(Error::PayloadTooLong { length_bytes, max_bytes: self.max_payload_bytes });
        }
        if ((self.received.len() - header_bytes) as u64) < length_bytes {
            return Ok(None);
        }
        let binary = self.received[0] & BINARY != 0;
        self.received.advance(header_bytes);
        let payload = self.received.split_to(length_bytes as usize);
        if binary {
            return Ok(Some(Payload::Binary(payload.freeze())));
        }
        let text = std::str::from_utf8(&payload).map_err(|_| Error::NotUtf8)?;
        Ok(Some(Payload::Text(text.to_owned())))
    }
}

/// Appends a frame, header and payload in one piece, to `out`: a growing `Vec<u8>` or `BytesMut`.
///
/// Errors: [`Error::EmptyFrame`] for an empty payload, which the receiver would refuse; nothing is appended.
pub fn encode_frame(payload: &Payload, out: &mut impl BufMut) -> Result<(), Error> {
    encode_frame_header(payload, out)?;
    out.put_slice(payload.as_bytes());
    Ok(())
}

/// Appends the header alone, for a sender with header and payload in two chunks, as the JavaScript one.
///
/// Errors: as [`encode_frame`].
pub fn encode_frame_header(payload: &Payload, out: &mut impl BufMut) -> Result<(), Error> {
    let mark = if matches!(payload, Payload::Binary(_)) { BINARY } else { 0 };
    let length_bytes = payload.as_bytes().len();
    match (u8::try_from(length_bytes), u16::try_from(length_bytes)) {
        (Ok(0), _) => return Err(Error::EmptyFrame),
        (Ok(length), _) if length < LENGTH_U16 => out.put_u8(mark | length),
        (_, Ok(length)) => {
            out.put_u8(mark | LENGTH_U16);
            out.put_u16(length);
        }
        _ => {
            out.put_u8(mark | LENGTH_U64);
            out.put_u64(length_bytes as u64);
        }
    }
    Ok(())
}

/// Length of the header and of its payload, both in bytes; `None` while the header is not complete.
fn header(received: &[u8]) -> Option<(usize, u64)> {
    let (first, rest) = received.split_first()?;
    match first & !BINARY {
        LENGTH_U16 => rest.first_chunk().map(|length| (3, u64::from(u16::from_be_bytes(*length)))),
        LENGTH_U64 => rest.first_chunk().map(|length| (9, u64::from_be_bytes(*length))),
        length => Some((1, u64::from(length))),
    }
}
