//! Waiting rooms before a link, one algorithm a file.

mod fifo;

pub use fifo::Fifo;

use crate::Packet;
use crosswind_units::Instant;

/// Decides which packets wait, and which goes next.
pub trait Queue: Send {
    /// Takes a packet, or gives it back: it is dropped.
    fn enqueue(&mut self, now: Instant, packet: Packet) -> Result<(), Packet>;

    /// The packet to transmit next.
    fn dequeue(&mut self, now: Instant) -> Option<Packet>;

    /// Packets waiting.
    fn len(&self) -> usize;

    /// Whether none waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
