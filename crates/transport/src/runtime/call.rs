use crate::TransportError;
use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A call under way, or done at once: that costs no allocation, which a short message would notice.
#[must_use = "nothing happens unless it is awaited"]
pub struct Call<'a, T>(Course<'a, T>);

enum Course<'a, T> {
    Done(Ready<Result<T, TransportError>>),
    UnderWay(Pin<Box<dyn Future<Output = Result<T, TransportError>> + 'a>>),
}

impl<'a, T> Call<'a, T> {
    /// One that waits for something.
    pub fn new(call: impl Future<Output = Result<T, TransportError>> + 'a) -> Self {
        Self(Course::UnderWay(Box::pin(call)))
    }

    /// One that has come to `result`.
    pub fn done(result: Result<T, TransportError>) -> Self {
        Self(Course::Done(ready(result)))
    }
}

impl<T> Future for Call<'_, T> {
    type Output = Result<T, TransportError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut self.0 {
            Course::Done(result) => Pin::new(result).poll(context),
            Course::UnderWay(call) => call.as_mut().poll(context),
        }
    }
}
