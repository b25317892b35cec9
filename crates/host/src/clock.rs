//! The real clock: `CLOCK_MONOTONIC`, counted from an origin.

use crosswind_units::{Duration, Instant};
use nix::time::{ClockId, clock_getres, clock_gettime};

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

    /// `CLOCK_MONOTONIC` at the origin, nanoseconds.
    pub const fn origin_ns(&self) -> u64 {
        self.origin_ns
    }

    /// The origin's Unix time, nanoseconds, by the wall clock's reading now.
    pub fn wall_clock_origin_ns(&self) -> u64 {
        read(ClockId::CLOCK_REALTIME).saturating_sub(self.now().as_nanos())
    }
}

/// The calling thread's CPU time, nanoseconds.
pub fn thread_cpu_ns() -> u64 {
    read(ClockId::CLOCK_THREAD_CPUTIME_ID)
}

/// How far the wall clock may be from true time, nanoseconds, as whoever sets it (NTP, PTP) has told the kernel (`adjtimex(2)`); none
/// where nobody sets it.
pub fn wall_clock_error_ns() -> Option<u64> {
    // SAFETY: every field of the struct is a number with zero valid; the kernel writes into it alone.
    let (state, time) = unsafe {
        let mut time: libc::timex = std::mem::zeroed();
        (libc::adjtimex(&raw mut time), time)
    };
    let is_set = state >= 0 && state != libc::TIME_ERROR && time.status & libc::STA_UNSYNC == 0;
    is_set.then(|| u64::try_from(time.maxerror).unwrap_or(u64::MAX).saturating_mul(1000))
}

/// The step of the kernel's coarse counts (1/HZ); 10 ms, the longest, if unknown.
pub fn kernel_tick() -> Duration {
    let step = clock_getres(ClockId::CLOCK_MONOTONIC_COARSE).map_or(0, |it| it.tv_nsec() as u64);
    Duration::from_nanos(if step > 0 { step } else { 10_000_000 })
}

fn read(id: ClockId) -> u64 {
    // These clocks exist in every Linux; a zero would make the cell's fidelity visibly invalid.
    clock_gettime(id).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}
