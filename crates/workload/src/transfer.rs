//! Transfer: bytes in one direction, by size or by duration, each on its own connection.
//!
//! By size, a transfer lasts from the first byte handed over to the last byte received. By duration, the receiver
//! counts for that long from its first byte, and both ends then drop the connection.

use crate::client::Client;
use crate::client_server::ClientServer;
use crate::demand::{TrafficPattern, is_zero};
use crate::exchange::{Exchange, Trace};
use crate::message::Messages;
use crate::needs::ConnectionNeeds;
use crate::pace::Pace;
use crate::peer::Peers;
use crate::probes::{self, Probes};
use crate::served::Clocks;
use crate::server::{ServeStream, ServerStream};
use crate::server_observation::ServerObservation;
use crate::workload::{
    MAX_CONNECTIONS, MAX_COUNT, MAX_TIMEOUT_NS, MIN_TIMEOUT_NS, PathFacts, TIMEOUT_HELP, Workload, WorkloadSettings,
    default_timeout_ns, number, small,
};
use crate::{Sample, WorkloadError};
use crosswind_host::Clock;
use crosswind_path::Side;
use crosswind_settings::SettingError;
use crosswind_transport::{
    Connection, Driver, Features, Outcome, Payload, Purpose, Receiver, Sender, TransportError, TransportRef,
};
use crosswind_units::{Duration, Instant};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::future::Future;

/// A cell has a deadline, and a typing mistake should not fill it.
const MAX_SIZE: u64 = 1 << 40;
const MIN_DURATION_NS: u64 = 1_000_000;
const MAX_DURATION_NS: u64 = 3_600_000_000_000;
/// Bytes per send call, or received at most. Twice as many would save a call for every 180 packets, but a sender with a
/// small buffer, writing on without a pause, would then have more in flight.
const CHUNK: usize = 128 * 1024;
/// Bytes a receiver waits for. 90 TCP packets fill them: more save next to nothing.
const BLOCK: u64 = 128 * 1024;
const MAX_BLOCK: u64 = 1 << 20;
const MIN_PROBE_RATE: f64 = 0.001;
/// The draft's most probes a second are 100.
const MAX_PROBE_RATE: f64 = 1000.0;
/// How often a receiver by duration looks at the clock while nothing arrives.
const LOOK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(20);
/// A receiver's longest wait for a block.
const BLOCK_INTERVAL: std::time::Duration = std::time::Duration::from_millis(100);
/// So long before its end a receiver by duration no longer waits for blocks: of one in progress nothing would count.
const WITHOUT_BLOCKS: Duration = Duration::from_millis(250);
/// How long a sender by duration goes on after the receiver should have ended the transfer.
const SENDER_GRACE: Duration = Duration::from_secs(60);
/// An HTTP client's request for an endless download.
const ENDLESS: u64 = 1 << 50;

/// Bytes in one direction, each transfer on a new connection.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Transfer {
    /// Transport that carries the bytes.
    #[schemars(with = "String", extend("kind" = "transport", "default" = "tcp"))]
    pub transport: TransportRef,
    /// Size of one transfer.
    #[serde(default)]
    #[schemars(range(min = 1, max = MAX_SIZE))]
    pub size_bytes: Option<u64>,
    /// Duration of one transfer, instead of a size.
    #[serde(default)]
    #[schemars(range(min = MIN_DURATION_NS, max = MAX_DURATION_NS))]
    pub duration_ns: Option<u64>,
    /// Upload (client to server) or download.
    #[serde(default)]
    pub direction: Direction,
    /// Transfers over all connections.
    #[serde(default = "number::<1>")]
    #[schemars(range(min = 1, max = MAX_COUNT))]
    pub count: u64,
    /// How long after the path is up the first transfer begins: behind flows that ran before it.
    #[serde(default, skip_serializing_if = "is_zero")]
    #[schemars(range(max = MAX_DURATION_NS), extend("default_help" = "0"))]
    pub start_after_ns: u64,
    /// What messages are made of, where a transport tells the two apart.
    #[serde(default)]
    pub payload: Payload,
    /// Whether Socket.IO begins with HTTP long polling and upgrades.
    #[serde(default)]
    pub polling: bool,
    /// Transfers side by side.
    #[serde(default = "small::<1>")]
    #[schemars(range(min = 1, max = MAX_CONNECTIONS))]
    pub connections: u32,
    /// Bytes that the receiver waits for, where its transport can (tcp, tls). 1: it wakes up for every packet.
    #[serde(default = "number::<BLOCK>")]
    #[schemars(range(min = 1, max = MAX_BLOCK))]
    pub block_bytes: u64,
    /// Requests for one byte a second, on the connection of each transfer while it carries bytes: of a flow over HTTP/2 or HTTP/3. Their times
    /// are those of the self probes of draft-ietf-ippm-responsiveness-09, section 5.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = MIN_PROBE_RATE, max = MAX_PROBE_RATE))]
    pub probe_rate_per_s: Option<f64>,
    /// How long one transfer may take; of one by duration, how long nothing may arrive.
    #[serde(default)]
    #[schemars(range(min = MIN_TIMEOUT_NS, max = MAX_TIMEOUT_NS), extend("default_help" = TIMEOUT_HELP))]
    pub timeout_ns: Option<u64>,
}

