//! TCP: why bytes were sent when they were, from sequence numbers, acknowledgements and windows.

use crate::bytes::Awaited;
use crate::critical_path::{Interval, Place};
use crate::handshake::Handshake;
use crate::http::{Http, Opened};
use crate::links::Links;
use crate::socket_counts::SocketCounts;
use crate::tcp_sender::{Ack, INITIAL_WINDOW, Segment, Sender, Told};
use crate::what_if::{Saved, Savings};
use crate::{CriticalPath, DelayCause, Hosts, MessageTransit};
use crosswind_ledger::{HttpEnd, PacketRecord, Position, TCP, TCP_ACK, TCP_SYN, Trigger};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
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
    Held(DelayCause, Opened),
    /// Then, and all time before has its name.
    AtOnce,
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
    fn http_bytes(&self, side: Side, stream: u64, before: Instant) -> Option<Vec<Range<u64>>> {
        let (http, bytes) = (self.http[side as usize].as_ref()?, &self.sender(side).bytes);
        Some(http.bytes_of(stream, |end| bytes.completion_of(end).is_some_and(|done| done.at <= before)))
    }

    /// The sender in direction `side`.
    pub fn sender(&self, side: Side) -> &Sender<'a> {
        side.pick(&self.forward, &self.reverse)
    }

    /// Names a transit's time.
    pub fn transit(&self, transit: MessageTransit, links: &Links<'a>, path: &mut CriticalPath) {
        Walk { connection: self, sender: self.sender(transit.side), transit, links }.message(path);
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

    /// The window update lost before the acknowledgement `ack`, if this one answers a probe.
    fn lost_update(&self, sender: &Sender<'a>, send: usize, ack: &Ack<'a>, since: Instant) -> Option<&'a PacketRecord> {
        if !sender.answers_window_probe(ack.packet, self.hosts.promptness) {
            return None;
        }
        let first = sender.wait(send, self.hosts.promptness).map_or(send, |it| it.1);
        sender.lost_opening(sender.sends[first].end, since, ack.packet.entered)
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

    /// The limit on a segment until the acknowledgement `ack` came.
    pub fn limit(&self, sender: &Sender<'a>, send: usize, ack: usize) -> DelayCause {
        match sender.told(send) {
            Some(Told::Released(DelayCause::ReceiveWindow)) => {
                return self.receive_window(sender, send, ack).unwrap_or(DelayCause::ReceiveWindow);
            }
            Some(Told::Released(DelayCause::CongestionWindow)) => return self.congestion_window(sender, send),
            Some(Told::Released(why)) => return why,
            _ if !sender.begun => return DelayCause::Unknown,
            _ => {}
        }
        let (sent, promptness) = (&sender.sends[send], self.hosts.promptness);
        let before = ack.checked_sub(1).map(|it| &sender.acks[it]);
        if let Some(why) = self.receive_window(sender, send, ack) {
            return why;
        }
        let acknowledged = before.map_or(0, |it| it.acknowledged);
        let in_flight = sent.start.saturating_sub(acknowledged);
        let lost_nothing = sender.bytes.is_sent_once();
        let flight = sender.flight(send, promptness);
        let late = if self.hosts.in_order { Duration::ZERO } else { promptness };
        let ran_out = || lost_nothing && sender.ran_out(send, promptness, late);
        if sender.limits.is_send_buffer(sent.packet.entered, flight, in_flight, ran_out) {
            return DelayCause::SendBuffer;
        }
        let wanted = sent.end.saturating_sub(acknowledged);
        let is_small = !sender.is_full(sent);
        if self.hosts.nagle
            && is_small
            && in_flight > 0
            && lost_nothing
            && wanted <= INITIAL_WINDOW * sender.largest_segment
        {
            return DelayCause::Nagle;
        }
        self.congestion_window(sender, send)
    }

    /// Whether a segment did not fit into the receiver's window until the acknowledgement `ack` came.
    fn receive_window(&self, sender: &Sender<'a>, send: usize, ack: usize) -> Option<DelayCause> {
        let promptness = self.hosts.promptness;
        // The window during the wait. If many acknowledgements at an instant each open it, it is not the cause.
        let first = &sender.sends[sender.wait(send, promptness).map_or(send, |it| it.1)];
        let mut earlier = sender.acks[..ack].iter().rev();
        let known = earlier.find(|it| first.packet.entered.saturating_since(it.arrived) > promptness);
        let may_be = sender.limits.may_be_receive_window(first.packet.entered);
        let known = known.filter(|it| may_be && first.end > it.edge)?;
        // Where nothing had arrived since, the receiver's program had read, and not at once.
        let opened = sender.acks[ack].packet.entered;
        let arrived = sender.last_arrival(opened).map(|it| it.0);
        let has_news = arrived.is_some_and(|at| at > known.packet.entered || opened.saturating_since(at) <= promptness);
        Some(if has_news { DelayCause::ReceiveWindow } else { DelayCause::ZeroWindow })
    }

    fn congestion_window(&self, sender: &Sender<'a>, send: usize) -> DelayCause {
        let window = sender.congestion_window(send);
        let is_whole = window == DelayCause::CongestionWindow;
        if is_whole && self.hosts.slow_start_after_idle && sender.was_larger_before_idle(send, self.hosts.promptness) {
            return DelayCause::SlowStartAfterIdle;
        }
        window
    }

    /// Goes back through an acknowledgement that released the segment `send` to the one it answers, and returns that.
    pub fn acknowledged(
        &self,
        sender: &Sender<'a>,
        send: usize,
        ack: usize,
        why: DelayCause,
        links: &Links<'a>,
        path: &mut CriticalPath,
    ) -> Option<usize> {
        let (ack, side) = (&sender.acks[ack], sender.sends[send].packet.side);
        path.name(ack.arrived, DelayCause::sender(side), Place::sender(side), None, 0);
        let packet = links.follow(ack.packet, Some(why), path);
        let sent = packet.entered;
        let (at, answered) = sender.arrival_before(send, sent)?;
        let is_window = matches!(why, DelayCause::ReceiveWindow | DelayCause::ZeroWindow);
        let lost = if is_window { self.lost_update(sender, send, ack, at) } else { None };
        if let Some(lost) = lost {
            path.name(lost.entered, DelayCause::PersistTimer, Place::sender(side), Some(lost), 0);
        }
        let part = match why {
            _ if sent.saturating_since(at) <= self.hosts.promptness => DelayCause::receiver(side),
            _ if lost.is_some() => DelayCause::ZeroWindow,
            DelayCause::ZeroWindow | DelayCause::Unknown => why,
            DelayCause::ReceiveWindow if packet.sending.is_some_and(|it| it.trigger == Trigger::Read) => {
                DelayCause::ZeroWindow
            }
            _ => DelayCause::DelayedAcknowledgement,
        };
        path.name(at, part, Place::receiver(side), Some(packet), 0);
        (!path.is_done()).then_some(answered)
    }
}

