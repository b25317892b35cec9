//! The common ground of transports over QUIC (RFC 9000): endpoints, handshakes, closing, and errors as outcomes.
//!
//! Settings that differ from quinn's defaults, so a measurement shows the path and not a setting:
//! - Flow control is not the limit: [`SEND_WINDOW`], the smallest window, holds the bytes in flight at 100 ms and 500
//!   Mbit/s, or at 5 ms and 10 Gbit/s. It is more than Linux's default of 4 MiB for TCP (tcp(7), `tcp_wmem`).
//! - No UDP generic segmentation offload on kernels that refuse it for a TUN device (`offload`).
//! - No idle timeout and no keep-alive unless set: a connection lasts until an end closes it, and sends no packets on
//!   its own.
//!
//! quinn's defaults: cubic, unless the settings name another congestion control; an acknowledgment for every other
//! packet; packets of 1200 bytes at first (RFC 9000, section 14.1), larger ones after MTU discovery; UDP generic
//! segmentation offload, so one system call hands the kernel up to ten packets. For a device without that offload, such
//! as a TUN device, the kernel splits them; on a veth pair they stay together.

use crate::driver::within;
use crate::error::{TransportError, failed};
use crate::quic::handshake::Handshake;
use crate::quic::observed::{ObservedClient, RecordedServer};
use crate::quic::offload::kernel_splits_datagrams;
use crate::quic::socket::Reactor;
use crate::settings::QuicSettings;
use crate::udp;
use crate::{Outcome, Phases, Resumption, Settings, SocketReadback};
use quinn::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::QuicServerConfig;
use quinn::{ConnectionError, TransportConfig, VarInt};
use socket2::SockRef;
use std::collections::HashMap;
use std::fmt::Display;
use std::fs::File;
use std::io::LineWriter;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// A connection's buffer for unacknowledged bytes on all streams. A larger one is less often in the processor's caches
/// when sent: on loopback 16 MiB took 15 % more processor time per byte than 4 MiB, and 6 MiB took 3 % more.
const SEND_WINDOW: u64 = 6 << 20;
/// A client's open streams at most.
const STREAMS: u32 = 1000;
/// The buffer for received datagrams, bytes. When full, it drops the oldest.
const DATAGRAM_RECEIVE_BUFFER: usize = 16 << 20;
/// The buffer for datagrams held by congestion control, bytes. When full, it drops the oldest.
const DATAGRAM_SEND_BUFFER: usize = 1 << 20;
/// The time limit for closing a connection.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(1);

/// The code for dropping a connection: the peer's outcome is `Reset`. An orderly end has code 0.
pub(crate) const ABORTED: u32 = 1;
/// The code for an orderly end in HTTP/3 (RFC 9114, section 8.1).
const H3_NO_ERROR: u64 = 0x100;

/// One UDP socket, and the QUIC connections on it.
pub(crate) struct Endpoint {
    /// The endpoint, to connect from or to accept at.
    pub(crate) quinn: quinn::Endpoint,
    /// The socket's settings, as the kernel has them, and its connections' congestion control.
    pub(crate) readback: SocketReadback,
    settings: Settings,
}

impl Endpoint {
    /// The next client to be answered. Others get no answer at all.
    pub(crate) async fn accept(&self) -> Result<quinn::Incoming, TransportError> {
        loop {
            let incoming = self.quinn.accept().await.ok_or_else(|| TransportError::closed("cannot accept"))?;
            if self.settings.answers(incoming.remote_address().ip()) {
                return Ok(incoming);
            }
            incoming.ignore();
        }
    }
}

/// A client's endpoint, on its own port, for a `server` of either address family.
pub(crate) fn client_endpoint(server: SocketAddr, settings: &Settings) -> Result<Endpoint, TransportError> {
    let any: SocketAddr =
        if server.is_ipv6() { (Ipv6Addr::UNSPECIFIED, 0).into() } else { (Ipv4Addr::UNSPECIFIED, 0).into() };
    endpoint(any, settings, None)
}

