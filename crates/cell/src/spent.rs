//! Exchanges' time by cause.

use crate::{
    Cell, CellError,
    cell::DEFAULT_MTU,
    limits::ExchangeLimits,
    pieces::ExchangePiece,
    table::{ns, write_table},
};
use crosswind_attribution::{
    Attribution, DelayCause, Growth, Hosts, Interval, MessageTransit, Place, ProgramFacts, with_parts,
};
use crosswind_host::{EmulatorReport, Qdisc, Readback};
use crosswind_ledger::Values::{Length, U64};
use crosswind_ledger::{Column, HttpEnd, PacketRecord, Position, QuicLog, Row};
use crosswind_path::queue::QueueLimit;
use crosswind_path::{Effect, Side};
use crosswind_units::{Duration, Instant};
use crosswind_workload::{Measured, PageObject, Sample, SetupTimes, TrafficPattern};
use std::collections::HashMap;
use std::path::Path;

/// How long a host takes at most to answer at once. In virtual time its work takes none, but for the nanoseconds of the clock.
const PROMPT_IN_VIRTUAL_TIME: Duration = Duration::from_micros(2);
const PROMPT: Duration = Duration::from_micros(500);
/// Exchanges with kept intervals: the slowest, and the first.
const SLOWEST: usize = 200;
const FIRST: usize = 1000;

/// The parts of one exchange: from asking for its connection, where it opened one, to its end.
#[derive(Debug)]
pub struct Spent {
    exchange: u64,
    whole: Duration,
    by_part: [Duration; DelayCause::ALL.len()],
}

macro_rules! columns {
    ($($variant:ident: $group:ident $name:literal $noun:literal $help:literal $share:literal $exchange:literal,)*) => {
        &[
            Column::required("exchange", U64(|row| Some(row.exchange)), "Its number in the cell."),
            Column::required(
                "whole_ns",
                Length(|row| ns(row.whole)),
                "All of its time, which is the sum of its parts: from asking for the connection that it opened, or from sending, to its end.",
            ),
            $(Column::required(concat!($name, "_ns"), Length(|row| ns(row.by_part[DelayCause::$variant as usize])), $help),)*
        ]
    };
}

impl Row for Spent {
    const TABLE: &'static str = "spent.arrow";
    const COLUMNS: &'static [Column<Self>] = with_parts!(columns);
}

/// Facts about a cell's packets.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    /// The packet table.
    pub packets: &'a [PacketRecord],
    /// The client's and the server's QUIC packets.
    pub quic: &'a [QuicLog; 2],
    /// Frames of programs of others.
    pub facts: &'a ProgramFacts,
    /// Their HTTP/1.1 and HTTP/2 writes.
    pub http: &'a [Vec<HttpEnd>; 2],
    pub hosts: Hosts,
    /// Up to when all packets are in the table; none where all are.
    pub until: Option<Instant>,
}

/// Writes each successful exchange's time by cause.
pub fn write_spent(
    cell: &Cell,
    measured: &Measured,
    directory: &Path,
    known: Known<'_>,
    zero: Instant,
) -> Result<(), CellError> {
    let mut attribution = Attribution::new(known.packets, known.quic, known.http, known.hosts);
    if cell.workload.peers().any() {
        let clock = measured.peers.as_ref().and_then(|peers| peers.client.clock.as_ref());
        let early = Duration::from_nanos(clock.map_or(0, |clock| clock.resolution_ns));
        attribution = attribution.with_exchanges(known.packets, known.facts, known.hosts, early);
    }
    let traffic = Traffic::of(cell);
    let mut objects: HashMap<u64, Vec<&PageObject>> = HashMap::new();
    for object in &measured.objects {
        objects.entry(object.page).or_default().push(object);
    }
    let of = |sample: &Sample| {
        let objects = objects.get(&sample.exchange).map(Vec::as_slice).unwrap_or_default();
        let pieces = pieces(&attribution, sample, objects, traffic)?;
        // Without path delay a datagram exchange takes no virtual time.
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return Some(pieces) };
        let (from, to) = (first.from, last.to);
        let is_cut_off = known.until.is_some_and(|until| to > until);
        Some(if is_cut_off { vec![piece(from, to, DelayCause::Unknown, Place::Client)] } else { pieces })
    };
    let mut parts = Vec::with_capacity(measured.samples.len());
    let mut limits = Vec::new();
    for sample in &measured.samples {
        if let Some(pieces) = of(sample) {
            let own = Spent::new(sample.exchange, &pieces);
            limits.extend(changed(&attribution, sample, own.whole));
            parts.push(own);
        }
    }
    let kept = worth_keeping(&parts);
    let mut all = Vec::new();
    for sample in measured.samples.iter().filter(|sample| kept.binary_search(&sample.exchange).is_ok()) {
        let pieces = of(sample).unwrap_or_default();
        all.extend(pieces.into_iter().map(|piece| ExchangePiece::new(sample.exchange, piece)));
    }
    write_table(directory, &parts, zero)?;
    write_table(directory, &limits, zero)?;
    write_table(directory, &all, zero)
}

