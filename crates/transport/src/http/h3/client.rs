//! The client of HTTP/3.

use super::errors::{code, lost_error, stream_error};
use super::pieces::FromQuic;
use crate::http::MOST_HEADER_BYTES;
use crate::http::body::Left;
use crate::http::pieces::Arriving;
use crate::http::request::{Length, Requests};
use crate::quic::endpoint::Connected;
use crate::{Call, Connection, Outcome, Phases, Purpose, Receiver, Sender, SocketReadback, Stream, TransportError};
use bytes::Bytes;
use h3::client::{RequestStream, SendRequest};
use h3::error::Code;
use h3_quinn::{OpenStreams, RecvStream, SendStream};
use hyper::Request;
use std::future::poll_fn;
use std::sync::Arc;
use tokio::sync::oneshot;
use tokio::task::AbortHandle;

type SendHalf = RequestStream<SendStream<Bytes>, Bytes>;
type ReceiveHalf = RequestStream<RecvStream, Bytes>;

/// The client's end of a connection.
pub(super) struct Client {
    connected: Connected,
    way: SendRequest<OpenStreams, Bytes>,
    requests: Arc<Requests>,
    /// Reads the server's control stream, which is silent for the most part.
    control: AbortHandle,
    readback: SocketReadback,
    port: u16,
}

impl Client {
    /// Speaks HTTP/3 on what was set up.
    pub(super) async fn start(
        connected: Connected,
        readback: SocketReadback,
        requests: Requests,
        port: u16,
    ) -> Result<Self, TransportError> {
        let quic = h3_quinn::Connection::new(connected.quinn.clone());
        let mut builder = h3::client::builder();
        builder.send_grease(false).max_field_section_size(MOST_HEADER_BYTES.into());
        let built = builder.build(quic).await;
        let (mut driver, way) = built.map_err(|e| lost_error("cannot begin HTTP", &e, &connected.quinn))?;
        let control = tokio::spawn(async move {
            // Whoever waits on a stream hears of it there.
            let _ = poll_fn(|context| driver.poll_close(context)).await;
        });
        Ok(Self { connected, way, requests: Arc::new(requests), control: control.abort_handle(), readback, port })
    }

    async fn open_one(&self, purpose: Purpose) -> Result<Stream, TransportError> {
        let quinn = &self.connected.quinn;
        if let Some(reason) = quinn.close_reason() {
            return Err(crate::quic::endpoint::connection_error("cannot ask", &reason));
        }
        let (answer, awaited) = oneshot::channel();
        let mut sender = ClientSender {
            connection: quinn.clone(),
            requests: Arc::clone(&self.requests),
            purpose,
            fresh: Some((self.way.clone(), answer)),
            body: None,
        };
        if let Purpose::Download(bytes) = purpose {
            // In a box: a message's stream is opened without waiting, and pays for no room to wait in.
            Box::pin(sender.fetch(bytes)).await?;
        }
        Ok(Stream::new(sender, ClientReceiver { connection: quinn.clone(), state: State::Unasked(awaited) }))
    }
}

impl Connection for Client {
    fn open(&self, purpose: Purpose) -> Call<'_, Stream> {
        Call::new(self.open_one(purpose))
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Call::done(Err(TransportError::unsupported("cannot accept a stream")))
    }

    fn phases(&self) -> Phases {
        self.connected.phases()
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async {
            self.connected.close(code(Code::H3_NO_ERROR)).await;
            Ok(())
        })
    }

    fn abort(&mut self) {
        self.connected.quinn.close(code(Code::H3_INTERNAL_ERROR), b"");
    }

    fn client_port(&self) -> u16 {
        self.port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        Ok(self.readback.clone())
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.control.abort();
    }
}

struct ClientSender {
    connection: quinn::Connection,
    requests: Arc<Requests>,
    purpose: Purpose,
    /// Where the request goes, and where the receiver waits; nothing once it is on its way.
    fresh: Option<(SendRequest<OpenStreams, Bytes>, oneshot::Sender<ReceiveHalf>)>,
    /// A body on its way out in pieces.
    body: Option<(SendHalf, Left)>,
}

impl ClientSender {
    async fn ask(&mut self, request: Request<()>) -> Result<SendHalf, TransportError> {
        let Some((mut way, answer)) = self.fresh.take() else {
            return Err(TransportError::with("cannot send", Outcome::Error, "a stream carries one message"));
        };
        let asked = way.send_request(request).await;
        let stream = asked.map_err(|e| stream_error("cannot ask", &e, &self.connection))?;
        let (send, receive) = stream.split();
        // Nobody may want the answer.
        let _ = answer.send(receive);
        Ok(send)
    }

    async fn fetch(&mut self, bytes: Option<u64>) -> Result<(), TransportError> {
        let mut half = self.ask(self.requests.download(bytes, ())?).await?;
        half.finish().await.map_err(|e| stream_error("cannot ask", &e, &self.connection))
    }

