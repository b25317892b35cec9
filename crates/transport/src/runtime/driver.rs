//! What drives a transport's calls: the thread that makes them, or a reactor.

use super::turns;
use crate::TransportError;
use std::future::{Future, poll_fn};
use std::io::ErrorKind;
use std::pin::{Pin, pin};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::time::{Instant, Sleep, sleep_until};

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
                Ok(reactor.block_on(turns::taken(work)))
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

/// Bounds one call after another, with one timer for all: to move its moment costs less than to make and drop a timer for each.
#[derive(Debug)]
pub struct Bound {
    driver: Driver,
    timer: Option<Pin<Box<Sleep>>>,
}

impl Bound {
    /// Of calls that `driver` drives.
    pub const fn new(driver: Driver) -> Self {
        Self { driver, timer: None }
    }

    /// `call`, bounded by `timeout`; on threads by the socket's.
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
