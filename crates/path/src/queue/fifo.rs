//! First in, first out, with a limit; what does not fit is dropped (tail drop).

use super::{Queue, QueueLimit};
use crate::{Counting, Packet};
use crosswind_units::{Bytes, Instant};
use std::collections::VecDeque;

/// A tail-drop queue limited in packets or in bytes.
pub struct Fifo {
    limit: QueueLimit,
    counting: Counting,
    waiting: VecDeque<Packet>,
    occupied: Bytes,
}

impl Fifo {
    /// A queue that holds up to `limit`; `counting` says what a packet's size is against a limit in bytes.
    pub fn new(limit: QueueLimit, counting: Counting) -> Self {
        Self { limit, counting, waiting: VecDeque::new(), occupied: Bytes(0) }
    }

    fn fits(&self, size: Bytes) -> bool {
        match self.limit {
            QueueLimit::Packets(packets) => (self.waiting.len() as u64) < packets,
            QueueLimit::Bytes(bytes) => self.occupied.0 + size.0 <= bytes,
        }
    }
}

impl Queue for Fifo {
    fn enqueue(&mut self, _now: Instant, packet: Packet) -> Result<(), Packet> {
        let size = self.counting.occupied(packet.size);
        if !self.fits(size) {
            return Err(packet);
        }
        self.occupied += size;
        self.waiting.push_back(packet);
        Ok(())
    }

    fn dequeue(&mut self, _now: Instant) -> Option<Packet> {
        let packet = self.waiting.pop_front()?;
        self.occupied -= self.counting.occupied(packet.size);
        Some(packet)
    }

    fn set_limit(&mut self, limit: QueueLimit) {
        self.limit = limit;
    }

    fn len(&self) -> usize {
        self.waiting.len()
    }
}
