//! Echo: answered messages, one after another (`closed_loop`) or at a rate (`open_loop`).

use crate::answers::Answers;
use crate::client::Client;
use crate::client_server::ClientServer;
use crate::closed_loop::{self, Reuse};
use crate::demand::TrafficPattern;
use crate::exchange::Exchange;
use crate::message::{Messages, Sizes};
use crate::needs::ConnectionNeeds;
use crate::workload::{
    MAX_CONNECTIONS, MAX_COUNT, MAX_TIMEOUT_NS, MIN_TIMEOUT_NS, PathFacts, TIMEOUT_HELP, Workload, WorkloadSettings,
    default_timeout_ns, number, small,
};
use crate::{WorkloadError, open_loop};
use crosswind_host::Clock;
use crosswind_settings::SettingError;
use crosswind_transport::{Carrier, Features, Payload, Resumption, Streams, TransportRef, all};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Largest message: both ends hold it in memory.
const MAX_SIZE: u64 = 1 << 30;
const MAX_WRITES: u32 = 1000;
const MIN_RATE: f64 = 0.001;
const MAX_RATE: f64 = 1e7;

/// Messages that are answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Echo {
    /// Transport that carries the messages.
    #[schemars(with = "String", extend("kind" = "transport", "default" = "tcp"))]
    pub transport: TransportRef,
    /// Size of one message.
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 1, max = MAX_SIZE))]
    pub size_bytes: u64,
    /// How many writes hand a message over to the kernel, in a closed loop over tcp or tls: behind the first, Nagle's algorithm waits where
    /// `nodelay` is false.
    #[serde(default = "small::<1>", skip_serializing_if = "is_one")]
    #[schemars(range(min = 1, max = MAX_WRITES), extend("default_help" = "1"))]
    pub writes: u32,
    /// Messages over all connections.
    #[serde(default = "number::<100>")]
    #[schemars(range(min = 1, max = MAX_COUNT))]
    pub messages: u64,
    /// When the next message is sent: closed (after the answer to the one before) or open (at a rate).
    #[serde(default)]
    pub mode: Mode,
    /// In the open loop, messages a second over all connections.
    #[serde(default)]
    #[schemars(range(min = MIN_RATE, max = MAX_RATE), extend("only_with" = {"key": "mode", "value": "open"}))]
    pub rate_per_s: Option<f64>,
    /// A kept connection, or a new one for each message.
    #[serde(default)]
    pub connection: Reuse,
    /// Over quic and webtransport, a kept stream, or a new one for each message.
    #[serde(default)]
    pub stream: Reuse,
    /// Messages of that size go there and back (echo), or one way (upload, download) with an answer of one byte.
    #[serde(default)]
    pub direction: Direction,
    /// What messages are made of, where a transport tells the two apart.
    #[serde(default)]
    pub payload: Payload,
    /// What later connections resume: none, session (a TLS ticket), or 0-rtt (data in the first flight).
    #[serde(default)]
    pub resumption: Resumption,
    /// Whether Socket.IO begins with HTTP long polling and upgrades.
    #[serde(default)]
    pub polling: bool,
    /// Connections side by side.
    #[serde(default = "small::<1>")]
    #[schemars(range(min = 1, max = MAX_CONNECTIONS))]
    pub connections: u32,
    /// How long one exchange may take.
    #[serde(default)]
    #[schemars(range(min = MIN_TIMEOUT_NS, max = MAX_TIMEOUT_NS), extend("default_help" = TIMEOUT_HELP))]
    pub timeout_ns: Option<u64>,
}

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
const fn is_one(value: &u32) -> bool {
    *value == 1
}

/// Whether a message is the bytes that a client writes, without frames around them.
fn is_bytes(features: &Features) -> bool {
    features.carrier == Carrier::Tcp && !features.http && !features.text && !features.datagram
}

/// When the next message is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// After the answer to the one before: one is in flight.
    #[default]
    Closed,
    /// When it is time, whether or not the others have been answered.
    Open,
}

/// Which way the large messages of an exchange go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// To the server and back.
    #[default]
    Echo,
    /// To the server; one byte comes back.
    Upload,
    /// From the server; one byte asks for it.
    Download,
}

impl WorkloadSettings for Echo {
    const KIND: &'static str = "echo";
    const SAMPLE: &'static str = "one message and its answer";

