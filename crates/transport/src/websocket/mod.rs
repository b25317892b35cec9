//! WebSocket (RFC 6455) over TCP, and over TLS: tokio-tungstenite, and hyper for the server's upgrade request.

mod errors;
mod server;
mod socket;

pub(crate) use server::Upgrade;
pub(crate) use socket::{Io, Socket, max_message_bytes};

use crate::error::Outcome;
use crate::runtime::call::PollDone;
use crate::runtime::single_stream::{self, Duplex, SingleStream, poll_part, put_message};
use crate::settings::Payload;
use crate::tcp::nonblocking::{self, Listening, SocketHandle};
use crate::tls::handshake;
use crate::{
    About, Call, Connecting, Connection, Driver, Features, Listener, Phases, Settings, Transport, TransportError,
    driver,
};
use bytes::Bytes;
use std::net::SocketAddr;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};
use tokio::io::ReadBuf;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::tungstenite::Message;

/// The protocol over TLS (ALPN): the upgrade is HTTP's.
const PROTOCOL: &[u8] = b"http/1.1";

/// WebSocket, over TCP (ws) or TLS (wss).
pub struct WebSocket {
    name: &'static str,
    summary: &'static str,
    secure: bool,
}

/// The transport `websocket`.
pub static WEBSOCKET: WebSocket =
    WebSocket { name: "websocket", summary: "Messages over WebSocket in cleartext.", secure: false };
/// The transport `wss`.
pub static WSS: WebSocket = WebSocket { name: "wss", summary: "Messages over WebSocket in TLS 1.3.", secure: true };

impl Transport for WebSocket {
    fn about(&self) -> About {
        let features = Features {
            driver: Driver::Reactor,
            secure: self.secure,
            // TCP 1, TLS 1, the upgrade request 1.
            setup_round_trips: if self.secure { 3 } else { 2 },
            text: true,
            shares_connection: true,
            ..Features::PLAIN
        };
        About { name: self.name, summary: self.summary, features }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move {
            let acceptor = if self.secure { Some(handshake::acceptor(settings, &[PROTOCOL])?) } else { None };
            let listening = Listening::new(address, settings)?;
            Ok(Box::new(WebSocketListener { listening, acceptor, settings: settings.clone() }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a> {
        Call::new(driver::within(timeout, "cannot connect", connect(server, settings, self.secure)))
    }
}

async fn connect(server: SocketAddr, settings: &Settings, secure: bool) -> Result<Box<dyn Connection>, TransportError> {
    let started = Instant::now();
    let tcp = nonblocking::connect(server, &settings.socket).await?;
    let connected = Instant::now();
    let (handle, client_port) = (SocketHandle::new(&tcp, settings)?, nonblocking::own_port(&tcp)?);
    let mut phases = Phases { transport: Some(connected - started), ..Phases::default() };
    let (io, host): (Io, String) = if secure {
        let secured = handshake::client(tcp, settings, &[PROTOCOL]).await?;
        phases.security = Some(connected.elapsed());
        phases.resumed = secured.resumed;
        let name = settings.security()?.server_name().to_str();
        let host = if name.contains(':') { server.to_string() } else { format!("{name}:{}", server.port()) };
        (Box::new(secured.stream), host)
    } else {
        (Box::new(tcp), server.to_string())
    };
    let secured = Instant::now();
    let path = if settings.path.is_empty() { "/" } else { &settings.path };
    let socket = Socket::client(io, &host, path, max_message_bytes(settings)).await?;
    phases.upgrade = Some(secured.elapsed());
    let end = End { socket, kind: settings.payload, answers: false, rest: Bytes::new() };
    Ok(Box::new(SingleStream::client(end, single_stream::Socket::Tcp(handle), client_port, phases)))
}

struct WebSocketListener {
    listening: Listening,
    acceptor: Option<TlsAcceptor>,
    settings: Settings,
}

impl Listener for WebSocketListener {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listening.address()
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async move {
            let (tcp, client) = self.listening.accept().await?;
            let (handle, acceptor) = (self.listening.handle(&tcp)?, self.acceptor.clone());
            let (kind, max_message_bytes) = (self.settings.payload, max_message_bytes(&self.settings));
            let handshakes = async move {
                let io: Io = match acceptor {
                    Some(acceptor) => Box::new(handshake::server(tcp, &acceptor).await?),
                    None => Box::new(tcp),
                };
                let socket = server::accept(io, max_message_bytes).await?;
                Ok(End { socket, kind, answers: true, rest: Bytes::new() })
            };
            let socket = single_stream::Socket::Tcp(handle);
            Ok(Box::new(SingleStream::server(handshakes, socket, client.port())) as Box<dyn Connection>)
        })
    }
}

struct End {
    socket: Socket,
    /// The type of messages.
    kind: Payload,
    /// Messages are sent as the last one was received: text or binary.
    answers: bool,
    /// Of a partly received message.
    rest: Bytes,
}

impl End {
    fn poll_message(&mut self, context: &mut Context<'_>) -> Poll<Result<Bytes, TransportError>> {
        if !self.rest.is_empty() {
            return Poll::Ready(Ok(std::mem::take(&mut self.rest)));
        }
        let message = ready!(self.socket.poll_message(context))?;
        if self.answers {
            self.kind = if message.is_text() { Payload::Text } else { Payload::Binary };
        }
        Poll::Ready(Ok(message.into_data()))
    }
}

impl Duplex for End {
    fn poll_send(&mut self, context: &mut Context<'_>, message: &mut Option<&[u8]>) -> PollDone {
        if let Some(bytes) = *message {
            ready!(self.socket.poll_ready(context))?;
            self.socket.start_send(to_message(bytes, self.kind)?)?;
            *message = None;
        }
        self.socket.poll_flush(context)
    }

    fn poll_finish(&mut self, context: &mut Context<'_>) -> PollDone {
        self.socket.poll_finish(context)
    }

    fn poll_receive(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> PollDone {
        let message = ready!(self.poll_message(context))?;
        Poll::Ready(put_message(&message, into))
    }

    fn poll_receive_some(&mut self, context: &mut Context<'_>, into: &mut ReadBuf<'_>) -> PollDone {
        self.rest = ready!(poll_part(|| self.poll_message(context), into))?;
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, context: &mut Context<'_>) -> PollDone {
        self.socket.poll_close(context)
    }
}

fn to_message(bytes: &[u8], kind: Payload) -> Result<Message, TransportError> {
    Ok(match kind {
        Payload::Binary => Message::Binary(Bytes::copy_from_slice(bytes)),
        Payload::Text => {
            let text = std::str::from_utf8(bytes)
                .map_err(|e| TransportError::with("cannot send", Outcome::Error, format!("not text: {e}")))?;
            Message::text(text)
        }
    })
}
