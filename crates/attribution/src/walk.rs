//! A TCP connection between two programs, from its last packet back to its first.
//!
//! At a host, the last event before a transmission is taken as its cause: the opening of a window, if the segment did
//! not fit until then; else data arrived for the program, or the program's previous write. The classes are those of
//! Zhang et al., "On the characteristics and origins of Internet flow rates" (SIGCOMM 2002), and of Siekkinen et al.,
//! "A root cause analysis toolkit for TCP" (Computer Networks 52, 2008). They classify stretches of a flow, from one
//! observation point; here both hosts and the path are known, so every wait is classified.

use crate::critical_path::{CriticalPath, Interval, Place};
use crate::links::Links;
use crate::tcp::{Connection, INITIAL_WINDOW};
use crate::tcp_sender::{SHORTEST_IDLE, Segment, Sender};
use crate::{DelayCause, Hosts};
use crosswind_ledger::{PacketRecord, TCP_FIN, TCP_PSH, TCP_RST, TCP_SYN};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::collections::VecDeque;

/// How many times as long as a host takes to answer acknowledgements have to be apart, for one not to come by chance when something
/// else happens.
const FEW: u64 = 10;
/// A time within which hardly anything happens by chance.
const SHORT: Duration = Duration::from_micros(10);

/// A conversation after its walk.
pub struct Walked {
    /// In order of time.
    pub pieces: Vec<Interval>,
    /// How often a host waited for the other's data.
    pub turns: u32,
    /// Limiting windows, with counts.
    pub windows: Vec<Window>,
}

/// The intervals valid for QUIC packets without keys: acknowledgements look like answers, and waits for a window or for
/// a timer like an idle program.
pub fn of_sealed(mut pieces: Vec<Interval>) -> Vec<Interval> {
    for piece in &mut pieces {
        if matches!(piece.part, DelayCause::ClientHost | DelayCause::ServerHost | DelayCause::DatagramLoss) {
            piece.part = DelayCause::Unknown;
        }
    }
    pieces
}

/// A limiting window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The direction of the waiting data.
    pub data: Side,
    /// The window's kind: a cause.
    pub part: DelayCause,
    /// How often.
    pub times: u32,
    /// The most in flight, or allowed, while it was the limit: bytes.
    pub bytes: u64,
}

/// A connection with the state for its walk.
pub struct Conversation<'a> {
    packets: Vec<&'a PacketRecord>,
    connection: Connection<'a>,
    /// By direction and segment: the congestion window's lower bound when it was sent.
    reach: [Vec<u32>; 2],
    hosts: Hosts,
}

impl<'a> Conversation<'a> {
    /// From its packets, in the order of entering.
    pub fn new(packets: Vec<&'a PacketRecord>, hosts: Hosts) -> Self {
        let connection = Connection::new(&packets, hosts);
        let reach = Side::BOTH.map(|side| reach(connection.sender(side), hosts));
        Self { packets, connection, reach, hosts }
    }

    pub fn into_packets(self) -> Vec<&'a PacketRecord> {
        self.packets
    }

    /// Attributes the whole connection.
    pub fn walk(&self, links: &Links<'a>) -> Walked {
        let (from, to) = span(&self.packets);
        let opener = self.connection.handshake.as_ref().map_or(Side::Forward, |it| it.opener);
        let mut walk = self.start(CriticalPath::new(from, to, opener).merging(), links);
        let first = walk.begin();
        walk.go(first)
    }

    /// When the client's latest data at `at` came.
    pub fn last_answer(&self, at: Instant) -> Option<Instant> {
        self.connection.sender(Side::Reverse).bytes.completion(at).map(|done| done.at)
    }

    /// Attributes `[from, to]` backwards, for a client with its answer, come by `answered`, at `to`.
    pub fn exchange(&self, from: Instant, to: Instant, answered: Instant, links: &Links<'a>) -> Vec<Interval> {
        let mut walk = self.start(CriticalPath::new(from, to, Side::Reverse), links);
        let first = self.last_answer(answered).map(|at| {
            walk.at_sender(at, DelayCause::ClientHost, Side::Forward, None);
            Step::Arrived(Side::Reverse, at)
        });
        walk.go(first).pieces
    }

    const fn start<'w>(&'w self, trail: CriticalPath, links: &'w Links<'a>) -> Walk<'w, 'a> {
        Walk {
            packets: self.packets.as_slice(),
            connection: &self.connection,
            reach: &self.reach,
            links,
            hosts: self.hosts,
            trail,
            turns: 0,
            data: None,
            windows: Vec::new(),
        }
    }
}

