//! socketio-websocket, socketio-webtransport: crosswind-socketio over tokio-tungstenite, and over web-transport-quinn.

use crate::security::Security;
use crate::tls::{accept, connect};
use crate::webtransport;
use crate::{Result, Times, within};
use bytes::BytesMut;
use crosswind_socketio::{Carrier, Event, FrameDecoder, Handshake, Payload, Session, encode_frame};
use futures_util::{SinkExt, StreamExt};
use std::net::SocketAddr;
use std::time::{Duration, Instant};
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout_at;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::{WebSocketStream, accept_async, client_async};
use web_transport_quinn::{RecvStream, SendStream};

const EVENT: &str = "message";
const MAX_PAYLOAD_BYTES: u64 = 1_000_000;
const READ_SIZE: usize = 64 * 1024;

pub(crate) async fn serve_websocket(address: SocketAddr) -> Result<()> {
    let listener = TcpListener::bind(address).await?;
    loop {
        let stream = accept(&listener).await?;
        tokio::spawn(async move {
            let socket = accept_async(stream).await?;
            End::new(socket, server_session(Carrier::WebSocket)?).answer().await
        });
    }
}

pub(crate) async fn echo_websocket(address: SocketAddr, times: &mut Times) -> Result<()> {
    let uri = format!("ws://{address}/socket.io/?EIO=4&transport=websocket");
    let (socket, _) = client_async(uri, connect(address).await?).await?;
    End::new(socket, Session::client(Carrier::WebSocket, 0)).echo(times).await
}

pub(crate) async fn serve_webtransport(address: SocketAddr, security: &Security) -> Result<()> {
    let endpoint = webtransport::endpoint(address, security)?;
    loop {
        let session = webtransport::accept(&endpoint).await?;
        tokio::spawn(async move {
            let frames = Frames::new(session.accept_bi().await?);
            End::new(frames, server_session(Carrier::WebTransport)?).answer().await
        });
    }
}

pub(crate) async fn echo_webtransport(address: SocketAddr, security: &Security, times: &mut Times) -> Result<()> {
    let session = webtransport::connect(address, security).await?;
    let frames = Frames::new(session.open_bi().await?);
    End::new(frames, Session::client(Carrier::WebTransport, 0)).echo(times).await?;
    webtransport::close(&session).await;
    Ok(())
}

fn server_session(carrier: Carrier) -> Result<Session> {
    let handshake = Handshake {
        sid: "a".into(),
        upgrades: Vec::new(),
        ping_interval_ms: 25_000,
        ping_timeout_ms: 20_000,
        max_payload_bytes: MAX_PAYLOAD_BYTES,
    };
    Ok(Session::server(carrier, handshake, "b".into(), 0)?)
}

/// Carries a session's payloads.
trait Pipe {
    async fn send(&mut self, payload: Payload) -> Result<()>;
    /// The next payload. Dropping the call loses no part of it.
    async fn receive(&mut self) -> Result<Payload>;
}

impl Pipe for WebSocketStream<TcpStream> {
    async fn send(&mut self, payload: Payload) -> Result<()> {
        let message = match payload {
            Payload::Text(text) => Message::text(text),
            Payload::Binary(bytes) => Message::binary(bytes),
        };
        Ok(SinkExt::send(self, message).await?)
    }

    async fn receive(&mut self) -> Result<Payload> {
        match self.next().await.ok_or("the other end has closed")?? {
            Message::Text(text) => Ok(Payload::Text(text.as_str().to_owned())),
            message => Ok(Payload::Binary(message.into_data())),
        }
    }
}

/// A WebTransport stream.
struct Frames {
    sender: SendStream,
    receiver: RecvStream,
    decoder: FrameDecoder,
    read_buffer: Vec<u8>,
    unsent: BytesMut,
}

impl Frames {
    fn new((sender, receiver): (SendStream, RecvStream)) -> Self {
        let decoder = FrameDecoder::new(MAX_PAYLOAD_BYTES);
        Self { sender, receiver, decoder, read_buffer: vec![0; READ_SIZE], unsent: BytesMut::new() }
    }
}

impl Pipe for Frames {
    async fn send(&mut self, payload: Payload) -> Result<()> {
        encode_frame(&payload, &mut self.unsent)?;
        Ok(self.sender.write_all(&self.unsent.split()).await?)
    }

    async fn receive(&mut self) -> Result<Payload> {
        loop {
            if let Some(payload) = self.decoder.poll_frame()? {
                return Ok(payload);
            }
            let length = self.receiver.read(&mut self.read_buffer).await?.ok_or("the other end has closed")?;
            self.decoder.handle_bytes(&self.read_buffer[..length]);
        }
    }
}

/// One end of a session.
struct End<P> {
    pipe: P,
    session: Session,
    started: Instant,
}

impl<P: Pipe> End<P> {
    fn new(pipe: P, session: Session) -> Self {
        Self { pipe, session, started: Instant::now() }
    }

    async fn flush(&mut self) -> Result<()> {
        while let Some(payload) = self.session.poll_payload() {
            self.pipe.send(payload).await?;
        }
        Ok(())
    }

    async fn event(&mut self) -> Result<Event> {
        loop {
            self.flush().await?;
            if let Some(event) = self.session.poll_event() {
                return Ok(event);
            }
            let wakeup_ns = self.session.next_wakeup().ok_or("the session is closed")?;
            let wakeup = self.started + Duration::from_nanos(wakeup_ns);
            let received = timeout_at(wakeup.into(), self.pipe.receive()).await;
            let now_ns = u64::try_from(self.started.elapsed().as_nanos())?;
            match received {
                Ok(payload) => self.session.handle_payload(&payload?, now_ns),
                Err(_) => self.session.handle_wakeup(now_ns),
            }
        }
    }

    async fn answer(mut self) -> Result<()> {
        loop {
            match self.event().await? {
                Event::Message { name, argument } => self.session.emit(&name, argument)?,
                Event::Closed(_) => return Ok(()),
                _ => {}
            }
        }
    }

    async fn echo(mut self, times: &mut Times) -> Result<()> {
        while !matches!(self.event().await?, Event::Connected { .. }) {}
        for message in times.messages() {
            let sent = Instant::now();
            let exchange = async {
                self.session.emit_text(EVENT, std::str::from_utf8(&message)?)?;
                self.event().await
            };
            match within(exchange).await? {
                Event::Message { argument, .. } => times.received(sent, argument.as_bytes(), &message)?,
                other => return Err(format!("{other:?} is not a reply").into()),
            }
        }
        Ok(())
    }
}