/// The way back through one message.
struct Walk<'w, 'a> {
    connection: &'w Connection<'a>,
    sender: &'w Sender<'a>,
    transit: MessageTransit,
    links: &'w Links<'a>,
}

impl Walk<'_, '_> {
    fn message(&self, path: &mut CriticalPath) {
        let (sender, transit) = (self.sender, self.transit);
        if transit.timed && !sender.sends.is_empty() {
            return self.awaited(path);
        }
        let has_come = |end| sender.bytes.completion_of(end).is_some_and(|done| done.at <= transit.received);
        let own = match transit.position {
            // Time tells if another end counted, as a proxy's, or if TLS counted its handshake behind early data.
            Some(Position::Bytes { start, end })
                if end > start && end <= sender.bytes.sent() && (!transit.alone || has_come(end)) =>
            {
                Some(std::iter::once(start..end).collect())
            }
            Some(Position::Stream { stream, .. }) => self.connection.http_bytes(transit.side, stream, transit.received),
            _ => None,
        };
        let done = match &own {
            Some(own) => {
                let done = own.last().and_then(|own| sender.bytes.completion_of(own.end));
                done.filter(|done| done.at <= transit.received)
            }
            None => sender.bytes.completion(transit.received),
        };
        // A host sending first waits for the end of the handshake alone.
        let is_own = |it: &Handshake<'_>| {
            it.confirmation().is_some_and(|it| it.0 >= transit.written) && it.opener == transit.side
        };
        if sender.sends.is_empty()
            && let Some(handshake) = self.connection.handshake.as_ref().filter(|&it| is_own(it))
        {
            handshake.confirmed(self.links, path);
        }
        let Some(done) = done else { return };
        let (mut send, mut byte) = (done.send, done.missing);
        if done.at < transit.written {
            return;
        }
        path.name(done.at, DelayCause::receiver(transit.side), Place::receiver(transit.side), None, 0);
        // With unknown positions, bytes sent before the message was handed over are another's; but if there is no
        // other, the message waits for the packet sent right before, as the end of a handshake.
        let nearest = if transit.alone { self.connection.hosts.promptness } else { Duration::ZERO };
        let is_before = |send: usize| transit.written.saturating_since(sender.sends[send].packet.entered) > nearest;
        let is_others = match &own {
            Some(own) => !own.iter().any(|own| own.contains(&byte)),
            None => sender.bytes.first_with(byte).is_some_and(is_before),
        };
        if is_others {
            let found = || {
                sender
                    .bytes
                    .first_byte(is_before)
                    .map(|start| std::iter::once(start..start + transit.bytes.max(1)).collect())
            };
            let Some(own) = own.or_else(found) else { return };
            let arrived = |send: usize| sender.sends[send].arrived();
            let last = own.iter().filter_map(|own| sender.bytes.last_of(own, arrived)).max_by_key(|it| it.0);
            let Some((at, last, missing)) = last else { return };
            path.name(at, DelayCause::HeadOfLine, Place::receiver(transit.side), Some(sender.sends[send].packet), 0);
            (send, byte) = (last, missing);
        }
        self.follow(send, byte, path);
    }

    /// A message measured by data received in time: back from the byte its receiver then waited for.
    fn awaited(&self, path: &mut CriticalPath) {
        let (sender, transit) = (self.sender, self.transit);
        let (received, place) = (transit.received, Place::sender(transit.side));
        let was_sent = |send: usize| sender.sends[send].packet.entered < received;
        match sender.bytes.awaited(received, was_sent) {
            Awaited::Came { byte, send } => self.follow(send, byte, path),
            Awaited::Lost { byte, first, last } => {
                // Acknowledgements for later segments were going to tell.
                let mut behind = (last + 1..sender.sends.len()).take_while(|&it| was_sent(it));
                let is_told = behind.any(|it| sender.sends[it].arrived().is_some());
                let (packet, part) =
                    (sender.sends[last].packet, if is_told { DelayCause::FastRecovery } else { DelayCause::Unknown });
                path.name(packet.entered, part, place, Some(packet), 0);
                self.connection.recovery(sender, last, byte, path);
                self.go_back(first, path);
            }
            Awaited::Unsent(Some(next)) => self.go_back(next, path),
            Awaited::Unsent(None) => {
                let Some(done) = sender.bytes.completion(received).filter(|done| done.at >= transit.written) else {
                    return;
                };
                let held = self.held();
                let lost = sender.lost_opening(sender.bytes.sent() + 1, done.at, received);
                if let Some(lost) = lost.filter(|_| held == DelayCause::ZeroWindow) {
                    path.name(lost.entered, DelayCause::PersistTimer, place, Some(lost), 0);
                }
                path.name(done.at, held, place, None, 0);
                self.follow(done.send, done.missing, path);
            }
        }
    }

    /// The limit on an always-busy sender at the end of a transit.
    fn held(&self) -> DelayCause {
        let (sender, transit) = (self.sender, self.transit);
        let (sent, last) = (sender.bytes.sent(), sender.acks_until(transit.received).last());
        let (acknowledged, edge) = last.map_or((0, u64::MAX), |ack| (ack.acknowledged, ack.edge));
        let is_in_flight = acknowledged < sent;
        if sent + sender.largest_segment > edge && sender.begun {
            return if is_in_flight { DelayCause::ReceiveWindow } else { DelayCause::ZeroWindow };
        }
        match () {
            () if !is_in_flight => DelayCause::sender(transit.side),
            // Other reasons not to send look alike.
            () if !sender.begun || self.connection.hosts.pacing || self.connection.hosts.send_buffer.is_some() => {
                DelayCause::Unknown
            }
            () => DelayCause::CongestionWindow,
        }
    }

    /// Goes back from the arrival of the segment `send`, which brought `byte`.
    fn follow(&self, send: usize, byte: u64, path: &mut CriticalPath) {
        let sender = self.sender;
        let begun_with = self.links.follow(sender.sends[send].packet, None, path);
        let Some(mut sent) = sender.send_of(begun_with) else { return };
        if sent == send {
            sent = self.connection.recovery(sender, sent, byte, path);
        }
        self.go_back(sent, path);
    }

    /// Goes back from the first transmission `sent`.
    fn go_back(&self, mut sent: usize, path: &mut CriticalPath) {
        let (sender, side) = (self.sender, self.transit.side);
        while let Some((why, answer)) = self.reason(sent, path) {
            let cause = match answer {
                Answer::Ack(ack) => self.connection.acknowledged(sender, sent, ack, why, self.links, path),
                Answer::Window(opened) => self.connection.updated(side, sent, &opened, why, self.links, path),
            };
            let Some(cause) = cause else {
                // The receiver said something before anything had arrived, once the connection was there.
                if !sender.arrivals.is_empty() && sender.last_arrival(path.at()).is_none() {
                    path.name(path.beginning(), why, Place::receiver(side), None, 0);
                }
                return;
            };
            let begun_with = self.links.follow(sender.sends[cause].packet, Some(why), path);
            // Where a path takes no time, a cause might be its own.
            let Some(next) = sender.send_of(begun_with).filter(|&next| next < sent) else { return };
            // A retransmission in passing costs nothing by itself; a timer does.
            let timer = next == cause && self.connection.is_timer(sender, next);
            sent = if timer { self.connection.recovery(sender, next, sender.sends[next].start, path) } else { next };
        }
    }

    /// Why a segment with new bytes was sent when it was: the wait's cause, and its end. None when the critical path is
    /// complete, or nothing more is known.
    fn reason(&self, mut send: usize, path: &mut CriticalPath) -> Option<(DelayCause, Answer)> {
        let (sender, side) = (self.sender, self.transit.side);
        loop {
            if path.is_done() {
                return None;
            }
            let sent = &sender.sends[send];
            let at = sent.packet.entered;
            match self.written(sent, path) {
                Written::Earlier => {}
                Written::Held(why, opened) => return Some((why, Answer::Window(opened))),
                Written::AtOnce => return None,
            }
            let seen = sender.acks_before(send).len();
            let told = sender.told(send).filter(|_| sent.start >= sent.after);
            let may_release = matches!(told, None | Some(Told::Released(_)));
            if may_release
                && seen > 0
                && at.saturating_since(sender.acks[seen - 1].arrived) <= self.connection.hosts.promptness
            {
                let why = self.connection.limit(sender, send, seen - 1);
                return Some((why, Answer::Ack(seen - 1)));
            }
            // A timer sent it again.
            let first = sender.bytes.first_with(sent.start).filter(|&first| first < send);
            if first.is_some() {
                send = self.connection.recovery(sender, send, sent.start, path);
                continue;
            }
            let previous = send.checked_sub(1).filter(|&it| sender.sends[it].packet.entered >= path.beginning());
            let in_flight = sent.after > sender.acks[..seen].last().map_or(0, |ack| ack.acknowledged);
            let since = previous.map_or(path.beginning(), |it| sender.sends[it].packet.entered);
            let waited = at.saturating_since(since) > self.connection.hosts.promptness;
            if told.is_none() && in_flight && waited && self.is_probe(send) {
                let before = send.checked_sub(1).map(|it| sender.sends[it].packet);
                path.name(since, DelayCause::TailLossProbe, Place::sender(side), before, 0);
                send = previous?;
                continue;
            }
            match told {
                Some(Told::Waited(part, from)) => {
                    sender.name_wait(send, part, from.max(since), path);
                }
                Some(_) if sent.is_held_by_nagle() => self.name_hold(sent, since, path),
                // Something invisible on the wire held it back, but at the beginning perhaps only the host.
                None if waited && (in_flight || previous.is_some()) => self.name_hold(sent, since, path),
                _ => {}
            }
            path.name(since, DelayCause::sender(side), Place::sender(side), Some(sent.packet), 0);
            send = previous?;
        }
    }

    /// Names the time a segment was held back with neither acknowledgement nor timer, to `since` or its bytes' write.
    fn name_hold(&self, sent: &Segment<'_>, since: Instant, path: &mut CriticalPath) {
        let transit = self.transit;
        // The writes of its first and its last bytes. A byte stream keeps the order of handing over. Beside other
        // messages, knowledge by time alone may be another's.
        let written = match (transit.position, &self.connection.http[transit.side as usize]) {
            (Some(Position::Stream { .. }), Some(http)) => {
                let at = |end: u64| http.write_up_to(end).map(|write| http.at(write));
                at(sent.start + 1).zip(at(sent.end))
            }
            (Some(Position::Bytes { end, .. }), _) if sent.end > end => Some((transit.written, sent.packet.entered)),
            (Some(Position::Bytes { .. }), _) => Some((transit.written, transit.written)),
            _ => transit.alone.then_some((transit.written, transit.written)),
        };
        let written = sent.packet.sending.map_or(written, |it| it.written);
        // Nagle's algorithm releases a full segment, once its program has written more.
        let is_full = self.sender.is_full(sent);
        let is_filled = |last: Instant| sent.packet.entered.saturating_since(last) <= self.connection.hosts.promptness;
        let (from, part) = match written {
            Some((first, _)) if sent.is_held_by_nagle() => (first.max(since), DelayCause::Nagle),
            Some((first, last)) if self.connection.hosts.nagle && is_full && is_filled(last) => {
                (first.max(since), DelayCause::Nagle)
            }
            Some((_, last)) if self.connection.hosts.pacing => (last.max(since), DelayCause::Pacing),
            _ => (since, DelayCause::Unknown),
        };
        path.name(from, part, Place::sender(transit.side), Some(sent.packet), 0);
    }

    /// Whether a segment with new bytes is a tail loss probe (RFC 8985, section 7.3): it had been written before, and nothing happened
    /// for two round trips.
    fn is_probe(&self, send: usize) -> bool {
        let (sender, transit) = (self.sender, self.transit);
        let sent = &sender.sends[send];
        let was_written = match transit.position {
            // Earlier bytes in a byte stream were written earlier.
            Some(Position::Bytes { end, .. }) => sent.start < end,
            Some(Position::Stream { .. }) => self.connection.http[transit.side as usize].is_some(),
            None | Some(Position::Datagram(_)) => transit.alone,
        };
        // Its timer begins again when something new is acknowledged.
        let acks = sender.acks_until(sent.packet.entered);
        let acknowledged = acks.last().map_or(0, |ack| ack.acknowledged);
        let news = acks.get(acks.partition_point(|ack| ack.acknowledged < acknowledged));
        let last = news.map(|ack| ack.arrived).max(send.checked_sub(1).map(|it| sender.sends[it].packet.entered));
        let at = sent.packet.entered;
        let waited = last.map(|last| at.saturating_since(last));
        // Its first known round trip is the handshake's. With pacing, successors may be further apart by themselves.
        let first = self
            .connection
            .handshake
            .as_ref()
            .and_then(|it| it.round_trip(transit.side))
            .filter(|_| !self.connection.hosts.pacing);
        let shortest = sender.shortest_round_trip.into_iter().chain(first).min().map(|it| it + it);
        // It comes no later than the retransmission timer would, counted from the oldest unacknowledged bytes.
        let oldest = sender.bytes.first_with(acknowledged);
        let oldest = oldest.map(|it| sender.bytes.again(it).take_while(|&it| it < send).last().unwrap_or(it));
        let since_oldest = oldest.map(|it| at.saturating_since(sender.sends[it].packet.entered));
        let is_due = !self.connection.hosts.pacing && since_oldest.is_some_and(|it| it >= sender.shortest_timeout());
        self.connection.hosts.tail_loss_probes
            && sender.sack
            && was_written
            && (is_due || shortest.is_some_and(|it| waited >= Some(it)))
    }

    /// Whether HTTP wrote a segment's last bytes only when it was sent, and what the write had waited for.
    fn written(&self, sent: &Segment<'_>, path: &mut CriticalPath) -> Written {
        let (side, at, promptness) = (self.transit.side, sent.packet.entered, self.connection.hosts.promptness);
        let Some(http) = &self.connection.http[side as usize] else { return Written::Earlier };
        let Some(write) = http.write_up_to(sent.end) else { return Written::Earlier };
        let written = http.at(write);
        if written > at || at.saturating_since(written) > promptness {
            return Written::Earlier;
        }
        if let Some((why, opened)) = http.held(write, promptness) {
            return Written::Held(why, opened);
        }
        let Some(Position::Stream { stream, .. }) = self.transit.position else { return Written::Earlier };
        if !http.begins(write, stream) {
            return Written::Earlier;
        }
        // Over HTTP/1.1 an exchange waits for the one before it.
        let before =
            self.connection.arrival(side.opposite(), stream.wrapping_sub(1), at).filter(|&it| it > path.beginning());
        let place = Place::sender(side);
        path.name(before.unwrap_or(written), DelayCause::sender(side), place, Some(sent.packet), 0);
        let part = if before.is_some() { DelayCause::HeadOfLine } else { DelayCause::sender(side) };
        path.name(path.beginning(), part, place, Some(sent.packet), 0);
        Written::AtOnce
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
