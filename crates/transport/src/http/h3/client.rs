//! The HTTP/3 client.

use super::body::FromStream;
use super::errors::{code, lost_error, stream_error};
use crate::http::body::{Received, Unsent};
use crate::http::features::MAX_HEADER_BYTES;
use crate::http::request::{Length, Requests};
use crate::quic::endpoint::{self, Connected};
use crate::runtime::tasks::Tasks;
use crate::{Call, Connection, Outcome, Phases, Purpose, Receiver, Sender, SocketReadback, Stream, TransportError};
use bytes::Bytes;
use crosswind_ledger::Position;
use h3::client::{RequestStream, SendRequest};
use h3::error::Code;
use h3_quinn::{OpenStreams, RecvStream, SendStream};
use hyper::Request;
use std::future::poll_fn;
use std::sync::Arc;
use tokio::sync::oneshot;

type SendHalf = RequestStream<SendStream<Bytes>, Bytes>;
type ReceiveHalf = RequestStream<RecvStream, Bytes>;

pub(super) struct Client {
    connected: Connected,
    handle: SendRequest<OpenStreams, Bytes>,
    requests: Arc<Requests>,
    /// Reads the server's control stream.
    _tasks: Tasks,
    readback: SocketReadback,
    port: u16,
}

impl Client {
    /// Starts HTTP/3 on an established connection.
    pub(super) async fn start(
        connected: Connected,
        readback: SocketReadback,
        requests: Requests,
        port: u16,
    ) -> Result<Self, TransportError> {
        let quic = h3_quinn::Connection::new(connected.quinn.clone());
        let mut builder = h3::client::builder();
        builder.send_grease(false).max_field_section_size(MAX_HEADER_BYTES.into());
        let built = builder.build(quic).await;
        let (mut driver, handle) = built.map_err(|e| lost_error("cannot begin HTTP", &e, &connected.quinn))?;
        let mut tasks = Tasks::default();
        tasks.spawn(async move {
            // Calls on the streams fail with the reason.
            let _ = poll_fn(|context| driver.poll_close(context)).await;
        });
        Ok(Self { connected, handle, requests: Arc::new(requests), _tasks: tasks, readback, port })
    }

    async fn open_stream(&self, purpose: Purpose) -> Result<Stream, TransportError> {
        let quinn = &self.connected.quinn;
        if let Some(reason) = quinn.close_reason() {
            return Err(endpoint::connection_error("cannot ask", &reason));
        }
        let (pending, response) = oneshot::channel();
        let mut sender = ClientSender {
            connection: quinn.clone(),
            requests: Arc::clone(&self.requests),
            purpose,
            unsent: Some((self.handle.clone(), pending)),
            stream: None,
            parts: None,
        };
        if let Purpose::Download(bytes) = purpose {
            // Boxed, to keep every other stream's future small.
            Box::pin(sender.download(bytes)).await?;
        }
        Ok(Stream::new(sender, ClientReceiver { connection: quinn.clone(), state: State::Unsent(response) }))
    }
}

impl Connection for Client {
    fn open(&self, purpose: Purpose) -> Call<'_, Stream> {
        Call::new(self.open_stream(purpose))
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

struct ClientSender {
    connection: quinn::Connection,
    requests: Arc<Requests>,
    purpose: Purpose,
    /// The request's sender, and the waiting receiver; none once sent.
    unsent: Option<(SendRequest<OpenStreams, Bytes>, oneshot::Sender<ReceiveHalf>)>,
    /// The request's QUIC stream number, once sent.
    stream: Option<u64>,
    /// A body sent in parts.
    parts: Option<(SendHalf, Unsent)>,
}

impl ClientSender {
    async fn ask(&mut self, request: Request<()>) -> Result<SendHalf, TransportError> {
        let Some((mut handle, pending)) = self.unsent.take() else {
            return Err(TransportError::with("cannot send", Outcome::Error, "a stream carries one message"));
        };
        let asked = handle.send_request(request).await;
        let stream = asked.map_err(|e| stream_error("cannot ask", &e, &self.connection))?;
        self.stream = Some(stream.id().into_inner());
        let (send, receive) = stream.split();
        // If the receiver is gone, so is the interest in the response.
        let _ = pending.send(receive);
        Ok(send)
    }

