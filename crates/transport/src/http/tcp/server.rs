//! The server of HTTP/1.1 and HTTP/2.

use super::Version;
use super::body::{Outgoing, Tap, pieces};
use super::engine::{Driven, Engine, Of, Turn, Works};
use super::link::{Fate, Link, UnderWay};
use super::pieces::FromHyper;
use crate::http::pieces::Arriving;
use crate::http::request::{ALLOWED, Route, route};
use crate::http::{CONNECTION_WINDOW, MOST_HEADER_BYTES, MOST_STREAMS, STREAM_WINDOW};
use crate::tcp::nonblocking::Listening;
use crate::tls::handshake;
use crate::{Call, Connection, Listener, Receiver, Sender, SocketReadback, Stream, TransportError};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_LENGTH};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Waits for connections.
pub(super) struct Server {
    pub(super) listening: Listening,
    pub(super) acceptor: Option<TlsAcceptor>,
    pub(super) version: Version,
}

impl Listener for Server {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listening.address()
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async {
            let (stream, client) = self.listening.accept().await?;
            let link = Link::new(&stream)?;
            let state = match &self.acceptor {
                Some(acceptor) => {
                    let acceptor = acceptor.clone();
                    State::Securing(Box::pin(async move { handshake::server(stream, &acceptor).await }))
                }
                None => State::Fresh(stream),
            };
            Ok(Box::new(Served { link, version: self.version, port: client.port(), state }) as Box<dyn Connection>)
        })
    }
}

/// The server's end of a connection.
struct Served {
    link: Link,
    version: Version,
    port: u16,
    state: State,
}

enum State {
    /// HTTP has not begun.
    Fresh(TcpStream),
    /// Nor has it here. A handshake is kept, so that a wait for it can be given up and taken up again.
    Securing(Pin<Box<dyn Future<Output = Result<TlsStream<TcpStream>, TransportError>> + Send>>),
    Serving(Engine, Arc<Queue>),
    Over,
}

/// Requests that wait to be accepted as streams.
#[derive(Default)]
struct Queue(Mutex<Waiting>);

#[derive(Default)]
struct Waiting {
    requests: VecDeque<Exchange>,
    /// Whoever accepts them.
    taker: Option<Waker>,
    /// Nobody does any more.
    unwanted: bool,
}

/// A request, and where its response goes.
struct Exchange {
    asked: Option<u64>,
    request: Incoming,
    answer: oneshot::Sender<Response<Outgoing>>,
}

impl Queue {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// False if nobody takes requests any more.
    fn put(&self, exchange: Exchange) -> bool {
        let mut waiting = self.lock();
        if waiting.unwanted {
            return false;
        }
        waiting.requests.push_back(exchange);
        if let Some(taker) = waiting.taker.take() {
            taker.wake();
        }
        true
    }

    /// The next, for who is about to drive the connection, and needs not be woken for what that brings.
    fn take(&self) -> Option<Exchange> {
        let mut waiting = self.lock();
        waiting.taker = None;
        waiting.requests.pop_front()
    }

    fn poll(&self, context: &mut Context<'_>) -> Poll<Exchange> {
        let mut waiting = self.lock();
        if let Some(exchange) = waiting.requests.pop_front() {
            return Poll::Ready(exchange);
        }
        waiting.taker = Some(context.waker().clone());
        Poll::Pending
    }

    /// Those that nobody took are answered 500.
    fn close(&self) {
        let mut waiting = self.lock();
        waiting.unwanted = true;
        let left = std::mem::take(&mut waiting.requests);
        drop(waiting);
        drop(left);
    }
}

