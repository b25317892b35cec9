//! The server of HTTP/3.

use super::errors::{code, lost_error, stream_error};
use super::pieces::FromQuic;
use crate::error::failed;
use crate::http::MOST_HEADER_BYTES;
use crate::http::body::Left;
use crate::http::pieces::Arriving;
use crate::http::request::{ALLOWED, Route, route};
use crate::quic::endpoint::{Endpoint, accept, close};
use crate::{Call, Connection, Listener, Purpose, Receiver, Sender, SocketReadback, Stream, TransportError};
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use h3::error::{Code, StreamError};
use h3::server::{RequestResolver, RequestStream};
use h3_quinn::{RecvStream, SendStream};
use httpdate::HttpDate;
use hyper::header::{ALLOW, CONTENT_LENGTH, DATE, HeaderValue};
use hyper::{Response, StatusCode};
use std::cell::RefCell;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::time::{Duration, SystemTime};

type SendHalf = RequestStream<SendStream<Bytes>, Bytes>;
type ReceiveHalf = RequestStream<RecvStream, Bytes>;
type Driver = h3::server::Connection<h3_quinn::Connection, Bytes>;

/// Waits for connections.
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
            let incoming = self.endpoint.quinn.accept().await.ok_or_else(|| TransportError::closed("cannot accept"))?;
            Ok(Box::new(Served {
                port: incoming.remote_address().port(),
                state: State::Coming(Box::pin(begin(incoming, self.early))),
                readback: self.endpoint.readback.clone(),
            }) as Box<dyn Connection>)
        })
    }
}

async fn begin(incoming: quinn::Incoming, early: bool) -> Result<Serving, TransportError> {
    let connection = accept(incoming, early).await?;
    let quic = h3_quinn::Connection::new(connection.clone());
    let mut builder = h3::server::builder();
    builder.send_grease(false).max_field_section_size(MOST_HEADER_BYTES.into());
    let driver = builder.build(quic).await.map_err(|e| lost_error("cannot begin HTTP", &e, &connection))?;
    Ok(Serving { connection, driver, coming: FuturesUnordered::new() })
}

/// The server's end of a connection.
struct Served {
    state: State,
    port: u16,
    readback: SocketReadback,
}

enum State {
    /// A handshake is kept, so that a wait for it can be given up and taken up again.
    Coming(Pin<Box<dyn Future<Output = Result<Serving, TransportError>> + Send>>),
    Serving(Box<Serving>),
    Over,
}

struct Serving {
    connection: quinn::Connection,
    driver: Driver,
    /// Streams of which not even the header is whole: a lost packet of one keeps no other waiting.
    coming: FuturesUnordered<Pin<Box<dyn Future<Output = Option<Stream>> + Send>>>,
}

impl Serving {
    /// The next request that is anything to whoever serves.
    async fn next(&mut self) -> Result<Stream, TransportError> {
        loop {
            tokio::select! {
                biased;
                Some(request) = self.coming.next(), if !self.coming.is_empty() => {
                    if let Some(stream) = request {
                        return Ok(stream);
                    }
                }
                accepted = self.driver.accept() => match accepted {
                    Ok(Some(resolver)) => self.coming.push(Box::pin(resolve(resolver, self.connection.clone()))),
                    Ok(None) => return Err(TransportError::closed("cannot accept a stream")),
                    Err(e) => return Err(lost_error("cannot accept a stream", &e, &self.connection)),
                },
            }
        }
    }
}

