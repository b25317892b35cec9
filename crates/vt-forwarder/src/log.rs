//! Unread events, in chunks.

use crate::Event;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A chunk with so many bytes is full.
const CHUNK: usize = 64 * 1024;
/// The largest event: an IP packet and its fields.
const LARGEST_EVENT: usize = 64 * 1024 + 512;
/// The largest chunk.
pub const LARGEST_CHUNK: usize = CHUNK + LARGEST_EVENT;
/// Empty chunks kept for reuse.
const SPARE: usize = 16;

/// Events written and not yet read.
#[derive(Debug, Default)]
pub struct Log {
    full: VecDeque<Vec<u8>>,
    open: Vec<u8>,
    spare: Vec<Vec<u8>>,
}

impl Log {
    pub fn push(&mut self, event: &Event<'_>) {
        event.write(&mut self.open);
        if self.open.len() >= CHUNK {
            self.close();
        }
    }

    /// The number of full chunks.
    pub fn full(&self) -> usize {
        self.full.len()
    }

    /// The chunk with the oldest events, if any.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if self.full.is_empty() && !self.open.is_empty() {
            self.close();
        }
        self.full.pop_front()
    }

    /// Takes back a read chunk.
    pub fn give_back(&mut self, mut chunk: Vec<u8>) {
        if self.spare.len() < SPARE {
            chunk.clear();
            self.spare.push(chunk);
        }
    }

    fn close(&mut self) {
        let next = self.spare.pop().unwrap_or_else(|| Vec::with_capacity(CHUNK + 4096));
        self.full.push_back(core::mem::replace(&mut self.open, next));
    }
}
