//! The real clock: `CLOCK_MONOTONIC`, counted from an origin.

use crosswind_units::Instant;
use nix::time::{ClockId, clock_gettime};

/// Reads time since its origin. Copies share the origin.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    origin_ns: u64,
}

impl Clock {
    /// A clock that reads zero now.
    pub fn start() -> Self {
        Self { origin_ns: read(ClockId::CLOCK_MONOTONIC) }
    }

    /// Time since the origin.
    pub fn now(&self) -> Instant {
        Instant::from_nanos(read(ClockId::CLOCK_MONOTONIC).saturating_sub(self.origin_ns))
    }

    /// What `CLOCK_MONOTONIC` showed at the origin, nanoseconds.
    pub const fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// Unix time of the origin, nanoseconds, by the wall clock's reading now.
    pub fn wall_clock_origin_ns(&self) -> u64 {
        read(ClockId::CLOCK_REALTIME).saturating_sub(self.now().as_nanos())
    }
}

/// CPU time that the calling thread has used, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

fn read(id: ClockId) -> u64 {
    // These clocks exist in every Linux; a zero would make the cell's fidelity visibly invalid.
    clock_gettime(id).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}
