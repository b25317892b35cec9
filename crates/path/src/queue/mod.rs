//! Queues before a link, one algorithm a file.

mod fifo;

pub use fifo::Fifo;

use crate::Packet;
use crosswind_units::Instant;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// In packets.
    Packets(u64),
    /// In bytes, counted as the link counts them.
    Bytes(u64),
}

impl Default for QueueLimit {
    fn default() -> Self {
        Self::Packets(1000)
    }
}

/// Decides which packets wait, and which of them goes next.
pub trait Queue: Send {
    /// Takes a packet, or gives it back to be dropped.
    fn enqueue(&mut self, now: Instant, packet: Packet) -> Result<(), Packet>;

    /// The packet to transmit next.
    fn dequeue(&mut self, now: Instant) -> Option<Packet>;

    /// Sets another limit. What waits beyond it stays.
    fn set_limit(&mut self, limit: QueueLimit);

    /// Packets waiting.
    fn len(&self) -> usize;

    /// Whether no packet waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}
