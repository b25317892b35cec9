//! The walk back through a QUIC connection with known frames: from one message's completion, or from the last packet between
//! two programs to the first.
//!
//! Frames tell what may have caused a sending: a raised flow control limit, an acknowledgement, bytes for the program.
//! Between programs, whose writes are not known, the last event before it is taken as its cause. A datagram with unknown
//! frames ends the walk; the time before it is unknown.

use crate::critical_path::{CriticalPath, Interval, Place};
use crate::links::Links;
use crate::quic::QuicConnection;
use crate::quic_direction::Direction;
use crate::quic_sender::{HANDSHAKE, Sender};
use crate::walk::{State, Step, Walk, Walked, span};
use crate::{DelayCause, MessageTransit};
use crosswind_ledger::{PacketRecord, QuicFrame, QuicSpace};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::cell::OnceCell;
use std::collections::HashSet;

/// The initial window in datagrams (RFC 9002, section 7.2). A larger one shows by the bytes in flight.
const INITIAL_WINDOW: u64 = 10;
/// A datagram's bytes possible on every path (RFC 9000, section 14). A smaller one's sender had nothing more to send.
const LEAST_FULL: u32 = 1200;
/// Full datagrams differ by up to so many bytes, because frames have fields of variable length.
const SLACK: u32 = 32;
/// A receiver's longest acknowledgement delay, with slack for late timers.
const MAX_ACK_DELAY: Duration = Duration::from_millis(30);
/// Stands for the stream of a message without one.
const MESSAGE: u64 = u64::MAX;

/// A connection with the state for its walk.
pub struct QuicConversation<'a> {
    pub connection: QuicConnection<'a>,
    /// Both directions, if programs are its ends.
    ways: OnceCell<[DirectionState; 2]>,
}

/// One direction's state.
struct DirectionState {
    /// In order of time.
    deliveries: Vec<Delivery>,
    /// Datagrams with bytes or messages.
    data: Vec<u32>,
    /// Up to each datagram, the bytes sent in ack-eliciting datagrams.
    sent: Vec<u64>,
    /// In order of time: each covers more than the one before it.
    acks: Vec<Acked>,
    /// The initial window, bytes.
    initial: u64,
    /// Max in flight since the previous loss, for each datagram; none before the first loss.
    reach: Vec<Option<u64>>,
    /// Datagrams with old bytes.
    again: u64,
}

/// A program, or TLS, had more.
struct Delivery {
    at: Instant,
    send: usize,
    stream: u64,
    /// The byte missing until then.
    missing: u64,
}

struct Acked {
    at: Instant,
    /// The datagram that brought it.
    answer: usize,
    /// Bytes sent up to the last datagram it covers: in datagrams, and in streams.
    bytes: u64,
    new: u64,
}

impl<'a> QuicConversation<'a> {
    pub const fn new(connection: QuicConnection<'a>) -> Self {
        Self { connection, ways: OnceCell::new() }
    }

    /// The number of datagrams with old bytes in a direction.
    pub fn again(&self, side: Side) -> u64 {
        self.way(side).again
    }

    /// Attributes the whole connection.
    pub fn walk(&self, links: &Links<'a>) -> Walked {
        let packets = &self.connection.packets;
        let (from, to) = span(packets);
        let opener = packets.first().map_or(Side::Forward, |it| it.side);
        QuicWalk::new(self, links, CriticalPath::new(from, to, opener).merging(), None).whole()
    }

    /// When the client's latest bytes at `at` came.
    pub fn last_answer(&self, at: Instant) -> Option<Instant> {
        self.way(Side::Reverse).last_delivery(at).map(|it| it.at)
    }

    /// Attributes `[from, to]` backwards, for a client with its answer, come by `answered`, at `to`.
    pub fn exchange(&self, from: Instant, to: Instant, answered: Instant, links: &Links<'a>) -> Vec<Interval> {
        let path = CriticalPath::new(from, to, Side::Reverse);
        QuicWalk::new(self, links, path, None).exchange(self.last_answer(answered))
    }

