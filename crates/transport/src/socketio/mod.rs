//! Socket.IO (protocol 5, on Engine.IO 4) over WebSocket and over WebTransport. A message is the event `message` with one
//! argument, text or binary.

mod end;
mod frames;
mod pipe;
mod polled;
mod polling_client;
mod server;

use crate::error::Outcome;
use crate::quic::endpoint::{self, Connected, Endpoint};
use crate::runtime::halves::{Half, Halves};
use crate::security::Resumption;
use crate::settings::{Payload, SocketReadback};
use crate::tcp::nonblocking;
use crate::tcp::nonblocking::Listening;
use crate::websocket::{Carrier, LARGEST, Socket};
use crate::{
    Call, Connection, Driver, Features, Listener, Phases, Purpose, Receiver, Sender, Settings, Stream, Transport,
    TransportError, driver,
};
use bytes::Buf;
use crosswind_socketio::{Carrier as Over, Handshake, Joined, Session};
use end::End;
use frames::{Frames, Live, session_error};
use pipe::Pipe;
use polled::Polling;
use polling_client::PollingClient;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::{Display, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::{Poll, ready};
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use url::Url;
use web_transport_quinn::proto::ConnectRequest;
use web_transport_quinn::{ALPN, Request};

/// Where Socket.IO's servers are, unless told otherwise.
const PATH: &str = "/socket.io/";
/// As of engine.io 6.
const PING_INTERVAL_MS: u64 = 25_000;
const PING_TIMEOUT_MS: u64 = 20_000;

const FEATURES: Features = Features { driver: Driver::Reactor, text: true, shares_connection: true, ..Features::PLAIN };

/// The transport `socketio-websocket`.
pub struct OverWebSocket;

/// The transport `socketio-webtransport`.
pub struct OverWebTransport;

impl Transport for OverWebSocket {
    fn name(&self) -> &'static str {
        "socketio-websocket"
    }

    fn summary(&self) -> &'static str {
        "Socket.IO events over WebSocket in cleartext."
    }

    fn features(&self) -> Features {
        // TCP 1, the upgrade to WebSocket 1, Socket.IO's CONNECT 1; Engine.IO's handshake is begun by the server.
        Features { polling: true, setup_round_trips: 3, ..FEATURES }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move {
            let listening = Listening::new(address, &settings.socket)?;
            let polling = Arc::new(Polling::default());
            Ok(Box::new(WebSocketListener { listening, polling, payload: settings.payload }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(
        &'a self,
        server: SocketAddr,
        settings: &'a Settings,
        timeout: Duration,
    ) -> Call<'a, Box<dyn Connection>> {
        Call::new(driver::within(timeout, "cannot connect", connect_websocket(server, settings)))
    }
}

impl Transport for OverWebTransport {
    fn name(&self) -> &'static str {
        "socketio-webtransport"
    }

    fn summary(&self) -> &'static str {
        "Socket.IO events over WebTransport."
    }

    fn features(&self) -> Features {
        // WebTransport 2, Engine.IO's handshake 1, Socket.IO's CONNECT 1.
        Features { secure: true, carrier: crate::Carrier::Quic, setup_round_trips: 4, ..FEATURES }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move {
            let endpoint = endpoint::server_endpoint(address, &without_early_data(settings), &[ALPN.as_bytes()])?;
            Ok(Box::new(WebTransportListener { endpoint, payload: settings.payload }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(
        &'a self,
        server: SocketAddr,
        settings: &'a Settings,
        timeout: Duration,
    ) -> Call<'a, Box<dyn Connection>> {
        Call::new(driver::within(timeout, "cannot connect", connect_webtransport(server, settings, timeout)))
    }
}

async fn connect_websocket(server: SocketAddr, settings: &Settings) -> Result<Box<dyn Connection>, TransportError> {
    let started = Instant::now();
    let stream = nonblocking::connect(server, &settings.socket).await?;
    let connected = Instant::now();
    let host = server.to_string();
    let (end, client_port) = if settings.polling {
        poll_and_move(stream, server, &host, settings).await?
    } else {
        let client_port = nonblocking::own_port(&stream)?;
        let path = format!("{PATH}?EIO=4&transport=websocket");
        let socket = Socket::client(Carrier::Plain(stream), &host, &path).await?;
        let pipe = Pipe::WebSocket(Box::new(socket));
        let session = |now_ns| Ok(Session::client(Over::WebSocket, now_ns));
        let mut end = End::new(pipe, settings.payload, false, session)?;
        end.connected().await?;
        (end, client_port)
    };
    let phases =
        Phases { transport: Some(connected - started), upgrade: Some(connected.elapsed()), ..Phases::default() };
    Ok(Box::new(SocketIoConnection::up(end, client_port, phases)))
}

/// A session by polling, which then moves to a WebSocket. As in the browser's client the WebSocket is opened while the
/// session is joined.
async fn poll_and_move(
    stream: TcpStream,
    server: SocketAddr,
    host: &str,
    settings: &Settings,
) -> Result<(End, u16), TransportError> {
    let mut polling = PollingClient::new(stream, host.to_owned()).await?;
    let handshake = polling.open().await?;
    if !handshake.upgrades.iter().any(|upgrade| upgrade == "websocket") {
        let cause = "the server does not offer it";
        return Err(TransportError::with("cannot move to WebSocket", Outcome::Protocol, cause));
    }
    let path = format!("{PATH}?EIO=4&transport=websocket&sid={}", handshake.sid);
    let open = async {
        let stream = nonblocking::connect(server, &settings.socket).await?;
        let client_port = nonblocking::own_port(&stream)?;
        Ok((Socket::client(Carrier::Plain(stream), host, &path).await?, client_port))
    };
    let (sid, (socket, client_port)) = tokio::try_join!(polling.join(&handshake.sid), open)?;
    let mut end = End::new(Pipe::WebSocket(Box::new(socket)), settings.payload, false, |now_ns| {
        Session::client_upgrading(Over::WebSocket, handshake, Joined::As(sid), now_ns)
    })?;
    end.probed().await?;
    end.finish_upgrade()?;
    end.connected().await?;
    Ok((end, client_port))
}

async fn connect_webtransport(
    server: SocketAddr,
    settings: &Settings,
    timeout: Duration,
) -> Result<Box<dyn Connection>, TransportError> {
    let what = "cannot open a session";
    let settings = &without_early_data(settings);
    let Endpoint { quinn: endpoint, readback } = endpoint::client_endpoint(server, settings)?;
    let client_port = endpoint.local_addr().map_err(crate::error::failed("cannot read the own address"))?.port();
    let name = settings.security()?.server_name().to_str().into_owned();
    let name = if name.contains(':') { format!("[{name}]") } else { name };
    let url = Url::parse(&format!("https://{name}:{}{PATH}", server.port())).map_err(unspoken(what))?;
    let connected = endpoint::connect(&endpoint, server, settings, &[ALPN.as_bytes()], timeout).await?;

    let upgrading = Instant::now();
    let session = web_transport_quinn::Session::connect(connected.quinn.clone(), ConnectRequest::new(url)).await;
    let session = Live(session.map_err(|e| opening_error(&connected.quinn, &e))?);
    let stream = session.0.open_bi().await.map_err(|e| session_error(what, &e))?;
    let pipe = Pipe::WebTransport(Box::new(Frames::new(session, stream)));
    let mut end = End::new(pipe, settings.payload, false, |now_ns| Ok(Session::client(Over::WebTransport, now_ns)))?;
    end.connected().await?;
    let phases = Phases { upgrade: Some(upgrading.elapsed()), ..Phases::default() };
    let connection = SocketIoConnection::up(end, client_port, phases);
    Ok(Box::new(SocketIoConnection { quic: Some(connected), readback: Some(readback), ..connection }))
}

/// What runs over WebTransport cannot be sent early: CONNECT is not safe to repeat (RFC 9114, section 10.9).
fn without_early_data(settings: &Settings) -> Settings {
    let resumption = match settings.resumption {
        Resumption::EarlyData => Resumption::Session,
        resumption => resumption,
    };
    Settings { resumption, ..settings.clone() }
}

/// For `map_err`: what was said makes no sense.
fn unspoken<E: Display>(what: &'static str) -> impl Fn(E) -> TransportError {
    move |error| TransportError::with(what, Outcome::Protocol, error.to_string())
}

fn opening_error(connection: &quinn::Connection, error: &impl Display) -> TransportError {
    let what = "cannot open a session";
    match connection.close_reason() {
        Some(reason) => session_error(what, &reason.into()),
        None => unspoken(what)(error),
    }
}

fn new_handshake(upgrades: Vec<String>) -> Result<Handshake, TransportError> {
    Ok(Handshake {
        sid: new_sid()?,
        upgrades,
        ping_interval_ms: PING_INTERVAL_MS,
        ping_timeout_ms: PING_TIMEOUT_MS,
        max_payload_bytes: LARGEST as u64,
    })
}

/// An id that nobody can guess.
fn new_sid() -> Result<String, TransportError> {
    let mut bytes = [0; 16];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| TransportError::with("cannot open a session", Outcome::Error, "no randomness"))?;
    Ok(bytes.iter().fold(String::new(), |mut sid, byte| {
        // Writing to a string does not fail.
        let _ = write!(sid, "{byte:02x}");
        sid
    }))
}

struct WebSocketListener {
    listening: Listening,
    polling: Arc<Polling>,
    payload: Payload,
}

impl Listener for WebSocketListener {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listening.address()
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async move {
            let (stream, client) = self.listening.accept().await?;
            let state = State::Tcp(stream, Arc::clone(&self.polling), self.payload);
            Ok(Box::new(SocketIoConnection::new(state, client.port())) as Box<dyn Connection>)
        })
    }
}

