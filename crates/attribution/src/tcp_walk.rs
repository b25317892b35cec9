//! The walk back through a TCP connection: from the completion of one message, or from the last packet between two
//! programs to the first.
//!
//! It goes from each segment to its reason. The classes are those of Zhang et al., "On the characteristics and origins
//! of Internet flow rates" (SIGCOMM 2002), and of Siekkinen et al., "A root cause analysis toolkit for TCP" (Computer
//! Networks 52, 2008). They classify stretches of a flow, from one observation point; here both hosts and the path are
//! known, so every wait is classified.

use crate::DelayCause;
use crate::critical_path::{CriticalPath, Interval, Place};
use crate::links::Links;
use crate::message_transit::MessageTransit;
use crate::tcp::Connection;
use crate::tcp_reason::{Reason, Release};
use crate::tcp_sender::{SHORTEST_IDLE, Told};
use crate::walk::{State, Step, Walk, Walked, Window, span};
use crosswind_ledger::{PacketRecord, TCP_FIN, TCP_RST, TCP_SYN, Trigger};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};

/// Fewer rounds may be alike by chance; smaller ones may be single messages.
const FEWEST_ROUNDS: usize = 4;
const LEAST_ROUND: u64 = 8 * 1024;

impl<'a> Connection<'a> {
    /// Attributes the whole connection.
    pub fn walk(&self, links: &Links<'a>) -> Walked {
        let (from, to) = span(&self.packets);
        let opener = self.handshake.as_ref().map_or(Side::Forward, |it| it.opener);
        let mut walked = TcpWalk::new(self, links, CriticalPath::new(from, to, opener).merging(), None).whole();
        walked.windows.extend(Side::BOTH.into_iter().filter_map(|side| self.rounds(side)));
        walked
    }

    /// Its time, bounded by the kernels' counts.
    pub fn bounded(&self, pieces: Vec<Interval>) -> Vec<Interval> {
        Side::BOTH.into_iter().fold(pieces, |pieces, side| self.sender(side).limits.bound(pieces))
    }

    /// A program's own window or request size, unnamed by frames: it waited for the other's message after every so many bytes.
    fn rounds(&self, side: Side) -> Option<Window> {
        let (sender, other) = (self.sender(side), self.sender(side.opposite()));
        let (mut rounds, mut bytes) = (Vec::new(), 0);
        for (before, next) in (1..sender.sends.len()).map(|next| (&sender.sends[next - 1], next)) {
            let sent = &sender.sends[next];
            if sent.start < sent.after {
                continue;
            }
            bytes += before.end - before.start;
            let (before, at) = (before.packet.entered, sent.packet.entered);
            let came = other.bytes.completion(at).map(|it| it.at);
            let promptness = self.hosts.promptness;
            let waited = at.saturating_since(before) > promptness;
            let is_answer = waited && came.is_some_and(|came| at.saturating_since(came) <= promptness);
            let is_held = matches!(sender.told(next), Some(Told::Released(_)))
                || is_answer && self.held_by_http2(side, next).is_some();
            if is_answer && !is_held {
                rounds.push(bytes);
                bytes = 0;
            }
        }
        rounds.sort_unstable();
        let middle = *rounds.get(rounds.len() / 2)?;
        let alike = rounds.iter().filter(|&&it| it.abs_diff(middle) <= middle / 10).count();
        let is_regular = rounds.len() >= FEWEST_ROUNDS && 10 * alike >= 8 * rounds.len() && middle >= LEAST_ROUND;
        let times = u32::try_from(rounds.len()).unwrap_or(u32::MAX);
        is_regular.then_some(Window { data: side, part: DelayCause::propagation(side), times, bytes: middle })
    }

    /// When the client's latest data at `at` came.
    pub fn last_answer(&self, at: Instant) -> Option<Instant> {
        self.sender(Side::Reverse).bytes.completion(at).map(|done| done.at)
    }

    /// Attributes `[from, to]` backwards, for a client with its answer, come by `answered`, at `to`.
    pub fn exchange(&self, from: Instant, to: Instant, answered: Instant, links: &Links<'a>) -> Vec<Interval> {
        let path = CriticalPath::new(from, to, Side::Reverse);
        TcpWalk::new(self, links, path, None).exchange(self.last_answer(answered))
    }
}

const fn flags(packet: &PacketRecord, which: u8) -> u8 {
    packet.headers.flags & which
}

/// The walk back through a connection, from where one message or all of it ends.
pub struct TcpWalk<'w, 'a> {
    pub state: State<'w, 'a>,
    pub connection: &'w Connection<'a>,
    /// The only one followed. All its bytes were written when the path begins.
    message: Option<MessageTransit>,
}

impl<'w, 'a> Walk<'w, 'a> for TcpWalk<'w, 'a> {
    /// Linux's longest acknowledgement delay is its minimum retransmission timeout.
    const LONGEST_DELAY: Duration = SHORTEST_IDLE;

    fn state(&mut self) -> &mut State<'w, 'a> {
        &mut self.state
    }

