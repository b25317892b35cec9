//! Both ends' connection settings, and the kernel's version of them.

use crate::error::{TransportError, failed};
use crate::http::HttpEnds;
use crate::quic::packets::QuicPackets;
use crate::security::{Resumption, Security};
use crate::tcp::sockets::TcpSockets;
use crate::tcp::totals::TcpTotals;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use socket2::{Domain, Socket, TcpKeepalive};
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The settings for both ends of every connection.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The sockets' own settings.
    pub socket: SocketSettings,
    /// A connection's resumption of an earlier one.
    pub resumption: Resumption,
    /// Socket.IO begins with HTTP long polling.
    pub polling: bool,
    /// The type of messages.
    pub payload: Payload,
    /// WebSocket and Socket.IO: an end's largest accepted message, bytes. None: tungstenite's 64 MiB.
    pub max_message_bytes: Option<usize>,
    /// HTTP: request headers are padded to this size, bytes.
    pub request_bytes: usize,
    /// HTTP, WebSocket, WebTransport: the client's path; empty for the transport's own.
    pub path: String,
    /// Certificate, keys and trust for secure transports.
    pub security: Option<Arc<Security>>,
    /// QUIC settings.
    pub quic: QuicSettings,
    /// HTTP/2 flow control.
    pub http2: Http2Windows,
    /// The directory where QUIC writes its qlog, if any.
    pub qlog: Option<PathBuf>,
    /// Where QUIC packets are recorded with their frames, if anywhere.
    pub quic_packets: Option<Arc<QuicPackets>>,
    /// Records HTTP/1.1 and HTTP/2 writes, if set.
    pub http_ends: Option<Arc<HttpEnds>>,
    /// A server answers this address alone, if one is given.
    pub only_from: Option<IpAddr>,
    /// Keeps the kernel's state of each TCP socket, if set.
    pub tcp_sockets: Option<Arc<TcpSockets>>,
    /// Adds up the kernel's counts for TCP connections, if set.
    pub tcp_totals: Option<Arc<TcpTotals>>,
}

/// What messages are sent as.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Payload {
    /// Any bytes.
    #[default]
    Binary,
    /// UTF-8.
    Text,
}

/// QUIC settings. `None` means the default.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct QuicSettings {
    /// How long nothing may arrive from the other end; none: for as long as it likes.
    pub idle_timeout: Option<Duration>,
    /// After how much idle time a packet is sent; none: never.
    pub keep_alive: Option<Duration>,
    /// Whether to search for the path MTU.
    pub mtu_discovery: Option<bool>,
    /// How many later packets have to arrive before one is lost.
    pub packet_threshold: Option<u32>,
    /// After how many round trips a packet is lost.
    pub time_threshold: Option<f64>,
    /// Stream flow control, bytes.
    pub stream_window: Option<u32>,
    /// Connection flow control, all streams together, bytes.
    pub connection_window: Option<u32>,
}

impl QuicSettings {
    /// quinn's own (RFC 9002, section 6.1.1).
    const PACKET_THRESHOLD: u32 = 3;
    const TIME_THRESHOLD: f64 = 9.0 / 8.0;
    const STREAM_WINDOW: u32 = 16 << 20;
    const CONNECTION_WINDOW: u32 = 64 << 20;

    /// How many later packets have to arrive before one is lost.
    pub fn packet_threshold(&self) -> u32 {
        self.packet_threshold.unwrap_or(Self::PACKET_THRESHOLD)
    }

    /// After how many round trips a packet is lost.
    pub fn time_threshold(&self) -> f64 {
        self.time_threshold.unwrap_or(Self::TIME_THRESHOLD)
    }

    /// Stream flow control, bytes.
    pub fn stream_window(&self) -> u32 {
        self.stream_window.unwrap_or(Self::STREAM_WINDOW)
    }

    /// Connection flow control, all streams together, bytes.
    pub fn connection_window(&self) -> u32 {
        self.connection_window.unwrap_or(Self::CONNECTION_WINDOW)
    }
}

/// HTTP/2 flow control: the bytes an end takes before its program has read any.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http2Windows {
    /// Per stream.
    pub stream: u32,
    /// All streams of a connection together; not less than the protocol's default of 65,535.
    pub connection: u32,
}

/// Chromium's windows, so no window bounds a transfer below 6 MiB in flight (15 MiB over all streams). The protocol's
/// own default is 65,535 bytes for both (RFC 9113, section 6.9.2).
impl Default for Http2Windows {
    fn default() -> Self {
        Self { stream: 6 << 20, connection: 15 << 20 }
    }
}

/// Every socket's settings. `None` leaves the choice to the kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SocketSettings {
    /// TCP congestion control.
    pub congestion_control: Option<String>,
    /// `TCP_NODELAY`.
    pub nodelay: Option<bool>,
    /// `SO_SNDBUF`, bytes.
    pub send_buffer: Option<u32>,
    /// `SO_RCVBUF`, bytes.
    pub receive_buffer: Option<u32>,
    /// `TCP_USER_TIMEOUT` in whole milliseconds, at least one.
    pub user_timeout: Option<Duration>,
    /// `SO_KEEPALIVE`: the idle time before a probe, and the time between probes. Whole seconds.
    pub keep_alive: Option<Duration>,
    /// Its packets' differentiated services codepoint, six bits. quinn resets it to zero.
    pub dscp: Option<u8>,
}