/// When the first of some packets entered the path, and when the last one ended.
pub fn span(packets: &[&PacketRecord]) -> (Instant, Instant) {
    let from = packets.first().map_or(Instant::from_nanos(0), |it| it.entered);
    (from, packets.iter().map(|it| ended(it)).max().unwrap_or(from))
}

fn ended(packet: &PacketRecord) -> Instant {
    packet.left.unwrap_or(packet.entered)
}

const fn flags(packet: &PacketRecord, which: u8) -> u8 {
    packet.headers.flags & which
}

/// Where the way is: the trail says when.
#[derive(Clone, Copy)]
enum Step {
    /// A host acted on its own; the time since its last event has a cause.
    Did(Side, DelayCause),
    /// A host sent a segment with data; `passing`: not the awaited one, but one that kept the path busy until then.
    Sent { side: Side, send: usize, passing: bool },
    /// Data in the direction of a side arrived and advanced the receiver.
    Arrived(Side, Instant),
}

struct Walk<'w, 'a> {
    packets: &'w [&'a PacketRecord],
    connection: &'w Connection<'a>,
    reach: &'w [Vec<u32>; 2],
    links: &'w Links<'a>,
    hosts: Hosts,
    trail: CriticalPath,
    turns: u32,
    /// The direction of the walk's last data arrival.
    data: Option<Side>,
    windows: Vec<Window>,
}

