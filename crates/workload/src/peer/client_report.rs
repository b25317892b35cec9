//! A client peer's report, event by event: checked against protocol and workload, turned into samples. Without I/O.

use super::events::{
    ClientEvent, Connected, Lines, ObjectEvent, PeerClockEvent, SampleEvent, Violation, add_warning, check_name, parse,
};
use crate::demand::TrafficPattern;
use crate::warning::Warning;
use crate::{PageObject, Sample, SetupTimes};
use crosswind_transport::Outcome;
use crosswind_units::{Duration, Instant};
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

/// How far a peer's clock may be from ours, beside its resolution, before its times are refused.
const CLOCK_TOLERANCE: Duration = Duration::from_millis(10);
/// More objects than a page has.
const MAX_OBJECTS_A_PAGE: u64 = 10_000;
/// More connections than a client needs with a new one for each exchange, and again after a failure.
const MAX_CONNECTIONS_AN_EXCHANGE: u64 = 100;

/// The expected report of a client.
#[derive(Clone, Debug)]
pub struct Expected {
    /// The cell's transport.
    pub transport: &'static str,
    /// How many exchanges there are.
    pub exchanges: u64,
    /// Bytes sent by a successful exchange, if known.
    pub sent_bytes: Option<u64>,
    /// Bytes it received.
    pub received_bytes: Option<u64>,
    /// With separate connections for each exchange: the number of clients taking turns.
    pub clients: Option<u32>,
    /// The cell clock's origin, by `CLOCK_MONOTONIC`.
    pub clock_origin_ns: u64,
    /// When the program was started.
    pub started: Instant,
}

impl Expected {
    /// A workload's expectation of a client started at `started`.
    pub fn new(
        transport: &'static str,
        exchanges: u64,
        traffic: &TrafficPattern,
        clock_origin_ns: u64,
        started: Instant,
    ) -> Self {
        let (sent_bytes, received_bytes, clients) = match *traffic {
            TrafficPattern::Exchanges { request_bytes, reply_bytes, new_connections, connections, .. } => {
                (Some(request_bytes), Some(reply_bytes), new_connections.then_some(connections))
            }
            TrafficPattern::Streams { size_bytes, .. } => (Some(size_bytes), Some(size_bytes), None),
            TrafficPattern::Transfers { size_bytes, connections, .. } => (size_bytes, size_bytes, Some(connections)),
            TrafficPattern::Handshakes { connections, .. } => (None, None, Some(connections)),
            TrafficPattern::Pages { .. } => (None, None, Some(1)),
            TrafficPattern::Unknown {} => (None, None, None),
        };
        Self { transport, exchanges, sent_bytes, received_bytes, clients, clock_origin_ns, started }
    }
}

/// News for the client's follower.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// It has started.
    Ready,
    /// An exchange has ended: after so long, or it is lost.
    ExchangeDone(Option<u64>),
    /// It has reported everything.
    Finished,
    /// It cannot go on.
    Failed {
        /// Why.
        message: String,
        /// Advice for the user.
        hint: Option<String>,
    },
}

/// A client's report.
#[derive(Debug)]
pub struct ClientReport {
    /// The program and its version.
    pub implementation: String,
    /// The clock of its times, which are converted to the cell's.
    pub clock: PeerClockEvent,
    /// Whether it reported the cell's transport for every connection.
    pub is_verified: bool,
    /// One for each exchange, in order.
    pub samples: Vec<Sample>,
    /// Pages' objects.
    pub objects: Vec<PageObject>,
    /// The first error of each outcome.
    pub first_errors: HashMap<Outcome, String>,
    /// Its other counts.
    pub facts: BTreeMap<String, f64>,
    /// Notes for readers of the result.
    pub warnings: Vec<Warning>,
}

/// A followed client.
#[derive(Debug)]
pub struct ClientFollower {
    lines: Lines,
    reported: Reported,
}

#[derive(Debug)]
struct Reported {
    expected: Expected,
    ready: Option<(String, PeerClockEvent)>,
    connections: BTreeMap<u32, Connected>,
    samples: BTreeMap<u64, (Sample, Option<String>)>,
    objects: Vec<PageObject>,
    facts: Option<BTreeMap<String, f64>>,
    warnings: Vec<Warning>,
    notices: VecDeque<Notice>,
}

impl ClientFollower {
    /// A client before its first line.
    pub fn new(expected: Expected) -> Self {
        let reported = Reported {
            expected,
            ready: None,
            connections: BTreeMap::new(),
            samples: BTreeMap::new(),
            objects: Vec::new(),
            facts: None,
            warnings: Vec::new(),
            notices: VecDeque::new(),
        };
        Self { lines: Lines::default(), reported }
    }

    /// It has written this.
    pub fn handle_bytes(&mut self, now: Instant, bytes: &[u8]) -> Result<(), Violation> {
        let reported = &mut self.reported;
        self.lines.handle_bytes(bytes, |line| reported.handle_line(now, line))
    }

    /// It will write nothing more.
    pub fn handle_end(&mut self, now: Instant) -> Result<(), Violation> {
        let reported = &mut self.reported;
        self.lines.handle_end(|line| reported.handle_line(now, line))
    }

