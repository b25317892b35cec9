//! The HTTP/1.1 and HTTP/2 client.

use super::body::{FromHyper, Outgoing, PartSender, empty, in_parts, whole};
use super::end::ConnectionEnd;
use super::errors;
use super::recording::Recording;
use super::version::Version;
use crate::http::body::Received;
use crate::http::features::MAX_HEADER_BYTES;
use crate::http::request::{Length, Requests};
use crate::runtime::tasks::Tasks;
use crate::settings::Http2Windows;
use crate::tcp::nonblocking::SocketHandle;
use crate::{Call, Connection, Outcome, Phases, Purpose, Receiver, Sender, SocketReadback, Stream, TransportError};
use crosswind_ledger::Position;
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::{Mutex, OwnedMutexGuard, mpsc, oneshot};
use tokio::task::JoinHandle;

/// A connection's state when HTTP begins on it.
pub(super) struct Established {
    pub(super) socket: SocketHandle,
    pub(super) phases: Phases,
    pub(super) client_port: u16,
    pub(super) windows: Http2Windows,
    pub(super) recording: Recording,
}

pub(super) struct Client {
    established: Established,
    tasks: Tasks,
    end: ConnectionEnd,
    /// Nothing once the connection is closed.
    handle: Option<Handle>,
    requests: Arc<Requests>,
}

/// Sends requests. HTTP/1.1 carries one at a time: the others wait in line.
enum Handle {
    Http1(Arc<Mutex<http1::SendRequest<Outgoing>>>),
    Http2(http2::SendRequest<Outgoing>),
}

impl Client {
    /// Starts HTTP over `io`, a socket or TLS over it.
    pub(super) async fn start(
        io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        version: Version,
        established: Established,
        requests: Requests,
    ) -> Result<Self, TransportError> {
        let failed = |e| errors::meaning("cannot begin HTTP", &e);
        let io = TokioIo::new(established.recording.below_http(io));
        let (mut tasks, end) = (Tasks::default(), ConnectionEnd::default());
        let ended = end.clone();
        let handle = match version {
            Version::Http1 => {
                let (handle, connection) = http1::handshake(io).await.map_err(failed)?;
                tasks.spawn(async move { ended.set(errors::end(connection.await, version)) });
                Handle::Http1(Arc::new(Mutex::new(handle)))
            }
            Version::Http2 => {
                let (report, mut started) = mpsc::unbounded_channel();
                let mut builder = http2::Builder::new(ReportingExecutor(report));
                builder
                    .initial_stream_window_size(established.windows.stream)
                    .initial_connection_window_size(established.windows.connection)
                    .max_header_list_size(MAX_HEADER_BYTES);
                let (handle, requests) = builder.handshake(io).await.map_err(failed)?;
                tasks.spawn(async move { ended.set(errors::end(requests.await, version)) });
                if let Ok(connection) = started.try_recv() {
                    tasks.add(connection);
                }
                Handle::Http2(handle)
            }
        };
        Ok(Self { established, tasks, end, handle: Some(handle), requests: Arc::new(requests) })
    }

    async fn open_stream(&self, purpose: Purpose) -> Result<Stream, TransportError> {
        let slot = match &self.handle {
            Some(handle) => handle.slot().await.map_err(|e| errors::error("cannot ask", &e, &self.end))?,
            None => return Err(self.end.error("cannot ask")),
        };
        let (pending, response) = oneshot::channel();
        let mut sender = ClientSender {
            requests: Arc::clone(&self.requests),
            end: self.end.clone(),
            purpose,
            unsent: Some((slot, pending)),
            parts: None,
            recording: self.established.recording.clone(),
            position: None,
        };
        if let Purpose::Download(bytes) = purpose {
            sender.ask(self.requests.download(bytes, empty())?)?;
        }
        Ok(Stream::new(sender, ClientReceiver { end: self.end.clone(), state: State::Unsent(response) }))
    }
}

