//! Whether a workload can be: what a transport cannot do is said before anything runs.

use crate::config::{Connect, ConnectionMode, Echo, EchoDirection, Mode, Multiplex, Page, Transfer, WorkloadConfig};
use crosswind_transport::{Features, Payload, Resumption, Streams, TransportRef, all};

/// Largest message or transfer: a cell has a deadline, and a typing mistake should not fill it.
const MAX_SIZE: u64 = 1 << 40;
const MAX_MESSAGES: u64 = 100_000_000;
const MAX_CONNECTIONS: u32 = 1000;
const MAX_STREAMS: u32 = 100;
/// Largest echo message: both ends hold it in memory.
const MAX_ECHO: u64 = 1 << 30;
/// Largest message of a multiplex: with every header it still is one packet of 1280 bytes.
const MAX_MULTIPLEX: u64 = 1000;

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

/// What the path allows a message.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Over IPv6.
    pub ipv6: bool,
    /// Largest IP packet, bytes.
    pub mtu_bytes: u32,
}

impl WorkloadConfig {
    /// Whether it can be.
    pub fn check(&self, limits: Limits) -> Result<(), ConfigError> {
        match self {
            Self::Echo(echo) => echo.check(limits),
            Self::Transfer(transfer) => transfer.check(),
            Self::Connect(connect) => connect.check(),
            Self::Multiplex(multiplex) => multiplex.check(limits),
            Self::Page(page) => page.check(),
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
    fn check(&self, limits: Limits) -> Result<(), ConfigError> {
        let transport = self.transport;
        let features = transport.features();
        common(self.connections, self.timeout_ns)?;
        options(transport, self.payload, self.resumption, self.polling)?;
        if self.resumption != Resumption::None && self.connection == ConnectionMode::Kept {
            return Err(wrong("resumption", "is set where the connection is kept", "set connection to new"));
        }
        if self.stream == ConnectionMode::New && features.streams != Streams::Many {
            let problem = format!("is new, and {} has no streams to choose", self.transport);
            return Err(wrong(
                "stream",
                problem,
                format!("transports that have: {}", able(|f| f.streams == Streams::Many)),
            ));
        }
        if self.direction != EchoDirection::Echo && self.mode == Mode::Open {
            return Err(wrong("direction", "is set in an open loop", "an open loop echoes; use a closed loop"));
        }
        count("messages", self.messages)?;
        if self.size_bytes == 0 || self.size_bytes > MAX_ECHO {
            return Err(wrong(
                "size_bytes",
                format!("{} is not between 1 and {MAX_ECHO}", self.size_bytes),
                "give the size of one message",
            ));
        }
        fits(transport, self.size_bytes, limits)?;
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

impl Connect {
    fn check(&self) -> Result<(), ConfigError> {
        let transport = self.transport;
        let features = transport.features();
        if features.datagram && !features.secure {
            let problem = format!("{} cannot do connect: it sets nothing up", self.transport);
            return Err(wrong("transport", problem, "use a transport with a handshake such as tcp"));
        }
        options(transport, Payload::Binary, self.resumption, self.polling)?;
        common(self.connections, self.timeout_ns)?;
        count("count", self.count)
    }
}

impl Multiplex {
    fn check(&self, limits: Limits) -> Result<(), ConfigError> {
        let transport = self.transport;
        options(transport, self.payload, Resumption::None, self.polling)?;
        common(1, self.timeout_ns)?;
        count("messages", self.messages)?;
        between(
            "streams",
            u64::from(self.streams),
            1,
            u64::from(MAX_STREAMS),
            "give the number of streams side by side",
        )?;
        between(
            "size_bytes",
            self.size_bytes,
            8,
            MAX_MULTIPLEX,
            "a message is to be one packet, and to carry its number",
        )?;
        fits(transport, self.size_bytes, limits)?;
        if !(self.rate_per_s > 0.0 && self.rate_per_s <= 1e5) {
            let problem = format!("{} is not between 0 and 100000", self.rate_per_s);
            return Err(wrong("rate_per_s", problem, "give messages a second on each stream"));
        }
        Ok(())
    }
}

impl Page {
    fn check(&self) -> Result<(), ConfigError> {
        let features = self.transport.features();
        if !features.http {
            let problem = format!("{} cannot do page", self.transport);
            return Err(wrong("transport", problem, format!("transports that can: {}", able(|f| f.http))));
        }
        common(self.connections.unwrap_or(1), self.timeout_ns)?;
        if features.shares_connection && self.connections.is_some_and(|n| n > 1) {
            let problem = format!("is more than 1, and {} shares one", self.transport);
            return Err(wrong("connections", problem, "leave it out"));
        }
        count("count", self.count)?;
        for (key, size) in [
            ("html_bytes", self.html_bytes),
            ("scripts_bytes", self.scripts_bytes),
            ("images_bytes", self.images_bytes),
        ] {
            between(key, size, 1, MAX_ECHO, "give the size in bytes")?;
        }
        for (key, pieces, size) in
            [("scripts", self.scripts, self.scripts_bytes), ("images", self.images, self.images_bytes)]
        {
            between(key, u64::from(pieces), 0, size.min(1000), "give how many there are")?;
        }
        between("request_bytes", self.request_bytes, 0, 16_000, "give the size of a request's header")
    }
}

impl Transfer {
    fn check(&self) -> Result<(), ConfigError> {
        stream("transfer", self.transport)?;
        options(self.transport, self.payload, Resumption::None, self.polling)?;
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

/// The names of the transports that have something.
fn able(has: impl Fn(Features) -> bool) -> String {
    all().filter(|one| has(one.features())).map(|one| one.name()).collect::<Vec<_>>().join(", ")
}

fn options(
    transport: TransportRef,
    payload: Payload,
    resumption: Resumption,
    polling: bool,
) -> Result<(), ConfigError> {
    let (name, features) = (transport.name(), transport.features());
    if payload == Payload::Text && !features.text {
        let problem = format!("is text, and {name} has only bytes");
        return Err(wrong("payload", problem, format!("transports that have: {}", able(|f| f.text))));
    }
    if resumption != Resumption::None && !features.secure {
        let problem = format!("is set, and {name} has no sessions");
        return Err(wrong("resumption", problem, format!("transports that have: {}", able(|f| f.secure))));
    }
    if resumption == Resumption::EarlyData && !features.early_data {
        let problem = format!("is 0-rtt, and {name} sends no data before its handshake is done");
        return Err(wrong("resumption", problem, format!("transports that do: {}", able(|f| f.early_data))));
    }
    if polling && !features.polling {
        let problem = format!("is set, and {name} has no polling");
        return Err(wrong("polling", problem, format!("transports that have: {}", able(|f| f.polling))));
    }
    Ok(())
}

fn fits(transport: TransportRef, size_bytes: u64, limits: Limits) -> Result<(), ConfigError> {
    match transport.largest_message(limits.ipv6, limits.mtu_bytes) {
        Some(limit) if size_bytes > limit as u64 => Err(wrong(
            "size_bytes",
            format!("{size_bytes} is over the limit of {}: {limit} bytes", transport.name()),
            "make the message smaller, or use a stream transport such as tcp",
        )),
        _ => Ok(()),
    }
}

fn between(key: &'static str, value: u64, least: u64, most: u64, hint: &str) -> Result<(), ConfigError> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(wrong(key, format!("{value} is not between {least} and {most}"), hint))
}

fn stream(kind: &str, transport: TransportRef) -> Result<(), ConfigError> {
    if transport.features().datagram {
        return Err(wrong("transport", format!("{transport} cannot do {kind}"), "use a stream transport such as tcp"));
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
