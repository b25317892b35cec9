//! A TCP connection: its two senders, and how they sent lost bytes again.

use crate::critical_path::{Interval, Place};
use crate::handshake::Handshake;
use crate::http::Http;
use crate::socket_counts::SocketCounts;
use crate::tcp_sender::Sender;
use crate::what_if::{Saved, Savings};
use crate::{CriticalPath, DelayCause, Hosts};
use crosswind_ledger::{HttpEnd, PacketRecord, TCP, TCP_ACK, TCP_SYN, Trigger};
use crosswind_path::Side;
use crosswind_units::Instant;
use std::cell::OnceCell;
use std::ops::Range;

pub struct Connection<'a> {
    /// In the order of entering.
    pub packets: Vec<&'a PacketRecord>,
    pub began: Instant,
    pub handshake: Option<Handshake<'a>>,
    pub hosts: Hosts,
    forward: Sender<'a>,
    reverse: Sender<'a>,
    pub http: [Option<Http<'a>>; 2],
    savings: [OnceCell<Option<Savings>>; 2],
}

impl<'a> Connection<'a> {
    /// From its packets in the order of entering.
    pub fn new(packets: Vec<&'a PacketRecord>, hosts: Hosts) -> Self {
        let began = packets.first().map_or(Instant::from_nanos(0), |packet| packet.entered);
        let of_syn = |side: Side| {
            packets
                .iter()
                .find(|packet| packet.side == side && packet.headers.flags & TCP_SYN != 0)
                .map(|it| it.headers)
        };
        let [forward, reverse] =
            Side::BOTH.map(|side| Sender::new(&packets, side, of_syn(side), of_syn(side.opposite()), hosts));
        Self {
            began,
            handshake: Handshake::of(&packets, hosts),
            packets,
            hosts,
            forward,
            reverse,
            http: [None, None],
            savings: Default::default(),
        }
    }

    /// The same with the counts of both ends' kernels, if known.
    #[must_use]
    pub fn with_counts(mut self, [forward, reverse]: [Option<SocketCounts>; 2]) -> Self {
        self.forward.limits.set_counts(forward);
        self.reverse.limits.set_counts(reverse);
        self
    }

    /// Adds the client's and the server's known HTTP writes.
    pub fn add_http(&mut self, ends: [Option<&'a HttpEnd>; 2]) {
        self.http = Side::BOTH.map(|side| {
            let (own, other) = (ends[side as usize]?, side.opposite());
            Some(Http::new(own, ends[other as usize].map(|end| (end, &self.sender(other).bytes))))
        });
    }

    /// What each change would save of the data sent from `from` to `to`, by a model; none where it is far from the packets.
    pub fn saved(&self, from: Instant, to: Instant) -> Option<Saved> {
        let mut all = Saved::default();
        for side in Side::BOTH.into_iter().filter(|&side| !self.sender(side).sends.is_empty()) {
            let senders = [side, side.opposite()].map(|side| self.sender(side));
            let round_trip = self.handshake.as_ref().and_then(|it| it.round_trip(side));
            let is_timer = |send| self.is_timer(senders[0], send);
            let savings =
                self.savings[side as usize].get_or_init(|| Savings::of(senders, round_trip, is_timer, self.hosts));
            all.iter_mut().zip(savings.as_ref()?.between(from, to)?).for_each(|(sum, saved)| *sum += saved);
        }
        Some(all)
    }

    /// When the receiver had a whole HTTP stream, or an HTTP/1.1 exchange, by `before`.
    pub fn arrival(&self, side: Side, stream: u64, before: Instant) -> Option<Instant> {
        let end = self.http_bytes(side, stream, before)?.last()?.end;
        self.sender(side).bytes.completion_of(end).map(|done| done.at)
    }

    /// An HTTP stream's bytes at the receiver by `before`.
    pub fn http_bytes(&self, side: Side, stream: u64, before: Instant) -> Option<Vec<Range<u64>>> {
        let (http, bytes) = (self.http[side as usize].as_ref()?, &self.sender(side).bytes);
        Some(http.bytes_of(stream, |end| bytes.completion_of(end).is_some_and(|done| done.at <= before)))
    }

    /// The sender in direction `side`.
    pub fn sender(&self, side: Side) -> &Sender<'a> {
        side.pick(&self.forward, &self.reverse)
    }

