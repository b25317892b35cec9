//! Datagrams: of QUIC the wire shows sizes and times alone, of plain UDP nothing more is to be known.

use crate::links::Links;
use crate::trail::Place;
use crate::{Hosts, Leg, Part, Trail};
use crosswind_ledger::{PacketRecord, Verdict};
use crosswind_path::Side;
use crosswind_units::Instant;

/// The datagrams of one client's port.
pub struct Datagrams<'a> {
    hosts: Hosts,
    forward: Way<'a>,
    reverse: Way<'a>,
}

#[derive(Default)]
struct Way<'a> {
    /// In the order of entering.
    sent: Vec<&'a PacketRecord>,
    /// In the order of arriving.
    arrived: Vec<(Instant, &'a PacketRecord)>,
}

impl<'a> Datagrams<'a> {
    pub fn new(mut packets: Vec<&'a PacketRecord>, hosts: Hosts) -> Self {
        packets.sort_by_key(|packet| (packet.entered, packet.side as u8, packet.index, packet.copy));
        let [forward, reverse] = Side::BOTH.map(|side| {
            let sent: Vec<_> = packets.iter().copied().filter(|it| it.side == side && it.copy == 0).collect();
            let came = packets.iter().copied().filter(|it| it.side == side && it.flipped_bit.is_none());
            let mut arrived: Vec<_> = came.filter_map(|it| Some((it.left?, it))).collect();
            arrived.sort_by_key(|&(at, packet)| (at, packet.index));
            Way { sent, arrived }
        });
        Self { hosts, forward, reverse }
    }

    /// Names the time of a leg.
    pub fn walk(&self, leg: Leg, links: &Links<'a>, trail: &mut Trail) {
        let (way, back) = match leg.side {
            Side::Forward => (&self.forward, &self.reverse),
            Side::Reverse => (&self.reverse, &self.forward),
        };
        let Some((at, packet)) = way.last_arrival(leg.received).filter(|(at, _)| *at >= leg.written) else { return };
        trail.name(at, Part::receiver(leg.side), Place::receiver(leg.side), None, 0);
        let mut sent = links.follow(packet, None, trail);
        // Acknowledgements and probes are sent too, so that what was lost need not be the message's; where nothing was, nothing
        // was sent again.
        let at_once = |sent: &PacketRecord| sent.entered.saturating_since(leg.written) <= self.hosts.promptness;
        if let Some(lost) = way.first_lost(leg.written, sent.entered)
            && !at_once(sent)
        {
            self.recover(way, back, leg, lost, sent, trail);
            return;
        }
        loop {
            if trail.is_done() || at_once(sent) {
                trail.name(leg.written, Part::sender(leg.side), Place::sender(leg.side), Some(sent), 0);
                return;
            }
            let before = back.last_arrival(sent.entered);
            let answers = before.filter(|(at, _)| sent.entered.saturating_since(*at) <= self.hosts.promptness);
            if let Some((at, ack)) = answers {
                trail.name(at, Part::sender(leg.side), Place::sender(leg.side), None, 0);
                let ack = links.follow(ack, Some(Part::Window), trail);
                let Some((came, cause)) = way.last_arrival(ack.entered) else { return };
                let prompt = ack.entered.saturating_since(came) <= self.hosts.promptness;
                let part = if prompt { Part::receiver(leg.side) } else { Part::DelayedAcknowledgement };
                trail.name(came, part, Place::receiver(leg.side), Some(ack), 0);
                let cause = links.follow(cause, Some(Part::Window), trail);
                // Where a path takes no time, a cause might be its own.
                if cause.index >= sent.index {
                    return;
                }
                sent = cause;
            } else {
                let until = way.sent.partition_point(|it| it.entered < sent.entered);
                let Some(previous) = way.sent[..until].last().filter(|it| it.entered >= leg.written) else { return };
                let prompt = sent.entered.saturating_since(previous.entered) <= self.hosts.promptness;
                // Beside other messages, what was sent before may be another's.
                let held = if leg.alone { Part::Pacing } else { Part::Unknown };
                let part = if prompt { Part::sender(leg.side) } else { held };
                trail.name(previous.entered, part, Place::sender(leg.side), Some(sent), 0);
                sent = previous;
            }
        }
    }

    /// A message whose first datagram was lost: probes, and then what an acknowledgement said, until `sent` arrived. Where that
    /// datagram is not the message's first, losses and windows cannot be told apart.
    fn recover(
        &self,
        way: &Way<'a>,
        back: &Way<'a>,
        leg: Leg,
        lost: &'a PacketRecord,
        sent: &'a PacketRecord,
        trail: &mut Trail,
    ) {
        let prompt = |later: Instant, earlier: Instant| later.saturating_since(earlier) <= self.hosts.promptness;
        if !prompt(lost.entered, leg.written) {
            return;
        }
        if !leg.alone {
            trail.name(lost.entered, Part::QuicRecovery, Place::sender(leg.side), Some(lost), 0);
            trail.name(leg.written, Part::sender(leg.side), Place::sender(leg.side), Some(lost), 0);
            return;
        }
        // Nothing else is in flight: what is sent without being asked for is sent by the timer.
        let from = way.sent.partition_point(|it| it.entered <= lost.entered);
        let to = way.sent.partition_point(|it| it.entered <= sent.entered);
        let mut timers: Vec<Instant> = Vec::new();
        for at in way.sent[from..to].iter().map(|it| it.entered) {
            let told = back.last_arrival(at).is_some_and(|it| prompt(at, it.0));
            let same = prompt(at, lost.entered) || timers.last().is_some_and(|&last| prompt(at, last));
            if !told && !same {
                timers.push(at);
            }
        }
        if let Some(&last) = timers.last() {
            trail.name(last, Part::LossThreshold, Place::sender(leg.side), Some(lost), 0);
            trail.name(lost.entered, Part::ProbeTimer, Place::sender(leg.side), Some(lost), timers.len() as u32);
        } else {
            trail.name(lost.entered, Part::LossThreshold, Place::sender(leg.side), Some(lost), 0);
        }
        trail.name(leg.written, Part::sender(leg.side), Place::sender(leg.side), Some(lost), 0);
    }
}

impl<'a> Way<'a> {
    fn last_arrival(&self, until: Instant) -> Option<(Instant, &'a PacketRecord)> {
        self.arrived[..self.arrived.partition_point(|&(at, _)| at <= until)].last().copied()
    }

    /// The first datagram that was sent in a time and did not arrive.
    fn first_lost(&self, from: Instant, to: Instant) -> Option<&'a PacketRecord> {
        let start = self.sent.partition_point(|it| it.entered < from);
        let end = self.sent.partition_point(|it| it.entered < to);
        let did_not_arrive = |it: &&&PacketRecord| it.verdict != Verdict::Delivered || it.flipped_bit.is_some();
        self.sent.get(start..end)?.iter().find(did_not_arrive).copied()
    }
}