impl<'a> Walk<'_, 'a> {
    /// Goes from `next` back to where the trail begins.
    fn go(mut self, mut next: Option<Step>) -> Walked {
        // Without path delay, packets might be each other's cause.
        for _ in 0..4 * self.packets.len() + 8 {
            let Some(step) = next.filter(|_| !self.trail.is_done()) else { break };
            next = match step {
                Step::Did(side, why) => self.did(side, why),
                Step::Sent { side, send, passing } => self.sent(side, send, passing),
                Step::Arrived(side, at) => self.arrived(side, at),
            };
        }
        Walked { pieces: self.trail.finish(), turns: self.turns, windows: self.windows }
    }

    fn sender(&self, side: Side) -> &Sender<'a> {
        self.connection.sender(side)
    }

    fn is_prompt(&self, earlier: Instant, later: Instant) -> bool {
        later.saturating_since(earlier) <= self.hosts.promptness
    }

    fn at_sender(&mut self, from: Instant, part: DelayCause, side: Side, packet: Option<&PacketRecord>) {
        self.trail.name(from, part, Place::sender(side), packet, 0);
    }

    /// From the connection's end back to the last data, or to its close.
    fn begin(&mut self) -> Option<Step> {
        let closes = |it: &&&PacketRecord| flags(it, TCP_FIN | TCP_RST) != 0;
        let last_data =
            Side::BOTH.map(|side| self.sender(side).bytes.completion(self.trail.at()).map(|it| (it.at, side)));
        let last_data = last_data.into_iter().flatten().max_by_key(|it| it.0);
        let answered = self.connection.handshake.as_ref().is_some_and(|it| it.answer().is_some());
        if let Some(close) =
            self.packets.iter().copied().find(|it| closes(&it)).filter(|_| answered || last_data.is_some())
        {
            let from = last_data.map_or(close.entered, |(at, _)| at.max(close.entered));
            self.at_sender(from, DelayCause::Closing, close.side, Some(close));
            return match last_data {
                Some((at, side)) if at >= close.entered => Some(Step::Arrived(side, at)),
                _ => Some(Step::Did(close.side, DelayCause::sender(close.side))),
            };
        }
        let last = self.packets.iter().copied().max_by_key(|it| (ended(it), it.entered))?;
        if let Some((at, side)) = last_data.filter(|it| it.0 >= last.entered) {
            // Later packets were sent for it.
            self.trail.name(at, DelayCause::propagation(last.side), Place::Path, Some(last), 0);
            return Some(Step::Arrived(side, at));
        }
        if flags(last, TCP_SYN) != 0 || !answered {
            return self.open(last.side);
        }
        let sent = if last.left.is_some() { self.links.follow(last, None, &mut self.trail) } else { last };
        if let Some(send) = self.sender(sent.side).send_of(sent) {
            return Some(Step::Sent { side: sent.side, send, passing: false });
        }
        Some(Step::Did(sent.side, DelayCause::DelayedAcknowledgement))
    }

    /// Back to a host's last event.
    fn did(&mut self, side: Side, why: DelayCause) -> Option<Step> {
        let at = self.trail.at();
        let arrived = self.sender(side.opposite()).bytes.completion(at).map(|it| it.at);
        let sender = self.sender(side);
        let until = sender.sends.partition_point(|it| it.packet.entered <= at);
        let sent = until.checked_sub(1).map(|send| (sender.sends[send].packet.entered, send));
        match (sent, arrived) {
            (Some((entered, send)), arrived) if arrived.is_none_or(|at| entered >= at) => {
                self.at_sender(entered, DelayCause::sender(side), side, None);
                Some(Step::Sent { side, send, passing: false })
            }
            (_, Some(arrived)) => {
                // Linux's longest acknowledgement delay is its minimum retransmission timeout.
                let is_delay = at.saturating_since(arrived) <= SHORTEST_IDLE && !self.is_prompt(arrived, at);
                self.at_sender(arrived, if is_delay { why } else { DelayCause::sender(side) }, side, None);
                Some(Step::Arrived(side.opposite(), arrived))
            }
            _ => self.open(side),
        }
    }

    /// Back from an arrival that advanced the receiver to its sending.
    fn arrived(&mut self, side: Side, at: Instant) -> Option<Step> {
        if self.data.replace(side).is_some_and(|before| before != side) {
            self.turns += 1;
        }
        self.trail.turn(side);
        let sender = self.connection.sender(side);
        let done = sender.bytes.completion(at)?;
        let begun_with = self.links.follow(sender.sends[done.send].packet, None, &mut self.trail);
        let Some(send) = sender.send_of(begun_with) else { return Some(Step::Did(side, DelayCause::sender(side))) };
        if send == done.send {
            let first = self.connection.recovery(sender, send, done.missing, &mut self.trail);
            return Some(Step::Sent { side, send: first, passing: false });
        }
        Some(Step::Sent { side, send, passing: true })
    }

    /// Why a segment was sent when it was.
    fn sent(&mut self, side: Side, send: usize, passing: bool) -> Option<Step> {
        let sender = self.connection.sender(side);
        let segment = &sender.sends[send];
        let at = segment.packet.entered;
        self.at_sender(at, DelayCause::sender(side), side, None);
        let is_again = sender.bytes.first_with(segment.start).is_some_and(|first| first < send);
        if is_again && (!passing || self.connection.is_timer(sender, send)) {
            return Some(self.again(side, send));
        }
        if !sender.begun && !is_again && segment.start < segment.after {
            // It was sent first before anything is known.
            return None;
        }
        let arrived = self.sender(side.opposite()).bytes.completion(at).map(|it| it.at);
        let before = send.checked_sub(1).map(|it| (it, &sender.sends[it]));
        let wrote = before.map(|(_, it)| it.packet.entered);
        let seen = sender.acks_until(at).len();
        let told = seen.checked_sub(1).map(|it| sender.acks[it].arrived);
        let at_once = wrote.is_some_and(|it| at.saturating_since(it) <= self.hosts.promptness.min(SHORT));
        let nothing_came = at_once || wrote.is_some() && arrived.max(told) <= wrote;
        if !nothing_came && let Some((ack, why)) = self.opened(sender, side, send, arrived) {
            return self.window(side, send, ack, why);
        }
        if is_again {
            return Some(self.again(side, send));
        }
        if let Some(arrived) = arrived.filter(|_| arrived > wrote && !at_once) {
            self.at_sender(arrived, DelayCause::sender(side), side, Some(segment.packet));
            return Some(Step::Arrived(side.opposite(), arrived));
        }
        let Some((before, previous)) = before else { return self.open(side) };
        let entered = previous.packet.entered;
        let acknowledged = seen.checked_sub(1).map_or(0, |it| sender.acks[it].acknowledged);
        let has_more = flags(previous.packet, TCP_PSH) == 0 && segment.start > acknowledged;
        let paced = self.hosts.pacing && has_more && !self.is_prompt(entered, at);
        let part = if paced { DelayCause::Pacing } else { DelayCause::sender(side) };
        self.at_sender(entered, part, side, Some(segment.packet));
        Some(Step::Sent { side, send: before, passing: true })
    }

    /// Back from a retransmission to the first transmission.
    fn again(&mut self, side: Side, send: usize) -> Step {
        let sender = self.connection.sender(side);
        let first = self.connection.recovery(sender, send, sender.sends[send].start, &mut self.trail);
        Step::Sent { side, send: first, passing: false }
    }

    /// The acknowledgement that released a segment, if one did, and the cause it ended.
    fn opened(
        &self,
        sender: &Sender<'a>,
        side: Side,
        send: usize,
        arrived: Option<Instant>,
    ) -> Option<(usize, DelayCause)> {
        let segment = &sender.sends[send];
        let at = segment.packet.entered;
        let last = sender.acks_until(at).len().checked_sub(1)?;
        let before = |ack: usize| {
            ack.checked_sub(1).map_or((0, u64::MAX), |it| (sender.acks[it].acknowledged, sender.acks[it].edge))
        };
        let tells = |ack: usize| {
            let it = &sender.acks[ack];
            self.is_prompt(it.arrived, at) && (it.has_sack() || (it.acknowledged, it.edge) != before(ack))
        };
        let answers = arrived.is_some_and(|it| self.is_prompt(it, at));
        if !sender.begun {
            let is_answer = answers && sender.acks[last].acknowledged >= segment.start;
            let is_new = segment.start >= segment.after;
            return (tells(last) && is_new && !is_answer).then_some((last, DelayCause::Unknown));
        }
        // The earliest possible sending time, given the known windows.
        let reach = u64::from(self.reach[side as usize][send]);
        let fits = sender.acks.partition_point(|it| it.acknowledged + reach < segment.end || it.edge < segment.end);
        let ack = fits.min(last);
        let (acknowledged, edge) = before(ack);
        let held = segment.start > acknowledged || edge < segment.end;
        // A segment without PSH leaves something to be sent.
        let until = sender.sends.partition_point(|it| it.packet.entered < sender.acks[ack].arrived);
        let was_done = until.checked_sub(1).is_some_and(|it| flags(sender.sends[it].packet, TCP_PSH) != 0);
        let is_answer = answers && edge >= segment.end && (was_done || sender.acks[ack].acknowledged >= segment.start);
        if tells(ack) && held && !is_answer {
            return Some((ack, self.connection.limit(sender, send, ack)));
        }
        // An acknowledgement, but the end of something else than a window.
        if !tells(last) || segment.start <= before(last).0 {
            return None;
        }
        let why = self.connection.limit(sender, send, last);
        let in_flight = sender.acks[last].acknowledged < segment.start;
        let has_more = flags(sender.sends[send.checked_sub(1)?].packet, TCP_PSH) == 0;
        if in_flight && has_more || why == DelayCause::Nagle && !answers {
            return Some((last, why));
        }
        // Everything written was in flight, and more was written when an acknowledgement came: unless this happens
        // often, there was no room for it before.
        let apart = at.saturating_since(sender.acks[last.saturating_sub(1)].arrived).as_nanos();
        let few = self.hosts.promptness < SHORT || apart > FEW * self.hosts.promptness.as_nanos();
        (in_flight && few && !answers).then_some((last, DelayCause::SendBuffer))
    }

    /// Back through a window-opening acknowledgement to the segment it answers.
    fn window(&mut self, side: Side, send: usize, ack: usize, why: DelayCause) -> Option<Step> {
        let sender = self.connection.sender(side);
        let before = ack.checked_sub(1).map(|it| &sender.acks[it]);
        let acknowledged = before.map_or(0, |it| it.acknowledged);
        let bytes = match (why, before) {
            (DelayCause::ReceiveWindow | DelayCause::ZeroWindow, Some(before)) => {
                before.edge.saturating_sub(acknowledged)
            }
            _ => sender.sends[send].start.saturating_sub(acknowledged),
        };
        match self.windows.iter_mut().find(|it| it.data == side && it.part == why) {
            _ if why == DelayCause::Unknown => {}
            Some(window) => (window.times, window.bytes) = (window.times + 1, window.bytes.max(bytes)),
            None => self.windows.push(Window { data: side, part: why, times: 1, bytes }),
        }
        self.trail.turn(side);
        let cause = self.connection.acknowledged(sender, send, ack, why, self.links, &mut self.trail)?;
        let begun_with = self.links.follow(sender.sends[cause].packet, Some(why), &mut self.trail);
        let Some(next) = sender.send_of(begun_with) else { return Some(Step::Did(side, DelayCause::sender(side))) };
        if next >= send {
            return None;
        }
        Some(Step::Sent { side, send: next, passing: next != cause || !self.connection.is_timer(sender, next) })
    }

    /// Back from the first event at the host of `side` to the connection's beginning.
    fn open(&mut self, side: Side) -> Option<Step> {
        let handshake = self.connection.handshake.as_ref()?;
        let (opener, first) = (handshake.opener, handshake.first()?);
        let (waited, expired) = handshake.waited(self.trail.at());
        if let Some((known, _)) = handshake.answer() {
            if side != opener && !handshake.confirmed(self.links, &mut self.trail) {
                return None;
            }
            self.at_sender(known, DelayCause::sender(opener), opener, None);
        }
        self.trail.turn(opener);
        let answered = self.packets.iter().any(|it| it.side != opener && it.left.is_some());
        let part = if answered { DelayCause::TcpHandshake } else { DelayCause::SynTimer };
        self.at_sender(first.entered + waited, part, opener, None);
        self.trail.name(first.entered, DelayCause::SynTimer, Place::sender(opener), Some(first), expired);
        None
    }
}