/// The settings of a socket, as the kernel has them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SocketReadback {
    /// TCP congestion control.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// `TCP_NODELAY`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelay: Option<bool>,
    /// `TCP_MAXSEG`, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_segment_bytes: Option<u32>,
    /// `SO_SNDBUF` as the kernel counts it (twice what was set), bytes.
    pub send_buffer_bytes: usize,
    /// `SO_RCVBUF`, likewise.
    pub receive_buffer_bytes: usize,
}

impl Settings {
    pub(crate) fn answers(&self, client: IpAddr) -> bool {
        is_answered(self.only_from, client)
    }

    /// Certificate, keys and trust, needed by every secure transport.
    pub(crate) fn security(&self) -> Result<&Security, TransportError> {
        self.security
            .as_deref()
            .ok_or_else(|| TransportError::unsupported("cannot secure a connection without a certificate"))
    }
}

/// Whether a server, perhaps restricted to one address, answers `client`, perhaps IPv4-mapped (RFC 4291, 2.5.5.2).
pub(crate) fn is_answered(only_from: Option<IpAddr>, client: IpAddr) -> bool {
    only_from.is_none_or(|only| only.to_canonical() == client.to_canonical())
}

impl SocketSettings {
    /// Sets the options common to TCP and UDP sockets.
    pub(crate) fn apply(&self, socket: &Socket) -> Result<(), TransportError> {
        if let Some(bytes) = self.send_buffer {
            socket.set_send_buffer_size(bytes as usize).map_err(failed("cannot set the send buffer"))?;
        }
        if let Some(bytes) = self.receive_buffer {
            socket.set_recv_buffer_size(bytes as usize).map_err(failed("cannot set the receive buffer"))?;
        }
        if let Some(dscp) = self.dscp {
            // The octet's two lower bits are ECN (RFC 3168); the kernel keeps TCP's.
            let octet = u32::from(dscp) << 2;
            let is_ipv6 = socket.domain().map_err(failed("cannot set the DSCP"))? == Domain::IPV6;
            let set = if is_ipv6 { socket.set_tclass_v6(octet) } else { socket.set_tos_v4(octet) };
            set.map_err(failed("cannot set the DSCP"))?;
        }
        Ok(())
    }

    pub(crate) fn apply_tcp(&self, socket: &Socket) -> Result<(), TransportError> {
        self.apply(socket)?;
        if let Some(name) = &self.congestion_control {
            socket.set_tcp_congestion(name.as_bytes()).map_err(failed("cannot set the congestion control"))?;
        }
        if let Some(on) = self.nodelay {
            socket.set_tcp_nodelay(on).map_err(failed("cannot set TCP_NODELAY"))?;
        }
        // Linux hands both down from the listener.
        if let Some(timeout) = self.user_timeout {
            socket.set_tcp_user_timeout(Some(timeout)).map_err(failed("cannot set TCP_USER_TIMEOUT"))?;
        }
        if let Some(interval) = self.keep_alive {
            let keep_alive = TcpKeepalive::new().with_time(interval).with_interval(interval);
            socket.set_tcp_keepalive(&keep_alive).map_err(failed("cannot set SO_KEEPALIVE"))?;
        }
        Ok(())
    }

    /// Describes a setting the kernel did not accept, if any.
    pub fn mismatch(&self, found: &SocketReadback) -> Option<String> {
        if found.congestion_control.is_some()
            && self.congestion_control.is_some()
            && self.congestion_control != found.congestion_control
        {
            return Some(format!(
                "congestion control {:?} was set, the socket has {:?}",
                self.congestion_control, found.congestion_control
            ));
        }
        if found.nodelay.is_some() && self.nodelay.is_some() && self.nodelay != found.nodelay {
            return Some(format!("nodelay {:?} was set, the socket has {:?}", self.nodelay, found.nodelay));
        }
        // Linux doubles the requested size for its bookkeeping, and caps it at net.core.[rw]mem_max and an int's
        // maximum.
        let is_cut = |asked: Option<u32>, found: usize| {
            asked.is_some_and(|asked| found < (asked as usize).min(i32::MAX as usize / 2) * 2)
        };
        if is_cut(self.send_buffer, found.send_buffer_bytes) {
            return Some(format!(
                "send buffer {:?} was cut to {} (net.core.wmem_max)",
                self.send_buffer,
                found.send_buffer_bytes / 2
            ));
        }
        if is_cut(self.receive_buffer, found.receive_buffer_bytes) {
            return Some(format!(
                "receive buffer {:?} was cut to {} (net.core.rmem_max)",
                self.receive_buffer,
                found.receive_buffer_bytes / 2
            ));
        }
        None
    }
}
