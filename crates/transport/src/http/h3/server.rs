//! The HTTP/3 server.

use super::body::FromStream;
use super::errors::{code, lost_error, stream_error};
use crate::error::failed;
use crate::http::body::{Received, Unsent};
use crate::http::features::MAX_HEADER_BYTES;
use crate::http::file::File;
use crate::http::request::{ALLOWED, Route, route};
use crate::quic::endpoint::{Endpoint, accept, close};
use crate::runtime::tasks::Tasks;
use crate::{Call, Connection, Listener, Receiver, Sender, SocketReadback, Stream, TransportError};
use bytes::Bytes;
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use h3_quinn::{RecvStream, SendStream};
use httpdate::HttpDate;
use hyper::header::{ALLOW, CONTENT_LENGTH, CONTENT_TYPE, DATE, HeaderValue};
use hyper::{Response, StatusCode};
use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};
use tokio::sync::mpsc;

type SendHalf = RequestStream<SendStream<Bytes>, Bytes>;
type ReceiveHalf = RequestStream<RecvStream, Bytes>;
type Accepted = Result<Stream, TransportError>;

pub(super) struct Server {
    pub(super) endpoint: Endpoint,
    /// Early data is answered before the handshake is done.
    pub(super) early: bool,
}

impl Listener for Server {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.endpoint.quinn.local_addr().map_err(failed("cannot read the listener's address"))
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async {
            let incoming = self.endpoint.accept().await?;
            let served = Served::start(incoming, self.early, self.endpoint.readback.clone());
            Ok(Box::new(served) as Box<dyn Connection>)
        })
    }
}

struct Served {
    /// Once the handshake is done.
    connection: Arc<OnceLock<quinn::Connection>>,
    /// Requests waiting to be accepted as streams; the last item is the connection's end.
    streams: mpsc::UnboundedReceiver<Accepted>,
    tasks: Tasks,
    client_port: u16,
    readback: SocketReadback,
}

impl Served {
    fn start(incoming: quinn::Incoming, early: bool, readback: SocketReadback) -> Self {
        let client_port = incoming.remote_address().port();
        let (offered, streams) = mpsc::unbounded_channel();
        let (connection, mut tasks) = (Arc::new(OnceLock::new()), Tasks::default());
        let accepted = Arc::clone(&connection);
        tasks.spawn(async move {
            if let Err(e) = serve(incoming, early, &accepted, &offered).await {
                // If nobody waits for streams, nobody wants to know.
                let _ = offered.send(Err(e));
            }
        });
        Self { connection, streams, tasks, client_port, readback }
    }
}

async fn serve(
    incoming: quinn::Incoming,
    early: bool,
    accepted: &OnceLock<quinn::Connection>,
    streams: &mpsc::UnboundedSender<Accepted>,
) -> Result<(), TransportError> {
    let connection = accept(incoming, early).await?;
    let _ = accepted.set(connection.clone());
    let mut builder = h3::server::builder();
    builder.send_grease(false).max_field_section_size(MAX_HEADER_BYTES.into());
    let quic = h3_quinn::Connection::new(connection.clone());
    let mut driver = builder.build(quic).await.map_err(|e| lost_error("cannot begin HTTP", &e, &connection))?;
    loop {
        match driver.accept().await {
            // A task per request: a lost packet in one header delays no other request.
            Ok(Some(resolver)) => {
                let (connection, streams) = (connection.clone(), streams.clone());
                tokio::spawn(async move {
                    if let Some(stream) = resolve(resolver, connection).await {
                        let _ = streams.send(Ok(stream));
                    }
                });
            }
            Ok(None) => break,
            Err(e) => return Err(lost_error("cannot accept a stream", &e, &connection)),
        }
    }
    let _ = streams.send(Err(TransportError::closed("cannot accept a stream")));
    // Dropping the driver would close the connection under requests still in progress.
    std::future::pending().await
}

/// The request's stream, once its header is whole; none if malformed or answered here. The client sees the failure.
async fn resolve(
    resolver: RequestResolver<h3_quinn::Connection, Bytes>,
    connection: quinn::Connection,
) -> Option<Stream> {
    let (request, stream) = resolver.resolve_request().await.ok()?;
    let (send, receive) = stream.split();
    match route(request.method(), request.uri().path()) {
        Route::Stream(asked) => {
            let body = Received::new(FromStream::new(receive, connection.clone(), request.headers()));
            let sender = ServerSender { connection, half: send, state: ResponseState::Unsent(asked) };
            Some(Stream { asked, ..Stream::new(sender, ServerReceiver { body }) })
        }
        Route::Answer(status, length) => {
            answer(send, status, length).await.ok()?;
            None
        }
        Route::File(file) => {
            give(send, file).await.ok()?;
            None
        }
    }
}

