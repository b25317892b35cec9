//! The running emulator's punctuality: its thread writes, the progress thread reads.

use crate::realtime::run_and_wait_ns_of;
use crosswind_units::Duration;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};

/// The counts so far. A single thread writes them.
#[derive(Debug)]
pub struct Punctuality {
    late_after_ns: u64,
    released: AtomicU64,
    late: AtomicU64,
    error_ns: AtomicU64,
    thread: AtomicI32,
}

/// The counts at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Punctual {
    /// Packets out of the path.
    pub released: u64,
    /// Packets among them later than allowed.
    pub late: u64,
    /// Their total lateness, nanoseconds.
    pub error_ns: u64,
    /// The loop's wait for a processor, nanoseconds.
    pub wait_ns: u64,
}

impl Punctuality {
    /// A packet leaving more than `late_after` past its due time is late.
    pub const fn new(late_after: Duration) -> Self {
        Self {
            late_after_ns: late_after.as_nanos(),
            released: AtomicU64::new(0),
            late: AtomicU64::new(0),
            error_ns: AtomicU64::new(0),
            thread: AtomicI32::new(0),
        }
    }

    /// Makes the calling thread the one whose waiting counts.
    pub fn start(&self) {
        self.thread.store(nix::unistd::gettid().as_raw(), Ordering::Relaxed);
    }

    /// A packet left `error` after it was due.
    pub fn record(&self, error: Duration) {
        // A single thread writes: no read-modify-write is needed.
        self.released.store(self.released.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        let error_ns = error.as_nanos();
        self.error_ns.store(self.error_ns.load(Ordering::Relaxed) + error_ns, Ordering::Relaxed);
        if error_ns > self.late_after_ns {
            self.late.store(self.late.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
        }
    }

    /// The counts now.
    pub fn snapshot(&self) -> Punctual {
        Punctual {
            released: self.released.load(Ordering::Relaxed),
            late: self.late.load(Ordering::Relaxed),
            error_ns: self.error_ns.load(Ordering::Relaxed),
            wait_ns: run_and_wait_ns_of(self.thread.load(Ordering::Relaxed)).map_or(0, |(_, wait)| wait),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_is_later_than_allowed() {
        let punctuality = Punctuality::new(Duration::from_micros(10));
        for us in [0, 10, 11, 5000] {
            punctuality.record(Duration::from_micros(us));
        }
        assert_eq!(punctuality.snapshot(), Punctual { released: 4, late: 2, error_ns: 5_021_000, wait_ns: 0 });
    }
}