/// Which way bytes go.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Client to server.
    #[default]
    Upload,
    /// Server to client.
    Download,
}

impl WorkloadSettings for Transfer {
    const KIND: &'static str = "transfer";
    const SAMPLE: &'static str = "one transfer";

    fn fits(features: &Features) -> bool {
        !features.datagram
    }

    fn fill_in(&mut self, path: &PathFacts) {
        self.timeout_ns.get_or_insert(default_timeout_ns(self.transport, path));
    }

    fn check(&self) -> Result<(), SettingError> {
        let hint = "a transfer has a size or a duration";
        match (self.size_bytes, self.duration_ns) {
            (Some(probes::BYTES), None) if self.probe_rate_per_s.is_some() => {
                let hint = "a transfer is larger than the requests beside it";
                Err(SettingError::new("size_bytes", "is that of a probe, and probe_rate is set", hint))
            }
            (Some(_), Some(_)) => Err(SettingError::new("duration_ns", "is set beside size", hint)),
            (None, None) => Err(SettingError::missing("size_bytes", hint)),
            _ => Ok(()),
        }
    }

    fn check_peers(&self, peers: &Peers) -> Result<(), SettingError> {
        if peers.any() && self.probe_rate_per_s.is_some() {
            let problem = "is set, and peers send no requests beside a transfer";
            return Err(SettingError::new("probe_rate_per_s", problem, "make client and server native"));
        }
        if peers.any() && self.start_after_ns > 0 {
            let problem = "is set, and peers begin at once";
            return Err(SettingError::new("start_after_ns", problem, "make client and server native"));
        }
        if peers.client.is_none() && peers.server.is_some() {
            let problem =
                "is a peer, and the client is Crosswind's own, which needs the times of Crosswind's own server";
            return Err(SettingError::new("server", problem, "make the client a peer as well, or the server native"));
        }
        Ok(())
    }
}

impl Workload for Transfer {
    fn connections(&self) -> Option<ConnectionNeeds> {
        Some(self.needs())
    }

    fn exchanges(&self) -> u64 {
        self.count
    }

    fn traffic(&self) -> TrafficPattern {
        TrafficPattern::Transfers {
            count: self.count,
            connections: self.connections,
            size_bytes: self.size_bytes,
            duration_ns: self.duration_ns,
            start_after_ns: self.start_after_ns,
            upload: self.direction == Direction::Upload,
        }
    }
}

impl ClientServer for Transfer {
    type Server = End;

    fn needs(&self) -> ConnectionNeeds {
        ConnectionNeeds {
            payload: self.payload,
            polling: self.polling,
            probes: self.probe_rate_per_s.is_some(),
            ..ConnectionNeeds::plain(self.transport, self.timeout_ns)
        }
    }

    fn clients(&self) -> u32 {
        self.connections
    }

    fn server(&self, clock: Clock) -> End {
        End {
            config: self.clone(),
            clock,
            messages: Messages { payload: self.payload },
            features: self.transport.features(),
            timeout: self.needs().timeout,
        }
    }

