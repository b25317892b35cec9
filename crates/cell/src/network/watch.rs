//! A client that keeps one connection to another machine, and sends a numbered message on demand.
//!
//! Its caller (`crosswind live`) decides when a message is sent and when it counts as lost. The numbers come on
//! standard input, one a line; replies are printed, one JSON object a line. In its answers the server reports how many
//! messages it has received, as TWAMP's reflector does (RFC 5357): this separates losses on the way there from losses
//! on the way back.

use super::client::{NetworkReport, RemoteServer};
use super::clocks::own_clock;
use crate::event::{write_last_event, write_line};
use crate::{Cell, CellError, ErrorKind, Event, spawn};
use crosswind_transport::{Driver, Features, Outcome, Purpose, Receiver, Sender, Settings, Streams, TransportError};
use crosswind_workload::serving::FOREVER;
use crosswind_workload::{NUMBERED_BYTES, number};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::io::{BufRead, stdin, stdout};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// A message is sent so long after the one before, or later.
const SHORTEST_INTERVAL: Duration = Duration::from_micros(500);
/// How often a wait for an answer looks whether it is over.
const LOOK_INTERVAL: Duration = Duration::from_millis(100);
/// How often the control connection is looked at.
const CHECK_INTERVAL: Duration = Duration::from_millis(200);
/// The largest message: with its headers it fits into IPv6's smallest packets.
const LARGEST_BYTES: u64 = 1100;
/// A message's bytes for its owner's token and its sending time.
const OWN_BYTES: usize = 16;

/// The command line's request.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// For the control connection.
    server: String,
    /// A wish.
    #[serde(default = "ipv4")]
    family: String,
    transport: String,
    #[serde(default = "number::<64>")]
    size_bytes: u64,
    /// For setting up a connection.
    #[serde(default = "number::<5_000_000_000>")]
    timeout_ns: u64,
    /// How long it lasts at most.
    #[serde(default = "number::<86_400>")]
    seconds: u64,
}

fn ipv4() -> String {
    "ipv4".into()
}

/// An output line. Times are `CLOCK_MONOTONIC`'s, nanoseconds.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
enum WatchEvent {
    /// The connection is there.
    Connected { server: SocketAddr, client: IpAddr, setup_ns: u64 },
    /// An answer. `counted`: how many messages the server had received then.
    Received { number: u64, sent_ns: u64, received_ns: u64, counted: u64 },
    /// A message could not be sent.
    Unsent { number: u64, reason: String },
    /// Nothing more is to be sent.
    Ended { network: Option<Box<NetworkReport>> },
}

/// Sends and receives until standard input ends.
pub fn watch(text: &str) -> Result<(), CellError> {
    let wanted: Wanted = serde_json::from_str(text)
        .map_err(|error| CellError::bad_cell(format!("the argument is not what it should be: {error}")))?;
    let cell = cell_of(&wanted)?;
    let features = features(&cell)?;
    let far = Arc::new(RemoteServer::start_numbered(&cell)?);
    let over = Arc::new(AtomicBool::new(false));
    let watching = watch_control(Arc::clone(&far), Arc::clone(&over))?;
    let result = Watch::new(&wanted, &cell, features, &far)?.run();
    over.store(true, Relaxed);
    watching.thread().unpark();
    let _ = watching.join();
    result?;
    far.end()?;
    say(&WatchEvent::Ended { network: far.report(None).report.map(Box::new) });
    Ok(())
}

/// The server's cell: answered messages.
fn cell_of(wanted: &Wanted) -> Result<Cell, CellError> {
    let least = (NUMBERED_BYTES + OWN_BYTES) as u64;
    if !(least..=LARGEST_BYTES).contains(&wanted.size_bytes) {
        let message = format!("size_bytes is {}, and has to be from {least} to {LARGEST_BYTES}", wanted.size_bytes);
        return Err(CellError::bad_cell(message).hint("64 is what crosswind live sends"));
    }
    Cell::from_value(json!({
        "schema": "crosswind.cell/1",
        "id": "live",
        "path": {"backend": "network", "server": wanted.server, "family": wanted.family},
        "host": {"nodelay": true},
        "workload": {
            "kind": "echo",
            "transport": wanted.transport,
            "size_bytes": wanted.size_bytes,
            "timeout_ns": wanted.timeout_ns,
        },
        "deadline_ns": wanted.seconds.saturating_mul(1_000_000_000),
    }))
}

fn features(cell: &Cell) -> Result<Features, CellError> {
    let needs = cell.workload.connections();
    let transport = needs.ok_or_else(|| CellError::internal("a cell without a transport"))?.transport;
    let features = transport.features();
    if features.streams == Streams::PerMessage {
        let message = format!("{transport} has no connection of messages that could be watched");
        return Err(CellError::bad_cell(message).hint("use udp, tcp, quic, quic-datagram or a WebSocket"));
    }
    Ok(features)
}