    fn way(&self, side: Side) -> &DirectionState {
        let of =
            |side: Side| DirectionState::new(self.connection.sender(side), self.connection.sender(side.opposite()));
        &self.ways.get_or_init(|| Side::BOTH.map(of))[side as usize]
    }
}

impl DirectionState {
    fn new(sender: &Sender<'_>, back: &Sender<'_>) -> Self {
        let mut way = Self {
            deliveries: deliveries(sender),
            data: (0..sender.sends.len() as u32).filter(|&send| has_data(sender, send as usize)).collect(),
            sent: Vec::with_capacity(sender.sends.len()),
            acks: Vec::new(),
            initial: sender.sends.first().map_or(0, |it| INITIAL_WINDOW * u64::from(it.packet.headers.payload_bytes)),
            reach: Vec::with_capacity(sender.sends.len()),
            again: 0,
        };
        let mut all = 0;
        for (send, datagram) in sender.sends.iter().enumerate() {
            if is_to_be_acknowledged(sender, send) {
                all += u64::from(datagram.packet.headers.payload_bytes);
            }
            way.sent.push(all);
        }
        way.hear(sender, back);
        way.find_reach(sender);
        way
    }

    fn hear(&mut self, sender: &Sender<'_>, back: &Sender<'_>) {
        let numbered: Vec<(u64, usize)> =
            (0..sender.sends.len()).filter_map(|send| Some((sender.number(send)?, send))).collect();
        for &(at, answer) in &back.arrivals {
            let answer = answer as usize;
            let largest = back.frames(answer).filter_map(|frame| match frame {
                QuicFrame::Ack { largest, .. } => Some(largest),
                _ => None,
            });
            let Some(largest) = largest.max() else { continue };
            let Some(last) = numbered.partition_point(|it| it.0 <= largest).checked_sub(1) else { continue };
            let send = numbered[last].1;
            let acked = Acked { at, answer, bytes: self.sent[send], new: sender.sends[send].new };
            if self.acks.last().is_none_or(|before| before.bytes < acked.bytes) {
                self.acks.push(acked);
            }
        }
    }

    fn find_reach(&mut self, sender: &Sender<'_>) {
        let (mut most, mut recovered, mut acked, mut acks) = (0, None, 0, self.acks.iter().peekable());
        for (send, datagram) in sender.sends.iter().enumerate() {
            while let Some(ack) = acks.next_if(|ack| ack.at <= datagram.packet.entered) {
                acked = ack.bytes;
            }
            let is_recovering = recovered.is_some_and(|recovered| acked < recovered);
            self.reach.push(recovered.map(|_| if is_recovering { 0 } else { most }));
            if sender.repeated(send).is_some() {
                self.again += 1;
                (recovered, most) = (Some(self.sent[send]), 0);
            } else if !is_recovering {
                most = most.max(self.sent[send].saturating_sub(acked));
            }
        }
    }

    /// The congestion window after `acked` bytes were acknowledged: before the first loss it grows by as much (RFC
    /// 9002, section 7.3.1), and after it only the bytes in flight tell.
    fn window(&self, send: usize, acked: u64) -> u64 {
        self.reach[send].unwrap_or(self.initial + acked)
    }

    fn last_delivery(&self, at: Instant) -> Option<&Delivery> {
        self.deliveries[..self.deliveries.partition_point(|it| it.at <= at)].last()
    }

    /// The last delivery among datagrams sent before `at`: without path delay, one sent at that moment is no cause.
    fn last_delivery_of_earlier(&self, sender: &Sender<'_>, at: Instant) -> Option<&Delivery> {
        let all = &self.deliveries[..self.deliveries.partition_point(|it| it.at <= at)];
        all.iter().rev().find(|it| sender.sends[it.send].packet.entered < at)
    }
}

