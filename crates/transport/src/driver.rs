//! What drives a transport's calls: the thread that makes them, or a reactor.

use crate::TransportError;
use std::future::Future;
use std::io::ErrorKind;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// How calls are driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Each call blocks its thread and is done when it is first polled; timeouts are the socket's.
    Thread,
    /// A single-threaded tokio runtime drives all connections of a host.
    Reactor,
}

impl Driver {
    /// Runs `work` to its end on this thread.
    ///
    /// # Errors
    /// When the reactor cannot be made, for lack of file descriptors.
    pub fn run<F: Future>(self, work: F) -> Result<F::Output, TransportError> {
        match self {
            Self::Thread => Ok(now(work)),
            Self::Reactor => {
                let reactor = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .map_err(|cause| TransportError::new("cannot start a reactor", &cause))?;
                Ok(reactor.block_on(work))
            }
        }
    }

    /// `call`, bounded by `timeout`. On threads the socket's own timeout does that.
    pub async fn within<T>(
        self,
        timeout: Duration,
        what: &'static str,
        call: impl Future<Output = Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        match self {
            Self::Thread => call.await,
            Self::Reactor => within(timeout, what, call).await,
        }
    }
}

/// `call`, bounded by `timeout`, on a reactor.
pub async fn within<T>(
    timeout: Duration,
    what: &'static str,
    call: impl Future<Output = Result<T, TransportError>>,
) -> Result<T, TransportError> {
    tokio::time::timeout(timeout, call)
        .await
        .unwrap_or_else(|_| Err(TransportError::new(what, &ErrorKind::TimedOut.into())))
}

/// The result of a future whose every call blocks.
fn now<F: Future>(work: F) -> F::Output {
    let mut work = pin!(work);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = work.as_mut().poll(&mut context) {
            return result;
        }
        // Nobody would wake it: whatever it waits for, a thread's calls wait in the kernel.
        std::thread::yield_now();
    }
}