pub(crate) fn server_endpoint(
    address: SocketAddr,
    settings: &Settings,
    protocols: &[&[u8]],
) -> Result<Endpoint, TransportError> {
    let tls = settings.security()?.server(protocols, settings.resumption, true)?;
    let tls = Arc::new(QuicServerConfig::try_from(tls).map_err(unusable)?);
    let mut config = quinn::ServerConfig::with_crypto(match &settings.quic_packets {
        Some(packets) => Arc::new(RecordedServer { tls, packets: Arc::clone(packets) }),
        None => tls,
    });
    config.transport_config(Arc::new(transport(settings, "server")?));
    endpoint(address, settings, Some(config))
}

fn endpoint(
    address: SocketAddr,
    settings: &Settings,
    server: Option<quinn::ServerConfig>,
) -> Result<Endpoint, TransportError> {
    let socket = udp::open(address, &settings.socket)?;
    socket.bind(&address.into()).map_err(failed("cannot bind"))?;
    let mut readback = udp::readback(&SockRef::from(&socket))?;
    readback.congestion_control = Some(congestion_control(settings).to_owned());
    let runtime = Arc::new(Reactor);
    let quinn = quinn::Endpoint::new(quinn::EndpointConfig::default(), server, socket.into(), runtime)
        .map_err(failed("cannot open a QUIC endpoint"))?;
    Ok(Endpoint { quinn, readback, settings: settings.clone() })
}

fn congestion_control(settings: &Settings) -> &str {
    settings.socket.congestion_control.as_deref().unwrap_or("cubic")
}

fn transport(settings: &Settings, side: &str) -> Result<TransportConfig, TransportError> {
    let mut config = TransportConfig::default();
    config
        .stream_receive_window(VarInt::from_u32(settings.quic.stream_window()))
        .receive_window(VarInt::from_u32(settings.quic.connection_window()))
        .send_window(SEND_WINDOW)
        .max_concurrent_bidi_streams(VarInt::from_u32(STREAMS))
        .datagram_receive_buffer_size(Some(DATAGRAM_RECEIVE_BUFFER))
        .datagram_send_buffer_size(DATAGRAM_SEND_BUFFER)
        .max_idle_timeout(idle_timeout(&settings.quic)?)
        .keep_alive_interval(settings.quic.keep_alive)
        .enable_segmentation_offload(kernel_splits_datagrams());
    if settings.quic.mtu_discovery == Some(false) {
        config.mtu_discovery_config(None);
    }
    config.packet_threshold(settings.quic.packet_threshold());
    if let Some(round_trips) = settings.quic.time_threshold {
        config.time_threshold(round_trips as f32);
    }
    match congestion_control(settings) {
        "cubic" => config.congestion_controller_factory(Arc::new(CubicConfig::default())),
        "reno" | "newreno" => config.congestion_controller_factory(Arc::new(NewRenoConfig::default())),
        "bbr" => config.congestion_controller_factory(Arc::new(BbrConfig::default())),
        other => {
            let cause = format!("QUIC has cubic, reno and bbr here, not {other}");
            return Err(TransportError::with("cannot set the congestion control", Outcome::Error, cause));
        }
    };
    if let Some(directory) = &settings.qlog {
        config.qlog_stream(Some(qlog(directory, side)?));
    }
    Ok(config)
}

fn idle_timeout(settings: &QuicSettings) -> Result<Option<quinn::IdleTimeout>, TransportError> {
    settings.idle_timeout.map(|time| quinn::IdleTimeout::try_from(time).map_err(unusable)).transpose()
}

/// The log for all connections of one side, open as long as the program runs. It is written line by line, so nothing is
/// missing whenever the program ends. Its events name their connection (`group_id`): by the client's identifier for the
/// server, and at the client, after the server's answer, by the server's.
fn qlog(directory: &Path, side: &str) -> Result<quinn::QlogStream, TransportError> {
    static OPEN: Mutex<Option<HashMap<PathBuf, quinn::QlogStream>>> = Mutex::new(None);
    let path = directory.join(format!("{side}.qlog"));
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let open = open.get_or_insert_default();
    if let Some(stream) = open.get(&path) {
        return Ok(stream.clone());
    }
    let file = File::create(&path).map_err(failed("cannot write the qlog"))?;
    let mut config = quinn::QlogConfig::default();
    config.writer(Box::new(LineWriter::new(file))).title(Some(format!("crosswind {side}")));
    let stream = config.into_stream().ok_or_else(|| {
        TransportError::with("cannot write the qlog", Outcome::Error, "its first record could not be written")
    })?;
    open.insert(path, stream.clone());
    Ok(stream)
}