    fn last_delivery(&self, side: Side, at: Instant) -> Option<Instant> {
        self.connection.sender(side).bytes.completion(at).map(|it| it.at)
    }

    fn last_sending(&self, side: Side, at: Instant) -> Option<(Instant, usize)> {
        let sends = &self.connection.sender(side).sends;
        let send = sends.partition_point(|it| it.packet.entered <= at).checked_sub(1)?;
        Some((sends[send].packet.entered, send))
    }

    fn close(&self, has_data: bool) -> Option<&'a PacketRecord> {
        let closes = |it: &&PacketRecord| flags(it, TCP_FIN | TCP_RST) != 0;
        self.state.packets.iter().copied().find(closes).filter(|_| has_data || self.is_answered())
    }

    /// Its program sent nothing, and did not close when the sender had: a kernel resets what is closed with unread data.
    fn is_unread(&self, side: Side) -> bool {
        let is_closed = |by: Side| self.state.packets.iter().any(|it| it.side == by && flags(it, TCP_FIN) != 0);
        let is_silent = self.connection.sender(side.opposite()).sends.is_empty();
        is_silent && is_closed(side) && !is_closed(side.opposite())
    }

    fn last(&mut self, last: &'a PacketRecord) -> Option<Step> {
        if flags(last, TCP_SYN) != 0 || !self.is_answered() {
            return self.open(last.side);
        }
        let sent = if last.left.is_some() { self.state.follow(last, None) } else { last };
        if let Some(send) = self.connection.sender(sent.side).send_of(sent) {
            return Some(Step::sent(sent.side, send));
        }
        Some(Step::Did(sent.side, DelayCause::DelayedAcknowledgement))
    }

    /// Back from a receiver's advance to its sending.
    fn arrived(&mut self, side: Side, at: Instant) -> Option<Step> {
        self.state.count_turn(side);
        self.state.path.turn(side);
        let done = self.connection.sender(side).bytes.completion(at)?;
        Some(self.came(side, done.send, done.missing))
    }

    /// Why a segment was sent when it was.
    fn sent(&mut self, side: Side, send: usize, passing: bool) -> Option<Step> {
        let sender = self.connection.sender(side);
        let segment = &sender.sends[send];
        self.state.at_sender(segment.packet.entered, DelayCause::sender(side), side, None);
        let arrived = self.state.links.wakers.arrival(segment.packet);
        let arrived = arrived.or_else(|| self.last_delivery(side.opposite(), segment.packet.entered));
        match self.connection.reason(side, send, passing, self.message.as_ref(), arrived)? {
            Reason::Released(why, release) => self.released(side, send, why, &release),
            Reason::Again => {
                let first = self.connection.recovery(sender, send, segment.start, &mut self.state.path);
                Some(Step::sent(side, first))
            }
            Reason::Waited(why, since) => {
                sender.name_wait(send, why, since, &mut self.state.path);
                self.before(side, send)
            }
            Reason::Answered(arrived) => {
                self.at_host(arrived, segment.packet);
                if self.message.is_some() {
                    // The exchange before had come, over HTTP/1.1.
                    let beginning = self.state.path.beginning();
                    self.state.at_sender(beginning, DelayCause::HeadOfLine, side, Some(segment.packet));
                }
                Some(Step::Arrived(side.opposite(), arrived))
            }
            Reason::Written => self.before(side, send),
        }
    }

    /// Back from the first event at the host of `side` to the connection's beginning.
    fn open(&mut self, side: Side) -> Option<Step> {
        let handshake = self.connection.handshake.as_ref()?;
        let (opener, first) = (handshake.opener, handshake.first()?);
        let (waited, expired) = handshake.waited(self.state.path.at());
        if let Some((known, _)) = handshake.answer() {
            if side != opener && !handshake.confirmed(self.state.links, &mut self.state.path) {
                return None;
            }
            self.state.at_sender(known, DelayCause::sender(opener), opener, None);
        }
        self.state.path.turn(opener);
        let answered = self.state.packets.iter().any(|it| it.side != opener && it.left.is_some());
        let part = if answered { DelayCause::TcpHandshake } else { DelayCause::SynTimer };
        self.state.at_sender(first.entered + waited, part, opener, None);
        self.state.path.name(first.entered, DelayCause::SynTimer, Place::sender(opener), Some(first), expired);
        None
    }
}

impl<'w, 'a> TcpWalk<'w, 'a> {
    pub const fn new(
        connection: &'w Connection<'a>,
        links: &'w Links<'a>,
        path: CriticalPath,
        message: Option<MessageTransit>,
    ) -> Self {
        let state = State::new(connection.packets.as_slice(), links, connection.hosts, path);
        Self { state, connection, message }
    }

    fn is_answered(&self) -> bool {
        self.connection.handshake.as_ref().is_some_and(|it| it.answer().is_some())
    }

    /// Back from the arrival of `send`, with the byte awaited, to its sending.
    pub fn came(&mut self, side: Side, send: usize, byte: u64) -> Step {
        let sender = self.connection.sender(side);
        let begun_with = self.state.follow(sender.sends[send].packet, None);
        match sender.send_of(begun_with) {
            Some(sent) if sent == send => {
                Step::sent(side, self.connection.recovery(sender, sent, byte, &mut self.state.path))
            }
            Some(sent) => Step::Sent { side, send: sent, passing: true },
            None => Step::Did(side, DelayCause::sender(side)),
        }
    }