fn deliveries(sender: &Sender<'_>) -> Vec<Delivery> {
    let mut all = Vec::new();
    for (&stream, bytes) in &sender.streams {
        all.extend(bytes.advances().iter().map(|it| Delivery {
            at: it.at,
            send: it.send,
            stream,
            missing: it.missing,
        }));
    }
    let mut ended = HashSet::new();
    for &(at, send) in &sender.arrivals {
        let send = send as usize;
        for frame in sender.frames(send) {
            match frame {
                QuicFrame::Datagram { .. } => all.push(Delivery { at, send, stream: MESSAGE, missing: 0 }),
                // Its end is something to a program, too.
                QuicFrame::Stream { stream, offset, length, is_last: true } if ended.insert(stream) => {
                    all.push(Delivery { at, send, stream, missing: offset + u64::from(length) });
                }
                _ => {}
            }
        }
    }
    all.sort_by_key(|it| (it.at, it.send, it.stream));
    all
}

fn has_data(sender: &Sender<'_>, send: usize) -> bool {
    let is_data = |frame| matches!(frame, QuicFrame::Datagram { .. } | QuicFrame::Stream { is_last: true, .. });
    sender.pieces(send).next().is_some() || sender.frames(send).any(is_data)
}

fn is_to_be_acknowledged(sender: &Sender<'_>, send: usize) -> bool {
    let is_silent = |frame: &QuicFrame| matches!(frame, QuicFrame::Ack { .. } | QuicFrame::Close);
    sender.packets(send).iter().any(|packet| !sender.log.frames(packet).iter().all(is_silent))
}

/// The walk back through a connection, from where one message or all of it ends.
pub struct QuicWalk<'w, 'a> {
    pub state: State<'w, 'a>,
    of: &'w QuicConversation<'a>,
    /// The only one followed.
    message: Option<MessageTransit>,
}

impl<'w, 'a> Walk<'w, 'a> for QuicWalk<'w, 'a> {
    const LONGEST_DELAY: Duration = MAX_ACK_DELAY;

    fn state(&mut self) -> &mut State<'w, 'a> {
        &mut self.state
    }

    fn last_delivery(&self, side: Side, at: Instant) -> Option<Instant> {
        self.way(side).last_delivery(at).map(|it| it.at)
    }

    fn last_cause(&self, side: Side, at: Instant) -> Option<Instant> {
        self.way(side).last_delivery_of_earlier(self.sender(side), at).map(|it| it.at)
    }

    fn last_sending(&self, side: Side, at: Instant) -> Option<(Instant, usize)> {
        let (sender, way) = (self.sender(side), self.way(side));
        let until = way.data.partition_point(|&send| sender.sends[send as usize].packet.entered <= at);
        let send = way.data[until.checked_sub(1)?] as usize;
        Some((sender.sends[send].packet.entered, send))
    }

