//! A QUIC connection's direction: what its datagrams waited for, and how lost bytes were sent again (RFC 9000, 9002).

use crate::bytes::ByteStream;
use crate::critical_path::Place;
use crate::links::Links;
use crate::quic_sender::{Declared, HANDSHAKE, Sender};
use crate::{CriticalPath, DelayCause, Hosts};
use crosswind_ledger::{QuicFrame, QuicPacket, QuicSpace};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::ops::Range;

/// How late a timer of milliseconds fires at most: it is rounded up to one, and so is the wait for it.
const TIMER_LATENESS: Duration = Duration::from_millis(2);

/// A direction, with the other one.
#[derive(Clone, Copy)]
pub struct Direction<'w, 'a> {
    pub side: Side,
    pub sender: &'w Sender<'a>,
    pub back: &'w Sender<'a>,
    pub hosts: Hosts,
    pub links: &'w Links<'a>,
    /// Whether its ends are third-party programs.
    pub is_of_programs: bool,
}

impl<'w> Direction<'w, '_> {
    /// Goes back through the end of the handshake, if the receiver dropped a datagram as too early and its bytes were
    /// sent again with `again`. False if not so.
    fn handshake(&self, dropped: usize, again: usize, path: &mut CriticalPath) -> bool {
        let (sender, side) = (self.sender, self.side);
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
            path.name(lost.entered, part, Place::sender(self.side), Some(lost), expired);
        }
        sends[0]
    }

    /// Goes back from a transmission of `byte` to its first one, and returns that.
    pub fn recovery(&self, stream: &ByteStream, send: usize, byte: u64, path: &mut CriticalPath) -> usize {
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
        let (from, to, place) = (lost.packet.entered, again.packet.entered, Place::sender(self.side));
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
        let (sent, side) = (&self.sender.sends[send], self.side);
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

    /// Arrivals right before a datagram was sent.
    pub fn answers(&self, send: usize) -> Vec<usize> {
        let at = self.sender.sends[send].packet.entered;
        let all = &self.back.arrivals;
        let until = all.partition_point(|it| it.0 <= at);
        all[..until].iter().rev().take_while(|it| self.is_prompt(at, it.0)).map(|it| it.1 as usize).collect()
    }

    /// The limit on a datagram until `answer` came; none if `answer` does not tell.
    pub fn limit(&self, send: usize, answer: usize) -> Option<DelayCause> {
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

/// A stream byte's transmissions, from the first to `send`. Args: `has_byte`: whether a later one has it.
fn transmissions(stream: &ByteStream, byte: u64, send: usize, has_byte: impl Fn(usize) -> bool) -> Vec<usize> {
    let first = stream.first_with(byte).filter(|&first| first < send);
    let again = first.into_iter().flat_map(|first| stream.again(first));
    let later = again.filter(|&it| it < send && has_byte(it));
    first.into_iter().chain(later).chain([send]).collect()
}