/// Starts the tasks of an HTTP/2 client, and reports them. hyper reads and writes the connection in the first; each
/// other handles a request, and ends with it.
#[derive(Clone)]
struct ReportingExecutor(mpsc::UnboundedSender<JoinHandle<()>>);

impl<F: Future<Output = ()> + Send + 'static> hyper::rt::Executor<F> for ReportingExecutor {
    fn execute(&self, task: F) {
        // It fails when nobody receives reports any more.
        let _ = self.0.send(tokio::spawn(task));
    }
}

impl Handle {
    /// Waits until a request can be sent.
    async fn slot(&self) -> hyper::Result<Slot> {
        match self {
            Self::Http1(handle) => {
                let mut handle = Arc::clone(handle).lock_owned().await;
                handle.ready().await?;
                Ok(Slot::Http1(handle))
            }
            Self::Http2(handle) => {
                let mut handle = handle.clone();
                handle.ready().await?;
                Ok(Slot::Http2(handle))
            }
        }
    }

    /// Whether a response is outstanding at a close that cannot wait for it.
    fn is_busy(&self) -> bool {
        matches!(self, Self::Http1(handle) if handle.try_lock().is_err())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.end.set(Ok(()));
    }
}

impl Connection for Client {
    fn open(&self, purpose: Purpose) -> Call<'_, Stream> {
        Call::new(self.open_stream(purpose))
    }

    fn phases(&self) -> Phases {
        self.established.phases
    }

    /// The connection ends when nobody can send a request any more, and in HTTP/2 when every response has come.
    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async {
            let mut tasks = std::mem::take(&mut self.tasks);
            if self.handle.take().is_some_and(|handle| !handle.is_busy()) {
                tasks.ended().await;
            }
            // If this wait is given up or there is none, dropping the tasks ends the connection.
            Ok(())
        })
    }

    fn abort(&mut self) {
        self.end.set_aborted();
        self.handle = None;
        self.established.socket.reset_on_close();
        self.tasks.abort();
    }

    fn client_port(&self) -> u16 {
        self.established.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        self.established.socket.readback()
    }
}

/// The right to send one request; in HTTP/1.1 held until the response is whole.
enum Slot {
    Http1(OwnedMutexGuard<http1::SendRequest<Outgoing>>),
    Http2(http2::SendRequest<Outgoing>),
}

/// A request awaiting its response.
struct Pending {
    response: Pin<Box<dyn Future<Output = hyper::Result<Response<Incoming>>> + Send>>,
    turn: Option<OwnedMutexGuard<http1::SendRequest<Outgoing>>>,
}

impl Slot {
    fn send(self, request: Request<Outgoing>) -> Pending {
        match self {
            Self::Http1(mut handle) => Pending { response: Box::pin(handle.send_request(request)), turn: Some(handle) },
            Self::Http2(mut handle) => Pending { response: Box::pin(handle.send_request(request)), turn: None },
        }
    }
}

struct ClientSender {
    requests: Arc<Requests>,
    end: ConnectionEnd,
    purpose: Purpose,
    /// Nothing once the request is sent.
    unsent: Option<(Slot, oneshot::Sender<Pending>)>,
    /// A body sent in parts.
    parts: Option<PartSender>,
    recording: Recording,
    /// Where the request is, once it was sent.
    position: Option<Position>,
}

impl ClientSender {
    fn ask(&mut self, request: Request<Outgoing>) -> Result<(), TransportError> {
        let Some((slot, pending)) = self.unsent.take() else {
            return Err(TransportError::with("cannot send", Outcome::Error, "a stream carries one message"));
        };
        self.position = self.recording.begin_exchange();
        // If the receiver is gone, so is the interest in this request.
        let _ = pending.send(slot.send(request));
        Ok(())
    }

    fn send_whole(&mut self, message: &[u8]) -> Result<(), TransportError> {
        self.ask(self.requests.message(Length::Known(message.len() as u64), whole(message))?)
    }

