//! The drivers of a transport's calls: the calling thread, or a tokio runtime.

use crate::TransportError;
use crate::runtime::beside::with_tasks;
use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

/// How calls are driven.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Driver {
    /// Each call blocks its thread, and is done when it is first polled. Time limits are the socket's.
    Thread,
    /// A tokio runtime with one thread drives all connections of a host.
    Reactor,
}

impl Driver {
    /// Runs `work` to its end on this thread.
    ///
    /// # Errors
    /// When the runtime cannot be made, for lack of file descriptors.
    pub fn run<F: Future>(self, work: F) -> Result<F::Output, TransportError> {
        match self {
            Self::Thread => Ok(poll_to_end(work)),
            Self::Reactor => {
                let runtime = tokio::runtime::Builder::new_current_thread()
                    .enable_all()
                    .build()
                    .map_err(|cause| TransportError::new("cannot start a runtime", &cause))?;
                Ok(runtime.block_on(with_tasks(work)))
            }
        }
    }

    /// `call` with a time limit; on threads the socket has its own.
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

/// `call`, with a time limit, on a reactor.
pub async fn within<T>(
    timeout: Duration,
    what: &'static str,
    call: impl Future<Output = Result<T, TransportError>>,
) -> Result<T, TransportError> {
    tokio::time::timeout(timeout, call)
        .await
        .unwrap_or_else(|_| Err(TransportError::new(what, &ErrorKind::TimedOut.into())))
}

/// Limits the time of successive calls with one timer: moving it costs less than a new timer for each call.
#[derive(Debug)]
pub struct Bound {
    driver: Driver,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Bound {
    /// For calls driven by `driver`.
    pub const fn new(driver: Driver) -> Self {
        Self { driver, timer: None }
    }

    /// `call` with a time limit; on threads the socket has its own.
    ///
    /// # Errors
    /// `Outcome::Timeout`, and the call's own.
    pub async fn within<T>(
        &mut self,
        timeout: Duration,
        what: &'static str,
        call: impl Future<Output = Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        if self.driver == Driver::Thread {
            return call.await;
        }
        let deadline = Instant::now() + timeout;
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        timer.as_mut().reset(deadline);
        let mut call = pin!(call);
        poll_fn(|context| {
            if let Poll::Ready(result) = call.as_mut().poll(context) {
                return Poll::Ready(result);
            }
            timer.as_mut().poll(context).map(|()| Err(TransportError::new(what, &ErrorKind::TimedOut.into())))
        })
        .await
    }
}

/// A future's output, with blocking calls only.
fn poll_to_end<F: Future>(work: F) -> F::Output {
    let mut work = pin!(work);
    let mut context = Context::from_waker(Waker::noop());
    loop {
        if let Poll::Ready(result) = work.as_mut().poll(&mut context) {
            return result;
        }
        // It yields without having to wait, since every call waits in the kernel, and nobody would wake it.
        std::thread::yield_now();
    }
}
