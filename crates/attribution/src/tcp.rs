//! TCP: why bytes were sent when they were, from sequence numbers, acknowledgements and windows.

use crate::bytes::Awaited;
use crate::handshake::Handshake;
use crate::http::{Http, Opened};
use crate::links::Links;
use crate::tcp_half::{Half, Segment};
use crate::trail::Place;
use crate::{Hosts, Leg, Part, Trail};
use crosswind_ledger::{HttpEnd, PacketRecord, Position, TCP, TCP_ACK, TCP_SYN};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::ops::Range;

/// The initial window in segments (RFC 6928): always allowed in flight on a connection without loss.
pub const INITIAL_WINDOW: u64 = 10;

pub struct Connection<'a> {
    pub began: Instant,
    pub handshake: Option<Handshake<'a>>,
    hosts: Hosts,
    forward: Half<'a>,
    reverse: Half<'a>,
    http: [Option<Http<'a>>; 2],
}

/// The end of a wait.
enum Answer {
    /// An acknowledgement.
    Ack(usize),
    /// A raised HTTP/2 window.
    Window(Opened),
}

/// When HTTP wrote a segment's last bytes.
enum Written {
    /// Before it was sent, or when is not known.
    Earlier,
    /// Then, when a window had opened.
    Held(Part, Opened),
    /// Then, and all time before has its name.
    AtOnce,
}