/// Ends the process with an error once the server has ended the cell, or is gone.
fn watch_control(far: Arc<RemoteServer>, over: Arc<AtomicBool>) -> Result<std::thread::JoinHandle<()>, CellError> {
    let work = move || {
        while !over.load(Relaxed) {
            if let Err(error) = far.check() {
                write_last_event(&Event::from(&error));
                std::process::exit(error.exit_status().into());
            }
            std::thread::park_timeout(CHECK_INTERVAL);
        }
    };
    spawn("control", work)
}

struct Watch<'a> {
    far: &'a RemoteServer,
    cell: &'a Cell,
    settings: Settings,
    features: Features,
    timeout: Duration,
    size: usize,
    /// Marks this client's messages.
    token: [u8; 8],
    /// Nothing more is to be sent.
    over: AtomicBool,
    next: AtomicU64,
}

impl<'a> Watch<'a> {
    fn new(wanted: &Wanted, cell: &'a Cell, features: Features, far: &'a RemoteServer) -> Result<Self, CellError> {
        let security = features.secure.then(|| far.security());
        let security = security.transpose().map_err(|e| CellError::internal(e.to_string()))?.map(Arc::new);
        let mut token = [0; 8];
        ring::rand::SecureRandom::fill(&ring::rand::SystemRandom::new(), &mut token)
            .map_err(|_| CellError::internal("there is no random number"))?;
        Ok(Self {
            far,
            cell,
            settings: Settings { security, ..cell.connection_settings() },
            features,
            timeout: Duration::from_nanos(wanted.timeout_ns),
            size: wanted.size_bytes as usize,
            token,
            over: AtomicBool::new(false),
            next: AtomicU64::new(0),
        })
    }

    fn run(&self) -> Result<(), CellError> {
        let driver = self.features.driver;
        driver.run(self.run_connection()).and_then(|result| result).map_err(|error| ended(&error))
    }

    async fn run_connection(&self) -> Result<(), TransportError> {
        let needs = self.cell.workload.connections();
        let Some(needs) = needs else { return Ok(()) };
        let before = own_clock();
        let mut connection = needs.transport.connect(self.far.address, &self.settings, self.timeout).await?;
        let opening = connection.open(Purpose::Messages);
        let stream = self.features.driver.within(self.timeout, "cannot open a stream", opening).await?;
        let (server, client) = (self.far.address, self.far.own_address);
        say(&WatchEvent::Connected { server, client, setup_ns: own_clock() - before });
        let (mut sender, mut receiver) = (stream.sender, stream.receiver);
        let result = match self.features.driver {
            Driver::Thread => self.on_threads(sender.as_mut(), receiver.as_mut(), connection.interrupter()),
            Driver::Reactor => self.on_reactor(sender.as_mut(), receiver.as_mut()).await,
        };
        let _ = self.features.driver.within(LOOK_INTERVAL, "cannot close", connection.close()).await;
        result
    }

    /// A thread sends, this one receives.
    fn on_threads(
        &self,
        sender: &mut dyn Sender,
        receiver: &mut dyn Receiver,
        interrupt: Option<Box<dyn Fn() + Send>>,
    ) -> Result<(), TransportError> {
        // A wait that ends in the middle of a stream's message would lose its beginning.
        receiver.set_timeout(if interrupt.is_some() { FOREVER } else { LOOK_INTERVAL })?;
        std::thread::scope(|scope| {
            let sending = scope.spawn(move || {
                let result = Driver::Thread.run(async {
                    for number in numbers() {
                        self.send(sender, number).await?;
                    }
                    Ok(())
                });
                self.over.store(true, Relaxed);
                if let Some(interrupt) = interrupt {
                    interrupt();
                }
                result.and_then(|result| result)
            });
            let received = Driver::Thread.run(self.receive_all(receiver)).and_then(|result| result);
            match received {
                Ok(()) => sending.join().unwrap_or(Ok(())),
                // The other thread waits for a number: only the process's end stops that.
                Err(error) => {
                    let error = ended(&error);
                    write_last_event(&Event::from(&error));
                    std::process::exit(error.exit_status().into());
                }
            }
        })
    }

    async fn on_reactor(&self, sender: &mut dyn Sender, receiver: &mut dyn Receiver) -> Result<(), TransportError> {
        let (put, mut numbers_read) = tokio::sync::mpsc::unbounded_channel();
        // It ends with standard input, or with the process.
        std::thread::spawn(move || numbers().try_for_each(|number| put.send(number)));
        let sending = async {
            while let Some(number) = numbers_read.recv().await {
                self.send(sender, number).await?;
            }
            Ok(())
        };
        tokio::select! {
            result = sending => result,
            result = self.receive_all(receiver) => result,
        }
    }