/// An exchange's time without its limits, where the model knows.
fn changed(attribution: &Attribution<'_>, sample: &Sample, whole: Duration) -> Option<ExchangeLimits> {
    let changed = attribution.changed(sample.client_port?, whole, [sample.sent?, sample.received?])?;
    Some(ExchangeLimits::new(sample.exchange, changed))
}

/// Exchanges with kept intervals, in numeric order.
fn worth_keeping(parts: &[Spent]) -> Vec<u64> {
    let mut slowest: Vec<&Spent> = parts.iter().collect();
    slowest.sort_by_key(|it| (std::cmp::Reverse(it.whole), it.exchange));
    let mut kept: Vec<u64> =
        slowest.iter().take(SLOWEST).copied().chain(parts.iter().take(FIRST)).map(|it| it.exchange).collect();
    kept.sort_unstable();
    kept.dedup();
    kept
}

impl Spent {
    fn new(exchange: u64, pieces: &[Interval]) -> Self {
        let mut by_part = [Duration::ZERO; DelayCause::ALL.len()];
        for piece in pieces {
            let part = &mut by_part[piece.part as usize];
            *part += piece.to.saturating_since(piece.from);
        }
        let whole = match pieces {
            [first, .., last] => last.to.saturating_since(first.from),
            [only] => only.to.saturating_since(only.from),
            [] => Duration::ZERO,
        };
        Self { exchange, whole, by_part }
    }
}

/// Facts about the hosts. In virtual time their work takes none; programs set their sockets up themselves.
pub fn hosts(
    cell: &Cell,
    measured: &Measured,
    virtual_time: bool,
    emulator: Option<&EmulatorReport>,
    readback: &[Readback; 2],
) -> Hosts {
    let host = cell.host.resolved();
    let of_sockets = measured.sockets.iter().flatten().filter_map(|socket| socket.congestion_control.as_deref());
    let of_kernels = readback.iter().filter_map(|it| it.sysctl.get("net.ipv4.tcp_congestion_control"));
    let mut controls: Vec<&str> = of_sockets.chain(host.congestion_control.as_deref()).collect();
    if controls.is_empty() {
        controls.extend(of_kernels.map(String::as_str));
    }
    let quic = cell.connection_settings().quic;
    let nodelay = measured.sockets.iter().flatten().find_map(|socket| socket.nodelay).or(host.nodelay).unwrap_or(false);
    let growth = match controls.as_slice() {
        [first, rest @ ..] if rest.iter().any(|it| it != first) => None,
        ["reno", ..] => Some(Growth::Reno),
        ["cubic", ..] => Some(Growth::Cubic),
        _ => None,
    };
    Hosts {
        growth,
        promptness: if virtual_time { PROMPT_IN_VIRTUAL_TIME } else { PROMPT },
        in_order: emulator.is_some_and(|it| it.in_kernel),
        queues: Side::BOTH.map(|side| queue_bytes(&cell.path.directions.effect(side))),
        background: emulator.is_some_and(|it| it.ledger.has_background()),
        tail_loss_probes: host.tail_loss_probe.unwrap_or(true),
        slow_start_after_idle: host.slow_start_after_idle.unwrap_or(true),
        nagle: !nodelay,
        pacing: controls.iter().any(|name| name.starts_with("bbr")) || host.default_qdisc == Some(Qdisc::Fq),
        initial_window: host.initial_window.map(u64::from),
        send_buffer: host.send_buffer_bytes.map(u64::from),
        quic_packet_threshold: quic.packet_threshold(),
        quic_time_threshold: quic.time_threshold(),
        quic_stream_window: quic.stream_window().into(),
        quic_connection_window: quic.connection_window().into(),
    }
}

