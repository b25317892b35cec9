//! QUIC: why bytes were sent when they were, from packets' frames (RFC 9000, 9002).
//!
//! Packets are found in the packet table by their last eight bytes. A datagram with unknown packets explains nothing:
//! the time before it is unknown.

use crate::bytes::{Awaited, ByteStream};
use crate::critical_path::{Interval, Place};
use crate::links::Links;
use crate::quic_sender::{Datagram, Declared, HANDSHAKE, Sender};
use crate::tcp_sender::arrived;
use crate::{CriticalPath, DelayCause, Hosts, MessageTransit};
use crosswind_ledger::{PacketRecord, Position, QuicFrame, QuicLog, QuicPacket, QuicSpace};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::ops::Range;

/// How late a timer of milliseconds fires at most: it is rounded up to one, and so is the wait for it.
const TIMER_LATENESS: Duration = Duration::from_millis(2);

/// A host's sent packets, indexed by their last bytes.
pub struct FrameIndex<'a> {
    log: &'a QuicLog,
    by_tail: Vec<(u64, u32)>,
}

impl<'a> FrameIndex<'a> {
    pub fn new(log: &'a QuicLog) -> Self {
        let mut by_tail: Vec<_> = log.packets().iter().zip(0..).map(|(packet, at)| (packet.tail, at)).collect();
        by_tail.sort_unstable();
        Self { log, by_tail }
    }

    /// A datagram's packets: the one at its end, and those before it that fill it. None if they do not.
    fn packets_of(&self, datagram: &PacketRecord) -> Option<Range<u32>> {
        let tail = datagram.headers.tail();
        let mut same = self.by_tail[self.by_tail.partition_point(|it| it.0 < tail)..].iter();
        let (_, last) = same.next().filter(|it| it.0 == tail)?;
        if same.next().is_some_and(|it| it.0 == tail) {
            return None;
        }
        let (mut first, mut bytes) = (*last, 0);
        loop {
            let packet = &self.log.packets()[first as usize];
            bytes += u32::from(packet.size);
            if !packet.is_whole || bytes > datagram.headers.payload_bytes {
                return None;
            }
            if bytes == datagram.headers.payload_bytes {
                return Some(first..last + 1);
            }
            first = first.checked_sub(1)?;
        }
    }
}

/// One client port's connections; each begins with a packet of the client's next one.
pub fn connections<'a>(
    mut packets: Vec<&'a PacketRecord>,
    known: &[FrameIndex<'a>; 2],
    hosts: Hosts,
) -> Vec<QuicConnection<'a>> {
    packets.sort_by_key(|packet| (packet.entered, packet.side as u8, packet.index));
    let all = by_connection(&packets, known, false);
    all.into_iter().map(|datagrams| QuicConnection::new(datagrams, known, hosts, false)).collect()
}

/// The connections between two programs' ports, each with its packets in the order of entering; none for ports without
/// known QUIC packets. Packets before the first known one belong to the first.
pub fn connections_of_programs<'a>(
    packets: &[&'a PacketRecord],
    known: &[FrameIndex<'a>; 2],
    hosts: Hosts,
) -> Vec<(Vec<&'a PacketRecord>, QuicConnection<'a>)> {
    let of = |datagrams: Vec<Datagram<'a>>| {
        let packets = datagrams.iter().map(|it| it.packet).collect();
        (packets, QuicConnection::new(datagrams, known, hosts, true))
    };
    by_connection(packets, known, true).into_iter().map(of).collect()
}

/// Sorts datagrams, in the order of entering, by connection: programs' begin with either host's packets.
fn by_connection<'a>(
    packets: &[&'a PacketRecord],
    known: &[FrameIndex<'a>; 2],
    is_of_programs: bool,
) -> Vec<Vec<Datagram<'a>>> {
    let mut all: Vec<Vec<Datagram<'a>>> = Vec::new();
    all.extend(is_of_programs.then(Vec::new));
    let mut number = None;
    for &packet in packets {
        let of_host = &known[packet.side as usize];
        let range = of_host.packets_of(packet).unwrap_or(0..0);
        let first = of_host.log.packets()[range.start as usize..range.end as usize].first();
        if let Some(first) = first.filter(|_| is_of_programs || packet.side == Side::Forward) {
            let before = number.replace(first.connection);
            if before != number && (before.is_some() || !is_of_programs) {
                all.push(Vec::new());
            }
        }
        if let Some(connection) = all.last_mut() {
            connection.push(Datagram { packet, arrived: arrived(packet), packets: range, new: 0 });
        }
    }
    if number.is_some() { all } else { Vec::new() }
}

