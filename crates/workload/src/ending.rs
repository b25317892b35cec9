//! When a flow's clients stop beside a cell's workload: at a time of its own, or with that workload.

use crosswind_host::Clock;
use crosswind_transport::{Outcome, TransportError};
use crosswind_units::{Duration, Instant};
use std::future::Future;
use std::sync::{Condvar, Mutex, PoisonError};
use tokio::sync::Notify;

/// Ends every wait on a connection, from another thread.
type Interrupt = Box<dyn Fn() + Send>;

/// A flow's end, decided elsewhere.
#[derive(Default)]
pub struct Ending {
    state: Mutex<State>,
    changed: Condvar,
    /// Wakes waits on a reactor.
    over: Notify,
}

#[derive(Default)]
struct State {
    at: Option<Instant>,
    open: Vec<Interrupt>,
}

impl Ending {
    /// Its clients stop now.
    pub fn end(&self, now: Instant) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.at.get_or_insert(now);
        for interrupt in state.open.drain(..) {
            interrupt();
        }
        drop(state);
        self.changed.notify_all();
        self.over.notify_waiters();
    }

    /// When they stopped, if they have.
    pub fn at(&self) -> Option<Instant> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).at
    }

    /// Waits until `time`; false if the flow was ended before.
    pub fn wait_until(&self, clock: Clock, time: Instant) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            if state.at.is_some() {
                return false;
            }
            let left = time.saturating_since(clock.now());
            if left == Duration::ZERO {
                return true;
            }
            state = self.changed.wait_timeout(state, left.into()).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// A connection with blocking calls is open: `interrupt` ends its waits.
    pub(crate) fn watch(&self, interrupt: Interrupt) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if state.at.is_some() {
            interrupt();
        } else {
            state.open.push(interrupt);
        }
    }

    /// `call`, on a reactor, until the flow is ended.
    pub(crate) async fn bound<T>(
        &self,
        what: &'static str,
        call: impl Future<Output = Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        let over = self.over.notified();
        tokio::pin!(over);
        over.as_mut().enable();
        if self.at().is_some() {
            return Err(stopped(what));
        }
        tokio::select! {
            biased;
            result = call => result,
            () = over => Err(stopped(what)),
        }
    }
}

/// The error for calls interrupted by the flow's end.
pub(crate) fn stopped(what: &'static str) -> TransportError {
    TransportError::with(what, Outcome::Closed, "the flow was stopped")
}
