//! Records hyper's and TLS's socket writes, to find a request's bytes: hyper writes later than it is handed something.

use super::version::Version;
use crate::runtime::shared::lock;
use crosswind_host::Clock;
use crosswind_ledger::{HttpEnd, HttpRecorder, Position};
use crosswind_units::Instant;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

type Recorder = Arc<Mutex<HttpRecorder>>;

/// The writes of HTTP/1.1 and HTTP/2 connection ends.
#[derive(Debug)]
pub struct HttpEnds {
    clock: Clock,
    most: usize,
    /// The client's and the server's.
    ends: [Mutex<Vec<Recorder>>; 2],
}

impl HttpEnds {
    /// Records at most so many writes per end, timed by `clock`.
    pub fn new(clock: Clock, most: usize) -> Self {
        Self { clock, most, ends: Default::default() }
    }

    /// The client's and the server's writes; connections are over.
    pub fn take(&self) -> [Vec<HttpEnd>; 2] {
        self.ends.each_ref().map(|ends| {
            let ends = std::mem::take(&mut *lock(ends));
            ends.iter().map(|it| std::mem::replace(&mut *lock(it), HttpRecorder::http1(0, 0)).finish()).collect()
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Client,
    Server,
}

/// Records one end of a connection, if wanted.
#[derive(Clone)]
pub(super) struct Recording {
    known: Option<(Arc<HttpEnds>, Recorder)>,
    version: Version,
}

impl Recording {
    pub(super) fn start(
        ends: Option<&Arc<HttpEnds>>,
        end: End,
        version: Version,
        is_secure: bool,
        client_port: u16,
    ) -> Self {
        let known = ends.map(|ends| {
            let recorder = match version {
                Version::Http1 => HttpRecorder::http1(client_port, ends.most),
                Version::Http2 => HttpRecorder::http2(client_port, end == End::Client, ends.most),
            };
            let recorder = Arc::new(Mutex::new(if is_secure { recorder.over_tls() } else { recorder }));
            lock(&ends.ends[end as usize]).push(Arc::clone(&recorder));
            (Arc::clone(ends), recorder)
        });
        Self { known, version }
    }

    /// The layer below TLS, with its records recorded.
    pub(super) fn below_tls<T>(&self, io: T) -> Recorded<T> {
        Recorded { io, recording: self.clone(), what: What::Records }
    }

    /// The layer below HTTP, recorded from now on.
    pub(super) fn below_http<T>(&self, io: T) -> Recorded<T> {
        if let Some((ends, recorder)) = &self.known {
            lock(recorder).begin(ends.clock.now());
        }
        Recorded { io, recording: self.clone(), what: What::Http }
    }

    /// Begins the next request. Returns its position and its answer's: an HTTP/2 stream (a client's are opened in turn
    /// with odd numbers, RFC 9113, section 5.1.1), or an HTTP/1.1 exchange number.
    pub(super) fn begin_exchange(&self) -> Option<Position> {
        let number = lock(&self.known.as_ref()?.1).begin_exchange();
        Some(Position::whole_stream(match self.version {
            Version::Http1 => number,
            Version::Http2 => 2 * number - 1,
        }))
    }

    fn now(&self) -> Option<Instant> {
        self.known.as_ref().map(|(ends, _)| ends.clock.now())
    }

    fn write(&self, what: What, at: Instant, parts: &[IoSlice<'_>], length: usize) {
        let Some((_, recorder)) = &self.known else { return };
        let (mut recorder, mut left) = (lock(recorder), length);
        for part in parts {
            let written = part.get(..left).unwrap_or(part);
            left -= written.len();
            match what {
                What::Http => recorder.write(at, written),
                What::Records => recorder.write_record(written),
            }
        }
    }
}

/// The data passing through a [`Recorded`].
#[derive(Clone, Copy)]
enum What {
    Http,
    Records,
}

/// A socket, or TLS over one, with recorded writes.
pub(super) struct Recorded<T> {
    io: T,
    recording: Recording,
    what: What,
}

impl<T> Recorded<T> {
    /// Writes by `write`. Its packets may leave before it returns, so its time is its beginning.
    fn write(
        &mut self,
        parts: &[IoSlice<'_>],
        write: impl FnOnce(&mut T) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let at = self.recording.now();
        let written = write(&mut self.io);
        if let (Some(at), Poll::Ready(Ok(length))) = (at, &written) {
            self.recording.write(self.what, at, parts, *length);
        }
        written
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Recorded<T> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(context, into)
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Recorded<T> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, data: &[u8]) -> Poll<io::Result<usize>> {
        self.write(&[IoSlice::new(data)], |io| Pin::new(io).poll_write(context, data))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.write(parts, |io| Pin::new(io).poll_write_vectored(context, parts))
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(context)
    }
}