    async fn download(&mut self, bytes: Option<u64>) -> Result<(), TransportError> {
        let mut half = self.ask(self.requests.download(bytes, ())?).await?;
        half.finish().await.map_err(|e| stream_error("cannot ask", &e, &self.connection))
    }

    async fn send_whole(&mut self, message: &[u8]) -> Result<(), TransportError> {
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

    async fn send_part(&mut self, part: &[u8]) -> Result<(), TransportError> {
        if self.unsent.is_some() {
            let (request, length) = match self.purpose {
                Purpose::Upload(Some(bytes)) => (self.requests.upload(Length::Known(bytes), ()), Some(bytes)),
                Purpose::Upload(None) => (self.requests.upload(Length::Unknown, ()), None),
                _ => (self.requests.message(Length::Unknown, ()), None),
            };
            self.parts = Some((self.ask(request?).await?, Unsent(length)));
        }
        let Some((half, unsent)) = &mut self.parts else {
            return Err(TransportError::with("cannot send", Outcome::Error, "the request is whole"));
        };
        unsent.take(part.len())?;
        if part.is_empty() {
            return Ok(());
        }
        let sent = half.send_data(Bytes::copy_from_slice(part)).await;
        sent.map_err(|e| stream_error("cannot send", &e, &self.connection))
    }

    /// Ends the body, begun or not.
    async fn finish_parts(&mut self, unbegun: bool) -> Result<(), TransportError> {
        if unbegun {
            self.send_part(&[]).await?;
        }
        let Some((half, unsent)) = &mut self.parts else { return Ok(()) };
        // A body shorter than announced stays here, to be reset on drop.
        unsent.end()?;
        half.finish().await.map_err(|e| stream_error("cannot finish", &e, &self.connection))?;
        self.parts = None;
        Ok(())
    }
}

impl Sender for ClientSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        match self.purpose {
            Purpose::Messages => Call::new(self.send_whole(message)),
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
        self.stream.map(Position::whole_stream)
    }

    fn finish(&mut self) -> Call<'_, ()> {
        let unbegun = self.unsent.is_some() && matches!(self.purpose, Purpose::Upload(_));
        if unbegun || self.parts.is_some() { Call::new(self.finish_parts(unbegun)) } else { Call::done(Ok(())) }
    }
}

impl Drop for ClientSender {
    fn drop(&mut self) {
        // QUIC would end the stream as if the body were whole.
        if let Some((half, _)) = &mut self.parts {
            half.stop_stream(Code::H3_REQUEST_CANCELLED);
        }
    }
}

struct ClientReceiver {
    connection: quinn::Connection,
    state: State,
}

enum State {
    /// The request has not been sent.
    Unsent(oneshot::Receiver<ReceiveHalf>),
    Sent(ReceiveHalf),
    /// The response's header has come.
    Body(Received<FromStream<ReceiveHalf>>),
    Failed,
}

impl ClientReceiver {
    /// The response's body, once its header has come.
    async fn body(&mut self) -> Result<&mut Received<FromStream<ReceiveHalf>>, TransportError> {
        const WHAT: &str = "cannot receive";
        while !matches!(self.state, State::Body(_) | State::Failed) {
            let next = match &mut self.state {
                State::Unsent(pending) => pending.await.map(State::Sent).map_err(|_| TransportError::closed(WHAT)),
                State::Sent(half) => match half.recv_response().await {
                    Ok(response) => self.begin_body(&response),
                    Err(e) => Err(stream_error(WHAT, &e, &self.connection)),
                },
                State::Body(_) | State::Failed => break,
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
            State::Body(body) => Ok(body),
            _ => Err(TransportError::closed(WHAT)),
        }
    }

    fn begin_body(&mut self, response: &hyper::Response<()>) -> Result<State, TransportError> {
        let status = response.status();
        match std::mem::replace(&mut self.state, State::Failed) {
            State::Sent(half) if status.is_success() => {
                Ok(State::Body(Received::new(FromStream::new(half, self.connection.clone(), response.headers()))))
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
        Call::new(async move { self.body().await?.message(into).await })
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(async move { self.body().await?.some(into).await })
    }
}
