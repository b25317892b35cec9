//! What a cell says of its workload. `check` says whether it can be.

use crosswind_transport::{Payload, Resumption, TransportRef};
use crosswind_units::Duration;
use serde::{Deserialize, Serialize};

/// A workload, by kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum WorkloadConfig {
    /// Messages that come back.
    Echo(Echo),
    /// Bytes in one direction.
    Transfer(Transfer),
    /// Setting up connections.
    Connect(Connect),
    /// Streams side by side.
    Multiplex(Multiplex),
    /// A page and what belongs to it.
    Page(Page),
    /// Somebody else's program.
    Program(Program),
}

/// Messages that come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Echo {
    /// Name of the transport.
    pub transport: TransportRef,
    /// Connections side by side.
    #[serde(default = "one")]
    pub connections: u32,
    /// Bound on one exchange.
    #[serde(default)]
    pub timeout_ns: Option<u64>,
    /// Size of a message.
    #[serde(default = "one_u64")]
    pub size_bytes: u64,
    /// Messages over all connections.
    #[serde(default = "hundred")]
    pub messages: u64,
    /// When the next message is sent.
    #[serde(default)]
    pub mode: Mode,
    /// Open loop: messages a second over all connections.
    #[serde(default)]
    pub rate_per_s: Option<f64>,
    /// Whether connections are kept.
    #[serde(default)]
    pub connection: ConnectionMode,
    /// Whether streams are kept, where a connection has many.
    #[serde(default)]
    pub stream: ConnectionMode,
    /// Which way the messages of that size go.
    #[serde(default)]
    pub direction: EchoDirection,
    /// What kind of messages.
    #[serde(default)]
    pub payload: Payload,
    /// What later connections take over from earlier ones.
    #[serde(default)]
    pub resumption: Resumption,
    /// Socket.IO begins with HTTP long polling.
    #[serde(default)]
    pub polling: bool,
}

/// Which way the large messages of an exchange go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EchoDirection {
    /// There and back.
    #[default]
    Echo,
    /// There; one byte comes back.
    Upload,
    /// Back; one byte asks for it.
    Download,
}

/// When the next message is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// When the one before has come back: one in flight.
    #[default]
    Closed,
    /// When it is time, whatever became of the others.
    Open,
}

/// Whether a connection, or a stream, serves one exchange or many.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ConnectionMode {
    /// One connection for all.
    #[default]
    Kept,
    /// A new one for each.
    New,
}

/// Bytes in one direction.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Name of the transport.
    pub transport: TransportRef,
    /// Transfers side by side.
    #[serde(default = "one")]
    pub connections: u32,
    /// Bound on one transfer (or on a silence, for one by duration).
    #[serde(default)]
    pub timeout_ns: Option<u64>,
    /// Size, or ...
    #[serde(default)]
    pub size_bytes: Option<u64>,
    /// ... duration, counted at the receiver from the first byte.
    #[serde(default)]
    pub duration_ns: Option<u64>,
    /// Which way.
    #[serde(default)]
    pub direction: TransferDirection,
    /// Transfers over all connections.
    #[serde(default = "one_u64")]
    pub count: u64,
    /// What kind of messages, where it is messages that carry the bytes.
    #[serde(default)]
    pub payload: Payload,
    /// Socket.IO begins with HTTP long polling.
    #[serde(default)]
    pub polling: bool,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TransferDirection {
    /// Client to server.
    #[default]
    Upload,
    /// Server to client.
    Download,
}

/// Setting up connections.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Connect {
    /// Name of the transport.
    pub transport: TransportRef,
    /// Connections set up side by side.
    #[serde(default = "one")]
    pub connections: u32,
    /// Bound on one.
    #[serde(default)]
    pub timeout_ns: Option<u64>,
    /// Connections over all.
    #[serde(default = "hundred")]
    pub count: u64,
    /// What later connections take over from earlier ones.
    #[serde(default)]
    pub resumption: Resumption,
    /// Socket.IO begins with HTTP long polling.
    #[serde(default)]
    pub polling: bool,
}

/// Streams side by side, each with messages of its own that come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Multiplex {
    /// Name of the transport.
    pub transport: TransportRef,
    /// Streams or channels.
    #[serde(default = "four")]
    pub streams: u32,
    /// Size of a message.
    #[serde(default = "two_hundred")]
    pub size_bytes: u64,
    /// Messages over all streams.
    #[serde(default = "hundred")]
    pub messages: u64,
    /// Messages a second on each stream.
    #[serde(default = "twenty")]
    pub rate_per_s: f64,
    /// Bound on one exchange.
    #[serde(default)]
    pub timeout_ns: Option<u64>,
    /// What kind of messages.
    #[serde(default)]
    pub payload: Payload,
    /// Socket.IO begins with HTTP long polling.
    #[serde(default)]
    pub polling: bool,
}

