//! WebTransport over HTTP/3 (draft-ietf-webtrans-http3): a session by CONNECT, whose bidirectional streams carry bytes, a
//! message being a number of them that both ends know, and whose datagrams carry one message each.

pub(crate) mod session;

use crate::error::failed;
use crate::quic::endpoint::{ABORTED, Connected, Endpoint, client_endpoint, connect, server_endpoint};
use crate::quic::{MAX_DATAGRAM, check_size, copy_datagram, fill};
use crate::runtime::handshaking::Handshaking;
use crate::{
    Call, Carrier, Connection, Driver, Features, Listener, Outcome, Phases, Purpose, Receiver, Resumption, Sender,
    Settings, SocketReadback, Stream, Streams, Transport, TransportError,
};
use bytes::Bytes;
use session::{OpenSession, accept_session, opening_error, read_error, session_error, write_error};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use url::Url;
use web_transport_quinn::proto::ConnectRequest;
use web_transport_quinn::{ALPN, RecvStream, SendStream, Session};

/// The largest message: a datagram without the identifier of the session, which is that of its first stream, 0, in one byte.
const MAX_MESSAGE: usize = MAX_DATAGRAM - 1;

/// The transport `webtransport`.
pub struct WebTransport;

/// The transport `webtransport-datagram`.
pub struct WebTransportDatagram;

impl Transport for WebTransport {
    fn name(&self) -> &'static str {
        "webtransport"
    }

    fn summary(&self) -> &'static str {
        "Streams of bytes of a WebTransport session over HTTP/3."
    }

    fn features(&self) -> Features {
        Features {
            driver: Driver::Reactor,
            carrier: Carrier::Quic,
            // QUIC 1, the CONNECT request 1; the SETTINGS that it waits for come with the handshake.
            setup_round_trips: 2,
            streams: Streams::Many,
            secure: true,
            shares_connection: true,
            // A stream exists for the other end as soon as something has been sent on it.
            server_speaks_first: false,
            ..Features::PLAIN
        }
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::done(listen(address, settings, false))
    }

    fn connect<'a>(
        &'a self,
        server: SocketAddr,
        settings: &'a Settings,
        timeout: Duration,
    ) -> Call<'a, Box<dyn Connection>> {
        Call::new(connect_client(server, settings, timeout, false))
    }
}

impl Transport for WebTransportDatagram {
    fn name(&self) -> &'static str {
        "webtransport-datagram"
    }

    fn summary(&self) -> &'static str {
        "Unreliable datagrams of a WebTransport session over HTTP/3."
    }

    fn features(&self) -> Features {
        Features { datagram: true, streams: Streams::One, ..WebTransport.features() }
    }

    /// What always fits, as in `quic-datagram`.
    fn largest_message(&self, _ipv6: bool, _mtu: u32) -> Option<usize> {
        Some(MAX_MESSAGE)
    }

    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>> {
        Call::done(listen(address, settings, true))
    }

    fn connect<'a>(
        &'a self,
        server: SocketAddr,
        settings: &'a Settings,
        timeout: Duration,
    ) -> Call<'a, Box<dyn Connection>> {
        Call::new(connect_client(server, settings, timeout, true))
    }
}

fn listen(address: SocketAddr, settings: &Settings, datagrams: bool) -> Result<Box<dyn Listener>, TransportError> {
    refuse_early_data(settings)?;
    let endpoint = server_endpoint(address, settings, &[ALPN.as_bytes()])?;
    Ok(Box::new(WebTransportServer { endpoint, datagrams }))
}

/// CONNECT may not be sent as early data, for it is not safe to repeat (RFC 9114, section 10.9).
fn refuse_early_data(settings: &Settings) -> Result<(), TransportError> {
    if settings.resumption == Resumption::EarlyData {
        return Err(TransportError::unsupported("cannot send early data"));
    }
    Ok(())
}

async fn connect_client(
    server: SocketAddr,
    settings: &Settings,
    timeout: Duration,
    datagrams: bool,
) -> Result<Box<dyn Connection>, TransportError> {
    refuse_early_data(settings)?;
    let began = Instant::now();
    let Endpoint { quinn: endpoint, readback, .. } = client_endpoint(server, settings)?;
    let client_port = endpoint.local_addr().map_err(failed("cannot read the own address"))?.port();
    let request = ConnectRequest::new(session_url(server.port(), settings)?);
    let connected = connect(&endpoint, server, settings, &[ALPN.as_bytes()], timeout).await?;

    let upgrading = Instant::now();
    let session = crate::driver::within(timeout.saturating_sub(began.elapsed()), "cannot open a session", async {
        let opened = Session::connect(connected.quinn.clone(), request).await;
        opened.map_err(|e| opening_error("cannot open a session", &connected.quinn, &e))
    });
    let session = Arc::new(OpenSession(session.await?));
    let upgrade = upgrading.elapsed();
    Ok(Box::new(WebTransportClientConnection { session, connected, upgrade, client_port, readback, datagrams }))
}

/// The URL of the session, which has the server's name, not its address.
fn session_url(port: u16, settings: &Settings) -> Result<Url, TransportError> {
    let name = settings.security()?.server_name().to_str();
    let name = if name.contains(':') { format!("[{name}]") } else { name.into_owned() };
    let path = settings.path.strip_prefix('/').unwrap_or(&settings.path);
    Url::parse(&format!("https://{name}:{port}/{path}"))
        .map_err(|e| TransportError::with("cannot use the path", Outcome::Error, e.to_string()))
}

