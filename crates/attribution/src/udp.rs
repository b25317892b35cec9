//! Datagrams between two programs, from the last one back to the first: waits and losses.

use crate::critical_path::{CriticalPath, Interval, Place};
use crate::links::Links;
use crate::walk::{Walked, span};
use crate::{DelayCause, Hosts, MessageTransit};
use crosswind_ledger::{PacketRecord, Verdict};
use crosswind_path::Side;
use crosswind_units::Instant;

/// Datagrams between two ports.
pub struct Datagrams<'a> {
    pub packets: Vec<&'a PacketRecord>,
    ways: [DirectionState<'a>; 2],
    hosts: Hosts,
}

impl<'a> Datagrams<'a> {
    /// For a walk they are in the order of entering.
    pub fn new(packets: Vec<&'a PacketRecord>, hosts: Hosts) -> Self {
        let ways = Side::BOTH.map(|side| DirectionState::new(&packets, side));
        Self { packets, ways, hosts }
    }

    /// Attributes the whole flow.
    pub fn walk(&self, links: &Links<'a>) -> Walked {
        let (from, to) = span(&self.packets);
        let last = self.packets.iter().copied().max_by_key(|it| (it.left.unwrap_or(it.entered), it.entered));
        let opener = self.packets.first().map_or(Side::Forward, |it| it.side);
        self.go(CriticalPath::new(from, to, opener).merging(), last, links)
    }

    /// Names a transit's time, known only by size and time: of the last-arriving datagram, and of its trigger if it was
    /// sent at once.
    pub fn transit(&self, transit: MessageTransit, links: &Links<'a>, path: &mut CriticalPath) {
        let MessageTransit { side, written, received, .. } = transit;
        let last = self.ways[side as usize].last_arrival(received);
        let Some((at, packet)) = last.filter(|(at, _)| *at >= written) else { return };
        path.name(at, DelayCause::receiver(side), Place::receiver(side), None, 0);
        let sent = links.follow(packet, None, path);
        if sent.entered.saturating_since(written) <= self.hosts.promptness {
            path.name(written, DelayCause::sender(side), Place::sender(side), Some(sent), 0);
        }
    }

    /// When the client's latest datagram at `at` came.
    pub fn last_answer(&self, at: Instant) -> Option<Instant> {
        self.ways[Side::Reverse as usize].last_arrival(at).map(|it| it.0)
    }

    /// Attributes `[from, to]` backwards, for a client with its answer, the last arrival by `answered`, at `to`.
    pub fn exchange(&self, from: Instant, to: Instant, answered: Instant, links: &Links<'a>) -> Vec<Interval> {
        let mut path = CriticalPath::new(from, to, Side::Reverse);
        let last = self.ways[Side::Reverse as usize].last_arrival(answered);
        if let Some((at, _)) = last {
            path.name(at, DelayCause::ClientHost, Place::Client, None, 0);
        }
        self.go(path, last.map(|it| it.1), links).pieces
    }

    fn go(&self, mut path: CriticalPath, last: Option<&'a PacketRecord>, links: &Links<'a>) -> Walked {
        let (mut turns, mut step) = (0, last);
        // Without path delay, datagrams might be each other's cause.
        for _ in 0..2 * self.packets.len() {
            let Some(packet) = step.filter(|_| !path.is_done()) else { break };
            let side = packet.side;
            path.turn(side);
            let sent = if packet.left.is_some() { links.follow(packet, None, &mut path) } else { packet };
            let at = sent.entered;
            let [own, other] = [&self.ways[side as usize], &self.ways[side.opposite() as usize]];
            // Without path delay, a datagram sent at this moment is no cause.
            let latest = other.last_arrival_of_earlier(at);
            let told = links.wakers.arrival(sent).and_then(|at| other.last_arrival(at));
            let arrived = told.or(latest);
            let before = own.before(sent);
            let here = Place::sender(side);
            step = match (before, arrived) {
                (Some(before), arrived) if arrived.is_none_or(|(at, _)| before.entered >= at) => {
                    let waited = at.saturating_since(before.entered) > self.hosts.promptness;
                    let lost = waited && (is_lost(before) || other.has_lost(before.entered, at));
                    if lost {
                        path.name(before.entered, DelayCause::DatagramLoss, here, Some(before), 0);
                    } else {
                        links.wakers.name(before.entered, sent, &mut path);
                    }
                    Some(before)
                }
                (_, Some((came, cause))) => {
                    links.wakers.name(came, sent, &mut path);
                    turns += 1;
                    Some(cause)
                }
                _ => None,
            };
        }
        Walked { pieces: path.finish(), turns, windows: Vec::new() }
    }
}

pub fn is_lost(packet: &PacketRecord) -> bool {
    matches!(packet.verdict, Verdict::Dropped(_)) || packet.flipped_bit.is_some()
}

/// One direction's datagrams.
struct DirectionState<'a> {
    /// In the order of entering.
    sent: Vec<&'a PacketRecord>,
    /// In order of arrival.
    arrived: Vec<(Instant, &'a PacketRecord)>,
}

impl<'a> DirectionState<'a> {
    fn new(packets: &[&'a PacketRecord], side: Side) -> Self {
        let sent: Vec<_> = packets.iter().copied().filter(|it| it.side == side && it.copy == 0).collect();
        let came = packets.iter().copied().filter(|it| it.side == side && it.flipped_bit.is_none());
        let mut arrived: Vec<_> = came.filter_map(|it| Some((it.left?, it))).collect();
        arrived.sort_by_key(|&(at, packet)| (at, packet.index));
        Self { sent, arrived }
    }

    fn arrived_by(&self, until: Instant) -> &[(Instant, &'a PacketRecord)] {
        &self.arrived[..self.arrived.partition_point(|&(at, _)| at <= until)]
    }

    fn last_arrival(&self, until: Instant) -> Option<(Instant, &'a PacketRecord)> {
        self.arrived_by(until).last().copied()
    }

    fn last_arrival_of_earlier(&self, until: Instant) -> Option<(Instant, &'a PacketRecord)> {
        self.arrived_by(until).iter().rev().find(|(_, packet)| packet.entered < until).copied()
    }

    fn before(&self, packet: &PacketRecord) -> Option<&'a PacketRecord> {
        self.sent[..self.sent.partition_point(|it| it.index < packet.index)].last().copied()
    }

    /// Whether something sent in this time was lost.
    fn has_lost(&self, from: Instant, to: Instant) -> bool {
        let start = self.sent.partition_point(|it| it.entered < from);
        let end = self.sent.partition_point(|it| it.entered < to);
        self.sent.get(start..end).is_some_and(|all| all.iter().any(|it| is_lost(it)))
    }
}