    fn fill_in(&mut self, path: &PathFacts) {
        self.timeout_ns.get_or_insert(default_timeout_ns(self.transport, path));
    }

    fn check(&self) -> Result<(), SettingError> {
        if self.resumption != Resumption::None && self.connection == Reuse::Kept {
            return Err(SettingError::new(
                "resumption",
                "is set where the connection is kept",
                "set connection to new",
            ));
        }
        if self.stream == Reuse::New && self.transport.features().streams != Streams::Many {
            let able: Vec<_> = all().filter(|it| it.features().streams == Streams::Many).map(|it| it.name()).collect();
            let problem = format!("is new, and {} has no streams to choose", self.transport);
            return Err(SettingError::new("stream", problem, format!("transports that have: {}", able.join(", "))));
        }
        self.check_writes()?;
        match (self.mode, self.rate_per_s) {
            (Mode::Open, _) if self.direction != Direction::Echo => Err(SettingError::new(
                "direction",
                "is set in an open loop",
                "an open loop echoes each message; use a closed loop",
            )),
            (Mode::Open, _) if self.connection == Reuse::New => Err(SettingError::new(
                "connection",
                "is new in an open loop",
                "an open loop keeps its connections; use a closed loop",
            )),
            (Mode::Open, None) => Err(SettingError::missing("rate_per_s", "an open loop needs messages a second")),
            (Mode::Closed, Some(_)) => Err(SettingError::new(
                "rate_per_s",
                "is set in a closed loop",
                "set mode to open, or leave the rate out",
            )),
            _ => Ok(()),
        }
    }
}

impl Echo {
    fn check_writes(&self) -> Result<(), SettingError> {
        if self.writes == 1 {
            return Ok(());
        }
        let refuse = |problem: String, hint: &str| Err(SettingError::new("writes", problem, hint));
        if !is_bytes(&self.transport.features()) {
            let able: Vec<_> = all().filter(|it| is_bytes(&it.features())).map(|it| it.name()).collect();
            return refuse(
                format!("is set, and {} frames its messages", self.transport),
                &format!("transports that do not: {}", able.join(", ")),
            );
        }
        if self.mode == Mode::Open {
            return refuse("is set in an open loop".to_owned(), "use a closed loop");
        }
        if u64::from(self.writes) > self.size_bytes {
            return refuse(
                format!("is {}, more than the bytes of a message ({})", self.writes, self.size_bytes),
                "make it larger",
            );
        }
        Ok(())
    }
}

impl Workload for Echo {
    fn connections(&self) -> Option<ConnectionNeeds> {
        Some(self.needs())
    }

    fn exchanges(&self) -> u64 {
        self.messages
    }

    fn traffic(&self) -> TrafficPattern {
        let Sizes { request, reply } = self.sizes();
        TrafficPattern::Exchanges {
            count: self.messages,
            connections: self.connections,
            request_bytes: request as u64,
            reply_bytes: reply as u64,
            new_connections: self.connection == Reuse::New,
            rate_per_s: self.rate_per_s,
        }
    }
}

impl ClientServer for Echo {
    type Server = Answers;

    fn needs(&self) -> ConnectionNeeds {
        ConnectionNeeds {
            payload: self.payload,
            resumption: self.resumption,
            polling: self.polling,
            message_bytes: Some(self.size_bytes),
            ..ConnectionNeeds::plain(self.transport, self.timeout_ns)
        }
    }

    fn clients(&self) -> u32 {
        self.connections
    }

    fn sizes(&self) -> Sizes {
        let both = Sizes::both(self.size_bytes);
        match self.direction {
            Direction::Echo => both,
            Direction::Upload => Sizes { reply: 1, ..both },
            Direction::Download => Sizes { request: 1, ..both },
        }
    }

    fn server(&self, clock: Clock) -> Answers {
        Answers::new(clock, self.sizes(), Messages { payload: self.payload })
    }

    async fn client(&self, client: &Client<'_>) -> Result<Vec<Exchange>, WorkloadError> {
        let numbers = client.numbers(self.messages, self.connections);
        let alone = self.connections == 1;
        match self.rate_per_s {
            None => Ok(closed_loop::run(client, self.connection, self.stream, self.writes, alone, numbers).await),
            Some(rate_per_s) => open_loop::run_client(client, rate_per_s, alone, numbers).await,
        }
    }
}