    /// The next unread notice.
    pub fn poll_notice(&mut self) -> Option<Notice> {
        self.reported.notices.pop_front()
    }

    /// Everything, once it has finished.
    pub fn into_report(self) -> Result<ClientReport, Violation> {
        self.reported.into_whole_report().map_err(Violation::new)
    }

    /// Its report so far; none if it was never ready.
    pub fn into_report_so_far(self) -> Result<Option<ClientReport>, Violation> {
        let ready = self.reported.ready.clone();
        ready.map(|ready| self.reported.into_report(ready, BTreeMap::new())).transpose().map_err(Violation::new)
    }
}

impl Reported {
    fn handle_line(&mut self, now: Instant, line: &[u8]) -> Result<(), String> {
        let event: ClientEvent = parse(line)?;
        if self.facts.is_some() {
            return Err("there is an event after \"finished\"".into());
        }
        match event {
            ClientEvent::Ready { implementation, clock } => self.handle_ready(implementation, clock),
            ClientEvent::Error { message, hint } => {
                self.notices.push_back(Notice::Failed { message, hint });
                Ok(())
            }
            ClientEvent::Warning { message } => add_warning(&mut self.warnings, message),
            _ if self.ready.is_none() => Err("the first event is not \"ready\"".into()),
            ClientEvent::Connected(connected) => self.handle_connected(connected),
            ClientEvent::Sample(sample) => self.handle_sample(now, sample),
            ClientEvent::Object(object) => self.handle_object(now, object),
            ClientEvent::Finished { facts } => {
                self.facts = Some(facts);
                self.notices.push_back(Notice::Finished);
                Ok(())
            }
        }
    }

    fn handle_ready(&mut self, implementation: String, clock: PeerClockEvent) -> Result<(), String> {
        if self.ready.is_some() {
            return Err("it is ready for the second time".into());
        }
        check_name("implementation", &implementation)?;
        check_name("clock.name", &clock.name)?;
        self.ready = Some((implementation, clock));
        self.notices.push_back(Notice::Ready);
        Ok(())
    }

    fn handle_connected(&mut self, connected: Connected) -> Result<(), String> {
        let (number, wanted) = (connected.connection, self.expected.transport);
        if let Some(transport) = connected.transport.as_deref().filter(|transport| *transport != wanted) {
            return Err(format!("connection {number} is {transport}, where the cell asks for {wanted}"));
        }
        let parts = [connected.transport_ns, connected.security_ns, connected.upgrade_ns];
        if parts.iter().flatten().any(|part| connected.setup_ns.is_none_or(|all| *part > all)) {
            return Err(format!("a part of setting up connection {number} took longer than all of it"));
        }
        if self.connections.len() as u64 >= MAX_CONNECTIONS_AN_EXCHANGE.saturating_mul(self.expected.exchanges) {
            return Err("there are more connections than exchanges could need".into());
        }
        if self.connections.insert(number, connected).is_some() {
            return Err(format!(
                "connection {number} is connected for the second time; a new connection has a new number"
            ));
        }
        Ok(())
    }

    fn handle_sample(&mut self, now: Instant, event: SampleEvent) -> Result<(), String> {
        let (number, expected) = (event.exchange, &self.expected);
        let what = format!("exchange {number}");
        if number >= expected.exchanges {
            return Err(format!("there is no {what}: the workload has {}, counted from 0", expected.exchanges));
        }
        let sample = Sample {
            intended: event.intended_ns.map(|ns| self.time(&what, ns, now)).transpose()?,
            sent: event.sent_ns.map(|ns| self.time(&what, ns, now)).transpose()?,
            received: event.received_ns.map(|ns| self.time(&what, ns, now)).transpose()?,
            stream: event.stream,
            sent_bytes: event.sent_bytes,
            received_bytes: event.received_bytes,
            outcome: event.outcome,
            ..Sample::new(number, event.connection)
        };
        in_order(&what, &[sample.sent, sample.received])?;
        let ok = sample.outcome == Outcome::Ok;
        if ok && (sample.sent.is_none() || sample.received.is_none()) {
            return Err(format!("{what} is ok, and has no time of sending or of receiving"));
        }
        let wrong = |wanted: Option<u64>, found: u64| wanted.is_some_and(|wanted| wanted != found);
        if ok && (wrong(expected.sent_bytes, event.sent_bytes) || wrong(expected.received_bytes, event.received_bytes))
        {
            let size = |bytes: Option<u64>| bytes.map_or("any".to_owned(), |bytes| bytes.to_string());
            return Err(format!(
                "{what} is ok with {} bytes sent and {} received, where the workload has {} and {}",
                event.sent_bytes,
                event.received_bytes,
                size(expected.sent_bytes),
                size(expected.received_bytes)
            ));
        }
        let took = sample.sent.zip(sample.received).map(|(sent, received)| (received - sent).as_nanos());
        if self.samples.insert(number, (sample, event.error)).is_some() {
            return Err(format!("{what} is reported for the second time"));
        }
        self.notices.push_back(Notice::ExchangeDone(took.filter(|_| ok)));
        Ok(())
    }