/// What comes of a stream once its header is whole: nothing if that makes no sense, or was answered here. What fails of it, the
/// client sees.
async fn resolve(
    resolver: RequestResolver<h3_quinn::Connection, Bytes>,
    connection: quinn::Connection,
) -> Option<Stream> {
    let (request, stream) = resolver.resolve_request().await.ok()?;
    let (send, receive) = stream.split();
    match route(request.method(), request.uri().path()) {
        Route::Stream(asked) => {
            let body = Arriving::new(FromQuic::new(receive, connection.clone(), request.headers()));
            let sender = ServerSender { connection, half: send, state: Answer::Fresh(asked) };
            Some(Stream { asked, ..Stream::new(sender, ServerReceiver { body }) })
        }
        Route::Answer(status, length) => {
            // In a box: what is rare makes every other request's wait no larger.
            Box::pin(answer(send, status, length)).await.ok()?;
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

fn response(status: StatusCode, length: Option<u64>) -> Response<()> {
    let mut response = Response::new(());
    *response.status_mut() = status;
    let headers = response.headers_mut();
    if let Some(length) = length {
        headers.insert(CONTENT_LENGTH, length.into());
    }
    // RFC 9110, section 6.6.1, as with the versions before.
    if let Some(date) = date() {
        headers.insert(DATE, date);
    }
    response
}

/// The date, which is put into words once a second.
fn date() -> Option<HeaderValue> {
    thread_local!(static LAST: RefCell<Option<(HttpDate, HeaderValue)>> = const { RefCell::new(None) });
    let now = HttpDate::from(SystemTime::now());
    LAST.with_borrow_mut(|last| match last {
        Some((date, words)) if *date == now => Some(words.clone()),
        _ => {
            let words = HeaderValue::try_from(now.to_string()).ok()?;
            *last = Some((now, words.clone()));
            Some(words)
        }
    })
}

impl Connection for Served {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        Call::done(Err(TransportError::unsupported("cannot open a stream at a server")))
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Call::new(async {
            if let State::Coming(handshake) = &mut self.state {
                let begun = handshake.await;
                self.state = State::Over;
                self.state = State::Serving(Box::new(begun?));
            }
            match &mut self.state {
                State::Serving(serving) => serving.next().await,
                _ => Err(TransportError::closed("cannot accept a stream")),
            }
        })
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async {
            if let State::Serving(serving) = &self.state {
                close(&serving.connection, code(Code::H3_NO_ERROR)).await;
            }
            self.state = State::Over;
            Ok(())
        })
    }

    fn abort(&mut self) {
        if let State::Serving(serving) = &self.state {
            serving.connection.close(code(Code::H3_INTERNAL_ERROR), b"");
        }
        self.state = State::Over;
    }

    fn client_port(&self) -> u16 {
        self.port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        Ok(self.readback.clone())
    }
}

struct ServerReceiver {
    body: Arriving<FromQuic<ReceiveHalf>>,
}

impl Receiver for ServerReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.body.whole(into))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.body.some(into))
    }
}

struct ServerSender {
    connection: quinn::Connection,
    half: SendHalf,
    state: Answer,
}

enum Answer {
    /// Nothing has been sent; so many bytes were asked for.
    Fresh(Option<u64>),
    Begun(Left),
    Whole,
}

impl ServerSender {
    fn failed(&self, what: &'static str) -> impl FnOnce(StreamError) -> TransportError + use<> {
        let connection = self.connection.clone();
        move |e| stream_error(what, &e, &connection)
    }

    async fn whole(&mut self, message: &[u8]) -> Result<(), TransportError> {
        if !matches!(self.state, Answer::Fresh(_)) {
            return Err(TransportError::closed("cannot send"));
        }
        self.state = Answer::Begun(Left(None));
        let sent = async {
            self.half.send_response(response(StatusCode::OK, Some(message.len() as u64))).await?;
            if !message.is_empty() {
                self.half.send_data(Bytes::copy_from_slice(message)).await?;
            }
            self.half.finish().await
        };
        sent.await.map_err(self.failed("cannot send"))?;
        self.state = Answer::Whole;
        Ok(())
    }

    async fn give(&mut self, part: &[u8]) -> Result<(), TransportError> {
        if let Answer::Fresh(asked) = self.state {
            self.state = Answer::Begun(Left(asked));
            let begun = self.half.send_response(response(StatusCode::OK, asked)).await;
            begun.map_err(self.failed("cannot send"))?;
        }
        let Answer::Begun(left) = &mut self.state else {
            return Err(TransportError::closed("cannot send"));
        };
        left.take(part.len())?;
        if part.is_empty() {
            return Ok(());
        }
        self.half.send_data(Bytes::copy_from_slice(part)).await.map_err(self.failed("cannot send"))
    }

    async fn end(&mut self) -> Result<(), TransportError> {
        if let Answer::Begun(left) = &self.state {
            left.end()?;
            self.half.finish().await.map_err(self.failed("cannot finish"))?;
            self.state = Answer::Whole;
        }
        Ok(())
    }
}

impl Sender for ServerSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        Call::new(self.whole(message))
    }

    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        Call::new(self.give(part))
    }

    fn finish(&mut self) -> Call<'_, ()> {
        match &self.state {
            Answer::Fresh(_) => Call::new(self.whole(&[])),
            Answer::Begun(_) => Call::new(self.end()),
            Answer::Whole => Call::done(Ok(())),
        }
    }
}

impl Drop for ServerSender {
    fn drop(&mut self) {
        // QUIC would end the stream as if the response were whole.
        if !matches!(self.state, Answer::Whole) {
            self.half.stop_stream(Code::H3_INTERNAL_ERROR);
        }
    }
}
