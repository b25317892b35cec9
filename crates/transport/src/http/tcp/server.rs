//! The HTTP/1.1 and HTTP/2 server.

use super::body::{FromHyper, Outgoing, PartSender, empty, in_parts, whole};
use super::end::ConnectionEnd;
use super::errors;
use super::recording::{End, HttpEnds, Recording};
use super::version::Version;
use crate::http::body::Received;
use crate::http::features::{MAX_HEADER_BYTES, MAX_STREAMS};
use crate::http::file::File;
use crate::http::request::{ALLOWED, Route, route};
use crate::runtime::tasks::Tasks;
use crate::settings::Http2Windows;
use crate::tcp::nonblocking::{Listening, SocketHandle};
use crate::tls::handshake;
use crate::{Call, Connection, Listener, Receiver, Sender, SocketReadback, Stream, TransportError};
use hyper::body::Incoming;
use hyper::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Request, Response, StatusCode};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio_rustls::TlsAcceptor;

pub(super) struct Server {
    pub(super) listening: Listening,
    pub(super) acceptor: Option<TlsAcceptor>,
    pub(super) version: Version,
    pub(super) windows: Http2Windows,
    pub(super) ends: Option<Arc<HttpEnds>>,
}

impl Listener for Server {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listening.address()
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async {
            let (tcp, client) = self.listening.accept().await?;
            let socket = self.listening.handle(&tcp)?;
            let (ends, is_secure) = (self.ends.as_ref(), self.acceptor.is_some());
            let recording = Recording::start(ends, End::Server, self.version, is_secure, client.port());
            let http = Http { version: self.version, windows: self.windows, recording };
            let served = Served::start(tcp, socket, self.acceptor.clone(), http, client.port());
            Ok(Box::new(served) as Box<dyn Connection>)
        })
    }
}

struct Served {
    socket: SocketHandle,
    client_port: u16,
    tasks: Tasks,
    end: ConnectionEnd,
    /// Requests waiting to be accepted as streams.
    exchanges: mpsc::UnboundedReceiver<Exchange>,
    /// Asks for the orderly end.
    shutdown: Option<oneshot::Sender<()>>,
}

struct Http {
    version: Version,
    windows: Http2Windows,
    recording: Recording,
}

/// A request, and where its response goes.
struct Exchange {
    asked: Option<u64>,
    body: Incoming,
    response: oneshot::Sender<Response<Outgoing>>,
}

impl Served {
    fn start(
        tcp: TcpStream,
        socket: SocketHandle,
        acceptor: Option<TlsAcceptor>,
        http: Http,
        client_port: u16,
    ) -> Self {
        let (mut tasks, end) = (Tasks::default(), ConnectionEnd::default());
        let (offered, exchanges) = mpsc::unbounded_channel();
        let (shutdown, until) = oneshot::channel();
        let ended = end.clone();
        tasks.spawn(async move {
            let result = match acceptor {
                None => serve(tcp, &http, &offered, until).await,
                Some(acceptor) => match handshake::server(http.recording.below_tls(tcp), &acceptor).await {
                    Ok(tls) => serve(tls, &http, &offered, until).await,
                    Err(e) => Err(e),
                },
            };
            // Before `offered` is dropped: for the accepting side its end is the connection's end.
            ended.set(result);
        });
        Self { socket, client_port, tasks, end, exchanges, shutdown: Some(shutdown) }
    }

    async fn accept_stream(&mut self) -> Result<Stream, TransportError> {
        match self.exchanges.recv().await {
            Some(exchange) => Ok(exchange.into_stream(&self.end)),
            None => Err(self.end.error("cannot accept a stream")),
        }
    }
}

