//! Answered messages: each begins with its number, as far as its bytes suffice, followed by a pattern.

use crosswind_transport::{Outcome, Payload, TransportError};

/// Bytes for the number.
const TAG: usize = 8;
/// The number's bits per character of a text message.
const TEXT_BITS: usize = 6;

/// Sizes of a message and its answer, bytes.
#[derive(Clone, Copy, Debug)]
pub struct Sizes {
    pub request: usize,
    pub reply: usize,
}

impl Sizes {
    /// A message and an answer of the same size.
    pub const fn both(size: u64) -> Self {
        Self { request: size as usize, reply: size as usize }
    }
}

/// Messages of one kind.
#[derive(Clone, Copy, Debug)]
pub struct Messages {
    /// Any bytes, or characters.
    pub payload: Payload,
}

impl Messages {
    pub fn write(self, buffer: &mut [u8], number: u64) {
        let length = buffer.len().min(TAG);
        buffer[..length].copy_from_slice(&self.encode(number)[..length]);
    }

    /// A buffer for messages of `size` bytes, with the pattern in place.
    pub fn buffer(self, size: usize) -> Vec<u8> {
        match self.payload {
            Payload::Binary => (0..size).map(|i| (i % 251) as u8).collect(),
            Payload::Text => (0..size).map(|i| b'a' + (i % 26) as u8).collect(),
        }
    }

    /// [`read`]'s result for message `number` with `size` bytes.
    pub fn tag(self, number: u64, size: usize) -> u64 {
        read(&self.encode(number)[..size.min(TAG)])
    }

    fn encode(self, number: u64) -> [u8; TAG] {
        match self.payload {
            Payload::Binary => number.to_le_bytes(),
            // From '0' to 'o': every character one byte in UTF-8.
            Payload::Text => std::array::from_fn(|i| b'0' + ((number >> (TEXT_BITS * i)) & 0x3f) as u8),
        }
    }
}

/// The visible part of the number of the message in `buffer`.
pub fn read(buffer: &[u8]) -> u64 {
    let mut tag = [0; TAG];
    let length = buffer.len().min(TAG);
    tag[..length].copy_from_slice(&buffer[..length]);
    u64::from_le_bytes(tag)
}

/// The reply differs from the expected one.
pub fn changed() -> TransportError {
    TransportError::with("cannot exchange", Outcome::Error, "the reply is not what it should be")
}

#[cfg(test)]
mod tests {
    use super::*;

    const BINARY: Messages = Messages { payload: Payload::Binary };
    const TEXT: Messages = Messages { payload: Payload::Text };

    #[test]
    fn what_is_written_can_be_read_as_far_as_it_fits() {
        for messages in [BINARY, TEXT] {
            for (size, number) in [(1, 300), (2, 70_000), (8, 1 << 47), (1000, 12_345)] {
                let mut message = messages.buffer(size);
                messages.write(&mut message, number);
                assert_eq!(read(&message), messages.tag(number, size));
            }
        }
        assert_eq!((BINARY.tag(300, 1), BINARY.tag(u64::MAX, 8)), (44, u64::MAX));
    }

    #[test]
    fn the_pattern_survives_the_number() {
        let mut message = BINARY.buffer(300);
        BINARY.write(&mut message, 9);
        assert_eq!(message[8..], BINARY.buffer(300)[8..]);
    }

    #[test]
    fn text_is_printable() {
        let mut message = TEXT.buffer(40);
        TEXT.write(&mut message, 123_456_789);
        assert!(message.iter().all(u8::is_ascii_graphic), "{message:?}");
        assert_ne!(TEXT.tag(1, 40), TEXT.tag(2, 40));
    }
}
