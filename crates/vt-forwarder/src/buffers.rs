//! The bytes of packets in the path, by token.
//!
//! In blocks: during packet processing the kernel allocates a few megabytes at most in one piece.

use alloc::vec::Vec;

const IN_A_BLOCK: usize = 1024;

/// The bytes behind one token.
struct Slot<B> {
    buffer: Option<B>,
    /// Copies in the path that share these bytes, beyond the first.
    copies: u32,
}

pub struct Buffers<B> {
    blocks: Vec<Vec<Slot<B>>>,
    free: Vec<u32>,
    tokens: u32,
}

impl<B> Buffers<B> {
    pub const fn new() -> Self {
        Self { blocks: Vec::new(), free: Vec::new(), tokens: 0 }
    }

    /// A token for a buffer.
    pub fn take(&mut self, buffer: B) -> u32 {
        let slot = Slot { buffer: Some(buffer), copies: 0 };
        if let Some(token) = self.free.pop() {
            *self.slot(token) = slot;
            return token;
        }
        let (token, block) = (self.tokens, self.tokens as usize / IN_A_BLOCK);
        if block == self.blocks.len() {
            self.blocks.push(Vec::with_capacity(IN_A_BLOCK));
        }
        self.blocks[block].push(slot);
        self.tokens += 1;
        token
    }

    /// The bytes behind a token, until it is given back.
    pub fn get(&self, token: u32) -> Option<&B> {
        self.blocks[token as usize / IN_A_BLOCK][token as usize % IN_A_BLOCK].buffer.as_ref()
    }

    /// One more packet has these bytes.
    pub fn share(&mut self, token: u32) {
        self.slot(token).copies += 1;
    }

    /// A packet with these bytes has left. The last one leaves the token to another buffer.
    pub fn give_back(&mut self, token: u32) {
        let slot = self.slot(token);
        if slot.copies > 0 {
            slot.copies -= 1;
            return;
        }
        slot.buffer = None;
        self.free.push(token);
    }

    fn slot(&mut self, token: u32) -> &mut Slot<B> {
        &mut self.blocks[token as usize / IN_A_BLOCK][token as usize % IN_A_BLOCK]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_keeps_its_buffer_until_the_last_packet_has_left() {
        let mut buffers = Buffers::new();
        let tokens: Vec<u32> = (0..3 * IN_A_BLOCK).map(|buffer| buffers.take(buffer)).collect();
        assert!(tokens.iter().enumerate().all(|(buffer, &token)| buffers.get(token) == Some(&buffer)));
        let token = tokens[IN_A_BLOCK];
        buffers.share(token);
        buffers.give_back(token);
        assert_eq!(buffers.get(token), Some(&IN_A_BLOCK));
        buffers.give_back(token);
        assert_eq!(buffers.get(token), None);
        assert_eq!((buffers.take(7), buffers.get(token)), (token, Some(&7)));
    }
}