/// What may wait before the slowest link, if only its length decides.
fn queue_bytes(effect: &Effect) -> Option<u64> {
    let limit = effect.queue.filter(|_| !effect.manages_queue && !effect.changes)?;
    Some(match limit {
        QueueLimit::Packets(packets) => packets.saturating_mul(DEFAULT_MTU.into()),
        QueueLimit::Bytes(bytes) => bytes,
        QueueLimit::Time(ns) => (effect.rate?.as_bps() as f64 / 8e9 * ns as f64) as u64,
    })
}

/// Facts about a workload's messages.
#[derive(Clone, Copy)]
struct Traffic {
    /// Their direction, where they go one way.
    one_way: Option<Side>,
    /// The same, if arrivals within a time count.
    timed: Option<Side>,
    /// Whether at most one is in flight on a connection.
    alone: bool,
    /// Whether each exchange opens a connection, with its time as a separate part.
    opens: bool,
    /// Whether an exchange is one on one connection: a page is many on several.
    simple: bool,
}

impl Traffic {
    fn of(cell: &Cell) -> Self {
        let one = Self { one_way: None, timed: None, alone: true, opens: true, simple: true };
        match cell.workload.traffic() {
            TrafficPattern::Transfers { upload, duration_ns, .. } => {
                let side = if upload { Side::Forward } else { Side::Reverse };
                Self { one_way: Some(side), timed: duration_ns.map(|_| side), ..one }
            }
            TrafficPattern::Exchanges { rate_per_s, new_connections, .. } => {
                Self { alone: rate_per_s.is_none(), opens: new_connections, ..one }
            }
            TrafficPattern::Handshakes { .. } => one,
            TrafficPattern::Streams { .. } => Self { alone: false, opens: false, ..one },
            _ => Self { simple: false, ..one },
        }
    }
}

/// An exchange's intervals, without gaps; none for a failed one.
fn pieces(
    attribution: &Attribution<'_>,
    sample: &Sample,
    objects: &[&PageObject],
    traffic: Traffic,
) -> Option<Vec<Interval>> {
    if sample.outcome != crosswind_transport::Outcome::Ok {
        return None;
    }
    let began = sample.sent?;
    // `connect` measures nothing but connections.
    let Some(ended) = sample.received else {
        let setup = sample.setup?;
        let done = began + Duration::from_nanos(setup.total_ns);
        return Some(set_up(attribution, sample.client_port, setup, done));
    };
    if !traffic.simple {
        let is_known = objects.iter().any(|it| it.client_port.is_some());
        let known = is_known.then(|| page(attribution, began, ended, objects));
        return Some(known.unwrap_or_else(|| attribution.exchange(None, began, ended)));
    }
    let mut intervals = Vec::new();
    let transit = |side: Side, written, received, bytes| match sample.client_port {
        Some(client_port) => attribution.transit(MessageTransit {
            side,
            client_port,
            written,
            received,
            bytes,
            position: sample.positions[side as usize],
            alone: traffic.alone,
            timed: traffic.timed == Some(side),
        }),
        None => attribution.exchange(None, written, received),
    };
    if let Some(setup) = sample.setup.filter(|_| traffic.opens) {
        let opened = setup.began.map_or(began, |asked| asked + Duration::from_nanos(setup.total_ns));
        intervals = set_up(attribution, sample.client_port, setup, opened);
        // A server may begin to send before the client knows of the connection, or has to be asked first.
        intervals.retain(|it| it.from < began);
        if let Some(last) = intervals.last_mut() {
            last.to = last.to.min(began);
        }
        if opened < began {
            intervals.extend(transit(Side::Forward, opened, began, 1));
            // A client that counts for a time begins with the first message: on its way since the request was there, or
            // since the beginning without one.
            let is_answer = |part| matches!(part, DelayCause::ServerHost | DelayCause::Unknown);
            let asked = intervals.pop_if(|it| traffic.timed == Some(Side::Reverse) && is_answer(it.part));
            if let Some(asked) = asked {
                intervals.extend(transit(Side::Reverse, asked.from, began, 1));
            }
        }
    }
    match (traffic.one_way, sample.server_received, sample.server_sent) {
        (Some(side), ..) => intervals.extend(transit(side, began, ended, sample.received_bytes)),
        (None, Some(received), Some(sent)) if began <= received && received <= sent && sent <= ended => {
            intervals.extend(transit(Side::Forward, began, received, sample.sent_bytes));
            if received < sent {
                intervals.push(piece(received, sent, DelayCause::ServerHost, Place::Server));
            }
            intervals.extend(transit(Side::Reverse, sent, ended, sample.received_bytes));
        }
        _ => intervals.extend(attribution.exchange(sample.client_port, began, ended)),
    }
    Some(intervals)
}