    /// Names the sending host's time before `packet`. A message was handed over, whatever woke its program.
    fn at_host(&mut self, from: Instant, packet: &PacketRecord) {
        if self.message.is_some() {
            self.state.at_sender(from, DelayCause::sender(packet.side), packet.side, Some(packet));
        } else {
            self.state.at_host(from, packet);
        }
    }

    /// Back to the segment before; from the first one, to an arrival or the beginning.
    fn before(&mut self, side: Side, send: usize) -> Option<Step> {
        let sends = &self.connection.sender(side).sends;
        let arrived = self.last_delivery(side.opposite(), self.state.path.at());
        let (from, step) = match (send.checked_sub(1), arrived) {
            (Some(before), _) => (sends[before].packet.entered, Step::Sent { side, send: before, passing: true }),
            _ if self.message.is_some() => (self.state.path.beginning(), Step::Did(side, DelayCause::sender(side))),
            (None, Some(arrived)) => (arrived, Step::Arrived(side.opposite(), arrived)),
            (None, None) => return self.open(side),
        };
        self.at_host(from, sends[send].packet);
        Some(step)
    }

    /// Back through a released segment's wait to the segment before it.
    fn released(&mut self, side: Side, send: usize, why: DelayCause, release: &Release) -> Option<Step> {
        let sender = self.connection.sender(side);
        let bytes = match release {
            Release::Window(opened) => opened.size,
            Release::Ack(ack) => {
                let before = ack.checked_sub(1).map(|it| &sender.acks[it]);
                let acknowledged = before.map_or(0, |it| it.acknowledged);
                let window = matches!(why, DelayCause::ReceiveWindow | DelayCause::ZeroWindow);
                let edge = before.filter(|_| window).map_or(sender.sends[send].start, |it| it.edge);
                edge.saturating_sub(acknowledged)
            }
        };
        if why != DelayCause::Unknown {
            self.state.count_window(side, why, bytes);
        }
        self.state.path.turn(side);
        let Some(cause) = self.answered(side, send, why, release) else {
            // The receiver said something before anything had arrived, once the connection was there.
            let at = self.state.path.at();
            if self.message.is_some() && !sender.arrivals.is_empty() && sender.last_arrival(at).is_none() {
                self.state.path.name(self.state.path.beginning(), why, Place::receiver(side), None, 0);
            }
            return None;
        };
        let begun_with = self.state.follow(sender.sends[cause].packet, Some(why));
        let Some(next) = sender.send_of(begun_with) else { return Some(Step::Did(side, DelayCause::sender(side))) };
        // Where a path takes no time, a cause might be its own. A retransmission in passing costs nothing by itself; a
        // timer does.
        let passing = next != cause || !self.connection.is_timer(sender, next);
        (next < send).then_some(Step::Sent { side, send: next, passing })
    }

    /// Back through the end of a wait to the segment it answers.
    fn answered(&mut self, side: Side, send: usize, why: DelayCause, release: &Release) -> Option<usize> {
        let (sender, other) = (self.connection.sender(side), self.connection.sender(side.opposite()));
        let (came, told) = match release {
            Release::Ack(ack) => (sender.acks[*ack].arrived, sender.acks[*ack].packet),
            Release::Window(opened) => (opened.at, other.sends[opened.send].packet),
        };
        self.state.at_sender(came, DelayCause::sender(side), side, None);
        let mut packet = self.state.follow(told, Some(why));
        if let Release::Window(opened) = release
            && other.send_of(packet) == Some(opened.send)
        {
            let first = self.connection.recovery(other, opened.send, opened.missing, &mut self.state.path);
            packet = other.sends[first].packet;
        }
        let (at, answered) = sender.arrival_before(send, packet.entered)?;
        let is_window = matches!(why, DelayCause::ReceiveWindow | DelayCause::ZeroWindow);
        let promptness = self.state.hosts.promptness;
        let lost = if is_window { sender.lost_update(send, told, at, promptness) } else { None };
        if let Some(lost) = lost {
            self.state.at_sender(lost.entered, DelayCause::PersistTimer, side, Some(lost));
        }
        let part = match why {
            _ if self.state.is_prompt(at, packet.entered) => DelayCause::receiver(side),
            _ if lost.is_some() => DelayCause::ZeroWindow,
            // Its program had not read yet.
            DelayCause::ReceiveWindow if packet.sending.is_some_and(|it| it.trigger == Trigger::Read) => {
                DelayCause::ZeroWindow
            }
            DelayCause::ZeroWindow | DelayCause::StreamWindow | DelayCause::ConnectionWindow | DelayCause::Unknown => {
                why
            }
            _ => DelayCause::DelayedAcknowledgement,
        };
        self.state.path.name(at, part, Place::receiver(side), Some(packet), 0);
        (!self.state.path.is_done()).then_some(answered)
    }
}