    async fn client(&self, client: &Client<'_>) -> Result<Vec<Exchange>, WorkloadError> {
        let clock = client.context.clock();
        let end = self.server(clock);
        let mut exchanges = Vec::new();
        if self.start_after_ns > 0 {
            let pace = Pace::new(client.driver())?;
            client.until_due(&pace, clock.now() + Duration::from_nanos(self.start_after_ns)).await;
        }
        for number in client.numbers(self.count, self.connections).take_while(|_| !client.is_over()) {
            end.exchange(client, number, &mut exchanges).await?;
        }
        Ok(exchanges)
    }

    fn add_server_side(
        &self,
        sample: &mut Sample,
        observation: &ServerObservation,
        clocks: Clocks,
    ) -> Result<(), TransportError> {
        let one_clock = clocks == Clocks::Same;
        match self.direction {
            Direction::Upload => {
                sample.received_bytes = observation.bytes;
                if one_clock || self.duration_ns.is_some() {
                    sample.received = (observation.bytes > 0).then_some(observation.received);
                }
                if self.duration_ns.is_some() {
                    sample.sent = Some(observation.first);
                    // The receiver drops the connection: an error to the sender alone.
                    if observation.bytes > 0 {
                        (sample.outcome, sample.failed) = (Outcome::Ok, None);
                    }
                } else if Some(observation.bytes) != self.size_bytes && sample.outcome == Outcome::Ok {
                    let cause = format!("the server received {} bytes", observation.bytes);
                    return Err(TransportError::with("cannot transfer", Outcome::Closed, cause));
                }
            }
            Direction::Download => {
                if self.size_bytes.is_some() && one_clock {
                    sample.sent = Some(observation.sent);
                }
                sample.positions[1] = sample.positions[1].or(observation.position);
                sample.sent_bytes = self.size_bytes.unwrap_or(sample.received_bytes);
            }
        }
        Ok(())
    }
}

/// One end of a transfer: the client or the server.
pub struct End {
    config: Transfer,
    clock: Clock,
    messages: Messages,
    features: Features,
    timeout: std::time::Duration,
}

/// A receiver's counts.
#[derive(Default)]
struct Received {
    first: Option<Instant>,
    last: Option<Instant>,
    bytes: u64,
}

impl ServeStream for End {
    async fn serve(&self, mut served: ServerStream<'_>) {
        if self.config.probe_rate_per_s.is_some() && served.stream.asked == Some(probes::BYTES) {
            return probes::answer(served).await;
        }
        let client_port = served.client_port;
        let started = self.clock.now();
        let observation = match self.config.direction {
            Direction::Upload => {
                let mut received = Received::default();
                let _ = self.receive(served.stream.receiver.as_mut(), &mut received).await;
                let last = received.last.unwrap_or(started);
                let first = received.first.unwrap_or(last);
                ServerObservation {
                    client_port,
                    tag: 0,
                    first,
                    received: last,
                    sent: last,
                    bytes: received.bytes,
                    position: None,
                }
            }
            Direction::Download => {
                if self.asks() && served.stream.receiver.receive(&mut [0; 1]).await.is_err() {
                    return;
                }
                let started = self.clock.now();
                // The receiver counts any fault here.
                let _ = self.send(served.stream.sender.as_mut(), &mut 0).await;
                let position = served.stream.sender.position();
                ServerObservation {
                    client_port,
                    tag: 0,
                    first: started,
                    received: started,
                    sent: started,
                    bytes: 0,
                    position,
                }
            }
        };
        served.note(observation);
        // The client learns the end, or is gone.
        let _ = served.stream.sender.finish().await;
        if self.config.direction == Direction::Download && self.config.size_bytes.is_some() {
            // Ending the connection is the client's task: data in flight must not be cut off.
            let _ = self.within(served.stream.receiver.receive_some(&mut [0; 1])).await;
        }
    }
}

impl End {
    /// If the server does not speak first, a byte asks it to; HTTP has requests for that.
    const fn asks(&self) -> bool {
        !self.features.server_speaks_first && !self.features.http
    }

