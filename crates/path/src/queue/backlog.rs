//! Waiting packets, and their limit.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::rate::LinkRate;
use crate::{Counting, Packet};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Instant};

/// A queue's limit in packets or bytes: more never wait on one machine.
pub const MAX_QUEUE: u64 = 1_000_000_000;

/// The longest limit in time, and the longest parameter: 100 s.
pub const MAX_TIME_NS: u64 = 100_000_000_000;

/// Packets in order of arrival.
#[derive(Default)]
pub struct Backlog {
    counting: Counting,
    waiting: VecDeque<Box<Packet>>,
    bytes: u64,
}

impl Backlog {
    /// An empty one; `counting` defines a packet's size.
    pub const fn new(counting: Counting) -> Self {
        Self { counting, waiting: VecDeque::new(), bytes: 0 }
    }

    /// Bytes occupied by a packet.
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

/// A queue's limit at one rate.
#[derive(Clone, Copy)]
pub struct Limit {
    packets: u64,
    bytes: u64,
}

impl Limit {
    /// The limit for `queue` before a link of `rate`; a limit in time becomes the bytes sent in it at the rate.
    pub fn new(queue: Option<QueueLimit>, rate: Option<LinkRate>) -> Self {
        if let (Some(QueueLimit::Time(_)), Some(LinkRate::Stopped)) = (queue, rate) {
            return Self { packets: u64::MAX, bytes: 0 };
        }
        Self::at_rate(queue, rate.and_then(LinkRate::moving))
    }

    /// The same; a stalled link has no rate.
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

    /// The same for disciplines where packets also pass through while the link is idle: an empty queue takes any.
    pub const fn takes_or_is_empty(self, packets: usize, bytes: u64, size: u64) -> bool {
        packets == 0 || self.takes(packets, bytes, size)
    }

    /// Whether more waits than may.
    pub const fn is_exceeded(self, packets: usize, bytes: u64) -> bool {
        packets > 1 && (packets as u64 > self.packets || bytes > self.bytes)
    }
}

/// The limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// In packets.
    Packets(u64),
    /// In bytes, counted as the link counts them.
    Bytes(u64),
    /// In nanoseconds: what the link sends in that time at its rate.
    #[serde(rename = "time_ns")]
    Time(u64),
}

impl Default for QueueLimit {
    fn default() -> Self {
        Self::Packets(1000)
    }
}

impl QueueLimit {
    /// The same in packets or bytes where it is in time and there is a rate.
    #[must_use]
    pub fn at_rate(self, rate: Option<BitRate>) -> Self {
        match (self, rate) {
            (Self::Time(ns), Some(rate)) => {
                let bytes = u128::from(rate.as_bps()) * u128::from(ns) / 8_000_000_000;
                Self::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
            _ => self,
        }
    }

    pub(crate) fn check(self, key: &str) -> Result<(), SettingError> {
        match self {
            Self::Packets(0) | Self::Bytes(0) | Self::Time(0) => Err(SettingError::new(
                key,
                "of 0 would drop every packet that has to wait",
                "give at least 1 packet or 1 byte",
            )),
            Self::Packets(limit) | Self::Bytes(limit) if limit > MAX_QUEUE => Err(SettingError::new(
                key,
                format!("of {limit} is more than {MAX_QUEUE} packets or bytes"),
                "give a smaller limit",
            )),
            Self::Time(ns) if ns > MAX_TIME_NS => Err(SettingError::new(
                key,
                format!("of {ns} ns is longer than {} s", MAX_TIME_NS / 1_000_000_000),
                "give a shorter time",
            )),
            _ => Ok(()),
        }
    }
}
