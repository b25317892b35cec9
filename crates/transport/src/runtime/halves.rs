//! One connection, used by a task that sends, a task that receives, and whoever ends it.

use crate::TransportError;
use crate::error::Outcome;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

/// Which of the two directions a task uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Half {
    Sending,
    Receiving,
}

/// A handle on `T`, which is dropped as soon as one of them ends it; the tasks that wait on it are then woken.
pub(crate) struct Halves<T>(Arc<Mutex<State<T>>>);

struct State<T> {
    whole: Result<T, Outcome>,
    waiting: [Option<Waker>; 2],
}

impl<T> Clone for Halves<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> Halves<T> {
    pub(crate) fn new(whole: T) -> Self {
        Self(Arc::new(Mutex::new(State { whole: Ok(whole), waiting: [None, None] })))
    }

    /// Polls `call` to its end, as `half`.
    pub(crate) async fn poll<R>(
        &self,
        half: Half,
        what: &'static str,
        mut call: impl FnMut(&mut T, &mut Context<'_>) -> Poll<Result<R, TransportError>>,
    ) -> Result<R, TransportError> {
        poll_fn(|context| {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let state = &mut *state;
            match &mut state.whole {
                Ok(whole) => {
                    let result = call(whole, context);
                    if result.is_pending() {
                        match &mut state.waiting[half as usize] {
                            Some(waker) => waker.clone_from(context.waker()),
                            place => *place = Some(context.waker().clone()),
                        }
                    }
                    result
                }
                Err(outcome) => Poll::Ready(Err(ended(what, *outcome))),
            }
        })
        .await
    }

    /// Looks at it. The error says how it ended.
    pub(crate) fn with<R>(
        &self,
        what: &'static str,
        look: impl FnOnce(&mut T) -> Result<R, TransportError>,
    ) -> Result<R, TransportError> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &mut state.whole {
            Ok(whole) => look(whole),
            Err(outcome) => Err(ended(what, *outcome)),
        }
    }

    /// Takes it away from all; whoever waits on it, or uses it later, has `outcome`.
    pub(crate) fn end(&self, outcome: Outcome) -> Option<T> {
        let (whole, waiting) = {
            let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if state.whole.is_err() {
                return None;
            }
            (std::mem::replace(&mut state.whole, Err(outcome)), std::mem::take(&mut state.waiting))
        };
        waiting.into_iter().flatten().for_each(Waker::wake);
        whole.ok()
    }
}

fn ended(what: &'static str, outcome: Outcome) -> TransportError {
    let cause = if outcome == Outcome::Closed { "the connection was closed" } else { "the connection was dropped" };
    TransportError::with(what, outcome, cause)
}

/// Wakes two tasks, which wait for the same thing where only one waker is kept.
pub(crate) fn both(one: &Waker, other: &Waker) -> Waker {
    Waker::from(Arc::new(Both(one.clone(), other.clone())))
}

struct Both(Waker, Waker);

impl Wake for Both {
    fn wake(self: Arc<Self>) {
        self.0.wake_by_ref();
        self.1.wake_by_ref();
    }
}
