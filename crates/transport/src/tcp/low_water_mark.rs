//! The receive low-water mark: the bytes needed to wake the receiver of a large transfer.
//!
//! Bytes waiting in a socket are missing in its receive window. So the mark is a small part of the receive buffer,
//! which grows with the program's reads per round trip, and it is lowered to the bytes still to come.

use crosswind_host::set_low_water_mark;
use socket2::SockRef;
use std::os::fd::AsFd;

/// The highest mark, and the lowest one worth the cost of setting it, bytes.
const HIGHEST: usize = 64 * 1024;
const LOWEST: usize = 4 * 1024;
/// The fraction of the receive buffer in the kernel's count; the window is about half of that.
const PART: usize = 256;
/// How many bytes are received before the receive buffer is looked at again, at first.
const LOOK_AFTER: u64 = 64 * 1024;

#[derive(Debug)]
pub(crate) struct LowWaterMark {
    bytes: usize,
    /// As high as the receive buffer lets it be.
    highest: usize,
    received: u64,
    /// At how many received bytes the receive buffer is looked at.
    look_at: u64,
}

impl LowWaterMark {
    /// The kernel's: it wakes up for any byte.
    pub(crate) const fn new() -> Self {
        Self { bytes: 1, highest: 1, received: 0, look_at: 0 }
    }

    /// So many more were received.
    pub(crate) const fn count(&mut self, bytes: usize) {
        self.received += bytes as u64;
    }

    /// Has the receiver on `socket` wake up for many bytes at a time, no more than are still `to_come`.
    pub(crate) fn set(&mut self, socket: &SockRef<'_>, to_come: u64) {
        if to_come > 0 && self.received >= self.look_at {
            self.look_at = (2 * self.received).max(LOOK_AFTER);
            self.highest = socket.recv_buffer_size().map_or(1, |buffer| (buffer / PART).min(HIGHEST));
        }
        let most = self.highest.min(to_come.try_into().unwrap_or(usize::MAX));
        // Powers of two, so it is seldom set.
        let bytes = if most < LOWEST { 1 } else { 1 << most.ilog2() };
        if bytes != self.bytes {
            self.bytes = bytes;
            // Should it fail, the receiver wakes up more often than it has to.
            let _ = set_low_water_mark(socket.as_fd(), bytes as i32);
        }
    }
}
