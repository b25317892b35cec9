//! A kernel timer for an async reactor, whose own timers are only exact to a millisecond.

use crate::error::{HostError, Result};
use crosswind_units::Duration;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use tokio::io::unix::AsyncFd;

/// A reusable timer.
#[derive(Debug)]
pub struct Timer(AsyncFd<Descriptor>);

#[derive(Debug)]
struct Descriptor(TimerFd);

impl AsRawFd for Descriptor {
    fn as_raw_fd(&self) -> RawFd {
        self.0.as_fd().as_raw_fd()
    }
}

impl Timer {
    /// A timer on the calling thread's reactor.
    pub fn new() -> Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(|e| HostError::new("cannot make a timer", e))?;
        // SAFETY: the registered object owns the descriptor, never changes it, and closes it only when it is dropped.
        let registered = unsafe { AsyncFd::register(Descriptor(timer)) };
        registered.map(Self).map_err(|e| HostError::new("cannot watch a timer", std::io::Error::from(e)))
    }

    /// Waits for `wait`. If the timer cannot be set it does not wait; the caller reads the clock anyway.
    pub async fn wait(&self, wait: Duration) {
        let timer = &self.0.get_ref().0;
        let wait = TimeSpec::from(std::time::Duration::from(wait.max(Duration::from_nanos(1))));
        if timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty()).is_err() {
            return;
        }
        if let Ok(mut ready) = self.0.readable().await {
            ready.clear_ready();
            // The timer then stays unreadable until it is set again.
            let _ = nix::unistd::read(timer.as_fd(), &mut [0; size_of::<u64>()]);
        }
    }
}
