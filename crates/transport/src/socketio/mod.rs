//! Socket.IO (protocol 5, on Engine.IO 4) over WebSocket and over WebTransport. A message is the event `message` with one
//! argument, text or binary.

mod end;
mod frames;
mod opening;
mod pipe;
mod polling_client;
mod polling_session;
mod server;

use crate::error::Outcome;
use crate::quic::endpoint::{self, Endpoint};
use crate::runtime::single_stream::{self, SingleStream};
use crate::security::Resumption;
use crate::tcp::nonblocking::{self, Listening, SocketHandle};
use crate::websocket::{Socket, max_message_bytes};
use crate::webtransport::session::{OpenSession, accept_session, opening_error, session_error};
use crate::{
    About, Call, Connecting, Connection, Driver, Features, Listener, Phases, Settings, Transport, TransportError,
    driver,
};
use crosswind_socketio::{Carrier, Joined, Session};
use end::End;
use frames::Frames;
use opening::{Accepting, PATH, new_handshake, new_sid, protocol_error};
use pipe::Pipe;
use polling_client::PollingClient;
use polling_session::PollingSessions;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::net::TcpStream;
use url::Url;
use web_transport_quinn::ALPN;
use web_transport_quinn::proto::ConnectRequest;

const FEATURES: Features = Features { driver: Driver::Reactor, text: true, shares_connection: true, ..Features::PLAIN };

/// The transport `socketio-websocket`.
pub struct OverWebSocket;

/// The transport `socketio-webtransport`.
pub struct OverWebTransport;

