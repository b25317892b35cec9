//! A TCP connection's setup: SYNs and answers with times, and waits for timers.

use crate::critical_path::{CriticalPath, Place};
use crate::links::Links;
use crate::tcp_sender::arrived;
use crate::{DelayCause, Hosts};
use crosswind_ledger::{PacketRecord, TCP_ACK, TCP_SYN};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};

/// A connection's handshake.
pub struct Handshake<'a> {
    /// The opening host's sending direction.
    pub opener: Side,
    hosts: Hosts,
    syns: Sent<'a>,
    /// The other host's answers.
    answers: Sent<'a>,
    /// The opener's packets after an answer.
    confirmations: Sent<'a>,
}

/// One kind of packets from a host.
#[derive(Default)]
struct Sent<'a> {
    /// In the order of entering, each once.
    packets: Vec<&'a PacketRecord>,
    /// Arrivals in order, copies included.
    arrivals: Vec<(Instant, &'a PacketRecord)>,
}

impl<'a> Sent<'a> {
    fn new(packets: impl Iterator<Item = &'a PacketRecord>) -> Self {
        let mut sent = Self::default();
        for packet in packets {
            if packet.copy == 0 {
                sent.packets.push(packet);
            }
            sent.arrivals.extend(arrived(packet).map(|at| (at, packet)));
        }
        sent.arrivals.sort_by_key(|it| it.0);
        sent
    }

    /// The last arrival by `at`, with its time.
    fn last_arrival(&self, at: Instant) -> Option<(Instant, &'a PacketRecord)> {
        self.arrivals[..self.arrivals.partition_point(|it| it.0 <= at)].last().copied()
    }

    /// Packets into the path by `at`.
    fn until(&self, at: Instant) -> &[&'a PacketRecord] {
        &self.packets[..self.packets.partition_point(|it| it.entered <= at)]
    }
}

impl<'a> Handshake<'a> {
    /// From a connection's packets in the order of entering; none without a SYN.
    pub fn of(packets: &[&'a PacketRecord], hosts: Hosts) -> Option<Self> {
        let flags = |it: &PacketRecord| it.headers.flags & (TCP_SYN | TCP_ACK);
        let opener = packets.iter().find(|it| flags(it) == TCP_SYN)?.side;
        let sent = |side: Side, which: u8| {
            Sent::new(packets.iter().copied().filter(|it| it.side == side && flags(it) == which))
        };
        Some(Self {
            opener,
            hosts,
            syns: sent(opener, TCP_SYN),
            answers: sent(opener.opposite(), TCP_SYN | TCP_ACK),
            confirmations: sent(opener, TCP_ACK),
        })
    }

    /// The first SYN.
    pub fn first(&self) -> Option<&'a PacketRecord> {
        self.syns.packets.first().copied()
    }

    /// The first-arriving answer, with its time.
    pub fn answer(&self) -> Option<(Instant, &'a PacketRecord)> {
        self.answers.arrivals.first().copied()
    }

    /// The packet that told the answering host of its answer's arrival, with its time.
    pub fn confirmation(&self) -> Option<(Instant, &'a PacketRecord)> {
        let (known, _) = self.answer()?;
        self.confirmations.arrivals.iter().copied().find(|it| it.1.entered >= known)
    }

    /// The round trip measured by the sending host of direction `side`, if it retransmitted nothing.
    pub fn round_trip(&self, side: Side) -> Option<Duration> {
        let (known, answer) = self.answer()?;
        let (from, to, sent) = if side == self.opener {
            (self.first()?.entered, known, &self.syns)
        } else {
            (answer.entered, self.confirmation()?.0, &self.answers)
        };
        (sent.packets.len() == 1).then(|| to.saturating_since(from))
    }

    /// For how long timers were waited for until it was sent, and how often one expired; where there is none, until the last SYN was sent
    /// by `until`.
    pub fn waited(&self, until: Instant) -> (Duration, u32) {
        let Some((_, answer)) = self.answer() else {
            return self.waited_for(self.syns.until(until).last().copied());
        };
        let (mut at, mut waited, mut expired) = (answer.entered, Duration::ZERO, 0);
        loop {
            let asked = self.syns.last_arrival(at);
            let is_asked = asked.is_some_and(|asked| at.saturating_since(asked.0) <= self.hosts.promptness);
            let before = self.answers.packets.partition_point(|it| it.entered < at).checked_sub(1);
            // Its sender's timer sent it again, for no SYN had come.
            if let Some(before) = before.filter(|_| !is_asked) {
                let before = self.answers.packets[before].entered;
                (at, waited, expired) = (before, waited + (at - before), expired + 1);
                continue;
            }
            let (of_syns, times) = self.waited_for(asked.map(|it| it.1));
            return (waited + of_syns, expired + times);
        }
    }

    /// The same until one of the SYNs was sent.
    fn waited_for(&self, syn: Option<&PacketRecord>) -> (Duration, u32) {
        let (Some(first), Some(syn)) = (self.first(), syn) else { return (Duration::ZERO, 0) };
        let before = self.syns.packets.partition_point(|it| it.entered < syn.entered);
        (syn.entered.saturating_since(first.entered), before as u32)
    }

    /// Names the time from the opener's receipt of the answer to the other host's knowledge of it; the critical path is
    /// named back to there. False if unknown.
    pub fn confirmed(&self, links: &Links<'a>, path: &mut CriticalPath) -> bool {
        let (opener, other) = (self.opener, self.opener.opposite());
        let Some((known, answer)) = self.answer() else { return false };
        let Some((at, confirmation)) = self.confirmation().filter(|it| it.0 <= path.at()) else { return false };
        path.name(at, DelayCause::sender(other), Place::sender(other), None, 0);
        links.follow(confirmation, None, path);
        // The first one was lost: the answer's timer sent that again.
        let sent = confirmation.entered;
        let is_new = |it: &(Instant, _)| it.0 > known && sent.saturating_since(it.0) <= self.hosts.promptness;
        if let Some((came, again)) = self.answers.last_arrival(sent).filter(is_new) {
            path.name(came, DelayCause::sender(opener), Place::sender(opener), None, 0);
            links.follow(again, Some(DelayCause::TcpHandshake), path);
            let expired = self.answers.until(again.entered).len() - self.answers.until(answer.entered).len();
            let lost = self.confirmations.packets.first().copied();
            path.name(known, DelayCause::SynTimer, Place::sender(other), lost, expired as u32);
        }
        path.name(known, DelayCause::sender(opener), Place::sender(opener), None, 0);
        true
    }
}