    fn close(&self, _has_data: bool) -> Option<&'a PacketRecord> {
        let closes = |side: Side| {
            let sender = self.sender(side);
            let is_close = |frame: &QuicFrame| *frame == QuicFrame::Close;
            let has_close =
                |send: &usize| sender.packets(*send).iter().any(|it| sender.log.frames(it).iter().any(is_close));
            (0..sender.sends.len()).find(has_close).map(|send| sender.sends[send].packet)
        };
        Side::BOTH.into_iter().filter_map(closes).min_by_key(|it| it.entered)
    }

    fn last(&mut self, last: &'a PacketRecord) -> Option<Step> {
        let sent = if last.left.is_some() { self.state.follow(last, None) } else { last };
        let send = self.sender(sent.side).send_of(sent)?;
        Some(Step::sent(sent.side, send))
    }

    /// Back from an arrival to its sending.
    fn arrived(&mut self, side: Side, at: Instant) -> Option<Step> {
        let delivery = self.way(side).last_delivery(at)?;
        let is_handshake = (HANDSHAKE..HANDSHAKE + 2).contains(&delivery.stream);
        if !is_handshake {
            self.state.count_turn(side);
        }
        self.state.path.turn(side);
        let sender = self.sender(side);
        let wait = is_handshake.then_some(DelayCause::SecurityHandshake);
        let begun_with = self.state.follow(sender.sends[delivery.send].packet, wait);
        let Some(send) = sender.send_of(begun_with) else { return Some(Step::Did(side, DelayCause::sender(side))) };
        if send != delivery.send {
            return Some(Step::sent(side, send));
        }
        let first = sender.streams.get(&delivery.stream).map_or(send, |stream| {
            self.direction(side).recovery_of(delivery.stream, stream, send, delivery.missing, &mut self.state.path)
        });
        Some(Step::sent(side, first))
    }

    /// Why a datagram was sent when it was.
    fn sent(&mut self, side: Side, send: usize, _passing: bool) -> Option<Step> {
        if self.message.is_some() {
            return self.sent_for_message(side, send);
        }
        let (sender, back) = (self.sender(side), self.sender(side.opposite()));
        let packet = sender.sends[send].packet;
        let at = packet.entered;
        self.state.at_sender(at, DelayCause::sender(side), side, None);
        if sender.packets(send).is_empty() {
            return None;
        }
        if !has_data(sender, send) {
            return Some(Step::Did(side, DelayCause::DelayedAcknowledgement));
        }
        let direction = self.direction(side);
        if let Some((number, stream, byte)) = direction.sent_again(send) {
            let first = direction.recovery_of(number, stream, send, byte, &mut self.state.path);
            return (first < send).then_some(Step::sent(side, first));
        }
        let answers = direction.answers(send);
        if answers.iter().any(|&it| back.packets(it).is_empty()) {
            return None;
        }
        if sender.packets(send).iter().any(|it| it.space != QuicSpace::Data) {
            return self.handshake(side, send, answers.first().copied());
        }
        let arrived = self.last_cause(side.opposite(), at);
        // After a delivery a program begins to send something new.
        if let Some(arrived) = arrived.filter(|&it| self.state.is_prompt(it, at) && !is_begun(sender, send, it)) {
            self.state.at_host(arrived, packet);
            return Some(Step::Arrived(side.opposite(), arrived));
        }
        let limit = answers.iter().find_map(|&it| Some((direction.flow_control(send, it)?, it)));
        if let Some((why, answer)) = limit.or_else(|| Some((sender.congestion_window(send), self.opened(side, send)?)))
        {
            return self.window(side, send, answer, why);
        }
        let before = self.way(side).data.partition_point(|&it| (it as usize) < send).checked_sub(1);
        let before = before.map(|data| self.way(side).data[data] as usize);
        let wrote = before.map(|it| sender.sends[it].packet.entered);
        // Behind a full datagram there may have been more to send; if its stream goes on, there was.
        let is_full = before.is_some_and(|it| is_full(sender, it, send));
        let continues = is_full && before.is_some_and(|it| is_continued(sender, it, send));
        if let Some(arrived) = arrived.filter(|&it| Some(it) > wrote && (!continues || self.state.is_prompt(it, at))) {
            self.state.at_host(arrived, packet);
            return Some(Step::Arrived(side.opposite(), arrived));
        }
        let (before, wrote) = (before?, wrote?);
        let waited = at.saturating_since(wrote);
        let waits_for_streams = answers.iter().any(|&it| opens_streams(sender, send, back, it));
        if self.state.is_prompt(wrote, at) || !is_full && !waits_for_streams {
            self.state.at_host(wrote, packet);
        } else {
            let paced = continues && answers.is_empty() && waited <= sender.round_trip(at);
            let part = if paced { DelayCause::Pacing } else { DelayCause::Unknown };
            self.state.at_sender(wrote, part, side, Some(packet));
        }
        Some(Step::sent(side, before))
    }
}

