//! A timer of the kernel's on a reactor, whose own timers have milliseconds.

use crate::error::{HostError, Result};
use crosswind_units::Duration;
use nix::sys::time::TimeSpec;
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};
use std::os::fd::{AsFd, AsRawFd, RawFd};
use tokio::io::unix::AsyncFd;

/// Waits for one moment after another.
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
    /// One on the calling thread's reactor.
    pub fn new() -> Result<Self> {
        let flags = TimerFlags::TFD_NONBLOCK | TimerFlags::TFD_CLOEXEC;
        let timer =
            TimerFd::new(ClockId::CLOCK_MONOTONIC, flags).map_err(|e| HostError::new("cannot make a timer", e))?;
        // SAFETY: the descriptor is owned by what is registered, is always the same one, and is closed only with it.
        let registered = unsafe { AsyncFd::register(Descriptor(timer)) };
        registered.map(Self).map_err(|e| HostError::new("cannot watch a timer", std::io::Error::from(e)))
    }

    /// Waits that long. One that cannot be set waits not at all: whoever reads the clock then sees it.
    pub async fn wait(&self, wait: Duration) {
        let timer = &self.0.get_ref().0;
        let wait = TimeSpec::from(std::time::Duration::from(wait.max(Duration::from_nanos(1))));
        if timer.set(Expiration::OneShot(wait), TimerSetTimeFlags::empty()).is_err() {
            return;
        }
        if let Ok(mut ready) = self.0.readable().await {
            ready.clear_ready();
            // Makes it unreadable until it is set again.
            let _ = nix::unistd::read(timer.as_fd(), &mut [0; size_of::<u64>()]);
        }
    }
}
