//! A TCP connection between two programs, from its last packet back to its first.
//!
//! At a host, the last event before a transmission is taken as its cause: the opening of a window, if the segment did
//! not fit until then; else data arrived for the program, or the program's previous write. The classes are those of
//! Zhang et al., "On the characteristics and origins of Internet flow rates" (SIGCOMM 2002), and of Siekkinen et al.,
//! "A root cause analysis toolkit for TCP" (Computer Networks 52, 2008). They classify stretches of a flow, from one
//! observation point; here both hosts and the path are known, so every wait is classified.

use crate::DelayCause;
use crate::critical_path::{CriticalPath, Interval, Place};
use crate::http::Opened;
use crate::links::Links;
use crate::tcp::Connection;
use crate::tcp_sender::{SHORTEST_IDLE, Sender, Told};
use crate::walk::{State, Step, Walk, Walked, Window, span};
use crosswind_ledger::{PacketRecord, TCP_FIN, TCP_PSH, TCP_RST, TCP_SYN};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};

/// How many times as long as a host takes to answer acknowledgements have to be apart, for one not to come by chance when something
/// else happens.
const FEW: u64 = 10;
/// Fewer rounds may be alike by chance; smaller ones may be single messages.
const FEWEST_ROUNDS: usize = 4;
const LEAST_ROUND: u64 = 8 * 1024;
/// A time within which hardly anything happens by chance.
const SHORT: Duration = Duration::from_micros(10);

impl<'a> Connection<'a> {
    /// Attributes the whole connection.
    pub fn walk(&self, links: &Links<'a>) -> Walked {
        let (from, to) = span(&self.packets);
        let opener = self.handshake.as_ref().map_or(Side::Forward, |it| it.opener);
        let mut walked = self.start(CriticalPath::new(from, to, opener).merging(), links).whole();
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
        self.start(CriticalPath::new(from, to, Side::Reverse), links).exchange(self.last_answer(answered))
    }

    const fn start<'w>(&'w self, path: CriticalPath, links: &'w Links<'a>) -> TcpWalk<'w, 'a> {
        let state = State::new(self.packets.as_slice(), links, self.hosts, path);
        TcpWalk { state, connection: self }
    }
}

const fn flags(packet: &PacketRecord, which: u8) -> u8 {
    packet.headers.flags & which
}