    /// Whether a segment was sent again by a timer.
    pub fn is_timer(&self, sender: &Sender<'a>, send: usize) -> bool {
        let first = sender.bytes.first_with(sender.sends[send].start).filter(|&first| first < send);
        first.is_some_and(|first| self.kind(sender, first, send) != DelayCause::FastRecovery)
    }

    /// Both hosts' waits for retransmissions of lost data, from `from` to `to`, in any order.
    pub fn recoveries(&self, from: Instant, to: Instant) -> Vec<Interval> {
        let mut all = Vec::new();
        for sender in [&self.forward, &self.reverse] {
            for (later, again) in sender.sends.iter().enumerate().filter(|(_, it)| it.start < it.after) {
                let earlier = sender.bytes.first_with(again.start).filter(|&it| it < later).map(|first| {
                    let repeated = sender.bytes.again(first).take_while(|&it| it < later);
                    repeated.last().unwrap_or(first)
                });
                let Some(earlier) = earlier.filter(|&it| sender.sends[it].arrived().is_none()) else { continue };
                let lost = sender.sends[earlier].packet;
                if lost.entered >= from && again.packet.entered <= to {
                    let mut until = again.packet.entered;
                    for (since, part) in self.steps(sender, earlier, later) {
                        all.push(Interval { from: since, ..Interval::of_recovery(lost, until, part) });
                        until = since;
                    }
                }
            }
        }
        all
    }

    /// Goes back from a transmission of `byte` to its first one, and returns it.
    pub fn recovery(&self, sender: &Sender<'a>, send: usize, byte: u64, path: &mut CriticalPath) -> usize {
        let Some(first) = sender.bytes.first_with(byte) else { return send };
        if first >= send {
            return send;
        }
        let later = sender
            .bytes
            .again(first)
            .filter(|&it| it < send && sender.sends[it].start <= byte && byte < sender.sends[it].end);
        let sent: Vec<usize> = std::iter::once(first).chain(later).chain([send]).collect();
        let waits: Vec<_> = sent.windows(2).map(|pair| (pair[0], self.steps(sender, pair[0], pair[1]))).collect();
        let is_timer = |part: DelayCause| part == DelayCause::RetransmissionTimer;
        let mut expired = waits.iter().flat_map(|it| &it.1).filter(|it| is_timer(it.1)).count() as u32;
        for (from, steps) in waits.into_iter().rev() {
            let lost = sender.sends[from].packet;
            for (since, part) in steps {
                let count = if is_timer(part) { expired } else { 0 };
                path.name(since, part, Place::sender(lost.side), Some(lost), count);
                expired -= u32::from(is_timer(part));
            }
        }
        first
    }

    /// The wait from `earlier` to its retransmission `later`, backwards: beginnings with causes. The acknowledgement of a
    /// tail loss probe may have told of the loss.
    fn steps(&self, sender: &Sender<'a>, earlier: usize, later: usize) -> Vec<(Instant, DelayCause)> {
        let (part, since) = (self.kind(sender, earlier, later), sender.sends[earlier].packet.entered);
        let told = sender.acks_before(later).last().filter(|_| part == DelayCause::FastRecovery);
        let probed = told.and_then(|told| self.probed(sender, [earlier, later], told.packet));
        let told = probed.map(|at| (at, part));
        let first = if probed.is_some() { DelayCause::TailLossProbe } else { part };
        told.into_iter().chain([(since, first)]).collect()
    }