    /// One transfer, as far as the client knows it, and the requests beside it.
    async fn exchange(
        &self,
        client: &Client<'_>,
        number: u64,
        exchanges: &mut Vec<Exchange>,
    ) -> Result<(), WorkloadError> {
        let (config, clock) = (&self.config, self.clock);
        let mut sample = Sample::new(number, client.number);
        let before = clock.now();
        let mut opened = match client.open().await {
            Ok(opened) => opened,
            Err(error) => {
                client.context.progress.exchange_done(None);
                exchanges.push(Exchange::new(sample, Err(error)));
                return Ok(());
            }
        };
        let open = clock.now();
        opened.note_phases(&mut sample);
        let connection = opened.connection.as_mut();
        let client_port = connection.client_port();
        let transfer = self.transfer(client, &*connection, &mut sample, open);
        let result = match config.probe_rate_per_s {
            None => transfer.await,
            Some(rate_per_s) => {
                Probes { client, connection: &*connection, rate_per_s }.beside(transfer, exchanges).await?
            }
        };
        sample.failed = result.is_err().then(|| clock.now());
        if config.size_bytes.is_some() {
            let side = if config.direction == Direction::Upload { Side::Forward } else { Side::Reverse };
            let clock = client.context.testbed.payload_clock();
            sample.wire_ns = clock.read(side, client_port).map(|(first, last)| (last - first).as_nanos());
        }
        // A receiver by duration drops the connection when it has counted for long enough.
        let dropped_in_time = config.duration_ns.is_some() && sample.sent_bytes > 0;
        let ok = result.is_ok() || dropped_in_time;
        client.context.progress.exchange_done(ok.then(|| (clock.now() - open).as_nanos()));
        if config.duration_ns.is_some() {
            connection.abort();
        } else {
            client.close(connection).await;
        }
        // An endless one has succeeded when its flow ends.
        let is_whole = config.duration_ns.is_some() && sample.received_bytes > 0 && client.is_over();
        let mut exchange = Exchange::new(sample, if is_whole { Ok(()) } else { result });
        exchange.trace = Some(Trace { client_port, not_before: before, tag: None });
        exchanges.push(exchange);
        Ok(())
    }

    async fn transfer(
        &self,
        client: &Client<'_>,
        connection: &dyn Connection,
        sample: &mut Sample,
        open: Instant,
    ) -> Result<(), TransportError> {
        let config = &self.config;
        let purpose = match config.direction {
            Direction::Upload => Purpose::Upload(config.size_bytes),
            Direction::Download => Purpose::Download(Some(config.size_bytes.unwrap_or(ENDLESS))),
        };
        let mut stream = client.within("cannot open a stream", connection.open(purpose)).await?;
        match config.direction {
            Direction::Upload => {
                sample.sent = Some(open);
                let sending = self.send(stream.sender.as_mut(), &mut sample.sent_bytes);
                let result = client.until_over("cannot transfer", sending).await;
                sample.positions = stream.positions();
                result?;
                if config.size_bytes.is_some() {
                    // The server ends when it has everything.
                    self.within(stream.receiver.receive_some(&mut [0; 1])).await?;
                    if client.context.far_server.is_some() {
                        // Until then, by the client's clock: the server's is another one.
                        sample.received = Some(self.clock.now());
                        sample.received_bytes = sample.sent_bytes;
                    }
                }
                Ok(())
            }
            Direction::Download => {
                if client.context.far_server.is_some() {
                    // From the request on, by the client's clock: the server's is another one.
                    sample.sent = Some(open);
                }
                if self.asks() {
                    self.within(stream.sender.send(&self.messages.buffer(1))).await?;
                }
                let mut received = Received::default();
                let receiving = self.receive(stream.receiver.as_mut(), &mut received);
                let result = client.until_over("cannot receive", receiving).await;
                sample.received = received.last;
                sample.received_bytes = received.bytes;
                sample.positions = stream.positions();
                if config.duration_ns.is_some() {
                    sample.sent = received.first;
                }
                if config.size_bytes.is_some() {
                    let _ = self.within(stream.sender.finish()).await;
                }
                result
            }
        }
    }