struct WebTransportListener {
    endpoint: Endpoint,
    payload: Payload,
}

impl Listener for WebTransportListener {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.endpoint.quinn.local_addr().map_err(crate::error::failed("cannot read the listener's address"))
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async move {
            let incoming = self.endpoint.quinn.accept().await.ok_or_else(|| TransportError::closed("cannot accept"))?;
            let client_port = incoming.remote_address().port();
            let state = State::Quic(Box::new(incoming), self.payload);
            let readback = Some(self.endpoint.readback.clone());
            let connection = SocketIoConnection { readback, ..SocketIoConnection::new(state, client_port) };
            Ok(Box::new(connection) as Box<dyn Connection>)
        })
    }
}

/// A session over a stream that the client opens.
async fn accept_webtransport(incoming: quinn::Incoming, kind: Payload) -> Result<End, TransportError> {
    let what = "cannot accept a session";
    let connection = endpoint::accept(incoming, true).await?;
    let opened = async { Request::accept(connection.clone()).await?.ok().await };
    let session = Live(opened.await.map_err(|e| opening_error(&connection, &e))?);
    let stream = session.0.accept_bi().await.map_err(|e| session_error(what, &e))?;
    let pipe = Pipe::WebTransport(Box::new(Frames::new(session, stream)));
    let (handshake, sid) = (new_handshake(Vec::new())?, new_sid()?);
    let mut end = End::new(pipe, kind, true, |now_ns| Session::server(Over::WebTransport, handshake, sid, now_ns))?;
    end.connected().await?;
    Ok(end)
}

