//! Packets that wait, and how many may.

use super::QueueLimit;
use crate::link::{LinkRate, LinkSettings};
use crate::{Counting, Packet};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use crosswind_units::{BitRate, Instant};

/// Packets in the order in which they arrived.
#[derive(Default)]
pub struct Backlog {
    counting: Counting,
    waiting: VecDeque<Box<Packet>>,
    bytes: u64,
}

impl Backlog {
    /// An empty one; `counting` says what a packet's size is.
    pub const fn new(counting: Counting) -> Self {
        Self { counting, waiting: VecDeque::new(), bytes: 0 }
    }

    /// What a packet occupies in bytes.
    pub fn size(&self, packet: &Packet) -> u64 {
        self.counting.occupied(packet.size).0
    }

    /// Appends a packet.
    pub fn push(&mut self, packet: Box<Packet>) {
        self.bytes += self.size(&packet);
        self.waiting.push_back(packet);
    }

    /// Takes the first packet out.
    pub fn pop(&mut self) -> Option<Box<Packet>> {
        let packet = self.waiting.pop_front()?;
        self.bytes -= self.size(&packet);
        Some(packet)
    }

    /// How long the first packet has waited.
    pub fn head_waited(&self, now: Instant) -> Option<crosswind_units::Duration> {
        self.waiting.front().map(|packet| now.saturating_since(packet.at))
    }

    /// Packets waiting.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Bytes waiting.
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The limit of a queue at one rate.
#[derive(Clone, Copy)]
pub struct Limit {
    packets: u64,
    bytes: u64,
}

impl Limit {
    /// That of `settings`.
    pub fn of(settings: &LinkSettings) -> Self {
        if let (Some(QueueLimit::Time(_)), Some(LinkRate::Stopped)) = (settings.queue, settings.rate) {
            return Self { packets: u64::MAX, bytes: 0 };
        }
        Self::at_rate(settings.queue, settings.rate.and_then(LinkRate::moving))
    }

    /// That of `queue`; a limit in time is what is sent in it at the rate.
    pub fn at_rate(queue: Option<QueueLimit>, rate: Option<BitRate>) -> Self {
        match queue.unwrap_or_default().at_rate(rate) {
            QueueLimit::Packets(packets) => Self { packets, bytes: u64::MAX },
            QueueLimit::Bytes(bytes) => Self { packets: u64::MAX, bytes },
            QueueLimit::Time(_) => Self { packets: u64::MAX, bytes: u64::MAX },
        }
    }

    /// Whether a packet of `size` bytes may wait with others.
    pub const fn takes(self, packets: usize, bytes: u64, size: u64) -> bool {
        (packets as u64) < self.packets && bytes.saturating_add(size) <= self.bytes
    }

    /// The same for disciplines through which a packet also goes that finds the link idle: an empty queue takes any.
    pub const fn takes_or_is_empty(self, packets: usize, bytes: u64, size: u64) -> bool {
        packets == 0 || self.takes(packets, bytes, size)
    }

    /// Whether more waits than may.
    pub const fn is_exceeded(self, packets: usize, bytes: u64) -> bool {
        packets > 1 && (packets as u64 > self.packets || bytes > self.bytes)
    }
}