/// A client's connection, and how setting it up went.
pub(crate) struct Connected {
    pub(crate) quinn: quinn::Connection,
    security: Duration,
    handshake: Arc<Handshake>,
    /// With early data offered: whether the server accepted it, as soon as known.
    early: Option<Mutex<EarlyData>>,
    resumption: Resumption,
}

enum EarlyData {
    Pending(quinn::ZeroRttAccepted),
    Known(bool),
}

/// Connects to `server` by one of `protocols` (ALPN) within `timeout`; with early data before the first flight is sent.
pub(crate) async fn connect(
    endpoint: &quinn::Endpoint,
    server: SocketAddr,
    settings: &Settings,
    protocols: &[&[u8]],
    timeout: Duration,
) -> Result<Connected, TransportError> {
    let security = settings.security()?;
    let handshake = Arc::new(Handshake::default());
    let tls = security.client(protocols, settings.resumption)?;
    let observed = ObservedClient::new(tls, Arc::clone(&handshake), settings.quic_packets.clone()).map_err(unusable)?;
    let mut config = quinn::ClientConfig::new(Arc::new(observed));
    config.transport_config(Arc::new(transport(settings, "client")?));

    let started = Instant::now();
    let connecting = endpoint.connect_with(config, server, &security.server_name().to_str()).map_err(unusable)?;
    let (quinn, early) = match connecting.into_0rtt() {
        Ok((quinn, accepted)) => (quinn, Some(Mutex::new(EarlyData::Pending(accepted)))),
        Err(connecting) => {
            let done = async { connecting.await.map_err(|e| not_connected(&e)) };
            (within(timeout, "cannot connect", done).await?, None)
        }
    };
    Ok(Connected { quinn, security: started.elapsed(), handshake, early, resumption: settings.resumption })
}

impl Connected {
    /// How it was set up. Early data counts as accepted until the server has said otherwise.
    pub(crate) fn phases(&self) -> Phases {
        let early_data = self.early.as_ref().is_some_and(is_accepted);
        Phases {
            security: Some(self.security),
            resumed: self.handshake.resumed().unwrap_or(early_data),
            early_data,
            ..Phases::default()
        }
    }

    /// Ends it in an orderly way.
    pub(crate) async fn close(&self, code: VarInt) {
        self.await_ticket().await;
        close(&self.quinn, code).await;
    }

    /// With resumption, waits for the server's ticket, perhaps a round trip after the last message. Call before the
    /// end.
    pub(crate) async fn await_ticket(&self) {
        if self.resumption == Resumption::None {
            return;
        }
        let ticket = async {
            tokio::select! {
                () = self.handshake.ticket() => {}
                _ = self.quinn.closed() => {}
            }
        };
        // Without a ticket there is no resumption; the next connection's phases show it.
        let _ = tokio::time::timeout(CLOSE_TIMEOUT, ticket).await;
    }
}

fn is_accepted(early: &Mutex<EarlyData>) -> bool {
    let mut early = early.lock().unwrap_or_else(PoisonError::into_inner);
    let known = match &mut *early {
        EarlyData::Known(accepted) => return *accepted,
        EarlyData::Pending(accepted) => {
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            std::pin::Pin::new(accepted).poll(&mut context)
        }
    };
    match known {
        std::task::Poll::Ready(accepted) => {
            *early = EarlyData::Known(accepted);
            accepted
        }
        std::task::Poll::Pending => true,
    }
}

/// The server's part of a handshake: to its end, or if `early` until the server can send. The latter is needed to answer early
/// data in the first flight, and to send HTTP/3's SETTINGS as soon as possible (RFC 9114, section 7.2.4.2). If the client then
/// refuses the certificate, the first call on the connection fails.
pub(crate) async fn accept(incoming: quinn::Incoming, early: bool) -> Result<quinn::Connection, TransportError> {
    let failed = |e: ConnectionError| connection_error("cannot accept", &e);
    let connecting = incoming.accept().map_err(failed)?;
    if !early {
        return connecting.await.map_err(failed);
    }
    match connecting.into_0rtt() {
        Ok((connection, _)) => Ok(connection),
        Err(connecting) => connecting.await.map_err(failed),
    }
}