impl Transport for OverWebSocket {
    fn about(&self) -> About {
        // TCP 1, the upgrade to WebSocket 1, Socket.IO's CONNECT 1; Engine.IO's handshake is begun by the server.
        About {
            name: "socketio-websocket",
            summary: "Socket.IO events over WebSocket in cleartext.",
            features: Features { polling: true, setup_round_trips: 3, ..FEATURES },
        }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move {
            let listening = Listening::new(address, settings)?;
            let (sessions, accepting) = (Arc::new(PollingSessions::default()), Accepting::new(settings));
            Ok(Box::new(WebSocketListener { listening, sessions, accepting }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a> {
        Call::new(driver::within(timeout, "cannot connect", connect_websocket(server, settings)))
    }
}

impl Transport for OverWebTransport {
    fn about(&self) -> About {
        // WebTransport 2, Engine.IO's handshake 1, Socket.IO's CONNECT 1.
        let features = Features { secure: true, carrier: crate::Carrier::Quic, setup_round_trips: 4, ..FEATURES };
        About { name: "socketio-webtransport", summary: "Socket.IO events over WebTransport.", features }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::new(async move {
            let endpoint = endpoint::server_endpoint(address, &without_early_data(settings), &[ALPN.as_bytes()])?;
            Ok(Box::new(WebTransportListener { endpoint, accepting: Accepting::new(settings) }) as Box<dyn Listener>)
        })
    }

    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a> {
        Call::new(driver::within(timeout, "cannot connect", connect_webtransport(server, settings, timeout)))
    }
}

async fn connect_websocket(server: SocketAddr, settings: &Settings) -> Result<Box<dyn Connection>, TransportError> {
    let started = Instant::now();
    let tcp = nonblocking::connect(server, &settings.socket).await?;
    let connected = Instant::now();
    let host = server.to_string();
    let (end, handle, client_port) = if settings.polling {
        poll_and_move(tcp, server, &host, settings).await?
    } else {
        let (handle, client_port) = (SocketHandle::new(&tcp, settings)?, nonblocking::own_port(&tcp)?);
        let path = format!("{PATH}?EIO=4&transport=websocket");
        let socket = Socket::client(Box::new(tcp), &host, &path, max_message_bytes(settings)).await?;
        let pipe = Pipe::WebSocket(Box::new(socket));
        let session = |now_ns| Ok(Session::client(Carrier::WebSocket, now_ns));
        let mut end = End::new(pipe, settings.payload, false, session)?;
        end.connected().await?;
        (end, handle, client_port)
    };
    let phases =
        Phases { transport: Some(connected - started), upgrade: Some(connected.elapsed()), ..Phases::default() };
    Ok(Box::new(SingleStream::client(end, single_stream::Socket::Tcp(handle), client_port, phases)))
}

/// A session by polling, then moved to a WebSocket. As in the browser's client the WebSocket is opened while the
/// session joins the namespace.
async fn poll_and_move(
    tcp: TcpStream,
    server: SocketAddr,
    host: &str,
    settings: &Settings,
) -> Result<(End, SocketHandle, u16), TransportError> {
    let mut polling = PollingClient::new(tcp, host.to_owned()).await?;
    let handshake = polling.open().await?;
    if !handshake.upgrades.iter().any(|upgrade| upgrade == "websocket") {
        let cause = "the server does not offer it";
        return Err(TransportError::with("cannot move to WebSocket", Outcome::Protocol, cause));
    }
    let path = format!("{PATH}?EIO=4&transport=websocket&sid={}", handshake.sid);
    let open = async {
        let tcp = nonblocking::connect(server, &settings.socket).await?;
        let (handle, client_port) = (SocketHandle::new(&tcp, settings)?, nonblocking::own_port(&tcp)?);
        Ok((Socket::client(Box::new(tcp), host, &path, max_message_bytes(settings)).await?, handle, client_port))
    };
    let (polled, (socket, handle, client_port)) = tokio::try_join!(polling.join(&handshake.sid), open)?;
    let mut end = End::new(Pipe::WebSocket(Box::new(socket)), settings.payload, false, |now_ns| {
        Session::client_upgrading(Carrier::WebSocket, handshake, Joined::As(polled.socket_sid), now_ns)
    })?;
    end.probed().await?;
    end.finish_upgrade()?;
    for payload in &polled.rest {
        end.handle(payload);
    }
    end.connected().await?;
    Ok((end, handle, client_port))
}

async fn connect_webtransport(
    server: SocketAddr,
    settings: &Settings,
    timeout: Duration,
) -> Result<Box<dyn Connection>, TransportError> {
    let what = "cannot open a session";
    let settings = &without_early_data(settings);
    let Endpoint { quinn: endpoint, readback, .. } = endpoint::client_endpoint(server, settings)?;
    let client_port = endpoint.local_addr().map_err(crate::error::failed("cannot read the own address"))?.port();
    let name = settings.security()?.server_name().to_str().into_owned();
    let name = if name.contains(':') { format!("[{name}]") } else { name };
    let url = Url::parse(&format!("https://{name}:{}{PATH}", server.port())).map_err(protocol_error(what))?;
    let connected = endpoint::connect(&endpoint, server, settings, &[ALPN.as_bytes()], timeout).await?;

    let upgrading = Instant::now();
    let session = web_transport_quinn::Session::connect(connected.quinn.clone(), ConnectRequest::new(url)).await;
    let session = Arc::new(OpenSession(session.map_err(|e| opening_error(what, &connected.quinn, &e))?));
    let stream = session.0.open_bi().await.map_err(|e| session_error(what, &e))?;
    let frames = Frames::new(session, stream, max_message_bytes(settings), Some(connected));
    let pipe = Pipe::WebTransport(Box::new(frames));
    let mut end = End::new(pipe, settings.payload, false, |now_ns| Ok(Session::client(Carrier::WebTransport, now_ns)))?;
    end.connected().await?;
    let phases = Phases { upgrade: Some(upgrading.elapsed()), ..Phases::default() };
    Ok(Box::new(SingleStream::client(end, single_stream::Socket::Quic(readback), client_port, phases)))
}

/// WebTransport allows no early data: CONNECT is not safe to repeat (RFC 9114, section 10.9).
fn without_early_data(settings: &Settings) -> Settings {
    let resumption = match settings.resumption {
        Resumption::EarlyData => Resumption::Session,
        resumption => resumption,
    };
    Settings { resumption, ..settings.clone() }
}

struct WebSocketListener {
    listening: Listening,
    sessions: Arc<PollingSessions>,
    accepting: Accepting,
}

impl Listener for WebSocketListener {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.listening.address()
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async move {
            let (tcp, client) = self.listening.accept().await?;
            let socket = single_stream::Socket::Tcp(self.listening.handle(&tcp)?);
            let session = server::serve(tcp, Arc::clone(&self.sessions), self.accepting);
            Ok(Box::new(SingleStream::server(session, socket, client.port())) as Box<dyn Connection>)
        })
    }
}

struct WebTransportListener {
    endpoint: Endpoint,
    accepting: Accepting,
}

impl Listener for WebTransportListener {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.endpoint.quinn.local_addr().map_err(crate::error::failed("cannot read the listener's address"))
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async move {
            let incoming = self.endpoint.accept().await?;
            let client_port = incoming.remote_address().port();
            let socket = single_stream::Socket::Quic(self.endpoint.readback.clone());
            let session = accept_webtransport(incoming, self.accepting);
            Ok(Box::new(SingleStream::server(session, socket, client_port)) as Box<dyn Connection>)
        })
    }
}

async fn accept_webtransport(incoming: quinn::Incoming, accepting: Accepting) -> Result<End, TransportError> {
    let session = accept_session(incoming).await?;
    let stream = session.0.accept_bi().await.map_err(|e| session_error("cannot accept a session", &e))?;
    let pipe = Pipe::WebTransport(Box::new(Frames::new(session, stream, accepting.max_message_bytes, None)));
    let (handshake, sid) = (new_handshake(Vec::new(), accepting.max_message_bytes)?, new_sid()?);
    let mut end =
        End::new(pipe, accepting.kind, true, |now_ns| Session::server(Carrier::WebTransport, handshake, sid, now_ns))?;
    end.connected().await?;
    Ok(end)
}