/// Serves one connection until its end, orderly after `shutdown`.
async fn serve(
    io: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    Http { version, windows, recording }: &Http,
    exchanges: &mpsc::UnboundedSender<Exchange>,
    shutdown: oneshot::Receiver<()>,
) -> Result<(), TransportError> {
    let service = service_fn(|request| {
        recording.begin_exchange();
        handle(request, exchanges.clone())
    });
    // Dropping a connection drops the sender; its tasks end then.
    let shutdown = async {
        if shutdown.await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    let io = TokioIo::new(recording.below_http(io));
    let result = match version {
        Version::Http1 => {
            let mut connection = pin!(http1::Builder::new().serve_connection(io, service));
            tokio::select! {
                result = connection.as_mut() => result,
                () = shutdown => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }
        Version::Http2 => {
            let mut builder = http2::Builder::new(TokioExecutor::new());
            builder
                .initial_stream_window_size(windows.stream)
                .initial_connection_window_size(windows.connection)
                .max_concurrent_streams(MAX_STREAMS)
                .max_header_list_size(MAX_HEADER_BYTES);
            let mut connection = pin!(builder.serve_connection(io, service));
            tokio::select! {
                result = connection.as_mut() => result,
                () = shutdown => {
                    connection.as_mut().graceful_shutdown();
                    connection.await
                }
            }
        }
    };
    errors::end(result, *version)
}

/// Handles one request, up to its response's header.
async fn handle(
    request: Request<Incoming>,
    exchanges: mpsc::UnboundedSender<Exchange>,
) -> Result<Response<Outgoing>, Infallible> {
    let asked = match route(request.method(), request.uri().path()) {
        Route::Stream(asked) => asked,
        Route::Answer(status, length) => return Ok(without_body(status, length)),
        Route::File(file) => return Ok(whole_file(file)),
    };
    let (response, responded) = oneshot::channel();
    let exchange = Exchange { asked, body: request.into_body(), response };
    if exchanges.send(exchange).is_err() {
        return Ok(without_body(StatusCode::SERVICE_UNAVAILABLE, None));
    }
    // A stream dropped without an answer.
    Ok(responded.await.unwrap_or_else(|_| without_body(StatusCode::INTERNAL_SERVER_ERROR, None)))
}

/// A response without a body, optionally with its would-be length.
fn without_body(status: StatusCode, length: Option<u64>) -> Response<Outgoing> {
    let mut response = with_length(empty(), length);
    *response.status_mut() = status;
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, ALLOWED);
    }
    response
}

fn whole_file(file: File) -> Response<Outgoing> {
    let mut response = Response::new(whole(&file.bytes));
    response.headers_mut().insert(CONTENT_TYPE, file.kind);
    response
}

fn with_length(body: Outgoing, length: Option<u64>) -> Response<Outgoing> {
    let mut response = Response::new(body);
    if let Some(length) = length {
        response.headers_mut().insert(CONTENT_LENGTH, length.into());
    }
    response
}

impl Drop for Served {
    fn drop(&mut self) {
        self.end.set(Ok(()));
    }
}

impl Connection for Served {
    fn accept(&mut self) -> Call<'_, Stream> {
        Call::new(self.accept_stream())
    }

    /// Unaccepted requests get an error; the others are answered to their end.
    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async {
            self.exchanges.close();
            while self.exchanges.try_recv().is_ok() {}
            if let Some(shutdown) = self.shutdown.take() {
                // It fails when the connection is over.
                let _ = shutdown.send(());
                self.tasks.ended().await;
            }
            Ok(())
        })
    }

    fn abort(&mut self) {
        self.end.set_aborted();
        self.socket.reset_on_close();
        self.tasks.abort();
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        self.socket.readback()
    }
}

impl Exchange {
    fn into_stream(self, end: &ConnectionEnd) -> Stream {
        let sender = ServerSender { end: end.clone(), asked: self.asked, response: Some(self.response), parts: None };
        let body = Received::new(FromHyper { body: self.body, end: end.clone() });
        Stream { asked: self.asked, ..Stream::new(sender, ServerReceiver(body)) }
    }
}

struct ServerReceiver(Received<FromHyper>);

impl Receiver for ServerReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.0.message(into))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.0.some(into))
    }
}

struct ServerSender {
    end: ConnectionEnd,
    asked: Option<u64>,
    /// Nothing once the response is on its way.
    response: Option<oneshot::Sender<Response<Outgoing>>>,
    /// A body sent in parts.
    parts: Option<PartSender>,
}

impl ServerSender {
    fn respond(&mut self, response: Response<Outgoing>) -> Result<(), TransportError> {
        let Some(sender) = self.response.take() else {
            return Err(TransportError::closed("cannot send"));
        };
        sender.send(response).map_err(|_| self.end.error("cannot send"))
    }

    async fn send_part(&mut self, part: &[u8]) -> Result<(), TransportError> {
        if self.response.is_some() {
            let (parts, body) = in_parts(self.asked, &self.end);
            self.respond(with_length(body, self.asked))?;
            self.parts = Some(parts);
        }
        match &mut self.parts {
            Some(parts) => parts.send(part).await,
            None => Err(TransportError::closed("cannot send")),
        }
    }
}

impl Sender for ServerSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        Call::done(self.respond(Response::new(whole(message))))
    }

    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        Call::new(self.send_part(part))
    }

    fn finish(&mut self) -> Call<'_, ()> {
        Call::done(match self.parts.take() {
            Some(parts) => parts.finish(),
            None if self.response.is_some() => self.respond(Response::new(empty())),
            None => Ok(()),
        })
    }
}
