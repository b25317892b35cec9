//! Framing on a control connection: each part is its length in four big-endian bytes, and then its bytes.

/// Takes bytes as they come, and gives whole parts. Without I/O.
#[derive(Debug)]
pub struct Parts {
    inbox: Vec<u8>,
    largest: usize,
}

/// A part announced as larger than allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a message of {length} bytes, where {largest} are allowed")]
pub struct TooLarge {
    length: usize,
    largest: usize,
}

impl Parts {
    /// Parts of at most `largest` bytes.
    pub const fn new(largest: usize) -> Self {
        Self { inbox: Vec::new(), largest }
    }

    /// From now on parts may be as large as this.
    pub fn allow(&mut self, largest: usize) {
        self.largest = largest;
    }

    /// More bytes have come.
    pub fn handle_bytes(&mut self, bytes: &[u8]) {
        self.inbox.extend_from_slice(bytes);
    }

    /// The next part, if it is whole.
    ///
    /// # Errors
    /// When it is larger than is allowed, as soon as its length is there.
    pub fn poll_part(&mut self) -> Result<Option<Vec<u8>>, TooLarge> {
        let Some((length, rest)) = self.inbox.split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*length) as usize;
        if length > self.largest {
            return Err(TooLarge { length, largest: self.largest });
        }
        let Some(part) = rest.get(..length).map(<[u8]>::to_vec) else { return Ok(None) };
        self.inbox.drain(..4 + length);
        Ok(Some(part))
    }
}

/// One part's bytes.
pub fn with_length(part: &[u8]) -> Vec<u8> {
    [&(part.len() as u32).to_be_bytes(), part].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn however_bytes_are_cut_the_same_parts_come() {
        let sent: [&[u8]; 4] = [b"one", b"", b"three", &[7; 300]];
        let stream: Vec<u8> = sent.iter().flat_map(|part| with_length(part)).collect();
        for cut in 1..=stream.len() {
            let (mut parts, mut received) = (Parts::new(300), Vec::new());
            for piece in stream.chunks(cut) {
                parts.handle_bytes(piece);
                while let Some(part) = parts.poll_part().unwrap() {
                    received.push(part);
                }
            }
            assert_eq!(received, sent);
        }
    }

    #[test]
    fn a_part_that_is_too_large_is_refused_before_it_comes() {
        let mut parts = Parts::new(10);
        parts.handle_bytes(&11_u32.to_be_bytes());
        let error = parts.poll_part().unwrap_err();
        assert_eq!(error.to_string(), "a message of 11 bytes, where 10 are allowed");
        parts.allow(11);
        assert_eq!(parts.poll_part(), Ok(None));
    }
}
