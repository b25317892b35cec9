//! A workload's demands on connections.

use crosswind_transport::{Payload, Resumption, TransportRef};

/// How long an exchange on a stream may take where the cell does not say.
pub(crate) const STREAM_TIMEOUT_NS: u64 = 60_000_000_000;

/// A workload's demands on connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionNeeds {
    /// Their transport.
    pub transport: TransportRef,
    /// Bound on one exchange.
    pub timeout: std::time::Duration,
    /// The type of messages.
    pub payload: Payload,
    /// Later connections' resumption of earlier ones.
    pub resumption: Resumption,
    /// Whether Socket.IO begins with HTTP long polling.
    pub polling: bool,
    /// Padded size of an HTTP request's header, bytes.
    pub request_bytes: u64,
    /// Whether requests run beside a transfer on its connection.
    pub probes: bool,
    /// Message size, if each has to be sent whole, bytes.
    pub message_bytes: Option<u64>,
}

impl ConnectionNeeds {
    /// Connections without anything special.
    pub(crate) fn plain(transport: TransportRef, timeout_ns: Option<u64>) -> Self {
        Self {
            transport,
            timeout: std::time::Duration::from_nanos(timeout_ns.unwrap_or(STREAM_TIMEOUT_NS)),
            payload: Payload::Binary,
            resumption: Resumption::None,
            polling: false,
            request_bytes: 0,
            probes: false,
            message_bytes: None,
        }
    }
}
