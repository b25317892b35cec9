//! Why a TCP segment was sent when it was: as its kernel recorded it, else inferred from packets.
//!
//! All bytes of a message were written when it was handed over. When programs wrote is not known: the last event before
//! a transmission is taken as its cause. That is the opening of a window, if the segment did not fit until then; else
//! data arrived for the program, or the program's previous write.

use crate::DelayCause;
use crate::http::{Opened, Within};
use crate::message_transit::MessageTransit;
use crate::tcp::Connection;
use crate::tcp_sender::{INITIAL_WINDOW, Segment, Sender, Told};
use crosswind_ledger::{Position, TCP_PSH};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};

/// How many times as long as a host takes to answer acknowledgements have to be apart, for one not to come by chance when something
/// else happens.
const FEW: u64 = 10;
/// A time within which hardly anything happens by chance.
const SHORT: Duration = Duration::from_micros(10);

/// A segment's reason.
pub enum Reason {
    /// The other host's packet ended a wait.
    Released(DelayCause, Release),
    /// Its bytes were sent before.
    Again,
    /// Its host waited by itself, since then.
    Waited(DelayCause, Instant),
    /// Its program answered an arrival.
    Answered(Instant),
    /// Its program wrote, after the segment before.
    Written,
}

/// The end of a wait.
pub enum Release {
    /// An acknowledgement.
    Ack(usize),
    /// A raised HTTP/2 window.
    Window(Opened),
}

impl<'a> Connection<'a> {
    /// A segment's reason, if known. `passing`: it only kept the path busy. `message`: the one followed, if not all.
    /// `arrived`: when its program last received something.
    pub fn reason(
        &self,
        side: Side,
        send: usize,
        passing: bool,
        message: Option<&MessageTransit>,
        arrived: Option<Instant>,
    ) -> Option<Reason> {
        let sender = self.sender(side);
        let (segment, at) = (&sender.sends[send], sender.sends[send].packet.entered);
        let is_again = sender.bytes.first_with(segment.start).is_some_and(|first| first < send);
        if is_again && (!passing || self.is_timer(sender, send)) {
            return Some(Reason::Again);
        }
        if !sender.begun && !is_again && segment.start < segment.after {
            // It was sent first before anything is known.
            return None;
        }
        if let Some(reason) = message.and_then(|it| self.written_at_once(it, send)) {
            return Some(reason);
        }
        let told = if is_again { None } else { sender.told(send) };
        match (&told, sender.acks_before(send).len().checked_sub(1)) {
            (Some(Told::Released(_)), Some(ack)) => {
                return Some(Reason::Released(self.limit(sender, send, ack), Release::Ack(ack)));
            }
            (&Some(Told::Waited(why, since)), _) => return Some(Reason::Waited(why, since)),
            _ => {}
        }
        if message.is_none()
            && !is_again
            && let Some((why, opened)) = self.held_by_http2(side, send)
        {
            return Some(Reason::Released(why, Release::Window(opened)));
        }
        let wrote = send.checked_sub(1).map(|it| sender.sends[it].packet.entered);
        let at_once = wrote.is_some_and(|it| at.saturating_since(it) <= self.hosts.promptness.min(SHORT));
        if told.is_none() {
            let ack = match message {
                Some(_) => self.last_ack(sender, send),
                None if at_once => None,
                None => self.opened(sender, send, arrived),
            };
            if let Some(ack) = ack {
                return Some(Reason::Released(ack.1, Release::Ack(ack.0)));
            }
        }
        if is_again {
            return Some(Reason::Again);
        }
        let own = match message {
            Some(message) => self.held(message, send, told.is_some()),
            None if arrived > wrote && !at_once => return arrived.map(Reason::Answered),
            None if told.is_none() => self.paced(sender, send),
            None => None,
        };
        Some(own.map_or(Reason::Written, |(why, since)| Reason::Waited(why, since)))
    }

    /// A message's segment's obstacle beside acknowledgements, without a record, and since when.
    fn held(&self, message: &MessageTransit, send: usize, is_told: bool) -> Option<(DelayCause, Instant)> {
        let sender = self.sender(message.side);
        let (segment, at) = (&sender.sends[send], sender.sends[send].packet.entered);
        let previous = send.checked_sub(1).map(|it| sender.sends[it].packet.entered);
        let previous = previous.filter(|&it| it >= message.written);
        let since = previous.unwrap_or(message.written);
        let in_flight = segment.after > sender.acks_before(send).last().map_or(0, |ack| ack.acknowledged);
        let is_prompt = |it: Instant| at.saturating_since(it) <= self.hosts.promptness;
        let is_by_nagle = segment.is_held_by_nagle();
        // Something invisible on the wire held it back, but at the beginning perhaps only the host.
        if !is_by_nagle && (is_told || is_prompt(since) || !in_flight && previous.is_none()) {
            return None;
        }
        if !is_told && in_flight && self.is_probe(message, send) {
            return Some((DelayCause::TailLossProbe, since));
        }
        // Nagle's algorithm releases a full segment, once its program has written more.
        let is_filled = |last: Instant| self.hosts.nagle && sender.is_full(segment) && is_prompt(last);
        let (why, from) = match self.written(message, send) {
            Some((first, last)) if is_by_nagle || is_filled(last) => (DelayCause::Nagle, first),
            Some((_, last)) if self.hosts.pacing => (DelayCause::Pacing, last),
            _ => (DelayCause::Unknown, since),
        };
        Some((why, from.max(since)))
    }