struct TcpWalk<'w, 'a> {
    state: State<'w, 'a>,
    connection: &'w Connection<'a>,
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
        let sender = self.connection.sender(side);
        let done = sender.bytes.completion(at)?;
        let begun_with = self.state.follow(sender.sends[done.send].packet, None);
        let Some(send) = sender.send_of(begun_with) else { return Some(Step::Did(side, DelayCause::sender(side))) };
        if send == done.send {
            let first = self.connection.recovery(sender, send, done.missing, &mut self.state.path);
            return Some(Step::sent(side, first));
        }
        Some(Step::Sent { side, send, passing: true })
    }

    /// Why a segment was sent when it was.
    fn sent(&mut self, side: Side, send: usize, passing: bool) -> Option<Step> {
        let sender = self.connection.sender(side);
        let segment = &sender.sends[send];
        let at = segment.packet.entered;
        self.state.at_sender(at, DelayCause::sender(side), side, None);
        let is_again = sender.bytes.first_with(segment.start).is_some_and(|first| first < send);
        if is_again && (!passing || self.connection.is_timer(sender, send)) {
            return Some(self.again(side, send));
        }
        if !sender.begun && !is_again && segment.start < segment.after {
            // It was sent first before anything is known.
            return None;
        }
        let latest = self.connection.sender(side.opposite()).bytes.completion(at).map(|it| it.at);
        let arrived = self.state.links.wakers.arrival(segment.packet).or(latest);
        let before = send.checked_sub(1).map(|it| (it, &sender.sends[it]));
        let wrote = before.map(|(_, it)| it.packet.entered);
        let seen = sender.acks_until(at).len();
        let told = seen.checked_sub(1).map(|it| sender.acks[it].arrived);
        let told_why = (!is_again).then(|| sender.told(send)).flatten();
        match (&told_why, seen.checked_sub(1)) {
            (Some(Told::Released(_)), Some(ack)) => {
                let why = self.connection.limit(sender, send, ack);
                return self.window(side, send, ack, why);
            }
            (&Some(Told::Waited(part, since)), _) => {
                sender.name_wait(send, part, since, &mut self.state.path);
                if let Some((send, _)) = before {
                    return Some(Step::Sent { side, send, passing: true });
                }
            }
            _ => {}
        }
        if let Some((why, opened)) = self.connection.held_by_http2(side, send).filter(|_| !is_again) {
            return self.flow_control(side, send, why, &opened);
        }
        let at_once = wrote.is_some_and(|it| at.saturating_since(it) <= self.state.hosts.promptness.min(SHORT));
        let nothing_came = at_once || wrote.is_some() && arrived.max(told) <= wrote;
        if told_why.is_none()
            && !nothing_came
            && let Some((ack, why)) = self.opened(sender, send, arrived)
        {
            return self.window(side, send, ack, why);
        }
        if is_again {
            return Some(self.again(side, send));
        }
        if let Some(arrived) = arrived.filter(|_| arrived > wrote && !at_once) {
            self.state.at_host(arrived, segment.packet);
            return Some(Step::Arrived(side.opposite(), arrived));
        }
        let Some((before, previous)) = before else { return self.open(side) };
        let entered = previous.packet.entered;
        let acknowledged = seen.checked_sub(1).map_or(0, |it| sender.acks[it].acknowledged);
        let has_more = flags(previous.packet, TCP_PSH) == 0 && segment.start > acknowledged;
        let paced = told_why.is_none() && sender.limits.paces() && has_more && !self.state.is_prompt(entered, at);
        if paced {
            self.state.at_sender(entered, DelayCause::Pacing, side, Some(segment.packet));
        } else {
            self.state.at_host(entered, segment.packet);
        }
        Some(Step::Sent { side, send: before, passing: true })
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

impl<'a> TcpWalk<'_, 'a> {
    fn is_answered(&self) -> bool {
        self.connection.handshake.as_ref().is_some_and(|it| it.answer().is_some())
    }

    /// Back from a retransmission to the first transmission.
    fn again(&mut self, side: Side, send: usize) -> Step {
        let sender = self.connection.sender(side);
        let first = self.connection.recovery(sender, send, sender.sends[send].start, &mut self.state.path);
        Step::sent(side, first)
    }

    /// The acknowledgement releasing a segment, if one did, and the cause it ended.
    fn opened(&self, sender: &Sender<'a>, send: usize, arrived: Option<Instant>) -> Option<(usize, DelayCause)> {
        let segment = &sender.sends[send];
        let at = segment.packet.entered;
        let last = sender.acks_until(at).len().checked_sub(1)?;
        let before = |ack: usize| {
            ack.checked_sub(1).map_or((0, u64::MAX), |it| (sender.acks[it].acknowledged, sender.acks[it].edge))
        };
        let tells = |ack: usize| {
            let it = &sender.acks[ack];
            self.state.is_prompt(it.arrived, at) && (it.has_sack() || (it.acknowledged, it.edge) != before(ack))
        };
        let answers = arrived.is_some_and(|it| self.state.is_prompt(it, at));
        if !sender.begun {
            let is_answer = answers && sender.acks[last].acknowledged >= segment.start;
            let is_new = segment.start >= segment.after;
            return (tells(last) && is_new && !is_answer).then_some((last, DelayCause::Unknown));
        }
        // The earliest possible sending time, given the known windows.
        let reach = u64::from(sender.reach[send]);
        let fits = sender.acks.partition_point(|it| it.acknowledged + reach < segment.end || it.edge < segment.end);
        let ack = fits.min(last);
        let (acknowledged, edge) = before(ack);
        let held = segment.start > acknowledged || edge < segment.end;
        // A segment without PSH leaves something to be sent.
        let until = sender.sends.partition_point(|it| it.packet.entered < sender.acks[ack].arrived);
        let was_done = until.checked_sub(1).is_some_and(|it| flags(sender.sends[it].packet, TCP_PSH) != 0);
        let is_answer = answers && edge >= segment.end && (was_done || sender.acks[ack].acknowledged >= segment.start);
        if tells(ack) && held && !is_answer {
            return Some((ack, self.connection.limit(sender, send, ack)));
        }
        // No window opened, but an acknowledgement may have ended another wait.
        if !tells(last) || segment.start <= before(last).0 {
            return None;
        }
        let why = self.connection.limit(sender, send, last);
        let in_flight = sender.acks[last].acknowledged < segment.start;
        let has_more = flags(sender.sends[send.checked_sub(1)?].packet, TCP_PSH) == 0;
        if in_flight && has_more || why == DelayCause::Nagle && !answers {
            return Some((last, why));
        }
        if sender.limits.knows_send_buffer(at) {
            return (why == DelayCause::SendBuffer && !answers).then_some((last, why));
        }
        // Everything written was in flight, and more was written when an acknowledgement came: unless this happens
        // often, there was no room for it before.
        let apart = at.saturating_since(sender.acks[last.saturating_sub(1)].arrived).as_nanos();
        let few = self.state.hosts.promptness < SHORT || apart > FEW * self.state.hosts.promptness.as_nanos();
        (in_flight && few && !answers).then_some((last, DelayCause::SendBuffer))
    }

    /// Back through a window-opening acknowledgement to the segment it answers.
    fn window(&mut self, side: Side, send: usize, ack: usize, why: DelayCause) -> Option<Step> {
        let sender = self.connection.sender(side);
        let before = ack.checked_sub(1).map(|it| &sender.acks[it]);
        let acknowledged = before.map_or(0, |it| it.acknowledged);
        let bytes = match (why, before) {
            (DelayCause::ReceiveWindow | DelayCause::ZeroWindow, Some(before)) => {
                before.edge.saturating_sub(acknowledged)
            }
            _ => sender.sends[send].start.saturating_sub(acknowledged),
        };
        if why != DelayCause::Unknown {
            self.state.count_window(side, why, bytes);
        }
        self.state.path.turn(side);
        let cause = self.connection.acknowledged(sender, send, ack, why, self.state.links, &mut self.state.path)?;
        self.released(side, send, cause, why)
    }

    /// Back through an HTTP/2 window's update to the segment it answers.
    fn flow_control(&mut self, side: Side, send: usize, why: DelayCause, opened: &Opened) -> Option<Step> {
        self.state.count_window(side, why, opened.size);
        self.state.path.turn(side);
        let cause = self.connection.updated(side, send, opened, why, self.state.links, &mut self.state.path)?;
        self.released(side, send, cause, why)
    }

    /// Back to the segment `cause`, with its answer at the end of the wait before `send`.
    fn released(&mut self, side: Side, send: usize, cause: usize, why: DelayCause) -> Option<Step> {
        let sender = self.connection.sender(side);
        let begun_with = self.state.follow(sender.sends[cause].packet, Some(why));
        let Some(next) = sender.send_of(begun_with) else { return Some(Step::Did(side, DelayCause::sender(side))) };
        if next >= send {
            return None;
        }
        Some(Step::Sent { side, send: next, passing: next != cause || !self.connection.is_timer(sender, next) })
    }
}