struct SocketIoConnection {
    state: State,
    client_port: u16,
    phases: Phases,
    taken: bool,
    /// At a client over QUIC.
    quic: Option<Connected>,
    /// Over QUIC, where the socket is the endpoint's.
    readback: Option<SocketReadback>,
}

enum State {
    /// At the server, before anything was said.
    Tcp(TcpStream, Arc<Polling>, Payload),
    Quic(Box<quinn::Incoming>, Payload),
    Up(Halves<End>),
    Gone,
}

impl SocketIoConnection {
    fn new(state: State, client_port: u16) -> Self {
        Self { state, client_port, phases: Phases::default(), taken: false, quic: None, readback: None }
    }

    fn up(end: End, client_port: u16, phases: Phases) -> Self {
        Self { phases, ..Self::new(State::Up(Halves::new(end)), client_port) }
    }
}

fn stream(halves: &Halves<End>) -> Stream {
    Stream::new(SocketIoSender(halves.clone()), SocketIoReceiver(halves.clone()))
}

impl Connection for SocketIoConnection {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        Call::new(async move {
            match &self.state {
                State::Up(halves) => Ok(stream(halves)),
                _ => Err(TransportError::closed("cannot open a stream")),
            }
        })
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Call::new(async move {
            self.state = match std::mem::replace(&mut self.state, State::Gone) {
                State::Tcp(stream, polling, kind) => {
                    State::Up(Halves::new(server::serve(stream, &polling, kind).await?))
                }
                State::Quic(incoming, kind) => State::Up(Halves::new(accept_webtransport(*incoming, kind).await?)),
                state => state,
            };
            match &self.state {
                State::Up(halves) if !std::mem::replace(&mut self.taken, true) => Ok(stream(halves)),
                _ => Err(TransportError::closed("cannot accept a stream")),
            }
        })
    }

    fn phases(&self) -> Phases {
        let below = self.quic.as_ref().map(Connected::phases).unwrap_or_default();
        Phases { transport: self.phases.transport, upgrade: self.phases.upgrade, ..below }
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async move {
            let State::Up(halves) = &self.state else { return Ok(()) };
            let closed = halves.poll(Half::Receiving, "cannot close", End::poll_close).await;
            let below = halves.end(Outcome::Closed).map(End::into_pipe);
            if let Some(Pipe::WebTransport(frames)) = below {
                if let Some(quic) = &self.quic {
                    quic.await_ticket().await;
                }
                frames.close().await;
            }
            match closed {
                // It was over already.
                Err(e) if e.outcome == Outcome::Closed => Ok(()),
                closed => closed,
            }
        })
    }

    fn abort(&mut self) {
        match std::mem::replace(&mut self.state, State::Gone) {
            State::Tcp(stream, ..) => nonblocking::reset_on_drop(&stream),
            State::Up(halves) => match halves.end(Outcome::Reset).map(End::into_pipe) {
                Some(Pipe::WebSocket(socket)) => socket.into_carrier().reset(),
                Some(Pipe::WebTransport(frames)) => frames.abort(),
                // Whoever polls finds it gone.
                Some(Pipe::Requests(_)) | None => {}
            },
            State::Quic(..) | State::Gone => {}
        }
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        let what = "cannot read the socket's settings back";
        match (&self.readback, &self.state) {
            (Some(readback), _) => Ok(readback.clone()),
            (None, State::Tcp(stream, ..)) => nonblocking::readback(stream),
            (None, State::Up(halves)) => halves.with(what, |end| match end.pipe() {
                Pipe::WebSocket(socket) => nonblocking::readback(socket.carrier().tcp()),
                Pipe::WebTransport(_) => Err(TransportError::unsupported(what)),
                Pipe::Requests(requests) => Ok(requests.readback.clone()),
            }),
            (None, State::Quic(..) | State::Gone) => Err(TransportError::closed(what)),
        }
    }
}