    /// Since when a program's segment waited for its pace, if it did.
    fn paced(&self, sender: &Sender<'a>, send: usize) -> Option<(DelayCause, Instant)> {
        let (segment, before) = (&sender.sends[send], sender.sends[send.checked_sub(1)?].packet);
        let at = segment.packet.entered;
        let acknowledged = sender.acks_until(at).last().map_or(0, |it| it.acknowledged);
        let has_more = before.headers.flags & TCP_PSH == 0 && segment.start > acknowledged;
        let waited = at.saturating_since(before.entered) > self.hosts.promptness;
        (sender.limits.paces() && has_more && waited).then_some((DelayCause::Pacing, before.entered))
    }

    /// The reason of a segment with its last bytes written only when it was sent, if HTTP's own end tells one.
    fn written_at_once(&self, message: &MessageTransit, send: usize) -> Option<Reason> {
        let (side, promptness) = (message.side, self.hosts.promptness);
        let (http, sent) = (self.http[side as usize].as_ref()?, &self.sender(side).sends[send]);
        let (write, at) = (http.write_up_to(sent.end)?, sent.packet.entered);
        let within = Within { full: promptness, any: promptness };
        if http.at(write) > at || at.saturating_since(http.at(write)) > promptness {
            return None;
        }
        if let Some((why, opened)) = http.held(write, http.at(write), within, |it| Some(it.at)) {
            return Some(Reason::Released(why, Release::Window(opened)));
        }
        let Some(Position::Stream { stream, .. }) = message.position else { return None };
        if !http.begins(write, stream) {
            return None;
        }
        // Over HTTP/1.1 an exchange waits for the one before it.
        let before = self.arrival(side.opposite(), stream.wrapping_sub(1), at).filter(|&it| it > message.written);
        let alone = Reason::Waited(DelayCause::sender(side), message.written);
        Some(before.map_or(alone, Reason::Answered))
    }

    /// When a segment's first and last bytes were written, if known.
    fn written(&self, message: &MessageTransit, send: usize) -> Option<(Instant, Instant)> {
        let sent = &self.sender(message.side).sends[send];
        if let Some(told) = sent.packet.sending {
            return told.written;
        }
        // A byte stream keeps the order of handing over. Beside other messages, knowledge by time alone may be another's.
        match (message.position, &self.http[message.side as usize]) {
            (Some(Position::Stream { .. }), Some(http)) => {
                let at = |end: u64| http.write_up_to(end).map(|write| http.at(write));
                at(sent.start + 1).zip(at(sent.end))
            }
            (Some(Position::Bytes { end, .. }), _) if sent.end > end => Some((message.written, sent.packet.entered)),
            (Some(Position::Bytes { .. }), _) => Some((message.written, message.written)),
            _ => message.alone.then_some((message.written, message.written)),
        }
    }

    /// Whether a segment with new bytes is a tail loss probe (RFC 8985, section 7.3): it had been written before, and nothing happened
    /// for two round trips.
    fn is_probe(&self, message: &MessageTransit, send: usize) -> bool {
        let sender = self.sender(message.side);
        let sent = &sender.sends[send];
        let was_written = match message.position {
            // Earlier bytes in a byte stream were written earlier.
            Some(Position::Bytes { end, .. }) => sent.start < end,
            Some(Position::Stream { .. }) => self.http[message.side as usize].is_some(),
            None | Some(Position::Datagram(_)) => message.alone,
        };
        // Its timer begins again when something new is acknowledged.
        let acks = sender.acks_until(sent.packet.entered);
        let acknowledged = acks.last().map_or(0, |ack| ack.acknowledged);
        let news = acks.get(acks.partition_point(|ack| ack.acknowledged < acknowledged));
        let last = news.map(|ack| ack.arrived).max(send.checked_sub(1).map(|it| sender.sends[it].packet.entered));
        let at = sent.packet.entered;
        let waited = last.map(|last| at.saturating_since(last));
        // Its first known round trip is the handshake's. With pacing, successors may be further apart by themselves.
        let first = self.handshake.as_ref().and_then(|it| it.round_trip(message.side)).filter(|_| !self.hosts.pacing);
        let shortest = sender.shortest_round_trip.into_iter().chain(first).min().map(|it| it + it);
        // It comes no later than the retransmission timer would, counted from the oldest unacknowledged bytes.
        let oldest = sender.bytes.first_with(acknowledged);
        let oldest = oldest.map(|it| sender.bytes.again(it).take_while(|&it| it < send).last().unwrap_or(it));
        let since_oldest = oldest.map(|it| at.saturating_since(sender.sends[it].packet.entered));
        let is_due = !self.hosts.pacing && since_oldest.is_some_and(|it| it >= sender.shortest_timeout());
        self.hosts.tail_loss_probes
            && sender.sack
            && was_written
            && (is_due || shortest.is_some_and(|it| waited >= Some(it)))
    }