    async fn send_part(&mut self, part: &[u8]) -> Result<(), TransportError> {
        if self.unsent.is_some() {
            let length = match self.purpose {
                Purpose::Upload(length) => length,
                Purpose::Messages | Purpose::Download(_) => None,
            };
            let (parts, body) = in_parts(length, &self.end);
            let announced = length.map_or(Length::Unknown, Length::Known);
            self.ask(match self.purpose {
                Purpose::Upload(_) => self.requests.upload(announced, body),
                Purpose::Messages | Purpose::Download(_) => self.requests.message(announced, body),
            }?)?;
            self.parts = Some(parts);
        }
        match &mut self.parts {
            Some(parts) => parts.send(part).await,
            None => Err(TransportError::with("cannot send", Outcome::Error, "the request is whole")),
        }
    }

    fn finish_parts(&mut self) -> Result<(), TransportError> {
        self.parts.take().map_or(Ok(()), PartSender::finish)
    }
}

impl Sender for ClientSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        match self.purpose {
            Purpose::Messages => Call::done(self.send_whole(message)),
            Purpose::Upload(_) => Call::new(self.send_part(message)),
            Purpose::Download(_) => Call::done(Ok(())),
        }
    }

    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        match self.purpose {
            Purpose::Messages | Purpose::Upload(_) => Call::new(self.send_part(part)),
            Purpose::Download(_) => Call::done(Ok(())),
        }
    }

    fn position(&self) -> Option<Position> {
        self.position
    }

    fn finish(&mut self) -> Call<'_, ()> {
        if self.unsent.is_some() && matches!(self.purpose, Purpose::Upload(_)) {
            // An empty upload is a request all the same.
            return Call::new(async {
                self.send_part(&[]).await?;
                self.finish_parts()
            });
        }
        Call::done(self.finish_parts())
    }
}

struct ClientReceiver {
    end: ConnectionEnd,
    state: State,
}

enum State {
    /// The request has not been sent.
    Unsent(oneshot::Receiver<Pending>),
    Sent(Pending),
    /// The response's header has come.
    Body(Received<FromHyper>, Option<OwnedMutexGuard<http1::SendRequest<Outgoing>>>),
    Failed,
}

impl ClientReceiver {
    /// The response's body, once its header has come.
    async fn body(&mut self) -> Result<&mut Received<FromHyper>, TransportError> {
        const WHAT: &str = "cannot receive";
        while !matches!(self.state, State::Body(..) | State::Failed) {
            let next = match &mut self.state {
                State::Unsent(pending) => pending.await.map(State::Sent).map_err(|_| self.end.error(WHAT)),
                State::Sent(pending) => match pending.response.as_mut().await {
                    Ok(response) => begin_body(response, pending.turn.take(), &self.end),
                    Err(e) => Err(errors::error(WHAT, &e, &self.end)),
                },
                State::Body(..) | State::Failed => break,
            };
            self.state = match next {
                Ok(state) => state,
                Err(e) => {
                    self.state = State::Failed;
                    return Err(e);
                }
            };
        }
        match &mut self.state {
            State::Body(body, _) => Ok(body),
            _ => Err(TransportError::closed(WHAT)),
        }
    }

    /// Lets the next HTTP/1.1 request begin, if the response is whole.
    fn end_turn(&mut self) {
        if let State::Body(body, turn) = &mut self.state
            && body.is_over()
        {
            *turn = None;
        }
    }
}

fn begin_body(
    response: Response<Incoming>,
    turn: Option<OwnedMutexGuard<http1::SendRequest<Outgoing>>>,
    end: &ConnectionEnd,
) -> Result<State, TransportError> {
    let status = response.status();
    if !status.is_success() {
        let cause = format!("the server answered {status}");
        return Err(TransportError::with("cannot receive", Outcome::Protocol, cause));
    }
    let body = FromHyper { body: response.into_body(), end: end.clone() };
    Ok(State::Body(Received::new(body), turn))
}

impl Receiver for ClientReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(async {
            let received = self.body().await?.message(into).await;
            self.end_turn();
            received
        })
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(async {
            let received = self.body().await?.some(into).await;
            self.end_turn();
            received
        })
    }
}
