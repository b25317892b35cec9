//! Reassembles TLS bytes from CRYPTO frames.

/// Bytes kept: more than handshakes have.
const MOST: usize = 64 * 1024;

/// One direction in one packet number space.
#[derive(Default)]
pub struct Crypto {
    bytes: Vec<u8>,
    known: Vec<bool>,
    whole: usize,
}

impl Crypto {
    pub fn add(&mut self, offset: u64, bytes: &[u8]) {
        let Some(start) = usize::try_from(offset).ok().filter(|&start| start < MOST) else { return };
        let end = start.saturating_add(bytes.len()).min(MOST);
        if self.bytes.len() < end {
            self.bytes.resize(end, 0);
            self.known.resize(end, false);
        }
        self.bytes[start..end].copy_from_slice(&bytes[..end - start]);
        self.known[start..end].fill(true);
        self.whole += self.known[self.whole..].iter().take_while(|&&known| known).count();
    }

    /// The gapless prefix.
    pub fn whole(&self) -> &[u8] {
        &self.bytes[..self.whole]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_in_any_order_are_put_together() {
        let mut crypto = Crypto::default();
        crypto.add(3, b"de");
        assert_eq!(crypto.whole(), b"");
        crypto.add(1, b"bcd");
        crypto.add(0, b"ab");
        assert_eq!(crypto.whole(), b"abcde");
        crypto.add(u64::MAX, b"z");
        crypto.add(MOST as u64 - 1, b"zz");
        assert_eq!(crypto.whole(), b"abcde");
    }
}