struct WebTransportServer {
    endpoint: Endpoint,
    datagrams: bool,
}

impl Listener for WebTransportServer {
    fn address(&self) -> Result<SocketAddr, TransportError> {
        self.endpoint.quinn.local_addr().map_err(failed("cannot read the listener's address"))
    }

    fn accept(&self, _timeout: Duration) -> Call<'_, Box<dyn Connection>> {
        Call::new(async move {
            let incoming = self.endpoint.accept().await?;
            Ok(Box::new(WebTransportServerConnection {
                client_port: incoming.remote_address().port(),
                handshake: Handshaking::new(accept_session(incoming)),
                readback: self.endpoint.readback.clone(),
                datagrams: self.datagrams,
                accepted: false,
            }) as Box<dyn Connection>)
        })
    }
}

struct WebTransportClientConnection {
    session: Arc<OpenSession>,
    connected: Connected,
    upgrade: Duration,
    client_port: u16,
    readback: SocketReadback,
    datagrams: bool,
}

impl Connection for WebTransportClientConnection {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        Call::new(async move {
            if self.datagrams {
                return Ok(datagrams(&self.session));
            }
            let opened = self.session.0.open_bi().await;
            opened.map(|pair| stream(&self.session, pair)).map_err(|e| session_error("cannot open a stream", &e))
        })
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Call::done(Err(TransportError::unsupported("cannot accept a stream at the client")))
    }

    fn phases(&self) -> Phases {
        Phases { upgrade: Some(self.upgrade), ..self.connected.phases() }
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async move {
            self.connected.await_ticket().await;
            self.session.close().await;
            Ok(())
        })
    }

    /// The other end may see an orderly end: the library's task for the session closes the connection once more, which hides the
    /// reason from later calls.
    fn abort(&mut self) {
        self.session.end(ABORTED);
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        Ok(self.readback.clone())
    }
}

struct WebTransportServerConnection {
    handshake: Handshaking<Arc<OpenSession>>,
    client_port: u16,
    readback: SocketReadback,
    datagrams: bool,
    /// The stream of datagrams has been handed out.
    accepted: bool,
}

impl Connection for WebTransportServerConnection {
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        Call::done(Err(TransportError::unsupported("cannot open a stream at the server")))
    }

    fn accept(&mut self) -> Call<'_, Stream> {
        Call::new(async move {
            let session = self.handshake.done().await?;
            if !self.datagrams {
                let next = session.0.accept_bi().await;
                return next
                    .map(|pair| stream(&session, pair))
                    .map_err(|e| session_error("cannot accept a stream", &e));
            }
            if self.accepted {
                return Err(session_error("cannot accept a stream", &session.0.closed().await));
            }
            self.accepted = true;
            Ok(datagrams(&session))
        })
    }

    fn close(&mut self) -> Call<'_, ()> {
        Call::new(async move {
            if let Some(session) = self.handshake.take() {
                session.close().await;
            }
            Ok(())
        })
    }

    fn abort(&mut self) {
        if let Some(session) = self.handshake.take() {
            session.end(ABORTED);
        }
    }

    fn client_port(&self) -> u16 {
        self.client_port
    }

    fn readback(&self) -> Result<SocketReadback, TransportError> {
        Ok(self.readback.clone())
    }
}

fn stream(session: &Arc<OpenSession>, (sender, receiver): (SendStream, RecvStream)) -> Stream {
    Stream::new(
        WebTransportSender { stream: sender, _session: Arc::clone(session) },
        WebTransportReceiver { stream: receiver, _session: Arc::clone(session) },
    )
}

fn datagrams(session: &Arc<OpenSession>) -> Stream {
    Stream::new(DatagramSender(Arc::clone(session)), DatagramReceiver(Arc::clone(session)))
}

struct WebTransportSender {
    stream: SendStream,
    _session: Arc<OpenSession>,
}

impl Sender for WebTransportSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        Call::new(async move { self.stream.write_all(message).await.map_err(|e| write_error("cannot send", &e)) })
    }

    fn finish(&mut self) -> Call<'_, ()> {
        // It fails when it has been finished before.
        let _ = self.stream.finish();
        Call::done(Ok(()))
    }
}

struct WebTransportReceiver {
    stream: RecvStream,
    _session: Arc<OpenSession>,
}

impl WebTransportReceiver {
    async fn some(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        if into.is_empty() {
            return Ok(0);
        }
        let read = self.stream.read(into).await;
        read.map(Option::unwrap_or_default).map_err(|e| read_error("cannot receive", &e))
    }
}

impl Receiver for WebTransportReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(fill(into, async |rest: &mut [u8]| self.some(rest).await))
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(self.some(into))
    }
}

struct DatagramSender(Arc<OpenSession>);

impl Sender for DatagramSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        Call::done(check_size(message, MAX_MESSAGE).and_then(|()| {
            let sent = self.0.0.send_datagram(Bytes::copy_from_slice(message));
            sent.map_err(|e| session_error("cannot send", &e))
        }))
    }
}

struct DatagramReceiver(Arc<OpenSession>);

impl Receiver for DatagramReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(async move {
            let message = self.0.0.read_datagram().await.map_err(|e| session_error("cannot receive", &e))?;
            copy_datagram(&message, into)
        })
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        self.receive(into)
    }
}
