//! Multiplex: messages on several streams, in an open loop. It shows the effect of losses on one stream on the others'
//! messages.
//!
//! Streams are the transport's own if one connection has many; if it is one stream, they are the application's channels
//! in it; and if it cannot be shared, connections. Messages follow each other evenly: stream 0, 1, ..., k-1, 0, ...

use crate::WorkloadError;
use crate::answers::Answers;
use crate::client::{Client, Opened};
use crate::client_server::ClientServer;
use crate::demand::TrafficPattern;
use crate::exchange::Exchange;
use crate::message::{Messages, Sizes};
use crate::needs::ConnectionNeeds;
use crate::open_loop::requests;
use crate::schedule::{Due, Schedule};
use crate::timed_streams::{self, TimedStream};
use crate::workload::{
    MAX_COUNT, MAX_TIMEOUT_NS, MIN_TIMEOUT_NS, PathFacts, TIMEOUT_HELP, Workload, WorkloadSettings, default_timeout_ns,
    number, small,
};
use crosswind_host::Clock;
use crosswind_transport::{Connection, Payload, Purpose, Streams, TransportError, TransportRef};
use crosswind_units::Duration;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

const MAX_STREAMS: u32 = 100;
/// A message carries its number.
const MIN_SIZE: u64 = 8;
/// With every header a message this size still is one packet of 1280 bytes, so a lost packet is one message.
const MAX_SIZE: u64 = 1000;
const MIN_RATE: f64 = 0.001;
const MAX_RATE: f64 = 1e5;

/// Messages on several streams at a fixed rate, each answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Multiplex {
    /// Transport whose streams are used.
    #[schemars(with = "String", extend("kind" = "transport", "default" = "tcp"))]
    pub transport: TransportRef,
    /// Streams side by side.
    #[serde(default = "small::<4>")]
    #[schemars(range(min = 1, max = MAX_STREAMS))]
    pub streams: u32,
    /// Size of one message; it must fit into one packet.
    #[serde(default = "number::<200>")]
    #[schemars(range(min = MIN_SIZE, max = MAX_SIZE))]
    pub size_bytes: u64,
    /// Messages over all streams.
    #[serde(default = "number::<100>")]
    #[schemars(range(min = 1, max = MAX_COUNT))]
    pub messages: u64,
    /// Messages a second on each stream.
    #[serde(default = "twenty")]
    #[schemars(range(min = MIN_RATE, max = MAX_RATE))]
    pub rate_per_s: f64,
    /// What messages are made of, where a transport tells the two apart.
    #[serde(default)]
    pub payload: Payload,
    /// Whether Socket.IO begins with HTTP long polling and upgrades.
    #[serde(default)]
    pub polling: bool,
    /// How long one exchange may take.
    #[serde(default)]
    #[schemars(range(min = MIN_TIMEOUT_NS, max = MAX_TIMEOUT_NS), extend("default_help" = TIMEOUT_HELP))]
    pub timeout_ns: Option<u64>,
}

const fn twenty() -> f64 {
    20.0
}

impl Multiplex {
    /// Connections for the streams: one, or as many as streams if none can be shared.
    fn connection_count(&self) -> u32 {
        if self.transport.features().shares_connection { 1 } else { self.streams }
    }

    fn schedule(&self) -> Vec<Due> {
        let (streams, connections) = (u64::from(self.streams), self.connection_count());
        let interval_ns = 1e9 / (self.rate_per_s * streams as f64);
        (0..self.messages)
            .map(|number| {
                let stream = (number % streams) as u32;
                Due {
                    number,
                    stream,
                    connection: stream % connections,
                    after: Duration::from_nanos((number as f64 * interval_ns) as u64),
                }
            })
            .collect()
    }