impl Served {
    /// HTTP begins, once the handshakes are over.
    async fn begin(&mut self) -> Result<(), TransportError> {
        match &mut self.state {
            State::Securing(handshake) => {
                let secured = handshake.await;
                self.state = State::Over;
                self.serve(secured?);
            }
            State::Fresh(_) => {
                if let State::Fresh(stream) = std::mem::replace(&mut self.state, State::Over) {
                    self.serve(stream);
                }
            }
            State::Serving(..) | State::Over => {}
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Stream, TransportError> {
        let State::Serving(engine, queue) = &self.state else {
            return Err(self.link.fate.error("cannot accept a stream"));
        };
        let mut waiter = engine.waiter();
        poll_fn(|context| {
            let next = waiter.drive(context, |_, turn| match queue.take() {
                Some(exchange) => Poll::Ready(Ok(exchange)),
                None if turn == Turn::Over => Poll::Ready(Err(self.link.fate.error("cannot accept a stream"))),
                None => Poll::Pending,
            });
            if next.is_pending() { queue.poll(context).map(Ok) } else { next }
        })
        .await
        .map(|exchange| exchange.into_stream(engine, &self.link.fate))
    }

    fn serve(&mut self, io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let queue = Arc::new(Queue::default());
        let (io, fate, works) = (TokioIo::new(io), self.link.fate.clone(), Works::default());
        let service = {
            let queue = Arc::clone(&queue);
            service_fn(move |request| handle(request, &queue))
        };
        let driven: Box<dyn Driven> = match self.version {
            Version::One => Box::new(Of {
                connection: Box::pin(http1::Builder::new().serve_connection(io, service)),
                wind_up: http1::Connection::graceful_shutdown,
            }),
            Version::Two => {
                let connection = http2::Builder::new(works.clone())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .max_concurrent_streams(MOST_STREAMS)
                    .max_header_list_size(MOST_HEADER_BYTES)
                    .serve_connection(io, service);
                Box::new(Of { connection: Box::pin(connection), wind_up: http2::Connection::graceful_shutdown })
            }
        };
        self.state = State::Serving(Engine::new(driven, self.version, works, fate), queue);
    }

    /// Streams may still hold the engine: what it drives ends all the same.
    fn stop(&mut self) {
        if let State::Serving(engine, _) = std::mem::replace(&mut self.state, State::Over) {
            engine.stop();
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop();
    }
}

/// One request, from its header to the header of its response.
fn handle(request: Request<Incoming>, queue: &Queue) -> Answering {
    let asked = match route(request.method(), request.uri().path()) {
        Route::Stream(asked) => asked,
        Route::Answer(status, length) => return Answering::Known(status, length),
    };
    let (answer, answered) = oneshot::channel();
    if queue.put(Exchange { asked, request: request.into_body(), answer }) {
        Answering::Awaited(answered)
    } else {
        Answering::Known(StatusCode::SERVICE_UNAVAILABLE, None)
    }
}

/// What hyper waits for.
enum Answering {
    Known(StatusCode, Option<u64>),
    Awaited(oneshot::Receiver<Response<Outgoing>>),
}

impl Future for Answering {
    type Output = Result<Response<Outgoing>, Infallible>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Known(status, length) => Poll::Ready(Ok(bare(*status, *length))),
            // Dropped without an answer.
            Self::Awaited(answered) => Pin::new(answered)
                .poll(context)
                .map(|answer| Ok(answer.unwrap_or_else(|_| bare(StatusCode::INTERNAL_SERVER_ERROR, None)))),
        }
    }
}

/// A response without a body, which may say how long one would be.
fn bare(status: StatusCode, length: Option<u64>) -> Response<Outgoing> {
    let mut response = Response::new(Outgoing::empty());
    *response.status_mut() = status;
    if let Some(length) = length {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, ALLOWED);
    }
    response
}

impl Connection for Served {
    fn open(&self, _purpose: crate::Purpose) -> Call<'_, Stream> {
        Call::done(Err(TransportError::unsupported("cannot open a stream at a server")))
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        if matches!(self.state, State::Serving(..)) {
            return Call::new(self.next());
        }
        Call::new(async {
            self.begin().await?;
            self.next().await
        })
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async {
            if let State::Serving(engine, queue) = &self.state {
                queue.close();
                engine.wind_up().await;
            }
            self.state = State::Over;
            Ok(())
        })
    }

    fn abort(&mut self) {
        self.link.abort();
        self.stop();
    }

    fn client_port(&self) -> u16 {
        self.port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        self.link.readback()
    }
}

impl Exchange {
    fn into_stream(self, engine: &Engine, fate: &Fate) -> Stream {
        let body = Arriving::new(FromHyper { body: self.request, fate: fate.clone() });
        let sender = ServerSender {
            engine: engine.clone(),
            fate: fate.clone(),
            asked: self.asked,
            answer: Some(self.answer),
            tap: None,
            _under_way: fate.begin(),
        };
        Stream { asked: self.asked, ..Stream::new(sender, ServerReceiver { engine: engine.clone(), body }) }
    }
}

struct ServerReceiver {
    engine: Engine,
    body: Arriving<FromHyper>,
}

impl Receiver for ServerReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.engine.until(self.body.whole(into)))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.engine.until(self.body.some(into)))
    }
}

struct ServerSender {
    engine: Engine,
    fate: Fate,
    asked: Option<u64>,
    /// Nothing once the response is on its way.
    answer: Option<oneshot::Sender<Response<Outgoing>>>,
    tap: Option<Tap>,
    _under_way: UnderWay,
}

impl ServerSender {
    fn respond(&mut self, body: Outgoing) -> Result<(), TransportError> {
        let Some(answer) = self.answer.take() else {
            return Err(TransportError::closed("cannot send"));
        };
        answer.send(Response::new(body)).map_err(|_| self.fate.error("cannot send"))?;
        self.engine.turn();
        Ok(())
    }

    async fn give(&mut self, part: &[u8]) -> Result<(), TransportError> {
        if self.answer.is_some() {
            let (tap, body) = pieces(self.asked, &self.fate);
            self.respond(Outgoing::Pieces(body))?;
            self.tap = Some(tap);
        }
        match &mut self.tap {
            Some(tap) => self.engine.until(tap.give(part)).await?,
            None => return Err(TransportError::closed("cannot send")),
        }
        self.engine.turn();
        Ok(())
    }
}

impl Sender for ServerSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        Call::done(self.respond(Outgoing::whole(message)))
    }

    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        Call::new(self.give(part))
    }

    fn finish(&mut self) -> Call<'_, ()> {
        Call::done(match self.tap.take() {
            Some(mut tap) => {
                let end = tap.finish();
                self.engine.turn();
                end
            }
            None if self.answer.is_some() => self.respond(Outgoing::empty()),
            None => Ok(()),
        })
    }
}
