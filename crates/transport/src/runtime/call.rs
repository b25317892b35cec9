//! The return type of transport methods that may wait.

use crate::TransportError;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

/// The result of polling without a value.
pub(crate) type PollDone = Poll<Result<(), TransportError>>;

/// A call in progress, or one done at once, without an allocation: a visible saving in a short message's round trip.
#[must_use = "nothing happens unless it is awaited"]
pub struct Call<'a, T>(State<'a, T>);

enum State<'a, T> {
    Done(Ready<Result<T, TransportError>>),
    InProgress(Pin<Box<dyn Future<Output = Result<T, TransportError>> + 'a>>),
}

impl<'a, T> Call<'a, T> {
    /// A call that has to wait.
    pub fn new(call: impl Future<Output = Result<T, TransportError>> + 'a) -> Self {
        Self(State::InProgress(Box::pin(call)))
    }

    /// A finished call with `result`.
    pub fn done(result: Result<T, TransportError>) -> Self {
        Self(State::Done(ready(result)))
    }
}

impl<T> Future for Call<'_, T> {
    type Output = Result<T, TransportError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            State::Done(result) => Pin::new(result).poll(context),
            State::InProgress(call) => call.as_mut().poll(context),
        }
    }
}