struct SocketIoSender(Halves<End>);

impl Sender for SocketIoSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        let mut message = Some(message);
        Call::new(self.0.poll(Half::Sending, "cannot send", move |end, context| {
            if let Some(message) = message.take() {
                end.emit(message)?;
            }
            end.poll_out(Half::Sending, context)
        }))
    }

    fn finish(&mut self) -> Call<'_, ()> {
        Call::new(self.0.poll(Half::Sending, "cannot finish sending", End::poll_finish))
    }
}

struct SocketIoReceiver(Halves<End>);

impl Receiver for SocketIoReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        let what = "cannot receive";
        Call::new(self.0.poll(Half::Receiving, what, move |end, context| {
            let message = ready!(end.poll_message(context, into.len()))?;
            let Some(place) = into.get_mut(..message.len()) else {
                return Poll::Ready(Err(TransportError::with(what, Outcome::TooLarge, "larger than expected")));
            };
            place.copy_from_slice(&message);
            Poll::Ready(Ok(message.len()))
        }))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.0.poll(Half::Receiving, "cannot receive", move |end, context| {
            loop {
                match ready!(end.poll_message(context, LARGEST)) {
                    Ok(message) if message.is_empty() && !into.is_empty() => {}
                    Ok(mut message) => {
                        let length = message.len().min(into.len());
                        message.copy_to_slice(&mut into[..length]);
                        end.rest = message;
                        return Poll::Ready(Ok(length));
                    }
                    Err(e) if e.outcome == Outcome::Closed => return Poll::Ready(Ok(0)),
                    Err(e) => return Poll::Ready(Err(e)),
                }
            }
        }))
    }
}