pub struct QuicConnection<'a> {
    pub began: Instant,
    hosts: Hosts,
    forward: Sender<'a>,
    reverse: Sender<'a>,
}

impl<'a> QuicConnection<'a> {
    fn new(datagrams: Vec<Datagram<'a>>, known: &[FrameIndex<'a>; 2], hosts: Hosts, is_of_programs: bool) -> Self {
        let began = datagrams.first().map_or(Instant::from_nanos(0), |it| it.packet.entered);
        let (mut forward, mut reverse) = (Vec::new(), Vec::new());
        for datagram in datagrams {
            if datagram.packet.side == Side::Forward { &mut forward } else { &mut reverse }.push(datagram);
        }
        let mut forward = Sender::new(forward, known[0].log, is_of_programs);
        let mut reverse = Sender::new(reverse, known[1].log, is_of_programs);
        forward.hear(&reverse, hosts);
        reverse.hear(&forward, hosts);
        forward.follow_cuts();
        reverse.follow_cuts();
        Self { began, hosts, forward, reverse }
    }

    /// Both hosts' waits for retransmissions of lost handshake data, from `from` to `to`, in any order.
    pub fn recoveries(&self, from: Instant, to: Instant) -> Vec<Interval> {
        let mut all = Vec::new();
        for (sender, back) in [(&self.forward, &self.reverse), (&self.reverse, &self.forward)] {
            for (send, lost) in sender.sends.iter().enumerate() {
                if lost.arrived.is_some() || lost.packet.entered < from || lost.packet.entered >= to {
                    continue;
                }
                let again = (send + 1..sender.sends.len()).find(|&it| sender.repeats_handshake(send, it));
                let Some(again) = again.map(|it| sender.sends[it].packet).filter(|it| it.entered <= to) else {
                    continue;
                };
                // A later packet of it that was acknowledged told; else a timer did.
                let told = sender.is_acknowledged_beyond(send, again.entered, back);
                let part = if told { DelayCause::TimeThreshold } else { DelayCause::ProbeTimer };
                all.push(Interval::of_recovery(lost.packet, again.entered, part));
            }
        }
        all
    }

    /// The sender in direction `side`.
    pub const fn sender(&self, side: Side) -> &Sender<'a> {
        match side {
            Side::Forward => &self.forward,
            Side::Reverse => &self.reverse,
        }
    }

    /// Whether the programs' packets could be read in both directions; also true without any.
    pub fn is_read(&self) -> bool {
        Side::BOTH.iter().all(|&side| {
            let sender = self.sender(side);
            let reads = |send| sender.packets(send).iter().any(|it| it.space == QuicSpace::Data);
            (0..sender.sends.len()).any(reads) || (0..sender.sends.len()).all(|send| !sender.packets(send).is_empty())
        })
    }

    /// The walk back through programs' packets in direction `side`.
    pub fn walk_of_programs<'w>(&'w self, side: Side, links: &'w Links<'a>) -> Walk<'w, 'a> {
        let transit = MessageTransit {
            side,
            client_port: 0,
            written: self.began,
            received: self.began,
            bytes: 0,
            position: None,
            alone: false,
            timed: false,
        };
        Walk {
            hosts: self.hosts,
            sender: self.sender(side),
            back: self.back(side),
            transit,
            links,
            is_of_programs: true,
        }
    }

    /// Names a transit's time.
    pub fn walk(&self, transit: MessageTransit, links: &Links<'a>, path: &mut CriticalPath) {
        let sender = if transit.side == Side::Forward { &self.forward } else { &self.reverse };
        let walk =
            Walk { hosts: self.hosts, sender, back: self.back(transit.side), transit, links, is_of_programs: false };
        match transit.position {
            Some(Position::Stream { stream, start, end }) => walk.stream(stream, start, end, path),
            Some(Position::Datagram(number)) => walk.datagram(number, path),
            None | Some(Position::Bytes { .. }) => walk.unnumbered(path),
        }
    }

    /// Whether the sending in a direction is known.
    pub fn knows(&self, side: Side) -> bool {
        !self.back(side.opposite()).log.packets().is_empty()
    }

    /// When the receiver had a whole stream, by `before`.
    pub fn arrival(&self, side: Side, stream: u64, before: Instant) -> Option<Instant> {
        let stream = self.back(side.opposite()).streams.get(&stream)?;
        stream.completion_of(stream.sent()).map(|done| done.at).filter(|&at| at <= before)
    }

    fn back(&self, side: Side) -> &Sender<'a> {
        side.pick(&self.reverse, &self.forward)
    }
}