    async fn whole(&mut self, message: &[u8]) -> Result<(), TransportError> {
        let request = self.requests.message(Length::Known(message.len() as u64), ())?;
        let mut half = self.ask(request).await?;
        let sent = async {
            if !message.is_empty() {
                half.send_data(Bytes::copy_from_slice(message)).await?;
            }
            half.finish().await
        };
        sent.await.map_err(|e| stream_error("cannot send", &e, &self.connection))
    }

    async fn give(&mut self, part: &[u8]) -> Result<(), TransportError> {
        if self.fresh.is_some() {
            let (request, length) = match self.purpose {
                Purpose::Upload(Some(bytes)) => (self.requests.upload(Length::Known(bytes), ()), Some(bytes)),
                Purpose::Upload(None) => (self.requests.upload(Length::Unknown, ()), None),
                _ => (self.requests.message(Length::Unknown, ()), None),
            };
            self.body = Some((self.ask(request?).await?, Left(length)));
        }
        let Some((half, left)) = &mut self.body else {
            return Err(TransportError::with("cannot send", Outcome::Error, "the request is whole"));
        };
        left.take(part.len())?;
        if part.is_empty() {
            return Ok(());
        }
        let sent = half.send_data(Bytes::copy_from_slice(part)).await;
        sent.map_err(|e| stream_error("cannot send", &e, &self.connection))
    }

    /// Ends the body, of which nothing may have been sent yet.
    async fn end(&mut self, unbegun: bool) -> Result<(), TransportError> {
        if unbegun {
            self.give(&[]).await?;
        }
        let Some((half, left)) = &mut self.body else { return Ok(()) };
        // Short of what was announced the body is still there to be reset on drop.
        left.end()?;
        half.finish().await.map_err(|e| stream_error("cannot finish", &e, &self.connection))?;
        self.body = None;
        Ok(())
    }
}

impl Sender for ClientSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        match self.purpose {
            Purpose::Messages => Call::new(self.whole(message)),
            Purpose::Upload(_) => Call::new(self.give(message)),
            Purpose::Download(_) => Call::done(Ok(())),
        }
    }

    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        match self.purpose {
            Purpose::Messages | Purpose::Upload(_) => Call::new(self.give(part)),
            Purpose::Download(_) => Call::done(Ok(())),
        }
    }

    fn finish(&mut self) -> Call<'_, ()> {
        let unbegun = self.fresh.is_some() && matches!(self.purpose, Purpose::Upload(_));
        if unbegun || self.body.is_some() { Call::new(self.end(unbegun)) } else { Call::done(Ok(())) }
    }
}

impl Drop for ClientSender {
    fn drop(&mut self) {
        // QUIC would end the stream as if the body were whole.
        if let Some((half, _)) = &mut self.body {
            half.stop_stream(Code::H3_REQUEST_CANCELLED);
        }
    }
}

struct ClientReceiver {
    connection: quinn::Connection,
    state: State,
}

enum State {
    Unasked(oneshot::Receiver<ReceiveHalf>),
    Asked(ReceiveHalf),
    Answered(Arriving<FromQuic<ReceiveHalf>>),
    Failed,
}

impl ClientReceiver {
    /// The response's body, once its header has come.
    async fn body(&mut self) -> Result<&mut Arriving<FromQuic<ReceiveHalf>>, TransportError> {
        const WHAT: &str = "cannot receive";
        while !matches!(self.state, State::Answered(_)) {
            let next = match &mut self.state {
                State::Unasked(awaited) => awaited.await.map(State::Asked).map_err(|_| TransportError::closed(WHAT)),
                State::Asked(half) => match half.recv_response().await {
                    Ok(response) => self.answered(&response),
                    Err(e) => Err(stream_error(WHAT, &e, &self.connection)),
                },
                State::Answered(_) => break,
                State::Failed => Err(TransportError::closed(WHAT)),
            };
            match next {
                Ok(state) => self.state = state,
                Err(e) => {
                    self.state = State::Failed;
                    return Err(e);
                }
            }
        }
        match &mut self.state {
            State::Answered(body) => Ok(body),
            _ => Err(TransportError::closed(WHAT)),
        }
    }

    fn answered(&mut self, response: &hyper::Response<()>) -> Result<State, TransportError> {
        let status = response.status();
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Asked(half) if status.is_success() => {
                Ok(State::Answered(Arriving::new(FromQuic::new(half, self.connection.clone(), response.headers()))))
            }
            _ => {
                let cause = format!("the server answered {status}");
                Err(TransportError::with("cannot receive", Outcome::Protocol, cause))
            }
        }
    }
}

impl Receiver for ClientReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(async move { self.body().await?.whole(into).await })
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(async move { self.body().await?.some(into).await })
    }
}