    fn handle_object(&mut self, now: Instant, event: ObjectEvent) -> Result<(), String> {
        let what = format!("object {:?} of page {}", event.object, event.page);
        if event.page >= self.expected.exchanges {
            return Err(format!("there is no page {}: the workload has {}", event.page, self.expected.exchanges));
        }
        check_name("object", &event.object)?;
        if self.objects.len() as u64 >= MAX_OBJECTS_A_PAGE.saturating_mul(self.expected.exchanges) {
            return Err(format!("there are more than {MAX_OBJECTS_A_PAGE} objects a page"));
        }
        let time = |ns: Option<u64>| ns.map(|ns| self.time(&what, ns, now)).transpose();
        let object = PageObject {
            page: event.page,
            connection: event.connection,
            queued: self.time(&what, event.queued_ns, now)?,
            sent: time(event.sent_ns)?,
            first: time(event.first_ns)?,
            received: time(event.received_ns)?,
            bytes: event.bytes,
            outcome: event.outcome,
            object: event.object,
            client_port: None,
            position: None,
            setup: None,
        };
        in_order(&what, &[Some(object.queued), object.sent, object.first, object.received])?;
        self.objects.push(object);
        Ok(())
    }

    /// A time of the peer's clock on the cell's, which has to lie between the start of the program and `now`.
    fn time(&self, what: &str, ns: u64, now: Instant) -> Result<Instant, String> {
        let Some((_, clock)) = &self.ready else { return Err("the first event is not \"ready\"".into()) };
        let tolerance_ns = CLOCK_TOLERANCE.as_nanos().saturating_add(clock.resolution_ns);
        let earliest_ns = self.expected.started.as_nanos().saturating_sub(tolerance_ns);
        let latest_ns = now.as_nanos().saturating_add(tolerance_ns);
        let at_ns = i128::from(clock.monotonic_ns) + i128::from(ns) - i128::from(self.expected.clock_origin_ns);
        let off_ns = (i128::from(earliest_ns) - at_ns).max(at_ns - i128::from(latest_ns));
        match u64::try_from(at_ns) {
            Ok(at_ns) if off_ns <= 0 => Ok(Instant::from_nanos(at_ns)),
            // In the first microseconds of a cell, by the tolerance.
            Err(_) if off_ns <= 0 => Ok(Instant::from_nanos(0)),
            _ => {
                let side = if at_ns < i128::from(earliest_ns) { "before it was started" } else { "in the future" };
                let seconds = off_ns as f64 / 1e9;
                Err(format!("{what} has a time {seconds:.3} s {side}: is monotonic_ns right, and is it nanoseconds?"))
            }
        }
    }

    fn into_whole_report(mut self) -> Result<ClientReport, String> {
        let (Some(ready), Some(facts)) = (self.ready.take(), self.facts.take()) else {
            return Err("it did not finish".into());
        };
        let (reported, wanted) = (self.samples.len() as u64, self.expected.exchanges);
        if reported < wanted {
            return Err(format!("it finished after it had reported {reported} of {wanted} exchanges"));
        }
        self.into_report(ready, facts)
    }

    fn into_report(
        mut self,
        (implementation, clock): (String, PeerClockEvent),
        facts: BTreeMap<String, f64>,
    ) -> Result<ClientReport, String> {
        let mut opened = HashSet::new();
        let (mut samples, mut first_errors) = (Vec::with_capacity(self.samples.len()), HashMap::new());
        for (number, (mut sample, error)) in self.samples {
            let connected = self.connections.get(&sample.connection);
            if sample.outcome == Outcome::Ok && connected.is_none() {
                let connection = sample.connection;
                return Err(format!("exchange {number} is ok, and its connection {connection} was never connected"));
            }
            if opened.insert(sample.connection) {
                sample.setup = connected.and_then(setup_times);
            }
            if let Some(clients) = self.expected.clients {
                // As in our own client: clients taking turns, each with its own connections, are one statistical unit.
                sample.connection = (number % u64::from(clients.max(1))) as u32;
            }
            if let Some(error) = error.filter(|_| sample.outcome != Outcome::Ok) {
                first_errors.entry(sample.outcome).or_insert(error);
            }
            samples.push(sample);
        }
        self.objects.sort_by_key(|object| (object.page, object.queued));
        Ok(ClientReport {
            implementation,
            clock,
            is_verified: !self.connections.is_empty() && self.connections.values().all(|it| it.transport.is_some()),
            samples,
            objects: self.objects,
            first_errors,
            facts,
            warnings: self.warnings,
        })
    }
}

fn setup_times(connected: &Connected) -> Option<SetupTimes> {
    let &Connected { setup_ns, transport_ns, security_ns, upgrade_ns, .. } = connected;
    Some(SetupTimes { began: None, total_ns: setup_ns?, transport_ns, security_ns, upgrade_ns })
}

fn in_order(what: &str, times: &[Option<Instant>]) -> Result<(), String> {
    let known: Vec<_> = times.iter().flatten().collect();
    if known.is_sorted() { Ok(()) } else { Err(format!("the times of {what} run backwards")) }
}