    /// Opens one for each stream the transport can distinguish, or one for all if streams are channels in it.
    async fn open_streams(
        &self,
        client: &Client<'_>,
        opened: &[Opened],
        due: &[Due],
    ) -> Result<Vec<TimedStream>, TransportError> {
        let apart = client.features().streams == Streams::Many || opened.len() > 1;
        let count = if apart { self.streams } else { 1 };
        let mut streams = Vec::new();
        for number in 0..count {
            let connection = opened[number as usize % opened.len()].connection.as_ref();
            let stream = client.within("cannot open a stream", connection.open(Purpose::Messages)).await?;
            let due = due.iter().filter(|due| !apart || due.stream == number).copied().collect();
            streams.push(TimedStream { stream, client_port: connection.client_port(), due });
        }
        Ok(streams)
    }

    async fn send_all(
        &self,
        client: &Client<'_>,
        opened: &mut [Opened],
        due: &[Due],
    ) -> Result<Vec<Exchange>, WorkloadError> {
        let size = client.sizes.request;
        if client.stream_per_message() {
            let schedule = Schedule::starting_now(client.context, size);
            let connections: Vec<&dyn Connection> = opened.iter().map(|opened| opened.connection.as_ref()).collect();
            return requests(client, schedule, &connections, due).await;
        }
        match self.open_streams(client, opened, due).await {
            Ok(streams) => {
                let schedule = Schedule::starting_now(client.context, size);
                let mut connections: Vec<&mut dyn Connection> =
                    opened.iter_mut().map(|opened| opened.connection.as_mut() as &mut dyn Connection).collect();
                timed_streams::run(client, schedule, streams, &mut connections).await
            }
            Err(error) => Ok(due.iter().map(|due| due.unsent(client, &error)).collect()),
        }
    }
}

impl WorkloadSettings for Multiplex {
    const KIND: &'static str = "multiplex";
    const SAMPLE: &'static str = "one message and its answer";

    fn fill_in(&mut self, path: &PathFacts) {
        self.timeout_ns.get_or_insert(default_timeout_ns(self.transport, path));
    }
}

impl Workload for Multiplex {
    fn connections(&self) -> Option<ConnectionNeeds> {
        Some(self.needs())
    }

    fn exchanges(&self) -> u64 {
        self.messages
    }

    fn traffic(&self) -> TrafficPattern {
        TrafficPattern::Streams {
            messages: self.messages,
            streams: self.streams,
            connections: self.connection_count(),
            size_bytes: self.size_bytes,
            rate_per_s: self.rate_per_s,
        }
    }

    fn wants_own_drops(&self) -> bool {
        true
    }
}

impl ClientServer for Multiplex {
    type Server = Answers;

    fn needs(&self) -> ConnectionNeeds {
        ConnectionNeeds {
            payload: self.payload,
            polling: self.polling,
            message_bytes: Some(self.size_bytes),
            ..ConnectionNeeds::plain(self.transport, self.timeout_ns)
        }
    }

    fn sizes(&self) -> Sizes {
        Sizes::both(self.size_bytes)
    }

    fn server(&self, clock: Clock) -> Answers {
        Answers::new(clock, self.sizes(), Messages { payload: self.payload })
    }

    async fn client(&self, client: &Client<'_>) -> Result<Vec<Exchange>, WorkloadError> {
        let due = self.schedule();
        let mut opened = Vec::new();
        for _ in 0..self.connection_count() {
            match client.open().await {
                Ok(connection) => opened.push(connection),
                Err(error) => return Ok(due.iter().map(|due| due.unsent(client, &error)).collect()),
            }
        }
        client.context.setup_done();
        let mut exchanges = self.send_all(client, &mut opened, &due).await?;
        for (number, opened) in opened.iter_mut().enumerate() {
            let first = exchanges.iter_mut().find(|exchange| exchange.sample.exchange == number as u64);
            if let (Some(first), true) = (first, client.connections_take_packets()) {
                opened.note_phases(&mut first.sample);
            }
            client.close(opened.connection.as_mut()).await;
        }
        Ok(exchanges)
    }
}
