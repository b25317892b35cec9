//! Events that wait for the cell, in chunks.

use crate::Event;
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// A chunk with so many bytes is full.
const CHUNK: usize = 64 * 1024;
/// The most that an event adds to one: an IP packet, and what is said of it.
const LARGEST_EVENT: usize = 64 * 1024 + 512;
/// The largest chunk.
pub const LARGEST_CHUNK: usize = CHUNK + LARGEST_EVENT;
/// Empty chunks that are kept for reuse.
const SPARE: usize = 16;

/// What has been written down and not been read yet.
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

    /// Chunks that are full.
    pub fn full(&self) -> usize {
        self.full.len()
    }

    /// The oldest events, a chunk of them; none where there are none.
    pub fn take(&mut self) -> Option<Vec<u8>> {
        if self.full.is_empty() && !self.open.is_empty() {
            self.close();
        }
        self.full.pop_front()
    }

    /// Takes a chunk back that has been read.
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