/// A page and what belongs to it, loaded as a browser would: the document first, when it is whole everything else at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Page {
    /// Name of the transport.
    pub transport: TransportRef,
    /// Connections side by side; by default 6 where each carries one request at a time, else 1.
    #[serde(default)]
    pub connections: Option<u32>,
    /// Pages, each on new connections.
    #[serde(default = "ten")]
    pub count: u64,
    /// Size of the document.
    #[serde(default = "html_bytes")]
    pub html_bytes: u64,
    /// Size of all scripts.
    #[serde(default = "scripts_bytes")]
    pub scripts_bytes: u64,
    /// How many.
    #[serde(default = "five")]
    pub scripts: u32,
    /// Size of all images.
    #[serde(default = "images_bytes")]
    pub images_bytes: u64,
    /// How many.
    #[serde(default = "fifteen")]
    pub images: u32,
    /// Size of a request's header.
    #[serde(default = "four_hundred")]
    pub request_bytes: u64,
    /// Bound on one page.
    #[serde(default)]
    pub timeout_ns: Option<u64>,
}

/// Somebody else's program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// Argument list, run in the client's namespace. Its end is the cell's.
    pub client: Vec<String>,
    /// Argument list, run in the server's namespace beside it.
    #[serde(default)]
    pub server: Option<Vec<String>>,
}

const fn one() -> u32 {
    1
}

const fn one_u64() -> u64 {
    1
}

const fn hundred() -> u64 {
    100
}

const fn two_hundred() -> u64 {
    200
}

const fn four_hundred() -> u64 {
    400
}

const fn four() -> u32 {
    4
}

const fn five() -> u32 {
    5
}

const fn fifteen() -> u32 {
    15
}

const fn ten() -> u64 {
    10
}

const fn twenty() -> f64 {
    20.0
}

const fn html_bytes() -> u64 {
    36_000
}

const fn scripts_bytes() -> u64 {
    150_000
}

const fn images_bytes() -> u64 {
    450_000
}

impl WorkloadConfig {
    /// As written in a cell.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Echo(_) => "echo",
            Self::Transfer(_) => "transfer",
            Self::Connect(_) => "connect",
            Self::Multiplex(_) => "multiplex",
            Self::Page(_) => "page",
            Self::Program(_) => "program",
        }
    }

    /// The transport's name; a program has none.
    pub const fn transport(&self) -> Option<TransportRef> {
        match self {
            Self::Echo(echo) => Some(echo.transport),
            Self::Transfer(transfer) => Some(transfer.transport),
            Self::Connect(connect) => Some(connect.transport),
            Self::Multiplex(multiplex) => Some(multiplex.transport),
            Self::Page(page) => Some(page.transport),
            Self::Program(_) => None,
        }
    }

    /// Exchanges that it will make.
    pub const fn exchanges(&self) -> u64 {
        match self {
            Self::Echo(echo) => echo.messages,
            Self::Transfer(transfer) => transfer.count,
            Self::Connect(connect) => connect.count,
            Self::Multiplex(multiplex) => multiplex.messages,
            Self::Page(page) => page.count,
            Self::Program(_) => 0,
        }
    }

    /// What kind of messages it sends.
    pub const fn payload(&self) -> Payload {
        match self {
            Self::Echo(Echo { payload, .. })
            | Self::Transfer(Transfer { payload, .. })
            | Self::Multiplex(Multiplex { payload, .. }) => *payload,
            Self::Connect(_) | Self::Page(_) | Self::Program(_) => Payload::Binary,
        }
    }

    /// What later connections take over from earlier ones.
    pub const fn resumption(&self) -> Resumption {
        match self {
            Self::Echo(Echo { resumption, .. }) | Self::Connect(Connect { resumption, .. }) => *resumption,
            _ => Resumption::None,
        }
    }

    /// Whether Socket.IO begins with HTTP long polling.
    pub const fn polling(&self) -> bool {
        match self {
            Self::Echo(Echo { polling, .. })
            | Self::Transfer(Transfer { polling, .. })
            | Self::Connect(Connect { polling, .. })
            | Self::Multiplex(Multiplex { polling, .. }) => *polling,
            Self::Page(_) | Self::Program(_) => false,
        }
    }

    /// Size of a request's header, where that is part of the workload; else 0.
    pub const fn request_bytes(&self) -> u64 {
        match self {
            Self::Page(page) => page.request_bytes,
            _ => 0,
        }
    }

    /// Whether the fate of each message's own packets is wanted.
    pub const fn wants_fates(&self) -> bool {
        matches!(self, Self::Multiplex(_))
    }

    /// Fills in what depends on the transport: the timeout (1 s and four round trips for datagrams, 60 s for streams), and how
    /// many connections a page takes.
    pub fn fill_in(&mut self, round_trip: Duration) {
        let Some(features) = self.transport().map(|transport| transport.features()) else {
            return;
        };
        if let Self::Page(page) = self {
            page.connections.get_or_insert(if features.shares_connection { 1 } else { 6 });
        }
        let timeout = match self {
            Self::Echo(echo) => &mut echo.timeout_ns,
            Self::Transfer(transfer) => &mut transfer.timeout_ns,
            Self::Connect(connect) => &mut connect.timeout_ns,
            Self::Multiplex(multiplex) => &mut multiplex.timeout_ns,
            Self::Page(page) => &mut page.timeout_ns,
            Self::Program(_) => return,
        };
        timeout.get_or_insert(if features.datagram {
            1_000_000_000 + 4 * round_trip.as_nanos()
        } else {
            60_000_000_000
        });
    }
}
