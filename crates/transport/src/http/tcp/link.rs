//! What is under HTTP over TCP: a socket, and what became of it.

use crate::error::failed;
use crate::{Outcome, SocketReadback, TransportError, tcp};
use socket2::{SockRef, Socket};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use tokio::net::TcpStream;

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

/// The socket of a connection, and its fate.
pub(super) struct Link {
    /// A second handle: the first belongs to what drives it.
    socket: Socket,
    pub(super) fate: Fate,
}

impl Link {
    pub(super) fn new(stream: &TcpStream) -> Result<Self, TransportError> {
        let socket = SockRef::from(stream).try_clone().map_err(failed("cannot share a socket"))?;
        Ok(Self { socket, fate: Fate::default() })
    }

    pub(super) fn readback(&self) -> Result<SocketReadback, TransportError> {
        tcp::readback(&SockRef::from(&self.socket))
    }

    /// The connection is to be reset, once what drives it is dropped, and the last handle on the socket with this.
    pub(super) fn abort(&self) {
        self.fate.seal(Err(TransportError::with("", Outcome::Reset, "this end dropped the connection")));
        // Not being connected any more is what is wanted.
        let _ = self.socket.set_linger(Some(Duration::ZERO));
    }
}