impl<'w, 'a> QuicWalk<'w, 'a> {
    pub const fn new(
        of: &'w QuicConversation<'a>,
        links: &'w Links<'a>,
        path: CriticalPath,
        message: Option<MessageTransit>,
    ) -> Self {
        let state = State::new(of.connection.packets.as_slice(), links, of.connection.hosts, path);
        Self { state, of, message }
    }

    pub const fn sender(&self, side: Side) -> &'w Sender<'a> {
        self.of.connection.sender(side)
    }

    pub fn direction(&self, side: Side) -> Direction<'w, 'a> {
        self.of.connection.direction(side, self.state.links)
    }

    fn way(&self, side: Side) -> &'w DirectionState {
        self.of.way(side)
    }

    /// Why a message's datagram was sent when it was: its bytes had been written.
    fn sent_for_message(&mut self, side: Side, send: usize) -> Option<Step> {
        let (direction, beginning) = (self.direction(side), self.state.path.beginning());
        let (sender, packet) = (direction.sender, direction.sender.sends[send].packet);
        // Nothing held it back but the host.
        if self.state.is_prompt(beginning, packet.entered) {
            self.state.at_sender(beginning, DelayCause::sender(side), side, Some(packet));
            return None;
        }
        let answers = direction.answers(send);
        if let Some((why, answer)) = answers.iter().find_map(|&it| Some((direction.limit(send, it)?, it))) {
            return self.window(side, send, answer, why);
        }
        if answers.iter().any(|&it| direction.back.packets(it).is_empty()) {
            return None;
        }
        // A timer sent it again.
        if let Some((_, stream, byte)) = direction.sent_again(send) {
            let first = direction.recovery(stream, send, byte, &mut self.state.path);
            return (first < send).then_some(Step::sent(side, first));
        }
        let previous = send.checked_sub(1).filter(|&it| sender.sends[it].packet.entered >= beginning);
        let before = previous.map_or(beginning, |it| sender.sends[it].packet.entered);
        let is_free = self.state.is_prompt(before, packet.entered) || !sender.is_in_flight(send, packet.entered);
        let part = if is_free { DelayCause::sender(side) } else { DelayCause::Pacing };
        self.state.at_sender(before, part, side, Some(packet));
        Some(Step::sent(side, previous?))
    }

    /// Back from a handshake datagram to its cause: the last arrival, or the previous sending.
    fn handshake(&mut self, side: Side, send: usize, answer: Option<usize>) -> Option<Step> {
        let (sender, other) = (self.sender(side), side.opposite());
        let back = self.sender(other);
        let packet = sender.sends[send].packet;
        let came = answer.or_else(|| {
            let until = back.arrivals.partition_point(|it| it.0 <= packet.entered);
            back.arrivals[..until].last().map(|it| it.1 as usize)
        });
        let arrived = came.and_then(|it| Some((back.sends[it].arrived?, it)));
        let before = send.checked_sub(1).map(|it| (sender.sends[it].packet.entered, it));
        match (before, arrived) {
            (Some((entered, before)), arrived) if arrived.is_none_or(|(at, _)| entered >= at) => {
                self.state.at_sender(entered, DelayCause::sender(side), side, Some(packet));
                Some(Step::sent(side, before))
            }
            (_, Some((at, came))) => {
                self.state.at_sender(at, DelayCause::sender(side), side, Some(packet));
                self.state.path.turn(other);
                let wait = Some(DelayCause::SecurityHandshake);
                let begun_with = self.state.follow(back.sends[came].packet, wait);
                Some(Step::sent(other, back.send_of(begun_with)?))
            }
            _ => None,
        }
    }

    /// The answer that released a datagram, if the congestion window held it until then.
    fn opened(&self, side: Side, send: usize) -> Option<usize> {
        let way = self.way(side);
        let packet = self.sender(side).sends[send].packet;
        let last = way.acks.partition_point(|ack| ack.at <= packet.entered).checked_sub(1)?;
        // A sender may stop one datagram before its window is full, or one after.
        let end = way.sent[send] + u64::from(packet.headers.payload_bytes);
        let fits = way.acks.partition_point(|ack| ack.bytes + way.window(send, ack.bytes) < end);
        let is_held = fits > 0 || end > way.window(send, 0);
        let ack = &way.acks[fits.min(last)];
        let told = is_held && self.state.is_prompt(ack.at, packet.entered);
        told.then_some(ack.answer)
    }

    /// Back from a window-limited datagram to the subject of the answer that opened the window.
    fn window(&mut self, side: Side, send: usize, answer: usize, why: DelayCause) -> Option<Step> {
        let (sender, back) = (self.sender(side), self.sender(side.opposite()));
        let at = back.sends[answer].arrived?;
        if self.message.is_none() {
            self.count_window(side, send, at, why);
        }
        self.state.path.turn(side);
        self.state.at_sender(at, DelayCause::sender(side), side, None);
        let answer = self.state.follow(back.sends[answer].packet, Some(why));
        let (came, cause) = sender.arrival_before(send, answer.entered)?;
        let is_limit = matches!(why, DelayCause::StreamWindow | DelayCause::ConnectionWindow);
        let is_delayed = !is_limit && !self.state.is_prompt(came, answer.entered);
        let part = if is_delayed { DelayCause::DelayedAcknowledgement } else { DelayCause::receiver(side) };
        self.state.path.name(came, part, Place::receiver(side), Some(answer), 0);
        let begun_with = self.state.follow(sender.sends[cause].packet, Some(why));
        let next = sender.send_of(begun_with).filter(|&next| next < send)?;
        Some(Step::sent(side, next))
    }

    /// Counts a wait for a window, opened at `at`; bytes in flight are counted as the window counts them.
    fn count_window(&mut self, side: Side, send: usize, at: Instant, why: DelayCause) {
        let (way, sender) = (self.way(side), self.sender(side));
        let before = way.acks.partition_point(|ack| ack.at < at).checked_sub(1).map(|it| &way.acks[it]);
        let last = send.saturating_sub(1);
        let bytes = if matches!(why, DelayCause::StreamWindow | DelayCause::ConnectionWindow) {
            sender.sends[last].new.saturating_sub(before.map_or(0, |it| it.new))
        } else {
            way.sent[last].saturating_sub(before.map_or(0, |it| it.bytes))
        };
        self.state.count_window(side, why, bytes);
    }
}

