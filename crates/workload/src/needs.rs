//! What a workload needs of its connections.

use crosswind_transport::{Payload, Resumption, TransportRef};

/// How long an exchange on a stream may take where the cell does not say.
pub(crate) const STREAM_TIMEOUT_NS: u64 = 60_000_000_000;

/// What a workload needs of its connections.
#[derive(Clone, Copy, Debug)]
pub struct ConnectionNeeds {
    /// What they speak.
    pub transport: TransportRef,
    /// Bound on one exchange.
    pub timeout: std::time::Duration,
    /// What kind of messages they carry.
    pub payload: Payload,
    /// What later connections take over from earlier ones.
    pub resumption: Resumption,
    /// Whether Socket.IO begins with HTTP long polling.
    pub polling: bool,
    /// Size to which the header of an HTTP request is filled up, bytes.
    pub request_bytes: u64,
    /// Whether requests share a connection with what it carries.
    pub probes: bool,
    /// Size of its messages, where each has to be sent whole, bytes.
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