/// Closes `connection`, and waits until `CONNECTION_CLOSE` was sent. Undelivered data is dropped. The endpoint keeps
/// the connection for three more timeouts (RFC 9000, section 10.2), without anybody waiting.
pub(crate) async fn close(connection: &quinn::Connection, code: VarInt) {
    if connection.close_reason().is_some() {
        return;
    }
    let before = connection.stats().udp_tx.datagrams;
    connection.close(code, b"");
    let started = Instant::now();
    let mut polls = 0_u32;
    while connection.stats().udp_tx.datagrams == before && started.elapsed() < CLOSE_TIMEOUT {
        // A closed connection sends nothing else, and does so when its task next runs, unless the socket's buffer is
        // full.
        if polls < 10 {
            tokio::task::yield_now().await;
        } else {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        polls += 1;
    }
}

fn unusable(cause: impl Display) -> TransportError {
    TransportError::with("cannot use QUIC", Outcome::Error, cause.to_string())
}

fn not_connected(error: &ConnectionError) -> TransportError {
    let mut found = connection_error("cannot connect", error);
    if *error == ConnectionError::TimedOut {
        found.outcome = Outcome::Timeout;
    }
    found
}

pub(crate) fn connection_error(what: &'static str, error: &ConnectionError) -> TransportError {
    let outcome = match error {
        ConnectionError::TimedOut | ConnectionError::Reset => Outcome::Reset,
        ConnectionError::LocallyClosed => Outcome::Closed,
        ConnectionError::ApplicationClosed(close) => match close.error_code.into_inner() {
            0 | H3_NO_ERROR => Outcome::Closed,
            _ => Outcome::Reset,
        },
        ConnectionError::TransportError(error) => transport_outcome(error.code.into()),
        ConnectionError::ConnectionClosed(close) => transport_outcome(close.error_code.into()),
        ConnectionError::VersionMismatch => Outcome::Protocol,
        ConnectionError::CidsExhausted => Outcome::Error,
    };
    TransportError::with(what, outcome, error.to_string())
}

/// For codes in RFC 9000, section 20.1; a TLS alert is 0x100 and its number (RFC 8446, section 6).
fn transport_outcome(code: u64) -> Outcome {
    match code {
        0x00 => Outcome::Closed,
        0x02 => Outcome::Refused,
        // bad_certificate to access_denied except illegal_parameter; decrypt_error (bad signature);
        // certificate_required.
        0x12a..=0x12e | 0x130 | 0x131 | 0x133 | 0x174 => Outcome::Certificate,
        _ => Outcome::Protocol,
    }
}

/// A failed stream read as an outcome.
pub(crate) fn read_error(what: &'static str, error: &quinn::ReadError) -> TransportError {
    let outcome = match error {
        quinn::ReadError::ConnectionLost(lost) => return connection_error(what, lost),
        quinn::ReadError::Reset(_) => Outcome::Reset,
        quinn::ReadError::ZeroRttRejected | quinn::ReadError::IllegalOrderedRead => Outcome::Error,
        quinn::ReadError::ClosedStream => Outcome::Closed,
    };
    TransportError::with(what, outcome, error.to_string())
}

/// A failed stream write as an outcome.
pub(crate) fn write_error(what: &'static str, error: &quinn::WriteError) -> TransportError {
    let outcome = match error {
        quinn::WriteError::ConnectionLost(lost) => return connection_error(what, lost),
        quinn::WriteError::Stopped(_) => Outcome::Reset,
        quinn::WriteError::ZeroRttRejected => Outcome::Error,
        quinn::WriteError::ClosedStream => Outcome::Closed,
    };
    TransportError::with(what, outcome, error.to_string())
}

/// A failed datagram send as an outcome.
pub(crate) fn datagram_error(what: &'static str, error: &quinn::SendDatagramError) -> TransportError {
    let outcome = match error {
        quinn::SendDatagramError::ConnectionLost(lost) => return connection_error(what, lost),
        quinn::SendDatagramError::TooLarge => Outcome::TooLarge,
        quinn::SendDatagramError::UnsupportedByPeer | quinn::SendDatagramError::Disabled => Outcome::Protocol,
    };
    TransportError::with(what, outcome, error.to_string())
}