    /// When the tail loss probe behind the acknowledgement `told` was sent, if one was between two sendings.
    fn probed(&self, sender: &Sender<'a>, [earlier, later]: [usize; 2], told: &PacketRecord) -> Option<Instant> {
        if !self.hosts.tail_loss_probes || !sender.sack {
            return None;
        }
        let [from, until] = [earlier, later].map(|it| sender.sends[it].packet.entered);
        if let Some(probe) = sender.loss_probe(from, until, told) {
            return Some(probe.entered);
        }
        // Data was sent again, and its kernel said nothing.
        let is_probe = |&send: &usize| {
            let sent = &sender.sends[send];
            let first = sender.bytes.first_with(sent.start).filter(|&it| it < send && sent.start < sent.after);
            sent.packet.sending.is_none()
                && sent.arrived().is_some_and(|at| at <= told.entered)
                && first.is_some_and(|first| self.kind(sender, first, send) == DelayCause::TailLossProbe)
        };
        (earlier + 1..later).rev().find(is_probe).map(|it| sender.sends[it].packet.entered)
    }

    /// Why the segment `later` retransmitted the bytes of `earlier`.
    fn kind(&self, sender: &Sender<'a>, earlier: usize, later: usize) -> DelayCause {
        match sender.sends[later].packet.sending.map(|it| it.trigger) {
            Some(Trigger::RetransmissionTimer) => return DelayCause::RetransmissionTimer,
            Some(Trigger::LossProbeTimer) => return DelayCause::TailLossProbe,
            Some(Trigger::Packet | Trigger::ReorderingTimer | Trigger::PacingTimer | Trigger::SmallQueue) => {
                return DelayCause::FastRecovery;
            }
            _ => {}
        }
        let at = sender.sends[later].packet.entered;
        let acks = sender.acks_before(later);
        if acks.last().is_some_and(|ack| at.saturating_since(ack.arrived) <= self.hosts.promptness) {
            return DelayCause::FastRecovery;
        }
        // RACK gives reordered packets a quarter of the shortest round trip, by a timer (RFC 8985, 6.2).
        let since = sender.sends[earlier].packet.entered;
        let told = acks.iter().rev().take_while(|ack| ack.arrived > since).find(|ack| ack.has_sack());
        if let (Some(told), Some(round_trip)) = (told, sender.shortest_round_trip)
            && at.saturating_since(told.arrived) < round_trip
        {
            return DelayCause::FastRecovery;
        }
        let acknowledged = acks.last().map_or(0, |ack| ack.acknowledged);
        let recovering = sender.sends[..later].iter().rev().find(|it| it.start < it.after);
        let recovering = recovering.is_some_and(|it| acknowledged < it.after);
        let is_last = sender.sends[later].end >= sender.sends[later].after;
        let probes = self.hosts.tail_loss_probes && is_last && !recovering;
        if probes && sender.sack {
            DelayCause::TailLossProbe
        } else if probes && !sender.begun {
            DelayCause::Unknown
        } else {
            DelayCause::RetransmissionTimer
        }
    }
}

/// The packets of each connection between two ports, in order of entering: a SYN with a new sequence number begins one.
pub fn by_opening(mut packets: Vec<&PacketRecord>) -> Vec<Vec<&PacketRecord>> {
    // A copy may have left before its original.
    packets.sort_by_key(|packet| (packet.entered, packet.side as u8, packet.index, packet.copy));
    let mut connections: Vec<Vec<&PacketRecord>> = Vec::new();
    let mut opened_with = None;
    for packet in packets {
        let headers = &packet.headers;
        let opens = headers.protocol == TCP && headers.flags & (TCP_SYN | TCP_ACK) == TCP_SYN;
        let begins = opens && opened_with != Some((packet.side, headers.sequence));
        if begins {
            opened_with = Some((packet.side, headers.sequence));
        }
        match connections.last_mut() {
            Some(last) if !begins => last.push(packet),
            _ => connections.push(vec![packet]),
        }
    }
    connections
}
