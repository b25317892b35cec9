//! What is under HTTP: a socket, and the tasks that drive the protocol on it, which end with it.

use crate::error::failed;
use crate::{Outcome, SocketReadback, TransportError, tcp};
use socket2::{SockRef, Socket};
use std::future::Future;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

/// What became of a connection, once it is over.
#[derive(Clone, Default)]
pub(super) struct Fate(Arc<Course>);

#[derive(Default)]
struct Course {
    end: OnceLock<(Outcome, String)>,
    /// Requests whose responses are still to come.
    under_way: AtomicUsize,
}

/// A request, as long as its response is not whole.
pub(super) struct UnderWay(Fate);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Fate {
    /// Counts a request.
    pub(super) fn begin(&self) -> UnderWay {
        self.0.under_way.fetch_add(1, Ordering::Relaxed);
        UnderWay(self.clone())
    }

    pub(super) fn is_idle(&self) -> bool {
        self.0.under_way.load(Ordering::Relaxed) == 0
    }

    /// The first that is said holds.
    pub(super) fn seal(&self, end: Result<(), TransportError>) {
        let _ = self.0.end.set(match end {
            Ok(()) => (Outcome::Closed, "the connection is closed".into()),
            Err(e) => (e.outcome, e.cause),
        });
    }

    /// What a call that finds the connection over fails with.
    pub(super) fn error(&self, what: &'static str) -> TransportError {
        match self.0.end.get() {
            Some((outcome, cause)) => TransportError::with(what, *outcome, cause.clone()),
            None => TransportError::closed(what),
        }
    }
}

/// The tasks of a connection.
#[derive(Clone, Default)]
pub(super) struct Tasks(Arc<Mutex<Vec<JoinHandle<()>>>>);

impl Tasks {
    pub(super) fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(tokio::spawn(work));
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_empty()
    }

    fn take(&self) -> Vec<JoinHandle<()>> {
        std::mem::take(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn abort(&self) {
        for task in self.take() {
            task.abort();
        }
    }
}

/// The socket, and what drives HTTP on it until this is dropped.
pub(super) struct Link {
    /// A second handle: the first belongs to what drives it.
    socket: Socket,
    pub(super) tasks: Tasks,
    pub(super) fate: Fate,
}

impl Link {
    pub(super) fn new(stream: &TcpStream) -> Result<Self, TransportError> {
        let socket = SockRef::from(stream).try_clone().map_err(failed("cannot share a socket"))?;
        Ok(Self { socket, tasks: Tasks::default(), fate: Fate::default() })
    }

    pub(super) fn readback(&self) -> Result<SocketReadback, TransportError> {
        tcp::readback(&SockRef::from(&self.socket))
    }

    /// Waits until all tasks are done.
    pub(super) async fn ended(&self) {
        let mut tasks = Ending(self.tasks.take());
        for task in &mut tasks.0 {
            // One that was aborted is done too.
            let _ = task.await;
        }
    }

    /// Drops what drives the connection.
    pub(super) fn cut(&self) {
        self.fate.seal(Ok(()));
        self.tasks.abort();
    }

    /// Resets the connection: what drives it is dropped, and the last handle on the socket with this.
    pub(super) fn abort(&self) {
        self.fate.seal(Err(TransportError::with("", Outcome::Reset, "this end dropped the connection")));
        // Not being connected any more is what is wanted.
        let _ = self.socket.set_linger(Some(Duration::ZERO));
        self.tasks.abort();
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.tasks.abort();
    }
}

/// Tasks that are waited for; they end also when that is given up.
struct Ending(Vec<JoinHandle<()>>);

impl Drop for Ending {
    fn drop(&mut self) {
        for task in &self.0 {
            task.abort();
        }
    }
}