/// Answers without a body.
async fn answer(mut send: SendHalf, status: StatusCode, length: Option<u64>) -> Result<(), StreamError> {
    let mut response = response(status, length);
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, ALLOWED);
    }
    send.send_response(response).await?;
    send.finish().await
}

async fn give(mut send: SendHalf, file: File) -> Result<(), StreamError> {
    let mut response = response(StatusCode::OK, Some(file.bytes.len() as u64));
    response.headers_mut().insert(CONTENT_TYPE, file.kind);
    send.send_response(response).await?;
    send.send_data(file.bytes.into()).await?;
    send.finish().await
}

fn response(status: StatusCode, length: Option<u64>) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    // RFC 9110, section 6.6.1, as with the versions before.
    if let Ok(date) = HeaderValue::try_from(HttpDate::from(SystemTime::now()).to_string()) {
        headers.insert(DATE, date);
    }
    response
}

impl Connection for Served {
    fn accept(&mut self) -> Call<'_, Stream> {
        Call::new(async {
            let next = self.streams.recv().await;
            next.unwrap_or_else(|| Err(TransportError::closed("cannot accept a stream")))
        })
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async {
            if let Some(connection) = self.connection.get() {
                close(connection, code(Code::H3_NO_ERROR)).await;
            }
            self.tasks.abort();
            Ok(())
        })
    }

    fn abort(&mut self) {
        if let Some(connection) = self.connection.get() {
            connection.close(code(Code::H3_INTERNAL_ERROR), b"");
        }
        self.tasks.abort();
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        Ok(self.readback.clone())
    }
}

struct ServerReceiver {
    body: Received<FromStream<ReceiveHalf>>,
}

impl Receiver for ServerReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.body.message(into))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.body.some(into))
    }
}

struct ServerSender {
    connection: quinn::Connection,
    half: SendHalf,
    state: ResponseState,
}

enum ResponseState {
    /// Nothing has been sent. So many bytes were asked for.
    Unsent(Option<u64>),
    /// The header has been sent.
    Body(Unsent),
    Whole,
}

impl ServerSender {
    fn failed(&self, what: &'static str) -> impl FnOnce(StreamError) -> TransportError + use<> {
        let connection = self.connection.clone();
        move |e| stream_error(what, &e, &connection)
    }

    async fn send_whole(&mut self, message: &[u8]) -> Result<(), TransportError> {
        if !matches!(self.state, ResponseState::Unsent(_)) {
            return Err(TransportError::closed("cannot send"));
        }
        self.state = ResponseState::Body(Unsent(None));
        let sent = async {
            self.half.send_response(response(StatusCode::OK, Some(message.len() as u64))).await?;
            if !message.is_empty() {
                self.half.send_data(Bytes::copy_from_slice(message)).await?;
            }
            self.half.finish().await
        };
        sent.await.map_err(self.failed("cannot send"))?;
        self.state = ResponseState::Whole;
        Ok(())
    }

    async fn send_part(&mut self, part: &[u8]) -> Result<(), TransportError> {
        if let ResponseState::Unsent(asked) = self.state {
            self.state = ResponseState::Body(Unsent(asked));
            let begun = self.half.send_response(response(StatusCode::OK, asked)).await;
            begun.map_err(self.failed("cannot send"))?;
        }
        let ResponseState::Body(unsent) = &mut self.state else {
            return Err(TransportError::closed("cannot send"));
        };
        unsent.take(part.len())?;
        if part.is_empty() {
            return Ok(());
        }
        self.half.send_data(Bytes::copy_from_slice(part)).await.map_err(self.failed("cannot send"))
    }

    async fn finish_body(&mut self) -> Result<(), TransportError> {
        if let ResponseState::Body(unsent) = &self.state {
            unsent.end()?;
            self.half.finish().await.map_err(self.failed("cannot finish"))?;
            self.state = ResponseState::Whole;
        }
        Ok(())
    }
}

impl Sender for ServerSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        Call::new(self.send_whole(message))
    }

    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        Call::new(self.send_part(part))
    }

    fn finish(&mut self) -> Call<'_, ()> {
        match &self.state {
            ResponseState::Unsent(_) => Call::new(self.send_whole(&[])),
            ResponseState::Body(_) => Call::new(self.finish_body()),
            ResponseState::Whole => Call::done(Ok(())),
        }
    }
}

impl Drop for ServerSender {
    fn drop(&mut self) {
        // QUIC would end the stream as if the response were whole.
        if !matches!(self.state, ResponseState::Whole) {
            self.half.stop_stream(Code::H3_INTERNAL_ERROR);
        }
    }
}
