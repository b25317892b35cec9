//! The server of HTTP/1.1 and HTTP/2.

use super::body::{Outgoing, Tap, pieces};
use super::link::{Fate, Link, UnderWay};
use super::pieces::{Arriving, FromHyper};
use super::request::{ALLOWED, Route, route};
use super::{CONNECTION_WINDOW, MOST_HEADER_BYTES, MOST_STREAMS, STREAM_WINDOW, Version, errors};
use crate::tcp_stream::Listening;
use crate::{Call, Connection, Listener, Receiver, Sender, SocketReadback, Stream, TransportError, secure};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_LENGTH};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

/// Requests that wait to be accepted as streams; the others wait before.
const WAITING: usize = 64;

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
        Box::pin(async {
            let (stream, client) = self.listening.accept().await?;
            let link = Link::new(&stream)?;
            let state = match &self.acceptor {
                Some(acceptor) => {
                    let acceptor = acceptor.clone();
                    State::Securing(Box::pin(async move { secure::server(stream, &acceptor).await }))
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
    Serving {
        requests: mpsc::Receiver<Exchange>,
        /// To be told that there should be no more.
        stop: oneshot::Sender<()>,
    },
    Over,
}

/// A request, and where its response goes.
struct Exchange {
    asked: Option<u64>,
    request: Incoming,
    answer: oneshot::Sender<Response<Outgoing>>,
}

impl Served {
    async fn next(&mut self) -> Result<Stream, TransportError> {
        if let State::Securing(handshake) = &mut self.state {
            let secured = handshake.await;
            self.state = State::Over;
            self.serve(secured?);
        } else if matches!(self.state, State::Fresh(_))
            && let State::Fresh(stream) = std::mem::replace(&mut self.state, State::Over)
        {
            self.serve(stream);
        }
        let State::Serving { requests, .. } = &mut self.state else {
            return Err(self.link.fate.error("cannot accept a stream"));
        };
        match requests.recv().await {
            Some(exchange) => Ok(exchange.into_stream(&self.link.fate)),
            None => Err(self.link.fate.error("cannot accept a stream")),
        }
    }

    fn serve(&mut self, io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static) {
        let (queue, requests) = mpsc::channel(WAITING);
        let (stop, stopped) = oneshot::channel();
        let (io, fate) = (TokioIo::new(io), self.link.fate.clone());
        let service = service_fn(move |request| handle(request, queue.clone()));
        match self.version {
            Version::One => {
                let connection = http1::Builder::new().serve_connection(io, service);
                self.link.tasks.spawn(drive(
                    connection,
                    http1::Connection::graceful_shutdown,
                    stopped,
                    Version::One,
                    fate,
                ));
            }
            Version::Two => {
                let connection = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .max_concurrent_streams(MOST_STREAMS)
                    .max_header_list_size(MOST_HEADER_BYTES)
                    .serve_connection(io, service);
                self.link.tasks.spawn(drive(
                    connection,
                    http2::Connection::graceful_shutdown,
                    stopped,
                    Version::Two,
                    fate,
                ));
            }
        }
        self.state = State::Serving { requests, stop };
    }
}

/// Drives a connection to its end, which comes soon once `stopped` says so.
async fn drive<C: Future<Output = hyper::Result<()>>>(
    connection: C,
    wind_up: impl Fn(Pin<&mut C>),
    stopped: oneshot::Receiver<()>,
    version: Version,
    fate: Fate,
) {
    let mut connection = pin!(connection);
    let mut stopped = Some(stopped);
    let end = poll_fn(|context| {
        if let Some(waiting) = &mut stopped
            && let std::task::Poll::Ready(said) = Pin::new(waiting).poll(context)
        {
            stopped = None;
            if said.is_ok() {
                wind_up(connection.as_mut());
            }
        }
        connection.as_mut().poll(context)
    })
    .await;
    fate.seal(errors::end(end, version, &fate));
}

/// One request, from its header to the header of its response.
async fn handle(request: Request<Incoming>, queue: mpsc::Sender<Exchange>) -> Result<Response<Outgoing>, Infallible> {
    let asked = match route(request.method(), request.uri().path()) {
        Route::Stream(asked) => asked,
        Route::Answer(status, length) => return Ok(bare(status, length)),
    };
    let (answer, answered) = oneshot::channel();
    if queue.send(Exchange { asked, request: request.into_body(), answer }).await.is_err() {
        return Ok(bare(StatusCode::SERVICE_UNAVAILABLE, None));
    }
    // Dropped without an answer.
    Ok(answered.await.unwrap_or_else(|_| bare(StatusCode::INTERNAL_SERVER_ERROR, None)))
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
        Box::pin(async { Err(TransportError::unsupported("cannot open a stream at a server")) })
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Box::pin(self.next())
    }

    fn close(&mut self) -> Call<'_, ()> {
        Box::pin(async {
            // Requests that nobody took yet go with the state; they are answered 500.
            if let State::Serving { stop, .. } = std::mem::replace(&mut self.state, State::Over) {
                // It may be over already.
                let _ = stop.send(());
            }
            self.link.ended().await;
            Ok(())
        })
    }

    fn abort(&mut self) {
        self.link.abort();
        self.state = State::Over;
    }

    fn client_port(&self) -> u16 {
        self.port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        self.link.readback()
    }
}

impl Exchange {
    fn into_stream(self, fate: &Fate) -> Stream {
        let body = Arriving::new(FromHyper { body: self.request, fate: fate.clone() });
        let sender = ServerSender {
            fate: fate.clone(),
            asked: self.asked,
            answer: Some(self.answer),
            tap: None,
            _under_way: fate.begin(),
        };
        Stream { asked: self.asked, ..Stream::new(sender, ServerReceiver { body }) }
    }
}

struct ServerReceiver {
    body: Arriving<FromHyper>,
}

impl Receiver for ServerReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Box::pin(self.body.whole(into))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Box::pin(self.body.some(into))
    }
}

struct ServerSender {
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
        answer.send(Response::new(body)).map_err(|_| self.fate.error("cannot send"))
    }

    async fn give(&mut self, part: &[u8]) -> Result<(), TransportError> {
        if self.answer.is_some() {
            let (tap, body) = pieces(self.asked, &self.fate);
            self.respond(Outgoing::Pieces(body))?;
            self.tap = Some(tap);
        }
        match &mut self.tap {
            Some(tap) => tap.give(part).await,
            None => Err(TransportError::closed("cannot send")),
        }
    }
}

impl Sender for ServerSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        Box::pin(async move { self.respond(Outgoing::whole(message)) })
    }

    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        Box::pin(self.give(part))
    }

    fn finish(&mut self) -> Call<'_, ()> {
        Box::pin(async {
            match self.tap.take() {
                Some(mut tap) => tap.finish(),
                None if self.answer.is_some() => self.respond(Outgoing::empty()),
                None => Ok(()),
            }
        })
    }
}