/// A stream byte's transmissions, from the first to `send`. Args: `has_byte`: whether a later one has it.
fn transmissions(stream: &ByteStream, byte: u64, send: usize, has_byte: impl Fn(usize) -> bool) -> Vec<usize> {
    let first = stream.first_with(byte).filter(|&first| first < send);
    let again = first.into_iter().flat_map(|first| stream.again(first));
    let later = again.filter(|&it| it < send && has_byte(it));
    first.into_iter().chain(later).chain([send]).collect()
}

/// The way back through one message.
pub struct Walk<'w, 'a> {
    /// Whether it goes through third-party programs' packets.
    is_of_programs: bool,
    hosts: Hosts,
    sender: &'w Sender<'a>,
    back: &'w Sender<'a>,
    transit: MessageTransit,
    links: &'w Links<'a>,
}

impl<'w> Walk<'w, '_> {
    /// A message on a stream: from `start` to `end`, or all of it.
    fn stream(&self, number: u64, start: Option<u64>, end: Option<u64>, path: &mut CriticalPath) {
        let Some(stream) = self.sender.streams.get(&number) else { return };
        if self.transit.timed {
            return self.awaited(number, stream, path);
        }
        let (start, end) = match (start, end) {
            (start, None) => (start.unwrap_or(0), stream.sent()),
            (start, Some(end)) => (start.unwrap_or_else(|| end.saturating_sub(self.transit.bytes)), end),
        };
        let Some(done) = stream.completion_of(end).filter(|done| done.at <= self.transit.received) else { return };
        if done.at < self.transit.written {
            return;
        }
        path.name(done.at, DelayCause::receiver(self.transit.side), Place::receiver(self.transit.side), None, 0);
        let (mut send, mut byte) = (done.send, done.missing);
        if byte < start {
            let Some((at, own, last)) = stream.last_of(&(start..end), |it| self.sender.sends[it].arrived) else {
                return;
            };
            let packet = self.sender.sends[send].packet;
            path.name(at, DelayCause::HeadOfLine, Place::receiver(self.transit.side), Some(packet), 0);
            (send, byte) = (own, last);
        }
        self.follow(send, Some((stream, byte)), path);
    }

    /// A message measured by data received in time: back from the byte its receiver then waited for.
    fn awaited(&self, number: u64, stream: &ByteStream, path: &mut CriticalPath) {
        let (sender, received, place) = (self.sender, self.transit.received, Place::sender(self.transit.side));
        match stream.awaited(received, |send| sender.sends[send].packet.entered < received) {
            Awaited::Came { byte, send } => self.follow(send, Some((stream, byte)), path),
            Awaited::Lost { byte, first, last } => {
                let packet = sender.sends[last].packet;
                path.name(packet.entered, self.threshold(last), place, Some(packet), 0);
                self.recovery(stream, last, byte, path);
                self.go_back(first, path);
            }
            Awaited::Unsent(Some(next)) => self.go_back(next, path),
            Awaited::Unsent(None) => {
                let Some(done) = stream.completion(received).filter(|done| done.at >= self.transit.written) else {
                    return;
                };
                let Hosts { quic_stream_window, quic_connection_window, .. } = self.hosts;
                let all = sender.sends.last().map_or(0, |it| it.new);
                let part = match () {
                    () if stream.sent() >= sender.limit(Some(number), received, quic_stream_window) => {
                        DelayCause::StreamWindow
                    }
                    () if all >= sender.limit(None, received, quic_connection_window) => DelayCause::ConnectionWindow,
                    // The congestion window and pacing look alike.
                    () if sender.is_in_flight(sender.sends.len(), received) => DelayCause::Unknown,
                    () => DelayCause::sender(self.transit.side),
                };
                path.name(done.at, part, place, None, 0);
                self.follow(done.send, Some((stream, done.missing)), path);
            }
        }
    }

    /// How a datagram's loss was going to be detected, by its arrived successors.
    fn threshold(&self, lost: usize) -> DelayCause {
        let sender = self.sender;
        let behind = sender.between(lost + 1, self.transit.received).filter(|&it| sender.sends[it].arrived.is_some());
        match sender.number(lost).zip(behind.filter_map(|it| sender.number(it)).max()) {
            Some((lost, last)) if last >= lost + u64::from(self.hosts.quic_packet_threshold) => {
                DelayCause::PacketThreshold
            }
            Some(_) => DelayCause::TimeThreshold,
            None => DelayCause::Unknown,
        }
    }

    fn datagram(&self, number: u64, path: &mut CriticalPath) {
        let sent = usize::try_from(number).ok().and_then(|number| self.sender.datagrams.get(number));
        let Some(send) = sent.map(|&send| send as usize) else { return };
        let sent = &self.sender.sends[send];
        let Some(at) = sent.arrived.filter(|&at| at <= self.transit.received) else { return };
        if sent.packet.entered < self.transit.written {
            return;
        }
        path.name(at, DelayCause::receiver(self.transit.side), Place::receiver(self.transit.side), None, 0);
        self.follow(send, None, path);
    }

    /// A message with an unknown stream: the last arrival, if unambiguous.
    fn unnumbered(&self, path: &mut CriticalPath) {
        let MessageTransit { side, written, received, bytes, alone, .. } = self.transit;
        let until = self.sender.arrivals.partition_point(|it| it.0 <= received);
        let since = self.sender.arrivals[..until].iter().rev().take_while(|it| it.0 >= written);
        let mut own = since.map(|&(at, send)| (at, send as usize)).filter(|&(_, send)| {
            let is_whole = |frame| matches!(frame, QuicFrame::Datagram { length } if u64::from(length) >= bytes);
            self.sender.sends[send].packet.entered >= written
                && (self.sender.frames(send).any(is_whole) || alone && self.sender.pieces(send).next().is_some())
        });
        let (Some((mut at, mut send)), mut others) = (own.next(), own) else { return };
        let is_prompt = |at: Instant| self.is_prompt(received, at);
        if !alone && (!is_prompt(at) || others.any(|(at, _)| is_prompt(at))) {
            return;
        }
        let stream = self.sender.pieces(send).next().and_then(|(number, _)| self.sender.streams.get(&number));
        let done = stream.and_then(|stream| Some((stream, stream.completion(received)?)));
        let mut byte = None;
        if let Some((stream, done)) = done.filter(|(_, done)| done.at >= written) {
            (at, send, byte) = (done.at, done.send, Some((stream, done.missing)));
        }
        path.name(at, DelayCause::receiver(side), Place::receiver(side), None, 0);
        self.follow(send, byte, path);
    }

    /// Goes back through the end of the handshake, if the receiver dropped a datagram as too early and its bytes were
    /// sent again with `again`. False if not so.
    fn handshake(&self, dropped: usize, again: usize, path: &mut CriticalPath) -> bool {
        let (sender, side) = (self.sender, self.transit.side);
        let Some(completed) = sender.handshake_end().filter(|_| sender.came_early(dropped)) else { return false };
        let (lost, again) = (sender.sends[dropped].packet, sender.sends[again].packet);
        // The receiver's answer to the end of the handshake told of the loss.
        let answers = self.back.arrivals.iter().take_while(|it| it.0 <= again.entered);
        let mut answers = answers.filter(|it| self.back.sends[it.1 as usize].packet.entered >= completed.at);
        let Some(&(at, answer)) = answers.next() else { return false };
        let declared = sender.declared_lost(dropped, self.hosts.quic_packet_threshold);
        let part = declared.map_or(DelayCause::TimeThreshold, |it| it.part);
        path.name(at, part, Place::sender(side), Some(lost), 0);
        let answer = self.links.follow(self.back.sends[answer as usize].packet, Some(part), path);
        path.name(completed.at, DelayCause::receiver(side), Place::receiver(side), Some(answer), 0);
        let begun_with = self.links.follow(sender.sends[completed.send].packet, None, path);
        let Some(came) = sender.send_of(begun_with) else { return true };
        let has_byte = |it: usize| sender.crypto(it).any(|bytes| bytes.contains(&completed.missing));
        let sends = transmissions(&sender.handshake, completed.missing, came, has_byte);
        for pair in sends.windows(2).rev() {
            let (lost, again) = (sender.sends[pair[0]].packet, sender.sends[pair[1]].packet);
            let (part, expired) = self.handshake_lost(QuicSpace::Handshake, pair[0], again.entered);
            path.name(lost.entered, part, Place::sender(side), Some(lost), expired);
        }
        true
    }

    /// How the loss of handshake packets, sent again at `again`, was detected, and how often a timer had expired.
    fn handshake_lost(&self, space: QuicSpace, lost: usize, again: Instant) -> (DelayCause, u32) {
        let Some(number) = self.sender.number_in(space, lost) else { return (DelayCause::ProbeTimer, 1) };
        let answers = self.back.arrivals.iter().take_while(|it| it.0 <= again);
        let packets = answers.flat_map(|it| self.back.packets(it.1 as usize)).filter(|it| it.space == space);
        let largest = packets.flat_map(|it| self.back.log.frames(it)).filter_map(|frame| match frame {
            QuicFrame::Ack { largest, .. } => Some(*largest),
            _ => None,
        });
        match largest.max() {
            Some(largest) if largest > number => (DelayCause::TimeThreshold, 0),
            _ => (DelayCause::ProbeTimer, 1),
        }
    }

    /// Goes back from the arrival of `send`, which brought a stream's byte.
    fn follow(&self, send: usize, byte: Option<(&ByteStream, u64)>, path: &mut CriticalPath) {
        let sender = self.sender;
        let begun_with = self.links.follow(sender.sends[send].packet, None, path);
        let Some(mut sent) = sender.send_of(begun_with) else { return };
        if let Some((stream, byte)) = byte.filter(|_| sent == send) {
            sent = self.recovery(stream, sent, byte, path);
        }
        self.go_back(sent, path);
    }

    /// Goes back from when a datagram was sent.
    fn go_back(&self, mut sent: usize, path: &mut CriticalPath) {
        let (sender, side) = (self.sender, self.transit.side);
        while let Some((why, answer)) = self.reason(sent, path) {
            let answer = &self.back.sends[answer];
            let Some(at) = answer.arrived else { return };
            path.name(at, DelayCause::sender(side), Place::sender(side), None, 0);
            let answer = self.links.follow(answer.packet, Some(why), path);
            let Some((came, cause)) = sender.arrival_before(sent, answer.entered) else { return };
            let is_limit = matches!(why, DelayCause::StreamWindow | DelayCause::ConnectionWindow);
            let prompt = answer.entered.saturating_since(came) <= self.hosts.promptness;
            let part = if prompt || is_limit { DelayCause::receiver(side) } else { DelayCause::DelayedAcknowledgement };
            path.name(came, part, Place::receiver(side), Some(answer), 0);
            if path.is_done() {
                return;
            }
            let begun_with = self.links.follow(sender.sends[cause].packet, Some(why), path);
            // Where a path takes no time, a cause might be its own.
            let Some(next) = sender.send_of(begun_with).filter(|&next| next < sent) else { return };
            sent = next;
        }
    }

    /// As [`Self::recovery`], for one stream; from `HANDSHAKE` on, `number` is a packet number space's CRYPTO data.
    pub fn recovery_of(
        &self,
        number: u64,
        stream: &ByteStream,
        send: usize,
        byte: u64,
        path: &mut CriticalPath,
    ) -> usize {
        let space = match number.checked_sub(HANDSHAKE) {
            Some(0) => QuicSpace::Initial,
            Some(1) => QuicSpace::Handshake,
            _ => return self.recovery(stream, send, byte, path),
        };
        let has_byte = |it: usize| self.sender.pieces(it).any(|(of, bytes)| of == number && bytes.contains(&byte));
        let sends = transmissions(stream, byte, send, has_byte);
        for pair in sends.windows(2).rev() {
            let (lost, again) = (self.sender.sends[pair[0]].packet, self.sender.sends[pair[1]].packet);
            let (part, expired) = self.handshake_lost(space, pair[0], again.entered);
            path.name(lost.entered, part, Place::sender(self.transit.side), Some(lost), expired);
        }
        sends[0]
    }

    /// Goes back from a transmission of `byte` to its first one, and returns that.
    fn recovery(&self, stream: &ByteStream, send: usize, byte: u64, path: &mut CriticalPath) -> usize {
        let has_byte = |it: usize| self.sender.pieces(it).any(|(_, bytes)| bytes.contains(&byte));
        let sends = transmissions(stream, byte, send, has_byte);
        for pair in sends.windows(2).rev() {
            if !self.handshake(pair[0], pair[1], path) {
                self.lost(pair[0], pair[1], path);
            }
        }
        sends[0]
    }

    /// Names the time from a lost transmission to its retransmission (RFC 9002, 6).
    fn lost(&self, earlier: usize, later: usize, path: &mut CriticalPath) {
        let sender = self.sender;
        let (lost, again) = (&sender.sends[earlier], &sender.sends[later]);
        let (from, to, place) = (lost.packet.entered, again.packet.entered, Place::sender(self.transit.side));
        let Some(number) = sender.number(earlier) else { return };
        let overtaken = sender.acks_between(from, to).iter().find(|ack| ack.largest > number);
        // Probes until something overtook it.
        let until = overtaken.map_or(to, |ack| ack.at);
        let (mut expired, mut probed) = (0, None);
        for probe in sender.between(earlier + 1, until.min(to)) {
            let at = sender.sends[probe].packet.entered;
            if sender.is_probe(probe) && probed.is_none_or(|before| !self.is_prompt(at, before)) {
                (expired, probed) = (expired + 1, Some(at));
            }
        }
        let packet = Some(lost.packet);
        if overtaken.is_none() {
            path.name(from, DelayCause::ProbeTimer, place, packet, expired.max(1));
            return;
        }
        let declared = sender.declared_lost(earlier, self.hosts.quic_packet_threshold);
        let mut part = declared.as_ref().map_or(DelayCause::TimeThreshold, |it| it.part);
        if let Some(known) = declared.and_then(|declared| self.known_lost(&declared, to)) {
            self.held(later, known, path);
            path.name(known, part, place, packet, 0);
        }
        if let Some(probed) = probed {
            path.name(probed, part, place, packet, 0);
            part = DelayCause::ProbeTimer;
        }
        path.name(from, part, place, packet, expired);
    }

    /// When a loss was known, if declared before its retransmission at `again`; none if that was at once.
    fn known_lost(&self, declared: &Declared, again: Instant) -> Option<Instant> {
        if !declared.by_timer {
            return Some(declared.at).filter(|&at| !self.is_prompt(again, at));
        }
        if again.saturating_since(declared.at) <= TIMER_LATENESS {
            return None;
        }
        // If it sent something else when its timer fired, that gives the time.
        let sends = &self.sender.sends;
        let next = sends.get(sends.partition_point(|it| it.packet.entered < declared.at)).map(|it| it.packet.entered);
        Some(next.filter(|at| at.saturating_since(declared.at) <= TIMER_LATENESS).unwrap_or(declared.at))
    }

    /// Names the time a retransmission was held back after its loss was known.
    fn held(&self, send: usize, since: Instant, path: &mut CriticalPath) {
        let (sent, side) = (&self.sender.sends[send], self.transit.side);
        let place = Place::sender(side);
        let Some(&answer) = self.answers(send).first() else {
            // Programs may wait for longer than Crosswind's own ends do before a packet is lost.
            let part = if self.is_of_programs { DelayCause::Unknown } else { DelayCause::Pacing };
            path.name(since, part, place, Some(sent.packet), 0);
            return;
        };
        let (answer, window) = (&self.back.sends[answer], self.sender.congestion_window(send));
        if let Some(at) = answer.arrived.filter(|_| answer.packet.entered > since) {
            path.name(at, DelayCause::sender(side), place, None, 0);
            let answer = self.links.follow(answer.packet, Some(window), path);
            let came = self.sender.arrival_before(send, answer.entered).map(|it| it.0);
            if let Some(came) = came.filter(|&came| !self.is_prompt(answer.entered, came) && answer.entered > since) {
                let from = came.max(since);
                path.name(from, DelayCause::DelayedAcknowledgement, Place::receiver(side), Some(answer), 0);
            }
        }
        path.name(since, window, place, Some(sent.packet), 0);
    }

    /// Why a datagram was sent when it was: the wait's cause, and the arrival that ended it. None when the critical
    /// path is complete, or nothing more is known.
    fn reason(&self, mut send: usize, path: &mut CriticalPath) -> Option<(DelayCause, usize)> {
        let (sender, side) = (self.sender, self.transit.side);
        loop {
            if path.is_done() {
                return None;
            }
            let sent = &sender.sends[send];
            let at = sent.packet.entered;
            // Nothing held it back but the host.
            if self.is_prompt(at, path.beginning()) {
                path.name(path.beginning(), DelayCause::sender(side), Place::sender(side), Some(sent.packet), 0);
                return None;
            }
            let answers = self.answers(send);
            if let Some(told) = answers.iter().find_map(|&it| Some((self.limit(send, it)?, it))) {
                return Some(told);
            }
            if answers.iter().any(|&it| self.back.packets(it).is_empty()) {
                return None;
            }
            // A timer sent it again.
            if let Some((_, stream, byte)) = self.sent_again(send) {
                let first = self.recovery(stream, send, byte, path);
                if first == send {
                    return None;
                }
                send = first;
                continue;
            }
            let previous = send.checked_sub(1).filter(|&it| sender.sends[it].packet.entered >= path.beginning());
            let before = previous.map_or(path.beginning(), |it| sender.sends[it].packet.entered);
            let is_busy = sender.is_in_flight(send, at);
            let part =
                if self.is_prompt(at, before) || !is_busy { DelayCause::sender(side) } else { DelayCause::Pacing };
            path.name(before, part, Place::sender(side), Some(sent.packet), 0);
            send = previous?;
        }
    }

    /// Arrivals right before a datagram was sent.
    pub fn answers(&self, send: usize) -> Vec<usize> {
        let at = self.sender.sends[send].packet.entered;
        let all = &self.back.arrivals;
        let until = all.partition_point(|it| it.0 <= at);
        all[..until].iter().rev().take_while(|it| self.is_prompt(at, it.0)).map(|it| it.1 as usize).collect()
    }

    /// The limit on a datagram until `answer` came; none if `answer` does not tell.
    fn limit(&self, send: usize, answer: usize) -> Option<DelayCause> {
        let sender = self.sender;
        if let Some(told) = self.flow_control(send, answer) {
            return Some(told);
        }
        // All packet number spaces share one window. Without path delay the datagram's own acknowledgement has come.
        let (log, number) = (self.back.log, sender.number(send));
        let is_own = |packet: &QuicPacket, largest| {
            packet.space == QuicSpace::Data && number.is_some_and(|number| largest >= number)
        };
        let mut packets = self.back.packets(answer).iter();
        let opens = |packet: &QuicPacket| {
            let mut frames = log.frames(packet).iter();
            frames.any(|frame| matches!(frame, QuicFrame::Ack { largest, .. } if !is_own(packet, *largest)))
        };
        packets.any(opens).then(|| sender.congestion_window(send))
    }

    /// The flow control limit on a datagram until `answer` came; none if `answer` does not tell.
    pub fn flow_control(&self, send: usize, answer: usize) -> Option<DelayCause> {
        let sender = self.sender;
        let at = self.back.sends[answer].arrived?;
        let reached = |number: u64, bytes: &Range<u64>| {
            bytes.end > sender.limit(Some(number), at, sender.first_limit(number, self.hosts.quic_stream_window))
        };
        let of_all = sender.first_limit_of_all(self.hosts.quic_connection_window);
        for frame in self.back.frames(answer) {
            match frame {
                QuicFrame::MaxStreamData { stream, .. }
                    if sender.pieces(send).any(|(it, bytes)| it == stream && reached(it, &bytes)) =>
                {
                    return Some(DelayCause::StreamWindow);
                }
                QuicFrame::MaxData(_) if sender.sends[send].new > sender.limit(None, at, of_all) => {
                    return Some(DelayCause::ConnectionWindow);
                }
                _ => {}
            }
        }
        None
    }

    /// A byte retransmitted in a datagram: its stream's number, its stream, its position.
    pub fn sent_again(&self, send: usize) -> Option<(u64, &'w ByteStream, u64)> {
        self.sender.pieces(send).find_map(|(number, bytes)| {
            let stream = self.sender.streams.get(&number)?;
            stream.first_with(bytes.start).filter(|&first| first < send).map(|_| (number, stream, bytes.start))
        })
    }

    fn is_prompt(&self, later: Instant, earlier: Instant) -> bool {
        later.saturating_since(earlier) <= self.hosts.promptness
    }
}
