//! Waiting until it is time: threads sleep, a reactor uses a kernel timer, since its own has milliseconds.

use crate::WorkloadError;
use crosswind_host::{Clock, Timer};
use crosswind_transport::Driver;
use crosswind_units::{Duration, Instant};

/// Waits for moments, one after another.
pub enum Pace {
    /// Blocks the thread.
    Thread,
    /// Lets the reactor's other work go on.
    Reactor(Timer),
}

impl Pace {
    /// For a driver. On a reactor it has to be made there.
    pub fn new(driver: Driver) -> Result<Self, WorkloadError> {
        Ok(match driver {
            Driver::Thread => Self::Thread,
            Driver::Reactor => Self::Reactor(Timer::new()?),
        })
    }

    /// Waits until `time`.
    pub async fn until(&self, clock: Clock, time: Instant) {
        let wait = time.saturating_since(clock.now());
        if wait == Duration::ZERO {
            return;
        }
        match self {
            Self::Thread => std::thread::sleep(wait.into()),
            Self::Reactor(timer) => timer.wait(wait).await,
        }
    }
}
