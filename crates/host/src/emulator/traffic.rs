//! Packets and bytes that the hosts have sent into the path so far: the emulator's thread writes, other threads read.

use crosswind_path::Side;
use schemars::JsonSchema;
use serde::Serialize;
use std::ops::Sub;
use std::sync::atomic::{AtomicU64, Ordering};

/// The counts so far. A single thread writes them.
#[derive(Debug, Default)]
pub struct TrafficCounters {
    packets: [AtomicU64; 2],
    bytes: [AtomicU64; 2],
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
    pub(crate) fn count(&self, side: Side, bytes: u64) {
        // A single thread writes: no read-modify-write is needed.
        for (counter, more) in [(&self.packets, 1), (&self.bytes, bytes)] {
            let counter = &counter[side as usize];
            counter.store(counter.load(Ordering::Relaxed) + more, Ordering::Relaxed);
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
        let counters = TrafficCounters::default();
        counters.count(Side::Forward, 60);
        let before = counters.read();
        counters.count(Side::Forward, 41);
        counters.count(Side::Reverse, 1500);
        let between = counters.read() - before;
        assert_eq!(between.forward, Amount { packets: 1, bytes: 41 });
        assert_eq!(between.reverse, Amount { packets: 1, bytes: 1500 });
    }
}
