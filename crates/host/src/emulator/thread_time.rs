//! The emulator's thread: processor, priority, run time and wait.

use crate::clock::{Clock, thread_cpu_ns};
use crate::error::{HostError, Result};
use crate::realtime;
use crosswind_ledger::Starvation;
use crosswind_units::Instant;

/// The calling thread's time since it was prepared.
pub struct ThreadTime {
    realtime: bool,
    /// Its run time and wait at the start, nanoseconds.
    before: (u64, u64),
    started: Instant,
}

impl ThreadTime {
    /// Pins the calling thread to `cpus` (unless there are none), raises its priority, and begins to count.
    pub fn start(cpus: &[usize], clock: Clock) -> Result<Self> {
        if !cpus.is_empty() {
            realtime::pin(cpus)?;
        }
        realtime::sharpen_timers();
        let realtime = realtime::raise_priority();
        Ok(Self { realtime, started: clock.now(), before: realtime::run_and_wait_ns().unwrap_or_default() })
    }

    /// An unprepared thread: it counts from its creation.
    pub const fn unprepared() -> Self {
        Self { realtime: false, started: Instant::ZERO, before: (0, 0) }
    }

    /// Whether it has real-time priority.
    pub const fn is_realtime(&self) -> bool {
        self.realtime
    }

    /// Its run time and wait so far.
    pub fn starvation(&self, clock: Clock) -> Result<Starvation> {
        let (run, wait) = realtime::run_and_wait_ns().map_err(|e| HostError::new("cannot read schedstat", e))?;
        Ok(Starvation {
            run_ns: run - self.before.0,
            wait_ns: wait - self.before.1,
            elapsed_ns: (clock.now() - self.started).as_nanos(),
        })
    }

    /// Its CPU time since its creation.
    pub fn cpu_ns() -> u64 {
        thread_cpu_ns()
    }
}
