//! The rows of the tables: exchanges, and the objects that pages are made of.

use crosswind_transport::Outcome;
use crosswind_units::Instant;

/// One exchange. What did not happen is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its number in the cell.
    pub exchange: u64,
    /// The connection it ran on: the unit that statistics resample.
    pub connection: u32,
    /// When it was to be sent (open loop).
    pub intended: Option<Instant>,
    /// When sending began.
    pub sent: Option<Instant>,
    /// When the reply, or the last byte, was received.
    pub received: Option<Instant>,
    /// How long setting up the connection took that this exchange opened.
    pub setup: Option<SetupTimes>,
    /// Stream or channel of a multiplex, else 0.
    pub stream: u32,
    /// Packets of the message and its reply that the path dropped, where that is known.
    pub own_drops: Option<u32>,
    /// When the server had the message.
    pub server_received: Option<Instant>,
    /// When the server began to answer.
    pub server_sent: Option<Instant>,
    /// Bytes handed to the transport.
    pub sent_bytes: u64,
    /// Bytes of the reply, or of the transfer.
    pub received_bytes: u64,
    /// First to last packet with payload, as the path delivered them.
    pub wire_ns: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Sample {
    /// An exchange of which nothing is known yet.
    pub const fn new(exchange: u64, connection: u32) -> Self {
        Self {
            exchange,
            connection,
            intended: None,
            sent: None,
            received: None,
            setup: None,
            stream: 0,
            own_drops: None,
            server_received: None,
            server_sent: None,
            sent_bytes: 0,
            received_bytes: 0,
            wire_ns: None,
            outcome: Outcome::Error,
        }
    }
}

/// How long setting up a connection took. A step that its transport does not have is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetupTimes {
    /// All of it.
    pub total_ns: u64,
    /// Of that, TCP's connect.
    pub transport_ns: Option<u64>,
    /// Of that, the TLS or QUIC handshake.
    pub security_ns: Option<u64>,
    /// Of that, the upgrade to the protocol proper.
    pub upgrade_ns: Option<u64>,
}

/// One object that a page is made of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageObject {
    /// Number of the page.
    pub page: u64,
    /// What it is.
    pub object: String,
    /// Connection that carried it.
    pub connection: u32,
    /// When it was known to be needed.
    pub queued: Instant,
    /// When it was asked for.
    pub sent: Option<Instant>,
    /// When its first byte was received.
    pub first: Option<Instant>,
    /// When its last byte was received.
    pub received: Option<Instant>,
    /// Bytes received.
    pub bytes: u64,
    /// How it ended.
    pub outcome: Outcome,
}
