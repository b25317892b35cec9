//! Packets and bytes sent into the path by hosts so far: the emulator's thread writes, other threads read.

use crosswind_path::Side;
use crosswind_units::Instant;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Sub;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

/// How many packets are kept by themselves: more than setting up connections takes.
const KEPT_PACKETS: usize = 10_000;

/// The counts so far. A single thread writes them.
#[derive(Debug, Default)]
pub struct TrafficCounters {
    packets: [AtomicU64; 2],
    bytes: [AtomicU64; 2],
    /// Whether packets are kept by themselves.
    keeps: AtomicBool,
    kept: Mutex<Vec<(Instant, Side, u64)>>,
}

/// The counts at one moment, or between two moments.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Traffic {
    /// Client to server.
    pub forward: Amount,
    /// Server to client.
    pub reverse: Amount,
}

/// An amount of traffic, on the IP layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Amount {
    /// Number of packets.
    pub packets: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Sub for Traffic {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        let less = |now: Amount, then: Amount| Amount {
            packets: now.packets.saturating_sub(then.packets),
            bytes: now.bytes.saturating_sub(then.bytes),
        };
        Self { forward: less(self.forward, earlier.forward), reverse: less(self.reverse, earlier.reverse) }
    }
}

impl TrafficCounters {
    pub(crate) fn count(&self, at: Instant, side: Side, bytes: u64) {
        if self.keeps.load(Ordering::Relaxed) {
            self.keep(at, side, bytes);
        }
        // A single thread writes: no read-modify-write is needed.
        for (counter, more) in [(&self.packets, 1), (&self.bytes, bytes)] {
            let counter = &counter[side as usize];
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
        }
    }

    /// Keeps the first packets singly from now on, for later calls of [`Self::before`].
    pub fn keep_first(&self) {
        self.keeps.store(true, Ordering::Relaxed);
    }

    /// Counts of packets sent before `at`; `None` if no longer known. To be asked once `at` is over.
    pub fn before(&self, at: Instant) -> Option<Traffic> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let earlier = kept.partition_point(|(sent, ..)| *sent < at);
        let known = self.keeps.load(Ordering::Relaxed) || earlier < kept.len();
        let mut traffic = Traffic::default();
        for (_, side, bytes) in &kept[..earlier] {
            let amount = if *side == Side::Forward { &mut traffic.forward } else { &mut traffic.reverse };
            amount.packets += 1;
            amount.bytes += bytes;
        }
        known.then_some(traffic)
    }

    fn keep(&self, at: Instant, side: Side, bytes: u64) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push((at, side, bytes));
        if kept.len() == KEPT_PACKETS {
            self.keeps.store(false, Ordering::Relaxed);
        }
    }

    /// The counts now.
    pub fn read(&self) -> Traffic {
        let amount = |side: Side| Amount {
            packets: self.packets[side as usize].load(Ordering::Relaxed),
            bytes: self.bytes[side as usize].load(Ordering::Relaxed),
        };
        Traffic { forward: amount(Side::Forward), reverse: amount(Side::Reverse) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_traffic_between_two_readings_is_their_difference() {
        let (counters, now) = (TrafficCounters::default(), Instant::from_nanos(0));
        counters.count(now, Side::Forward, 60);
        let before = counters.read();
        counters.count(now, Side::Forward, 41);
        counters.count(now, Side::Reverse, 1500);
        let between = counters.read() - before;
        assert_eq!(between.forward, Amount { packets: 1, bytes: 41 });
        assert_eq!(between.reverse, Amount { packets: 1, bytes: 1500 });
    }

    #[test]
    fn what_was_sent_before_a_moment_is_known_as_long_as_packets_were_kept() {
        let (counters, at) = (TrafficCounters::default(), Instant::from_nanos);
        counters.count(at(1), Side::Forward, 9);
        counters.keep_first();
        for ns in 2..=KEPT_PACKETS as u64 + 1 {
            counters.count(at(ns), if ns == 3 { Side::Reverse } else { Side::Forward }, 10);
        }
        let early = counters.before(at(4)).unwrap();
        assert_eq!(
            (early.forward, early.reverse),
            (Amount { packets: 1, bytes: 10 }, Amount { packets: 1, bytes: 10 })
        );
        assert_eq!(counters.before(at(2)), Some(Traffic::default()));
        assert!(counters.before(at(KEPT_PACKETS as u64 + 1)).is_some());
        assert_eq!(counters.before(at(KEPT_PACKETS as u64 + 2)), None, "there may have been more");
    }
}