    /// Sends message `number`. An error: the connection is gone.
    async fn send(&self, sender: &mut dyn Sender, number: u64) -> Result<(), TransportError> {
        let sent_ns = self.wait_for_turn().await;
        let mut message = vec![0; self.size];
        write_message(&mut message, number, self.token, sent_ns);
        match sender.send(&message).await {
            Ok(()) => Ok(()),
            // The network's error about an earlier datagram.
            Err(error) if self.has_no_connection() => {
                say(&WatchEvent::Unsent { number, reason: error.cause });
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Bounds the rate, whatever is asked for. Returns when the message is sent.
    async fn wait_for_turn(&self) -> u64 {
        let wait = Duration::from_nanos(self.next.load(Relaxed).saturating_sub(own_clock()));
        if !wait.is_zero() {
            match self.features.driver {
                Driver::Thread => std::thread::sleep(wait),
                Driver::Reactor => tokio::time::sleep(wait).await,
            }
        }
        let now = own_clock();
        self.next.store(now + SHORTEST_INTERVAL.as_nanos() as u64, Relaxed);
        now
    }

    /// Receives answers until it is over. An error: the connection is gone.
    async fn receive_all(&self, receiver: &mut dyn Receiver) -> Result<(), TransportError> {
        let mut answer = vec![0; self.size];
        while !self.over.load(Relaxed) {
            match receiver.receive(&mut answer).await {
                Ok(length) => self.take(&answer[..length], own_clock()),
                Err(error) if error.outcome == Outcome::Timeout => {}
                Err(_) if self.has_no_connection() => std::thread::sleep(Duration::from_millis(1)),
                Err(_) if self.over.load(Relaxed) => return Ok(()),
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    fn take(&self, answer: &[u8], received_ns: u64) {
        if let Some((number, counted, sent_ns)) = read_answer(answer, self.token)
            && answer.len() == self.size
        {
            say(&WatchEvent::Received { number, sent_ns, received_ns, counted });
        }
    }

    /// Whether datagrams are sent without a connection, so no error ends it.
    const fn has_no_connection(&self) -> bool {
        self.features.datagram && !self.features.secure
    }
}

/// A message: its number, room for the server's count, the token, the sending time.
fn write_message(message: &mut [u8], number: u64, token: [u8; 8], sent_ns: u64) {
    let parts = [number.to_le_bytes(), [0; 8], token, sent_ns.to_le_bytes()];
    for (place, part) in message.chunks_exact_mut(8).zip(parts) {
        place.copy_from_slice(&part);
    }
}

/// Number, server's count, and the message's sending time; none if it does not answer this client.
fn read_answer(answer: &[u8], token: [u8; 8]) -> Option<(u64, u64, u64)> {
    let (parts, _) = answer.as_chunks::<8>();
    let [number, counted, whose, sent_ns, ..] = parts else { return None };
    (*whose == token).then(|| (u64::from_le_bytes(*number), u64::from_le_bytes(*counted), u64::from_le_bytes(*sent_ns)))
}

/// The numbers on standard input, up to the first invalid one.
fn numbers() -> impl Iterator<Item = u64> {
    stdin().lock().lines().map_while(|line| line.ok()?.trim().parse().ok())
}

/// Prints an event. On failure nobody is left to read it.
fn say(event: &WatchEvent) {
    let _ = write_line(&mut stdout(), event);
}

fn ended(error: &TransportError) -> CellError {
    CellError::new(ErrorKind::Network, format!("the connection has ended: {error}"))
        .hint("is the network still there? crosswind reach tries every transport")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_has_the_number_the_servers_count_and_the_time_of_sending() {
        let mut message = vec![7; 40];
        write_message(&mut message, 3, *b"a token!", 1_000_000_007);
        assert_eq!(read_answer(&message, *b"a token!"), Some((3, 0, 1_000_000_007)));
        message[8..16].copy_from_slice(&9_u64.to_le_bytes());
        assert_eq!(read_answer(&message, *b"a token!"), Some((3, 9, 1_000_000_007)));
        assert_eq!(message[32..], [7; 8]);
    }

    #[test]
    fn what_somebody_else_sent_is_no_answer() {
        let mut message = vec![0; 32];
        write_message(&mut message, 3, *b"a token!", 1);
        assert_eq!(read_answer(&message, *b"another!"), None);
        assert_eq!(read_answer(&message[..24], *b"a token!"), None);
    }
}
