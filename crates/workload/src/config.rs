//! What a cell says of its workload, checked.

use crosswind_transport::{self as transport, Transport};
use crosswind_units::Duration;
use serde::{Deserialize, Serialize};

/// Largest message or transfer: a cell has a deadline, and a typing mistake should not fill it.
const MAX_SIZE: u64 = 1 << 40;
const MAX_MESSAGES: u64 = 100_000_000;
const MAX_CONNECTIONS: u32 = 1000;
/// Largest echo message: both ends hold it in memory.
const MAX_ECHO: u64 = 1 << 30;

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
    /// Somebody else's program.
    Program(Program),
}

/// Messages that come back.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Echo {
    /// Name of the transport.
    pub transport: String,
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

/// Whether a connection serves one exchange or many.
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
    pub transport: String,
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
    pub transport: String,
    /// Connections set up side by side.
    #[serde(default = "one")]
    pub connections: u32,
    /// Bound on one.
    #[serde(default)]
    pub timeout_ns: Option<u64>,
    /// Connections over all.
    #[serde(default = "hundred")]
    pub count: u64,
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

/// A workload that cannot be, with the key that says so.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("workload.{key} {problem}")]
pub struct ConfigError {
    /// The key.
    pub key: &'static str,
    /// What is wrong with it.
    pub problem: String,
    /// What would be right.
    pub hint: String,
}

fn wrong(key: &'static str, problem: impl Into<String>, hint: impl Into<String>) -> ConfigError {
    ConfigError { key, problem: problem.into(), hint: hint.into() }
}

impl WorkloadConfig {
    /// As written in a cell.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Echo(_) => "echo",
            Self::Transfer(_) => "transfer",
            Self::Connect(_) => "connect",
            Self::Program(_) => "program",
        }
    }

    /// Exchanges that it will make.
    pub const fn exchanges(&self) -> u64 {
        match self {
            Self::Echo(echo) => echo.messages,
            Self::Transfer(transfer) => transfer.count,
            Self::Connect(connect) => connect.count,
            Self::Program(_) => 0,
        }
    }

    /// Fills in the default timeout: 1 s and four round trips for datagrams, 60 s for streams.
    pub fn fill_in(&mut self, round_trip: Duration) {
        let (name, timeout) = match self {
            Self::Echo(echo) => (&echo.transport, &mut echo.timeout_ns),
            Self::Transfer(transfer) => (&transfer.transport, &mut transfer.timeout_ns),
            Self::Connect(connect) => (&connect.transport, &mut connect.timeout_ns),
            Self::Program(_) => return,
        };
        let datagram = transport::find(name).is_some_and(Transport::is_datagram);
        timeout.get_or_insert(if datagram { 1_000_000_000 + 4 * round_trip.as_nanos() } else { 60_000_000_000 });
    }

    /// Whether it can be.
    pub fn check(&self, ipv6: bool) -> Result<(), ConfigError> {
        match self {
            Self::Echo(echo) => echo.check(ipv6),
            Self::Transfer(transfer) => transfer.check(),
            Self::Connect(connect) => {
                stream("connect", &connect.transport)?;
                common(connect.connections, connect.timeout_ns)?;
                count("count", connect.count)
            }
            Self::Program(program) => {
                if program.client.is_empty() || program.server.as_ref().is_some_and(Vec::is_empty) {
                    return Err(wrong("client", "is an empty argument list", "give the program and its arguments"));
                }
                Ok(())
            }
        }
    }
}

impl Echo {
    fn check(&self, ipv6: bool) -> Result<(), ConfigError> {
        let transport = known(&self.transport)?;
        common(self.connections, self.timeout_ns)?;
        count("messages", self.messages)?;
        if self.size_bytes == 0 || self.size_bytes > MAX_ECHO {
            return Err(wrong(
                "size_bytes",
                format!("{} is not between 1 and {MAX_ECHO}", self.size_bytes),
                "give the size of one message",
            ));
        }
        if let Some(limit) = transport.largest_message(ipv6)
            && self.size_bytes > limit as u64
        {
            return Err(wrong(
                "size_bytes",
                format!("{} is over the limit of {}: {limit} bytes", self.size_bytes, self.transport),
                "make the message smaller, or use a stream transport such as tcp",
            ));
        }
        match (self.mode, self.rate_per_s) {
            (Mode::Open, None) => Err(wrong("rate_per_s", "is missing", "an open loop needs messages a second")),
            (Mode::Open, Some(rate)) if !(rate > 0.0 && rate <= 1e7) => {
                Err(wrong("rate_per_s", format!("{rate} is not between 0 and 10000000"), "give messages a second"))
            }
            (Mode::Closed, Some(_)) => {
                Err(wrong("rate_per_s", "is set in a closed loop", "set mode to open, or leave the rate out"))
            }
            (Mode::Open, Some(_)) if self.connection == ConnectionMode::New => Err(wrong(
                "connection",
                "is new in an open loop",
                "an open loop keeps its connections; use a closed loop",
            )),
            _ => Ok(()),
        }
    }
}

impl Transfer {
    fn check(&self) -> Result<(), ConfigError> {
        stream("transfer", &self.transport)?;
        common(self.connections, self.timeout_ns)?;
        count("count", self.count)?;
        match (self.size_bytes, self.duration_ns) {
            (Some(_), Some(_)) => {
                Err(wrong("duration_ns", "is set beside size_bytes", "a transfer has a size or a duration"))
            }
            (None, None) => Err(wrong("size_bytes", "is missing", "a transfer has a size or a duration")),
            (Some(size), None) if size == 0 || size > MAX_SIZE => Err(wrong(
                "size_bytes",
                format!("{size} is not between 1 and {MAX_SIZE}"),
                "give the size of one transfer",
            )),
            (None, Some(ns)) if !(1_000_000..=3_600_000_000_000).contains(&ns) => Err(wrong(
                "duration_ns",
                format!("{ns} is not between 1 ms and 1 h"),
                "give the duration of one transfer",
            )),
            _ => Ok(()),
        }
    }
}

fn known(name: &str) -> Result<&'static dyn Transport, ConfigError> {
    transport::find(name).ok_or_else(|| {
        wrong(
            "transport",
            format!("\"{name}\" is not known"),
            format!("transports are: {}", transport::names().join(", ")),
        )
    })
}

fn stream(kind: &str, name: &str) -> Result<(), ConfigError> {
    if known(name)?.is_datagram() {
        return Err(wrong("transport", format!("{name} cannot do {kind}"), "use a stream transport such as tcp"));
    }
    Ok(())
}

fn common(connections: u32, timeout_ns: Option<u64>) -> Result<(), ConfigError> {
    if connections == 0 || connections > MAX_CONNECTIONS {
        let problem = format!("{connections} is not between 1 and {MAX_CONNECTIONS}");
        return Err(wrong("connections", problem, "give the number of connections side by side"));
    }
    if timeout_ns.is_some_and(|ns| !(1_000_000..=3_600_000_000_000).contains(&ns)) {
        return Err(wrong("timeout_ns", "is not between 1 ms and 1 h", "give the longest that one exchange may take"));
    }
    Ok(())
}

fn count(key: &'static str, count: u64) -> Result<(), ConfigError> {
    if count == 0 || count > MAX_MESSAGES {
        return Err(wrong(key, format!("{count} is not between 1 and {MAX_MESSAGES}"), "give how many"));
    }
    Ok(())
}