/// For each segment, a lower bound of the congestion window: the most in flight within the last retransmission timeout,
/// without a loss since. Linux shrinks no window sooner.
fn reach(sender: &Sender<'_>, hosts: Hosts) -> Vec<u32> {
    let timeout = sender.shortest_timeout();
    let initial = hosts.initial_window.unwrap_or(INITIAL_WINDOW) * sender.largest_segment;
    // Bytes in flight, each more than those after it.
    let mut most: VecDeque<(Instant, u64)> = VecDeque::new();
    let (mut recovered, mut initial, mut acks) = (0, initial, sender.acks.iter().peekable());
    let mut acknowledged = 0;
    let of = |segment: &Segment<'_>| {
        let at = segment.packet.entered;
        while let Some(ack) = acks.next_if(|ack| ack.arrived <= at) {
            acknowledged = ack.acknowledged;
        }
        while most.front().is_some_and(|&(since, _)| at.saturating_since(since) > timeout) {
            most.pop_front();
        }
        let recovering = acknowledged < recovered;
        let reach = if recovering { 0 } else { most.front().map_or(0, |it| it.1).max(initial) };
        if segment.start < segment.after {
            (recovered, initial) = (segment.after, 0);
            most.clear();
        } else if !recovering {
            let in_flight = segment.end.saturating_sub(acknowledged);
            while most.back().is_some_and(|&(_, bytes)| bytes <= in_flight) {
                most.pop_back();
            }
            most.push_back((at, in_flight));
        }
        u32::try_from(reach).unwrap_or(u32::MAX)
    };
    sender.sends.iter().map(of).collect()
}
