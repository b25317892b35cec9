//! What drives HTTP at a server: whoever waits for something of the connection. A task of its own would have to wake them, and
//! they it, for every request.

use super::link::Fate;
use super::{Version, errors};
use crate::TransportError;
use futures_util::stream::{FuturesUnordered, StreamExt};
use futures_util::task::AtomicWaker;
use std::future::{Future, poll_fn};
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

type Work = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Where hyper puts what it does for each request of HTTP/2.
#[derive(Clone, Default)]
pub(super) struct Works(Arc<Mutex<Vec<Work>>>);

impl Works {
    fn take(&self) -> Vec<Work> {
        std::mem::take(&mut lock(&self.0))
    }
}

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for Works {
    fn execute(&self, work: F) {
        lock(&self.0).push(Box::pin(work));
    }
}

/// A connection of hyper's, and how it is asked to wind up.
pub(super) trait Serving: Send {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>>;
    fn wind_up(&mut self);
}

/// Either version's.
pub(super) struct Of<C> {
    pub(super) connection: Pin<Box<C>>,
    pub(super) wind_up: fn(Pin<&mut C>),
}

impl<C: Future<Output = hyper::Result<()>> + Send> Serving for Of<C> {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        self.connection.as_mut().poll(context)
    }

    fn wind_up(&mut self) {
        (self.wind_up)(self.connection.as_mut());
    }
}

/// The connection, as long as it is not over.
#[derive(Clone)]
pub(super) struct Engine(Arc<Inner>);

struct Inner {
    running: Mutex<Option<Running>>,
    bell: Arc<Bell>,
    /// Of the bell.
    waker: Waker,
    fate: Fate,
}

/// What the connection wakes: it need not be looked at before.
struct Bell {
    rung: AtomicBool,
    waiting: AtomicWaker,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.waiting.wake();
    }
}

struct Running {
    connection: Box<dyn Serving>,
    version: Version,
    new: Works,
    works: FuturesUnordered<Work>,
}

impl Engine {
    /// Drives `connection`, whose requests' work comes in `works`, to its `fate`.
    pub(super) fn new(connection: Box<dyn Serving>, version: Version, works: Works, fate: Fate) -> Self {
        let running = Running { connection, version, new: works, works: FuturesUnordered::new() };
        let bell = Arc::new(Bell { rung: AtomicBool::new(true), waiting: AtomicWaker::new() });
        let waker = Arc::clone(&bell).into();
        Self(Arc::new(Inner { running: Mutex::new(Some(running)), bell, waker, fate }))
    }

    /// As far as it goes now; ready once the connection is over.
    pub(super) fn poll(&self, context: &mut Context<'_>) -> Poll<()> {
        let Inner { running, bell, waker, fate } = &*self.0;
        let mut running = lock(running);
        let Some(one) = running.as_mut() else { return Poll::Ready(()) };
        bell.waiting.register(context.waker());
        if !bell.rung.swap(false, Ordering::AcqRel) {
            return Poll::Pending;
        }
        let end = one.poll(&mut Context::from_waker(waker));
        let Poll::Ready(end) = end else { return Poll::Pending };
        fate.seal(errors::end(end, one.version, fate));
        *running = None;
        Poll::Ready(())
    }

    /// `wanted`, which the connection brings.
    pub(super) async fn until<T>(
        &self,
        wanted: impl Future<Output = Result<T, TransportError>>,
    ) -> Result<T, TransportError> {
        let mut wanted = pin!(wanted);
        poll_fn(|context| {
            if let Poll::Ready(done) = wanted.as_mut().poll(context) {
                return Poll::Ready(done);
            }
            let _ = self.poll(context);
            wanted.as_mut().poll(context)
        })
        .await
    }

    /// Lets what is under way come to its end.
    pub(super) async fn wind_up(&self) {
        if let Some(running) = lock(&self.0.running).as_mut() {
            running.connection.wind_up();
            self.0.waker.wake_by_ref();
        }
        poll_fn(|context| self.poll(context)).await;
    }

    /// Drops the connection as it is.
    pub(super) fn stop(&self) {
        let running = lock(&self.0.running).take();
        // What is dropped may wake somebody who looks here.
        drop(running);
    }
}

impl Running {
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<hyper::Result<()>> {
        let end = self.connection.poll(context);
        self.works.extend(self.new.take());
        while let Poll::Ready(Some(())) = self.works.poll_next_unpin(context) {}
        end
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