    /// The window before a program's segment: its update came right before, or ended most of the time since the segments
    /// before; of a full one, any of it. Segments sent together with this one are not before it.
    pub fn held_by_http2(&self, side: Side, send: usize) -> Option<(DelayCause, Opened)> {
        let (http, sender) = (self.http[side as usize].as_ref()?, self.sender(side));
        let (segment, at, promptness) = (&sender.sends[send], sender.sends[send].packet.entered, self.hosts.promptness);
        let is_before = |it: &Segment<'_>| at.saturating_since(it.packet.entered) > promptness.min(SHORT);
        let before = sender.sends[..send].partition_point(is_before).checked_sub(1);
        let waited = before.map_or(Duration::ZERO, |it| at.saturating_since(sender.sends[it].packet.entered));
        let within =
            Within { full: promptness.max(waited), any: promptness.max(Duration::from_nanos(waited.as_nanos() / 2)) };
        let sent = |byte: u64| sender.bytes.first_with(byte).map(|send| sender.sends[send].packet.entered);
        http.held_segment(segment.start..segment.end, at, within, sent)
    }

    /// The acknowledgement right before a message's segment, and the cause it ended.
    fn last_ack(&self, sender: &Sender<'a>, send: usize) -> Option<(usize, DelayCause)> {
        let (acks, at) = (sender.acks_before(send), sender.sends[send].packet.entered);
        let last = acks.last().filter(|it| at.saturating_since(it.arrived) <= self.hosts.promptness);
        last.map(|_| (acks.len() - 1, self.limit(sender, send, acks.len() - 1)))
    }

    /// The acknowledgement releasing a program's segment, if one did, and the cause it ended.
    fn opened(&self, sender: &Sender<'a>, send: usize, arrived: Option<Instant>) -> Option<(usize, DelayCause)> {
        let segment = &sender.sends[send];
        let at = segment.packet.entered;
        let is_prompt = |it: Instant| at.saturating_since(it) <= self.hosts.promptness;
        let last = sender.acks_until(at).len().checked_sub(1)?;
        let wrote = send.checked_sub(1).map(|it| sender.sends[it].packet.entered);
        if wrote.is_some() && arrived.max(Some(sender.acks[last].arrived)) <= wrote {
            return None;
        }
        let before = |ack: usize| {
            ack.checked_sub(1).map_or((0, u64::MAX), |it| (sender.acks[it].acknowledged, sender.acks[it].edge))
        };
        let tells = |ack: usize| {
            let it = &sender.acks[ack];
            is_prompt(it.arrived) && (it.has_sack() || (it.acknowledged, it.edge) != before(ack))
        };
        let answers = arrived.is_some_and(is_prompt);
        if !sender.begun {
            let is_answer = answers && sender.acks[last].acknowledged >= segment.start;
            let is_new = segment.start >= segment.after;
            return (tells(last) && is_new && !is_answer).then_some((last, DelayCause::Unknown));
        }
        // The earliest possible sending time, given the known windows.
        let reach = sender.reach(send, self.hosts.initial_window);
        let fits = sender.acks.partition_point(|it| it.acknowledged + reach < segment.end || it.edge < segment.end);
        let ack = fits.min(last);
        let (acknowledged, edge) = before(ack);
        let held = segment.start > acknowledged || edge < segment.end;
        let has_push = |it: usize| sender.sends[it].packet.headers.flags & TCP_PSH != 0;
        // A segment without PSH leaves something to be sent.
        let until = sender.sends.partition_point(|it| it.packet.entered < sender.acks[ack].arrived);
        let was_done = until.checked_sub(1).is_some_and(has_push);
        let is_answer = answers && edge >= segment.end && (was_done || sender.acks[ack].acknowledged >= segment.start);
        if tells(ack) && held && !is_answer {
            return Some((ack, self.limit(sender, send, ack)));
        }
        // No window opened, but an acknowledgement may have ended another wait.
        if !tells(last) || segment.start <= before(last).0 {
            return None;
        }
        let why = self.limit(sender, send, last);
        let in_flight = sender.acks[last].acknowledged < segment.start;
        let has_more = !has_push(send.checked_sub(1)?);
        if in_flight && has_more || why == DelayCause::Nagle && !answers {
            return Some((last, why));
        }
        if sender.limits.knows_send_buffer(at) {
            return (why == DelayCause::SendBuffer && !answers).then_some((last, why));
        }
        // Everything written was in flight, and more was written when an acknowledgement came: unless this happens
        // often, there was no room for it before.
        let apart = at.saturating_since(sender.acks[last.saturating_sub(1)].arrived).as_nanos();
        let few = self.hosts.promptness < SHORT || apart > FEW * self.hosts.promptness.as_nanos();
        (in_flight && few && !answers).then_some((last, DelayCause::SendBuffer))
    }

    /// The limit on a segment until the acknowledgement `ack` came.
    fn limit(&self, sender: &Sender<'a>, send: usize, ack: usize) -> DelayCause {
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
}