/// A page's intervals: back from the last object to the one its request waited for, and so on to the document and its
/// connection.
fn page(attribution: &Attribution<'_>, began: Instant, ended: Instant, objects: &[&PageObject]) -> Vec<Interval> {
    let mut before = vec![];
    let mut at = ended;
    let last_by = |time: Instant, is_wanted: &dyn Fn(&PageObject, Instant) -> bool| {
        let there = objects.iter().filter_map(|it| Some((it.received?, *it)));
        there.filter(|&(received, it)| received <= time && is_wanted(it, received)).max_by_key(|it| it.0)
    };
    let host = |from: Instant, to: Instant| (from < to).then(|| piece(from, to, DelayCause::ClientHost, Place::Client));
    let mut next = last_by(ended, &|_, _| true);
    while let Some((received, object)) = next
        && let Some(sent) = object.sent.filter(|&sent| sent < at)
    {
        let mut own = loaded(attribution, object, sent, received);
        own.extend(host(received, at));
        before.push(own);
        at = sent;
        let waited = last_by(sent, &|it, received| it.connection == object.connection && received > object.queued);
        next = waited.or_else(|| {
            if let Some(setup) = object.setup
                && let Some(asked) = setup.began.filter(|&asked| asked < at)
            {
                let opened = (asked + Duration::from_nanos(setup.total_ns)).min(at);
                let mut own = set_up(attribution, object.client_port, setup, opened);
                own.extend(host(opened, at));
                at = own.first().map_or(at, |it| it.from);
                before.push(own);
            }
            last_by(at.min(object.queued), &|_, _| true)
        });
    }
    let mut all: Vec<Interval> = host(began, at).into_iter().chain(before.into_iter().rev().flatten()).collect();
    if all.is_empty() && began < ended {
        all.push(piece(began, ended, DelayCause::Unknown, Place::Client));
    }
    all
}

/// The pieces of an object: its request, and its answer.
fn loaded(attribution: &Attribution<'_>, object: &PageObject, sent: Instant, received: Instant) -> Vec<Interval> {
    let (Some(client_port), Some(Position::Stream { stream, .. })) = (object.client_port, object.position) else {
        return vec![piece(sent, received, DelayCause::Unknown, Place::Client)];
    };
    let Some(asked) = attribution.request_arrival(client_port, stream, received).filter(|&asked| asked >= sent) else {
        return vec![piece(sent, received, DelayCause::Unknown, Place::Client)];
    };
    let transit = |side, written, received, bytes| {
        let position = object.position;
        attribution.transit(MessageTransit {
            side,
            client_port,
            written,
            received,
            bytes,
            position,
            alone: false,
            timed: false,
        })
    };
    [transit(Side::Forward, sent, asked, 1), transit(Side::Reverse, asked, received, object.bytes)].concat()
}

/// The steps of a connection's setup, done at `done`.
fn set_up(attribution: &Attribution<'_>, client_port: Option<u16>, setup: SetupTimes, done: Instant) -> Vec<Interval> {
    let began = Instant::from_nanos(done.as_nanos().saturating_sub(setup.total_ns));
    let mut at = began;
    let mut pieces = Vec::new();
    let mut add = |length: u64, part, count| {
        let to = at + Duration::from_nanos(length);
        if to > at {
            pieces.push(Interval { count, ..piece(at, to, part, Place::Client) });
        }
        at = to;
    };
    if let Some(transport) = setup.transport_ns {
        let (waited, count) = client_port.map_or((Duration::ZERO, 0), |port| {
            attribution.syn_timer(port, began, began + Duration::from_nanos(transport))
        });
        let waited = waited.as_nanos().min(transport);
        add(waited, DelayCause::SynTimer, count);
        add(transport - waited, DelayCause::TcpHandshake, 0);
    }
    add(setup.security_ns.unwrap_or(0), DelayCause::SecurityHandshake, 0);
    add(setup.upgrade_ns.unwrap_or(0), DelayCause::UpgradeHandshake, 0);
    let known = [setup.transport_ns, setup.security_ns, setup.upgrade_ns].into_iter().flatten().sum::<u64>();
    add(setup.total_ns.saturating_sub(known), DelayCause::ClientHost, 0);
    match client_port {
        Some(port) => attribution.with_recoveries(port, pieces),
        None => pieces,
    }
}

const fn piece(from: Instant, to: Instant, part: DelayCause, place: Place) -> Interval {
    Interval { from, to, part, place, packet: None, count: 0, data: Side::Forward }
}