impl<'a> Connection<'a> {
    /// From its packets in the order of entering.
    pub fn new(packets: &[&'a PacketRecord], hosts: Hosts) -> Self {
        let began = packets.first().map_or(Instant::from_nanos(0), |packet| packet.entered);
        let of_syn = |side: Side| {
            packets
                .iter()
                .find(|packet| packet.side == side && packet.headers.flags & TCP_SYN != 0)
                .map(|it| it.headers)
        };
        let [forward, reverse] =
            Side::BOTH.map(|side| Half::new(packets, side, of_syn(side), of_syn(side.opposite()), hosts));
        Self { began, handshake: Handshake::of(packets, hosts), hosts, forward, reverse, http: [None, None] }
    }

    /// Adds the client's and the server's known HTTP writes.
    pub fn add_http(&mut self, ends: [Option<&'a HttpEnd>; 2]) {
        self.http = Side::BOTH.map(|side| {
            let (own, other) = (ends[side as usize]?, side.opposite());
            Some(Http::new(own, ends[other as usize].map(|end| (end, &self.half(other).bytes))))
        });
    }

    /// When the receiver had a whole HTTP stream, or an HTTP/1.1 exchange, by `before`.
    pub fn arrival(&self, side: Side, stream: u64, before: Instant) -> Option<Instant> {
        let end = self.http_bytes(side, stream, before)?.last()?.end;
        self.half(side).bytes.completion_of(end).map(|done| done.at)
    }

    /// An HTTP stream's bytes at the receiver by `before`.
    fn http_bytes(&self, side: Side, stream: u64, before: Instant) -> Option<Vec<Range<u64>>> {
        let (http, bytes) = (self.http[side as usize].as_ref()?, &self.half(side).bytes);
        Some(http.bytes_of(stream, |end| bytes.completion_of(end).is_some_and(|done| done.at <= before)))
    }

    /// The sender in direction `side`.
    pub fn half(&self, side: Side) -> &Half<'a> {
        side.pick(&self.forward, &self.reverse)
    }

    /// Names a transit's time.
    pub fn walk(&self, leg: Leg, links: &Links<'a>, trail: &mut Trail) {
        let half = self.half(leg.side);
        if leg.timed && !half.sends.is_empty() {
            return self.awaited(half, leg, links, trail);
        }
        let own = match leg.position {
            // If another end counted, as a proxy's, time tells.
            Some(Position::Bytes { start, end }) if end > start && end <= half.bytes.sent() => {
                Some(std::iter::once(start..end).collect())
            }
            Some(Position::Stream { stream, .. }) => self.http_bytes(leg.side, stream, leg.received),
            _ => None,
        };
        let done = match &own {
            Some(own) => {
                let done = own.last().and_then(|own| half.bytes.completion_of(own.end));
                done.filter(|done| done.at <= leg.received)
            }
            None => half.bytes.completion(leg.received),
        };
        // A host that sends first waits for the end of the handshake alone.
        let is_own =
            |it: &Handshake<'_>| it.confirmation().is_some_and(|it| it.0 >= leg.written) && it.opener == leg.side;
        if half.sends.is_empty()
            && let Some(handshake) = self.handshake.as_ref().filter(|&it| is_own(it))
        {
            handshake.confirmed(links, trail);
        }
        let Some(done) = done else { return };
        let (mut send, mut byte) = (done.send, done.missing);
        if done.at < leg.written {
            return;
        }
        trail.name(done.at, Part::receiver(leg.side), Place::receiver(leg.side), None, 0);
        // With unknown positions, bytes sent before the message was handed over are another's; but if there is no
        // other, the message waits for the packet sent right before, as the end of a handshake.
        let nearest = if leg.alone { self.hosts.promptness } else { Duration::ZERO };
        let is_before = |send: usize| leg.written.saturating_since(half.sends[send].packet.entered) > nearest;
        let is_others = match &own {
            Some(own) => !own.iter().any(|own| own.contains(&byte)),
            None => half.bytes.first_with(byte).is_some_and(is_before),
        };
        if is_others {
            let found = || {
                half.bytes.first_byte(is_before).map(|start| std::iter::once(start..start + leg.bytes.max(1)).collect())
            };
            let Some(own) = own.or_else(found) else { return };
            let arrived = |send: usize| half.sends[send].arrived();
            let last = own.iter().filter_map(|own| half.bytes.last_of(own, arrived)).max_by_key(|it| it.0);
            let Some((at, last, missing)) = last else { return };
            trail.name(at, Part::HeadOfLine, Place::receiver(leg.side), Some(half.sends[send].packet), 0);
            (send, byte) = (last, missing);
        }
        self.follow(half, leg, send, byte, links, trail);
    }

    /// A message measured by data received in time: back from the byte its receiver then waited for.
    fn awaited(&self, half: &Half<'a>, leg: Leg, links: &Links<'a>, trail: &mut Trail) {
        let (received, place) = (leg.received, Place::sender(leg.side));
        let was_sent = |send: usize| half.sends[send].packet.entered < received;
        match half.bytes.awaited(received, was_sent) {
            Awaited::Came { byte, send } => self.follow(half, leg, send, byte, links, trail),
            Awaited::Lost { byte, first, last } => {
                // Acknowledgements for later segments were going to tell.
                let mut behind = (last + 1..half.sends.len()).take_while(|&it| was_sent(it));
                let is_told = behind.any(|it| half.sends[it].arrived().is_some());
                let (packet, part) =
                    (half.sends[last].packet, if is_told { Part::FastRecovery } else { Part::Unknown });
                trail.name(packet.entered, part, place, Some(packet), 0);
                self.recovery(half, last, byte, trail);
                self.go_back(half, leg, first, links, trail);
            }
            Awaited::Unsent(Some(next)) => self.go_back(half, leg, next, links, trail),
            Awaited::Unsent(None) => {
                let Some(done) = half.bytes.completion(received).filter(|done| done.at >= leg.written) else { return };
                trail.name(done.at, self.held(half, leg), place, None, 0);
                self.follow(half, leg, done.send, done.missing, links, trail);
            }
        }
    }

    /// The limit on an always-busy sender at the end of a transit.
    fn held(&self, half: &Half<'a>, leg: Leg) -> Part {
        let (sent, last) = (half.bytes.sent(), half.acks_until(leg.received).last());
        let (acknowledged, edge) = last.map_or((0, u64::MAX), |ack| (ack.acknowledged, ack.edge));
        let is_in_flight = acknowledged < sent;
        if sent + half.largest_segment > edge && half.begun {
            return if is_in_flight { Part::ReceiveWindow } else { Part::ZeroWindow };
        }
        match () {
            () if !is_in_flight => Part::sender(leg.side),
            // Other reasons not to send look alike.
            () if !half.begun || self.hosts.pacing || self.hosts.send_buffer.is_some() => Part::Unknown,
            () => Part::CongestionWindow,
        }
    }

    /// Goes back from the arrival of the segment `send`, which brought `byte`.
    fn follow(&self, half: &Half<'a>, leg: Leg, send: usize, byte: u64, links: &Links<'a>, trail: &mut Trail) {
        let begun_with = links.follow(half.sends[send].packet, None, trail);
        let Some(mut sent) = half.send_of(begun_with) else { return };
        if sent == send {
            sent = self.recovery(half, sent, byte, trail);
        }
        self.go_back(half, leg, sent, links, trail);
    }

    /// Goes back from the first transmission `sent`.
    fn go_back(&self, half: &Half<'a>, leg: Leg, mut sent: usize, links: &Links<'a>, trail: &mut Trail) {
        let side = leg.side;
        while let Some((why, answer)) = self.reason(half, leg, sent, trail) {
            let cause = match answer {
                Answer::Ack(ack) => self.acknowledged(half, sent, ack, why, links, trail),
                Answer::Window(opened) => self.opened(half, sent, &opened, why, links, trail),
            };
            let Some(cause) = cause else {
                // The receiver said something before anything had arrived, once the connection was there.
                if !half.arrivals.is_empty() && half.last_arrival(trail.at()).is_none() {
                    trail.name(trail.beginning(), why, Place::receiver(side), None, 0);
                }
                return;
            };
            let begun_with = links.follow(half.sends[cause].packet, Some(why), trail);
            // Where a path takes no time, a cause might be its own.
            let Some(next) = half.send_of(begun_with).filter(|&next| next < sent) else { return };
            // A retransmission in passing costs nothing by itself; a timer does.
            let timer = next == cause && self.is_timer(half, next);
            sent = if timer { self.recovery(half, next, half.sends[next].start, trail) } else { next };
        }
    }

    /// Whether a segment was sent again by a timer.
    pub fn is_timer(&self, half: &Half<'a>, send: usize) -> bool {
        let first = half.bytes.first_with(half.sends[send].start).filter(|&first| first < send);
        first.is_some_and(|first| self.kind(half, first, send) != Part::FastRecovery)
    }

    /// Goes back from a transmission of `byte` to its first one, and returns that.
    pub fn recovery(&self, half: &Half<'a>, send: usize, byte: u64, trail: &mut Trail) -> usize {
        let Some(first) = half.bytes.first_with(byte) else { return send };
        if first >= send {
            return send;
        }
        let later = half
            .bytes
            .again(first)
            .filter(|&it| it < send && half.sends[it].start <= byte && byte < half.sends[it].end);
        let sent: Vec<usize> = std::iter::once(first).chain(later).chain([send]).collect();
        let waits: Vec<Part> = sent.windows(2).map(|pair| self.kind(half, pair[0], pair[1])).collect();
        let mut expired = waits.iter().filter(|&&part| part == Part::RetransmissionTimer).count() as u32;
        for (&from, &part) in sent.iter().zip(&waits).rev() {
            let lost = half.sends[from].packet;
            let is_timer = part == Part::RetransmissionTimer;
            trail.name(lost.entered, part, Place::sender(lost.side), Some(lost), if is_timer { expired } else { 0 });
            expired -= u32::from(is_timer);
        }
        first
    }

    /// Why the segment `later` retransmitted the bytes of `earlier`.
    fn kind(&self, half: &Half<'a>, earlier: usize, later: usize) -> Part {
        let at = half.sends[later].packet.entered;
        let acks = half.acks_before(later);
        if acks.last().is_some_and(|ack| at.saturating_since(ack.arrived) <= self.hosts.promptness) {
            return Part::FastRecovery;
        }
        // RACK gives reordered packets a quarter of the shortest round trip, by a timer (RFC 8985, 6.2).
        let since = half.sends[earlier].packet.entered;
        let told = acks.iter().rev().take_while(|ack| ack.arrived > since).find(|ack| ack.has_sack());
        if let (Some(told), Some(round_trip)) = (told, half.shortest_round_trip)
            && at.saturating_since(told.arrived) < round_trip
        {
            return Part::FastRecovery;
        }
        let acknowledged = acks.last().map_or(0, |ack| ack.acknowledged);
        let recovering = half.sends[..later].iter().rev().find(|it| it.start < it.after);
        let recovering = recovering.is_some_and(|it| acknowledged < it.after);
        let is_last = half.sends[later].end >= half.sends[later].after;
        let probes = self.hosts.tail_loss_probes && is_last && !recovering;
        if probes && half.sack {
            Part::TailLossProbe
        } else if probes && !half.begun {
            Part::Unknown
        } else {
            Part::RetransmissionTimer
        }
    }

    /// Why a segment with new bytes was sent when it was: the wait's cause, and its end. None when the critical path is
    /// complete, or nothing more is known.
    fn reason(&self, half: &Half<'a>, leg: Leg, mut send: usize, trail: &mut Trail) -> Option<(Part, Answer)> {
        let side = leg.side;
        loop {
            if trail.is_done() {
                return None;
            }
            let sent = &half.sends[send];
            let at = sent.packet.entered;
            match self.written(leg, sent, trail) {
                Written::Earlier => {}
                Written::Held(why, opened) => return Some((why, Answer::Window(opened))),
                Written::AtOnce => return None,
            }
            let seen = half.acks_before(send).len();
            if seen > 0 && at.saturating_since(half.acks[seen - 1].arrived) <= self.hosts.promptness {
                let why = self.limit(half, send, seen - 1);
                return Some((why, Answer::Ack(seen - 1)));
            }
            // A timer sent it again.
            let first = half.bytes.first_with(sent.start).filter(|&first| first < send);
            if first.is_some() {
                send = self.recovery(half, send, sent.start, trail);
                continue;
            }
            let previous = send.checked_sub(1).filter(|&it| half.sends[it].packet.entered >= trail.beginning());
            let in_flight = sent.after > half.acks[..seen].last().map_or(0, |ack| ack.acknowledged);
            let Some(previous) = previous else {
                // Only the host held it back; or something invisible on the wire did.
                let prompt = at.saturating_since(trail.beginning()) <= self.hosts.promptness;
                if in_flight && !prompt {
                    if self.is_probe(half, leg, send) {
                        let before = send.checked_sub(1).map(|it| half.sends[it].packet);
                        trail.name(trail.beginning(), Part::TailLossProbe, Place::sender(side), before, 0);
                        return None;
                    }
                    self.name_hold(half, leg, sent, trail.beginning(), trail);
                }
                trail.name(trail.beginning(), Part::sender(side), Place::sender(side), Some(sent.packet), 0);
                return None;
            };
            let gap = at.saturating_since(half.sends[previous].packet.entered);
            if in_flight && gap > self.hosts.promptness && self.is_probe(half, leg, send) {
                let before = half.sends[previous].packet;
                trail.name(before.entered, Part::TailLossProbe, Place::sender(side), Some(before), 0);
                send = previous;
                continue;
            }
            let since = half.sends[previous].packet.entered;
            if gap > self.hosts.promptness {
                self.name_hold(half, leg, sent, since, trail);
            }
            trail.name(since, Part::sender(side), Place::sender(side), Some(sent.packet), 0);
            send = previous;
        }
    }

    /// Names the time a segment was held back with neither acknowledgement nor timer, to `since` or its bytes' write.
    fn name_hold(&self, half: &Half<'a>, leg: Leg, sent: &Segment<'_>, since: Instant, trail: &mut Trail) {
        // The writes of its first and its last bytes. A byte stream keeps the order of handing over. Beside other
        // messages, knowledge by time alone may be another's.
        let written = match (leg.position, &self.http[leg.side as usize]) {
            (Some(Position::Stream { .. }), Some(http)) => {
                let at = |end: u64| http.write_up_to(end).map(|write| http.at(write));
                at(sent.start + 1).zip(at(sent.end))
            }
            (Some(Position::Bytes { end, .. }), _) if sent.end > end => Some((leg.written, sent.packet.entered)),
            (Some(Position::Bytes { .. }), _) => Some((leg.written, leg.written)),
            _ => leg.alone.then_some((leg.written, leg.written)),
        };
        // Nagle's algorithm releases a full segment, once its program has written more.
        let is_full = half.is_full(sent);
        let is_filled = |last: Instant| sent.packet.entered.saturating_since(last) <= self.hosts.promptness;
        let (from, part) = match written {
            Some((first, last)) if self.hosts.nagle && is_full && is_filled(last) => (first.max(since), Part::Nagle),
            Some((_, last)) if self.hosts.pacing => (last.max(since), Part::Pacing),
            _ => (since, Part::Unknown),
        };
        trail.name(from, part, Place::sender(leg.side), Some(sent.packet), 0);
    }

    /// Whether a segment with new bytes is a tail loss probe (RFC 8985, section 7.3): it had been written before, and nothing happened
    /// for two round trips.
    fn is_probe(&self, half: &Half<'a>, leg: Leg, send: usize) -> bool {
        let sent = &half.sends[send];
        let was_written = match leg.position {
            // Earlier bytes in a byte stream were written earlier.
            Some(Position::Bytes { end, .. }) => sent.start < end,
            Some(Position::Stream { .. }) => self.http[leg.side as usize].is_some(),
            None | Some(Position::Datagram(_)) => leg.alone,
        };
        // Its timer begins again when something new is acknowledged.
        let acks = half.acks_until(sent.packet.entered);
        let acknowledged = acks.last().map_or(0, |ack| ack.acknowledged);
        let news = acks.get(acks.partition_point(|ack| ack.acknowledged < acknowledged));
        let last = news.map(|ack| ack.arrived).max(send.checked_sub(1).map(|it| half.sends[it].packet.entered));
        let at = sent.packet.entered;
        let waited = last.map(|last| at.saturating_since(last));
        // Its first known round trip is the handshake's. With pacing, successors may be further apart by themselves.
        let first = self.handshake.as_ref().and_then(|it| it.round_trip(leg.side)).filter(|_| !self.hosts.pacing);
        let shortest = half.shortest_round_trip.into_iter().chain(first).min().map(|it| it + it);
        // It comes no later than the retransmission timer would, counted from the oldest unacknowledged bytes.
        let oldest = half.bytes.first_with(acknowledged);
        let oldest = oldest.map(|it| half.bytes.again(it).take_while(|&it| it < send).last().unwrap_or(it));
        let since_oldest = oldest.map(|it| at.saturating_since(half.sends[it].packet.entered));
        let is_due = !self.hosts.pacing && since_oldest.is_some_and(|it| it >= half.shortest_timeout());
        self.hosts.tail_loss_probes
            && half.sack
            && was_written
            && (is_due || shortest.is_some_and(|it| waited >= Some(it)))
    }

    /// Whether HTTP wrote a segment's last bytes only when it was sent, and what the write had waited for.
    fn written(&self, leg: Leg, sent: &Segment<'_>, trail: &mut Trail) -> Written {
        let (side, at, promptness) = (leg.side, sent.packet.entered, self.hosts.promptness);
        let Some(http) = &self.http[side as usize] else { return Written::Earlier };
        let Some(write) = http.write_up_to(sent.end) else { return Written::Earlier };
        let written = http.at(write);
        if written > at || at.saturating_since(written) > promptness {
            return Written::Earlier;
        }
        if let Some((why, opened)) = http.held(write, promptness) {
            return Written::Held(why, opened);
        }
        let Some(Position::Stream { stream, .. }) = leg.position else { return Written::Earlier };
        if !http.begins(write, stream) {
            return Written::Earlier;
        }
        // Over HTTP/1.1 an exchange waits for the one before it.
        let before = self.arrival(side.opposite(), stream.wrapping_sub(1), at).filter(|&it| it > trail.beginning());
        let place = Place::sender(side);
        trail.name(before.unwrap_or(written), Part::sender(side), place, Some(sent.packet), 0);
        let part = if before.is_some() { Part::HeadOfLine } else { Part::sender(side) };
        trail.name(trail.beginning(), part, place, Some(sent.packet), 0);
        Written::AtOnce
    }

    /// Goes back through the opening of an HTTP/2 window to the segment it answers, and returns that.
    fn opened(
        &self,
        half: &Half<'a>,
        send: usize,
        opened: &Opened,
        why: Part,
        links: &Links<'a>,
        trail: &mut Trail,
    ) -> Option<usize> {
        let side = half.sends[send].packet.side;
        let other = self.half(side.opposite());
        trail.name(opened.at, Part::sender(side), Place::sender(side), None, 0);
        let begun_with = links.follow(other.sends[opened.send].packet, Some(why), trail);
        let mut sent = other.send_of(begun_with)?;
        if sent == opened.send {
            sent = self.recovery(other, sent, opened.missing, trail);
        }
        let packet = other.sends[sent].packet;
        let (at, answered) = half.arrival_before(send, packet.entered)?;
        // Its program had not read yet.
        let is_prompt = packet.entered.saturating_since(at) <= self.hosts.promptness;
        trail.name(at, if is_prompt { Part::receiver(side) } else { why }, Place::receiver(side), Some(packet), 0);
        (!trail.is_done()).then_some(answered)
    }

    /// The limit on a segment until the acknowledgement `ack` came.
    pub fn limit(&self, half: &Half<'a>, send: usize, ack: usize) -> Part {
        if !half.begun {
            return Part::Unknown;
        }
        let (sent, promptness) = (&half.sends[send], self.hosts.promptness);
        let before = ack.checked_sub(1).map(|it| &half.acks[it]);
        // The window during the wait. If many acknowledgements at an instant each open it, it is not the cause.
        let first = &half.sends[half.wait(send, promptness).map_or(send, |it| it.1)];
        let mut earlier = half.acks[..ack].iter().rev();
        let known = earlier.find(|it| first.packet.entered.saturating_since(it.arrived) > promptness);
        if let Some(known) = known.filter(|it| first.end > it.edge) {
            // Where nothing had arrived since, the receiver's program had read, and not at once.
            let opened = half.acks[ack].packet.entered;
            let arrived = half.last_arrival(opened).map(|it| it.0);
            let has_news =
                arrived.is_some_and(|at| at > known.packet.entered || opened.saturating_since(at) <= promptness);
            return if has_news { Part::ReceiveWindow } else { Part::ZeroWindow };
        }
        let acknowledged = before.map_or(0, |it| it.acknowledged);
        let in_flight = sent.start.saturating_sub(acknowledged);
        let lost_nothing = half.bytes.is_sent_once();
        let written = half.in_flight_as_written(send, promptness);
        if self.hosts.send_buffer.zip(written).is_some_and(|(bytes, written)| written >= bytes) {
            return Part::SendBuffer;
        }
        let late = if self.hosts.in_order { Duration::ZERO } else { promptness };
        if self.hosts.send_buffer.is_none()
            && lost_nothing
            && !self.hosts.pacing
            && half.ran_out(send, promptness, late)
        {
            return Part::SendBuffer;
        }
        let wanted = sent.end.saturating_sub(acknowledged);
        let is_small = !half.is_full(sent);
        if self.hosts.nagle
            && is_small
            && in_flight > 0
            && lost_nothing
            && wanted <= INITIAL_WINDOW * half.largest_segment
        {
            return Part::Nagle;
        }
        if self.hosts.slow_start_after_idle && half.was_larger_before_idle(send, promptness) {
            return Part::SlowStartAfterIdle;
        }
        Part::CongestionWindow
    }

    /// Goes back through an acknowledgement that released the segment `send` to the one it answers, and returns that.
    pub fn acknowledged(
        &self,
        half: &Half<'a>,
        send: usize,
        ack: usize,
        why: Part,
        links: &Links<'a>,
        trail: &mut Trail,
    ) -> Option<usize> {
        let (ack, side) = (&half.acks[ack], half.sends[send].packet.side);
        trail.name(ack.arrived, Part::sender(side), Place::sender(side), None, 0);
        let packet = links.follow(ack.packet, Some(why), trail);
        let sent = packet.entered;
        let (at, answered) = half.arrival_before(send, sent)?;
        let part = match why {
            _ if sent.saturating_since(at) <= self.hosts.promptness => Part::receiver(side),
            Part::ZeroWindow | Part::Unknown => why,
            _ => Part::DelayedAcknowledgement,
        };
        trail.name(at, part, Place::receiver(side), Some(packet), 0);
        (!trail.is_done()).then_some(answered)
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
