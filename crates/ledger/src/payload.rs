//! First and last delivery of a packet with payload, for each client port and side: a transfer's time on the wire. The
//! forwarding thread writes, the workload's threads reset and read; no thread waits for another.

use crosswind_path::Side;
use crosswind_units::Instant;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

const PORTS: usize = 1 << 16;
/// Stands for "no time was recorded". Times are stored plus one nanosecond, to keep the origin storable.
const NEVER: u64 = 0;

/// Ports per block: a page of memory.
const OF_A_BLOCK: usize = 256;

/// Times by client port and side. A block of ports has memory once one of them is used.
#[derive(Debug)]
pub struct PayloadClock {
    blocks: Box<[OnceLock<Block>]>,
}

type Block = Box<[Slot; OF_A_BLOCK]>;

#[derive(Debug)]
struct Slot {
    first: AtomicU64,
    last: AtomicU64,
}

impl PayloadClock {
    /// A clock without a recorded time.
    pub fn new() -> Self {
        Self { blocks: std::iter::repeat_with(OnceLock::new).take(2 * PORTS / OF_A_BLOCK).collect() }
    }

    /// A packet with payload on this client port's connection was delivered at `at`.
    pub fn record(&self, side: Side, client_port: u16, at: Instant) {
        let slot = self.slot(side, client_port);
        let stored = at.as_nanos().saturating_add(1);
        // `last` is written before `first`, so a reader with a `first` has a `last` no earlier.
        slot.last.fetch_max(stored, Ordering::Relaxed);
        let _ = slot.first.compare_exchange(NEVER, stored, Ordering::Release, Ordering::Relaxed);
    }

    /// Erases a port's times, before a new connection uses the port.
    pub fn reset(&self, side: Side, client_port: u16) {
        if self.block(side, client_port).get().is_none() {
            return;
        }
        let slot = self.slot(side, client_port);
        slot.first.store(NEVER, Ordering::Relaxed);
        slot.last.store(NEVER, Ordering::Relaxed);
    }

    /// A port's first and last time since its reset; `None` without payload.
    pub fn read(&self, side: Side, client_port: u16) -> Option<(Instant, Instant)> {
        let slot = &self.block(side, client_port).get()?[usize::from(client_port) % OF_A_BLOCK];
        let first = slot.first.load(Ordering::Acquire);
        if first == NEVER {
            return None;
        }
        // A reset between the two writes of `record` can leave `first` without `last`.
        let last = slot.last.load(Ordering::Relaxed).max(first);
        Some((Instant::from_nanos(first - 1), Instant::from_nanos(last - 1)))
    }

    fn slot(&self, side: Side, client_port: u16) -> &Slot {
        let empty = |_| Slot { first: AtomicU64::new(NEVER), last: AtomicU64::new(NEVER) };
        let block = self.block(side, client_port).get_or_init(|| Box::new(std::array::from_fn(empty)));
        &block[usize::from(client_port) % OF_A_BLOCK]
    }

    fn block(&self, side: Side, client_port: u16) -> &OnceLock<Block> {
        &self.blocks[(side.pick(0, PORTS) + usize::from(client_port)) / OF_A_BLOCK]
    }
}

impl Default for PayloadClock {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ns(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn a_port_has_its_first_and_last_time() {
        let clock = PayloadClock::new();
        assert_eq!(clock.read(Side::Forward, 40_000), None);
        for at in [0, 7, 9] {
            clock.record(Side::Forward, 40_000, ns(at));
        }
        assert_eq!(clock.read(Side::Forward, 40_000), Some((ns(0), ns(9))));
        clock.reset(Side::Forward, 40_000);
        assert_eq!(clock.read(Side::Forward, 40_000), None);
    }

    #[test]
    fn sides_and_ports_are_apart() {
        let clock = PayloadClock::new();
        clock.record(Side::Forward, u16::MAX, ns(1));
        clock.record(Side::Reverse, 0, ns(2));
        assert_eq!(clock.read(Side::Forward, u16::MAX), Some((ns(1), ns(1))));
        assert_eq!(clock.read(Side::Reverse, 0), Some((ns(2), ns(2))));
        assert_eq!(clock.read(Side::Reverse, u16::MAX), None);
        assert_eq!(clock.read(Side::Forward, 0), None);
    }

    #[test]
    fn a_reader_never_sees_an_end_before_a_beginning() {
        let clock = PayloadClock::new();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..100_000).for_each(|at| clock.record(Side::Forward, 1, ns(at))));
            scope.spawn(|| (0..1_000).for_each(|_| clock.reset(Side::Forward, 1)));
            for _ in 0..100_000 {
                if let Some((first, last)) = clock.read(Side::Forward, 1) {
                    assert!(first <= last, "{first:?} {last:?}");
                }
            }
        });
    }
}