    async fn within<T>(&self, call: impl Future<Output = Result<T, TransportError>>) -> Result<T, TransportError> {
        self.features.driver.within(self.timeout, "cannot transfer", call).await
    }

    /// Sends until it is enough: all of the size, or until the receiver has gone. `sent` is how much it was.
    async fn send(&self, sender: &mut dyn Sender, sent: &mut u64) -> Result<(), TransportError> {
        let buffer = self.messages.buffer(CHUNK);
        let config = &self.config;
        // A receiver by duration counts from its first byte and then goes; the sender gives up some time after that.
        let give_up = config.duration_ns.map(|ns| self.clock.now() + Duration::from_nanos(2 * ns) + SENDER_GRACE);
        *sent = 0;
        loop {
            let left = config.size_bytes.map_or(CHUNK as u64, |size| size - *sent).min(CHUNK as u64);
            if left == 0 {
                // An error here shows on the receiver's side as missing bytes.
                let _ = self.within(sender.finish()).await;
                return Ok(());
            }
            self.within(sender.send_some(&buffer[..left as usize])).await?;
            *sent += left;
            if give_up.is_some_and(|time| self.clock.now() > time) {
                let cause = "the receiver did not end the transfer";
                return Err(TransportError::with("cannot transfer", Outcome::Timeout, cause));
            }
        }
    }

    /// Receives until it is enough: the size, or the duration since the first byte.
    async fn receive(&self, receiver: &mut dyn Receiver, received: &mut Received) -> Result<(), TransportError> {
        let config = &self.config;
        let mut buffer = vec![0; CHUNK.max(config.block_bytes as usize)];
        let mut end = None;
        let mut waiting = Waiting { limit: self.timeout, for_block: false };
        loop {
            let still_to_come = config.size_bytes.map_or(u64::MAX, |size| size - received.bytes);
            let block = if waiting.for_block { config.block_bytes.min(still_to_come) as usize } else { 0 };
            let call = match block {
                0 => receiver.receive_some(&mut buffer),
                _ => receiver.receive_block(&mut buffer[..block], still_to_come),
            };
            let result = self.features.driver.within(waiting.limit, "cannot receive", call).await;
            let now = self.clock.now();
            if end.is_some_and(|end| now > end) {
                received.last = end;
                return Ok(());
            }
            let may_wait = match result {
                Ok(0) => {
                    if received.last.is_none() || config.size_bytes.is_some_and(|size| received.bytes < size) {
                        let cause = format!("the other end closed after {} bytes", received.bytes);
                        return Err(TransportError::with("cannot receive", Outcome::Closed, cause));
                    }
                    return Ok(());
                }
                Ok(count) => {
                    received.bytes += count as u64;
                    received.last = Some(now);
                    if received.first.is_none() {
                        received.first = Some(now);
                        end = config.duration_ns.map(|ns| now + Duration::from_nanos(ns));
                    }
                    if config.size_bytes.is_some_and(|size| received.bytes >= size) {
                        return Ok(());
                    }
                    // On threads, an incomplete block has taken its full time.
                    count >= block || self.features.driver == Driver::Reactor
                }
                Err(e) if e.outcome == Outcome::Timeout && (end.is_some() || block > 0) => false,
                Err(error) => return Err(error),
            };
            let next = self.next_wait(may_wait, now, end);
            if next.limit != waiting.limit {
                // A failure here repeats at the next receive.
                let _ = receiver.set_timeout(next.limit);
            }
            waiting = next;
        }
    }

    /// The next wait of a receiver counting since `now`, until its `end` if any.
    fn next_wait(&self, for_block: bool, now: Instant, end: Option<Instant>) -> Waiting {
        let for_block = for_block && self.config.block_bytes > 1 && end.is_none_or(|end| now + WITHOUT_BLOCKS < end);
        let limit = if end.is_some() { LOOK_INTERVAL } else { self.timeout };
        Waiting { limit: if for_block { BLOCK_INTERVAL.min(self.timeout) } else { limit }, for_block }
    }
}

/// A receiver's wait.
#[derive(Clone, Copy)]
struct Waiting {
    /// How long at most.
    limit: std::time::Duration,
    /// A block, or else any byte.
    for_block: bool,
}
