//! The tables' rows: exchanges, and pages' objects.

use crosswind_ledger::Position;
use crosswind_ledger::Values::{Length, Text, Time, U16, U32, U64};
use crosswind_ledger::{Column, Row, ns_between};
use crosswind_transport::Outcome;
use crosswind_units::Instant;

/// One exchange. Events that did not happen are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its flow: 0 is the workload, others run beside it.
    pub flow: u16,
    /// Its number in the flow.
    pub exchange: u64,
    /// Its connection: the unit for statistical resampling.
    pub connection: u32,
    /// The client's port.
    pub client_port: Option<u16>,
    /// When it was to be sent (open loop).
    pub intended: Option<Instant>,
    /// When sending began.
    pub sent: Option<Instant>,
    /// When the reply, or the last byte, was received.
    pub received: Option<Instant>,
    /// When the client was told of its failure, if it waited for that.
    pub failed: Option<Instant>,
    /// The duration of its connection's setup, if it opened one.
    pub setup: Option<SetupTimes>,
    /// Stream or channel in a multiplex; 1 for a request beside a transfer, on its connection; else 0.
    pub stream: u32,
    /// The message's and its reply's packets dropped by the path, if known.
    pub own_drops: Option<u32>,
    /// When the server had the message.
    pub server_received: Option<Instant>,
    /// When the server began to answer.
    pub server_sent: Option<Instant>,
    /// Bytes handed to the transport.
    pub sent_bytes: u64,
    /// The reply's bytes, or the transfer's.
    pub received_bytes: u64,
    /// First to last packet with payload, as the path delivered them.
    pub wire_ns: Option<u64>,
    /// End positions of the message and the answer among their connection's bytes.
    pub positions: [Option<Position>; 2],
    /// How it ended.
    pub outcome: Outcome,
}

impl Sample {
    /// An exchange before its first event.
    pub const fn new(exchange: u64, connection: u32) -> Self {
        Self {
            flow: 0,
            exchange,
            connection,
            client_port: None,
            intended: None,
            sent: None,
            received: None,
            failed: None,
            setup: None,
            stream: 0,
            own_drops: None,
            server_received: None,
            server_sent: None,
            sent_bytes: 0,
            received_bytes: 0,
            wire_ns: None,
            positions: [None; 2],
            outcome: Outcome::Error,
        }
    }
}

impl Row for Sample {
    const TABLE: &'static str = "samples.arrow";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::required("exchange", U64(|row| Some(row.exchange)), "Its number in the cell."),
        Column::required(
            "connection",
            U32(|row| Some(row.connection)),
            "The connection that it ran on: the unit that statistics resample.",
        ),
        Column::optional("intended_ns", Time(|row| row.intended), "When it was due to be sent, of messages at a rate."),
        Column::optional("sent_ns", Time(|row| row.sent), "When sending began."),
        Column::optional("received_ns", Time(|row| row.received), "When the answer, or the last byte, was received."),
        Column::optional("failed_ns", Time(|row| row.failed), "When its client was told that it had failed."),
        Column::optional(
            "connect_ns",
            Length(|row| row.setup.map(|setup| setup.total_ns as i64)),
            "Set-up time of the connection that it opened.",
        ),
        Column::optional(
            "transport_ns",
            Length(|row| row.setup?.transport_ns.map(|ns| ns as i64)),
            "Of the set-up time, TCP's connect.",
        ),
        Column::optional(
            "security_ns",
            Length(|row| row.setup?.security_ns.map(|ns| ns as i64)),
            "Of the set-up time, the handshake of TLS or QUIC.",
        ),
        Column::optional(
            "upgrade_ns",
            Length(|row| row.setup?.upgrade_ns.map(|ns| ns as i64)),
            "Of the set-up time, the upgrade to WebSocket, WebTransport or Socket.IO.",
        ),
        Column::optional(
            "request_ns",
            Length(|row| length(row.sent, row.server_received)),
            "One way, from client to server.",
        ),
        Column::optional("reply_ns", Length(|row| length(row.server_sent, row.received)), "One way, back."),
        Column::optional(
            "server_ns",
            Length(|row| length(row.server_received, row.server_sent)),
            "How long the server held the message.",
        ),
        Column::required("sent_bytes", U64(|row| Some(row.sent_bytes)), "Bytes handed to the transport."),
        Column::required(
            "received_bytes",
            U64(|row| Some(row.received_bytes)),
            "Bytes of the answer, or of the transfer.",
        ),
        Column::optional(
            "wire_ns",
            Length(|row| row.wire_ns.map(|ns| ns as i64)),
            "The time from the first to the last packet with payload of a transfer, as delivered by the path.",
        ),
        Column::required(
            "outcome",
            Text(|row| Some(row.outcome.name())),
            "How it ended: ok, timeout, refused, reset, closed, certificate, protocol, too_large or error.",
        ),
        Column::optional(
            "client_port",
            U16(|row| row.client_port),
            "The client's port, by which the packets of its connection are found.",
        ),
        Column::required(
            "stream",
            U32(|row| Some(row.stream)),
            "Stream or channel of a multiplex; 1 of a request beside a transfer, on its connection; else 0.",
        ),
        Column::optional(
            "own_drops",
            U32(|row| row.own_drops),
            "How many of its own packets the path dropped: of a multiplex through the emulator.",
        ),
        Column::required(
            "flow",
            U16(|row| Some(row.flow)),
            "The flow that it belongs to: 0 is the workload, others run beside it.",
        ),
    ];
}

fn length(from: Option<Instant>, to: Option<Instant>) -> Option<i64> {
    Some(ns_between(from?, to?))
}

/// A connection's setup durations. Steps absent from its transport are `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetupTimes {
    /// When the connection was requested, if known.
    pub began: Option<Instant>,
    /// The total.
    pub total_ns: u64,
    /// TCP's connect.
    pub transport_ns: Option<u64>,
    /// The TLS or QUIC handshake.
    pub security_ns: Option<u64>,
    /// The upgrade to the protocol proper.
    pub upgrade_ns: Option<u64>,
}

/// One of a page's objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageObject {
    /// The page's number.
    pub page: u64,
    /// Its name.
    pub object: String,
    /// Its connection.
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
    /// The client's port.
    pub client_port: Option<u16>,
    /// Its request's place among its connection's bytes.
    pub position: Option<Position>,
    /// The setup of its connection, for the first object on it.
    pub setup: Option<SetupTimes>,
}

impl Row for PageObject {
    const TABLE: &'static str = "objects.arrow";

    const COLUMNS: &'static [Column<Self>] = &[
        Column::required("page", U64(|row| Some(row.page)), "Number of the page."),
        Column::required("object", Text(|row| Some(&row.object)), "What it is: html, script 1, image 3."),
        Column::required("connection", U32(|row| Some(row.connection)), "The connection that carried it."),
        Column::optional("queued_ns", Time(|row| Some(row.queued)), "When it was known to be needed."),
        Column::optional("sent_ns", Time(|row| row.sent), "When it was asked for."),
        Column::optional("first_ns", Time(|row| row.first), "When its first byte was received."),
        Column::optional("received_ns", Time(|row| row.received), "When its last byte was received."),
        Column::required("bytes", U64(|row| Some(row.bytes)), "Bytes received."),
        Column::required("outcome", Text(|row| Some(row.outcome.name())), "How it ended, as an exchange does."),
    ];
}