/// Whether one of a datagram's streams had begun before `at`.
fn is_begun(sender: &Sender<'_>, send: usize, at: Instant) -> bool {
    sender.pieces(send).any(|(number, _)| {
        let first = sender.streams.get(&number).and_then(|stream| stream.first_with(0));
        first.is_some_and(|first| sender.sends[first].packet.entered < at)
    })
}

/// Whether a datagram had no room for more.
fn is_full(sender: &Sender<'_>, before: usize, send: usize) -> bool {
    let size = |send: usize| sender.sends[send].packet.headers.payload_bytes;
    size(before) + SLACK >= size(send).max(LEAST_FULL)
}

/// Whether a datagram goes on with a stream where another one ended.
fn is_continued(sender: &Sender<'_>, before: usize, send: usize) -> bool {
    sender.pieces(send).any(|(number, bytes)| {
        let stream = sender.streams.get(&number);
        let last = bytes.start.checked_sub(1).zip(stream).and_then(|(last, stream)| stream.first_with(last));
        last == Some(before)
    })
}

/// Whether an answer allows more streams, and the datagram opens one.
fn opens_streams(sender: &Sender<'_>, send: usize, back: &Sender<'_>, answer: usize) -> bool {
    let allows = back.frames(answer).any(|frame| matches!(frame, QuicFrame::MaxStreams(_)));
    allows && sender.pieces(send).any(|(number, bytes)| number < HANDSHAKE && bytes.start == 0)
}
