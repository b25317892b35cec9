//! One sender of a TCP connection: segments, acknowledgements, and facts derived from both.

use crate::bytes::ByteStream;
use crate::critical_path::{CriticalPath, Place};
use crate::cuts::{Cuts, Flight};
use crate::socket_counts::Limits;
use crate::{DelayCause, Hosts};
use crosswind_ledger::{Headers, Hold, PacketRecord, TCP_ACK, TCP_FIN, TCP_PSH, TCP_RST, TCP_SYN, Trigger};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::cell::OnceCell;
use std::collections::VecDeque;

/// Linux's minimum for the variance term of a retransmission timeout; after a timeout it takes a connection to be idle.
pub const SHORTEST_IDLE: Duration = Duration::from_millis(200);

/// The initial window in segments (RFC 6928): always allowed in flight on a connection without loss.
pub const INITIAL_WINDOW: u64 = 10;

/// One host's sending to the other.
#[derive(Default)]
pub struct Sender<'a> {
    /// Segments with data, in the order of entering the path.
    pub sends: Vec<Segment<'a>>,
    pub bytes: ByteStream,
    /// Arrived segments, in order.
    pub arrivals: Vec<u32>,
    /// Acknowledgements as they arrived at the sender.
    pub acks: Vec<Ack<'a>>,
    /// Lost acknowledgements with a wider window, in the order of entering, and its edge.
    lost_openings: Vec<(&'a PacketRecord, u64)>,
    /// Arrivals of the persist timer's probes, in order.
    window_probes: Vec<Instant>,
    /// Tail loss probes, in order: data where the kernel says so, and FINs.
    loss_probes: Vec<&'a PacketRecord>,
    /// Segments sent after an idle time, and the most in flight before.
    pub before_idle: Vec<(u32, u64)>,
    /// Cuts in the congestion window.
    cuts: Cuts,
    /// For each segment, a lower bound of the congestion window, once it is asked for.
    reach: OnceCell<Vec<u32>>,
    pub shortest_round_trip: Option<Duration>,
    pub largest_segment: u64,
    /// The size of a full segment's packet, with headers. Options take from its data.
    full_packet: u64,
    pub sack: bool,
    pub limits: Limits,
    /// Whether both SYNs are known. Without them window scales and earlier bytes in flight are unknown.
    pub begun: bool,
}

pub struct Segment<'a> {
    pub packet: &'a PacketRecord,
    pub start: u64,
    pub end: u64,
    /// How far bytes had been sent before it.
    pub after: u64,
}

impl Segment<'_> {
    /// Whether, as its kernel says, it waited for Nagle's algorithm, until its program had filled it.
    pub fn is_held_by_nagle(&self) -> bool {
        self.packet.sending.is_some_and(|it| it.held_by == Some(Hold::Nagle))
    }

    /// When it arrived; none if it was lost or damaged.
    pub fn arrived(&self) -> Option<Instant> {
        arrived(self.packet)
    }
}

/// A new segment's reason, by its sender's kernel.
pub enum Told {
    /// The other host's last packet ended a wait.
    Released(DelayCause),
    /// A timer ended a wait, or the host itself did; with the beginning.
    Waited(DelayCause, Instant),
    /// TCP did not hold it back: its program wrote.
    Written,
}

pub struct Ack<'a> {
    pub packet: &'a PacketRecord,
    pub arrived: Instant,
    /// Acknowledged bytes, by it and all before it.
    pub acknowledged: u64,
    /// Up to where the receiver takes bytes.
    pub edge: u64,
}

impl Ack<'_> {
    /// Whether it reports arrivals beyond a gap.
    pub const fn has_sack(&self) -> bool {
        self.packet.headers.options.has_sack
    }
}

/// When a packet arrived, if the host could use it.
pub fn arrived(packet: &PacketRecord) -> Option<Instant> {
    packet.left.filter(|_| packet.flipped_bit.is_none())
}

/// The position of the first known sequence number on a connection begun earlier: smaller ones may follow.
const SOMEWHERE: u64 = 1 << 32;

/// Sequence numbers, modulo 2^32 (RFC 9293, 3.4), as growing positions.
#[derive(Clone, Copy, Default)]
struct Positions {
    /// A sequence number and its position.
    known: Option<(u32, u64)>,
}

impl Positions {
    fn of(&mut self, sequence: u32) -> u64 {
        let (number, position) = *self.known.get_or_insert((sequence, 0));
        let distance = i64::from(sequence.wrapping_sub(number).cast_signed());
        let found = position.saturating_add_signed(distance);
        if found > position {
            self.known = Some((sequence, found));
        }
        found
    }
}

impl<'a> Sender<'a> {
    pub fn new(
        packets: &[&'a PacketRecord],
        side: Side,
        own: Option<Headers>,
        other: Option<Headers>,
        hosts: Hosts,
    ) -> Self {
        let mut sender = Self { limits: Limits::new(hosts), ..Self::default() };
        let mut positions = Positions::default();
        if let Some(own) = own {
            positions.of(own.sequence.wrapping_add(1));
        } else {
            let first = |it: &&PacketRecord| {
                let headers = &it.headers;
                let acknowledges = headers.flags & TCP_ACK != 0;
                let known = if it.side == side { headers.sequence } else { headers.acknowledgement };
                (it.side == side || acknowledges).then_some(known)
            };
            positions.known = packets.iter().find_map(first).map(|sequence| (sequence, SOMEWHERE));
        }
        sender.begun = own.is_some() && other.is_some();
        let said = [own, other].map(|syn| syn.map(|it| it.options).unwrap_or_default());
        sender.sack = said.iter().all(|options| options.sack_permitted);
        sender.add_segments(packets, side, positions);
        sender.largest_segment = sender.sends.iter().map(|it| it.end - it.start).max().unwrap_or(0);
        sender.full_packet = sender.find_full_packet(own, other);
        sender.arrivals = sender.sends.iter().zip(0..).filter_map(|(sent, it)| sent.arrived().map(|_| it)).collect();
        let Self { bytes, arrivals, sends, .. } = &mut sender;
        arrivals.sort_unstable_by_key(|&send| (sends[send as usize].arrived(), send));
        bytes.follow_receiver(arrivals.iter().filter_map(|&send| {
            let at = sends[send as usize].arrived()?;
            let Segment { start, end, .. } = sends[send as usize];
            Some((at, send as usize, start..end))
        }));
        // Windows are scaled only where both ends said so (RFC 7323, 2.2).
        let shift = said[0].window_shift.and(said[1].window_shift).unwrap_or(0);
        sender.add_acks(packets, side, positions, shift);
        sender.shortest_round_trip = sender.find_shortest_round_trip(hosts.promptness);
        sender.before_idle = sender.follow_idle_times();
        sender.cuts = sender.follow_cuts();
        sender
    }

    fn add_segments(&mut self, packets: &[&'a PacketRecord], side: Side, mut positions: Positions) {
        let mut fins = 0;
        for &packet in packets.iter().filter(|it| it.side == side) {
            let (trigger, flags) = (packet.sending.map(|it| it.trigger), packet.headers.flags);
            fins += u32::from(flags & TCP_FIN != 0 && packet.copy == 0);
            let is_fin_again = trigger.is_none() && fins == 2 && flags & TCP_FIN != 0;
            if packet.copy == 0 && (trigger == Some(Trigger::LossProbeTimer) || is_fin_again) {
                self.loss_probes.push(packet);
            }
            if packet.headers.payload_bytes == 0 {
                let is_old = || {
                    flags & (TCP_SYN | TCP_FIN | TCP_RST) == 0
                        && positions.of(packet.headers.sequence) < self.bytes.sent()
                };
                let is_probe = trigger.map_or_else(is_old, |it| it == Trigger::PersistTimer);
                self.window_probes.extend(arrived(packet).filter(|_| is_probe));
                continue;
            }
            // A copy is another chance to arrive.
            if packet.copy > 0 {
                if let (Some(send), Some(at)) = (self.send_of(packet), arrived(packet)) {
                    let sent = &mut self.sends[send];
                    if sent.arrived().is_none_or(|before| at < before) {
                        sent.packet = packet;
                    }
                }
                continue;
            }
            let start = positions.of(packet.headers.sequence);
            let end = start + u64::from(packet.headers.payload_bytes);
            let send = self.sends.len();
            if send == 0 {
                self.bytes.begin(start);
            }
            self.sends.push(Segment { packet, start, end, after: self.bytes.sent() });
            self.bytes.add(send, start..end);
        }
    }

    fn add_acks(&mut self, packets: &[&'a PacketRecord], side: Side, mut positions: Positions, shift: u8) {
        let mut acks: Vec<(Instant, &PacketRecord)> = packets
            .iter()
            .filter(|it| it.side != side && it.headers.flags & TCP_ACK != 0)
            .map(|&it| (arrived(it).unwrap_or(it.entered), it))
            .collect();
        acks.sort_by_key(|&(at, packet)| (at, packet.index));
        let (mut acknowledged, mut edge) = (0, 0);
        for (_, packet) in acks {
            let headers = &packet.headers;
            let shift = if headers.flags & TCP_SYN == 0 { shift.min(14) } else { 0 };
            let position = positions.of(headers.acknowledgement);
            let opened = position + (u64::from(headers.window) << shift);
            let Some(arrived) = arrived(packet) else {
                self.lost_openings.extend((opened > edge).then_some((packet, opened)));
                continue;
            };
            acknowledged = acknowledged.max(position);
            edge = edge.max(opened);
            self.acks.push(Ack { packet, arrived, acknowledged, edge });
        }
    }

    pub fn send_of(&self, packet: &PacketRecord) -> Option<usize> {
        self.sends.binary_search_by_key(&packet.index, |it| it.packet.index).ok()
    }

    /// Whether no more data fits into a segment.
    pub fn is_full(&self, sent: &Segment<'_>) -> bool {
        sent.packet.size.0 >= self.full_packet
    }

    /// A segment without PSH left something to be sent, so it was full; else the SYNs say how large one is, else the largest one does.
    fn find_full_packet(&self, own: Option<Headers>, other: Option<Headers>) -> u64 {
        let sizes =
            |of: &dyn Fn(&Segment<'_>) -> bool| self.sends.iter().filter(|it| of(it)).map(|it| it.packet.size.0).max();
        let cut = sizes(&|it| it.packet.headers.flags & TCP_PSH == 0 && it.start >= it.after);
        let announced =
            own.zip(other).map(|(own, other)| own.options.largest_segment.min(other.options.largest_segment));
        let headers = if own.is_some_and(|it| it.version == 6) { 60 } else { 40 };
        let from_syn = announced.filter(|&it| it > 0).map(|it| u64::from(it) + headers);
        cut.or(from_syn).or_else(|| sizes(&|_| true)).unwrap_or(0)
    }

    /// The last-arriving segment by `until`, with its time.
    pub fn last_arrival(&self, until: Instant) -> Option<(Instant, usize)> {
        let arrived = |send: u32| self.sends[send as usize].arrived();
        let position = self.arrivals.partition_point(|&send| arrived(send) <= Some(until));
        let &send = self.arrivals[..position].last()?;
        Some((arrived(send)?, send as usize))
    }

    /// The acknowledgements arrived by `at`.
    pub fn acks_until(&self, at: Instant) -> &[Ack<'a>] {
        &self.acks[..self.acks.partition_point(|ack| ack.arrived <= at)]
    }

    /// The same among segments sent before another one. Without path delay it has arrived as well.
    pub fn arrival_before(&self, send: usize, until: Instant) -> Option<(Instant, usize)> {
        let arrived = |send: u32| self.sends[send as usize].arrived();
        let position = self.arrivals.partition_point(|&it| arrived(it) <= Some(until));
        let &before = self.arrivals[..position].iter().rev().find(|&&it| (it as usize) < send)?;
        Some((arrived(before)?, before as usize))
    }

    /// The first lost acknowledgement between `from` and `until` with a window up to `edge`.
    pub fn lost_opening(&self, edge: u64, from: Instant, until: Instant) -> Option<&'a PacketRecord> {
        let first = self.lost_openings.partition_point(|it| it.0.entered <= from);
        let mut lost = self.lost_openings[first..].iter().take_while(|it| it.0.entered < until);
        lost.find(|it| it.1 >= edge).map(|it| it.0)
    }

    /// The window update for `send`, lost before `answer`, if this one answers a probe.
    pub fn lost_update(
        &self,
        send: usize,
        answer: &PacketRecord,
        since: Instant,
        promptness: Duration,
    ) -> Option<&'a PacketRecord> {
        if !self.answers_window_probe(answer, promptness) {
            return None;
        }
        let first = self.wait(send, promptness).map_or(send, |it| it.1);
        self.lost_opening(self.sends[first].end, since, answer.entered)
    }

    /// Whether the receiver sent a packet in answer to the persist timer's probe.
    fn answers_window_probe(&self, answer: &PacketRecord, promptness: Duration) -> bool {
        let arrived = self.window_probes.partition_point(|&at| at <= answer.entered).checked_sub(1);
        arrived.is_some_and(|it| answer.entered.saturating_since(self.window_probes[it]) <= promptness)
    }

    /// The last tail loss probe between `from` and `until`, if its arrival preceded `told`.
    pub fn loss_probe(&self, from: Instant, until: Instant, told: &PacketRecord) -> Option<&'a PacketRecord> {
        let before = self.loss_probes.partition_point(|it| it.entered < until);
        let had_arrived = |it: &&PacketRecord| arrived(it).is_some_and(|at| at <= told.entered);
        self.loss_probes[..before].iter().rev().take_while(|it| it.entered > from).copied().find(had_arrived)
    }

    /// The acknowledgements arrived when a segment was sent. Without path delay its own has arrived as well.
    pub fn acks_before(&self, send: usize) -> &[Ack<'a>] {
        let sent = &self.sends[send];
        let acks = self.acks_until(sent.packet.entered);
        let own = acks.iter().rev().take_while(|ack| ack.acknowledged >= sent.end).count();
        &acks[..acks.len() - own]
    }

    /// The shortest time from sending a segment to its acknowledgement, among prompt ones.
    fn find_shortest_round_trip(&self, promptness: Duration) -> Option<Duration> {
        let of_ack = |ack: &Ack<'_>| {
            let (at, send) = self.last_arrival(ack.packet.entered)?;
            let prompt = ack.packet.entered.saturating_since(at) <= promptness;
            prompt.then(|| ack.arrived.saturating_since(self.sends[send].packet.entered))
        };
        self.acks.iter().filter_map(of_ack).min()
    }

    /// The minimum for its retransmission timer.
    pub fn shortest_timeout(&self) -> Duration {
        SHORTEST_IDLE + self.shortest_round_trip.unwrap_or(Duration::ZERO)
    }

    /// Whether more was in flight before the last idle time than during the wait ended by `send`.
    pub fn was_larger_before_idle(&self, send: usize, promptness: Duration) -> bool {
        let until = self.before_idle.partition_point(|it| it.0 as usize <= send);
        let (most, Some((before, _))) = (self.before_idle[..until].last(), self.wait(send, promptness)) else {
            return false;
        };
        most.is_some_and(|&(_, most)| most > self.in_flight(&self.sends[before]))
    }

    /// Segments sent after an idle time, and the most in flight before.
    fn follow_idle_times(&self) -> Vec<(u32, u64)> {
        let (mut most, mut before_idle) = (0, Vec::new());
        let mut last: Option<Instant> = None;
        let idle = self.shortest_timeout();
        for (sent, send) in self.sends.iter().zip(0..) {
            let at = sent.packet.entered;
            let acknowledged = self.acks_until(at).last().map_or(0, |ack| ack.acknowledged);
            let paused = last.is_some_and(|last| at.saturating_since(last) > idle);
            if paused && acknowledged >= sent.after {
                before_idle.push((send, most));
            }
            (last, most) = (Some(at), most.max(sent.end.saturating_sub(acknowledged)));
        }
        before_idle
    }

    fn follow_cuts(&self) -> Cuts {
        let (mut cuts, mut acknowledged) = (Cuts::default(), 0);
        let mut acks = self.acks.iter().peekable();
        for (send, sent) in self.sends.iter().enumerate() {
            while let Some(ack) = acks.next_if(|ack| ack.arrived <= sent.packet.entered) {
                acknowledged = ack.acknowledged;
            }
            let first = (sent.start < sent.after).then(|| self.bytes.first_with(sent.start)).flatten();
            let again = first.map(|first| self.sends[first].arrived().is_none());
            cuts.add(send, Flight { sent: sent.end.max(sent.after), acknowledged }, again);
        }
        cuts
    }

    /// A lower bound of the congestion window at a segment.
    pub fn reach(&self, send: usize, initial_window: Option<u64>) -> u64 {
        let all = self.reach.get_or_init(|| self.follow_reach(initial_window.unwrap_or(INITIAL_WINDOW)));
        all[send].into()
    }

    /// The most in flight within the last retransmission timeout, without a loss since. Linux shrinks no window sooner.
    fn follow_reach(&self, initial_window: u64) -> Vec<u32> {
        let timeout = self.shortest_timeout();
        // Bytes in flight, each more than those after it.
        let mut most: VecDeque<(Instant, u64)> = VecDeque::new();
        let (mut recovered, mut initial) = (0, initial_window * self.largest_segment);
        let (mut acknowledged, mut acks) = (0, self.acks.iter().peekable());
        let of = |segment: &Segment<'_>| {
            let at = segment.packet.entered;
            while let Some(ack) = acks.next_if(|ack| ack.arrived <= at) {
                acknowledged = ack.acknowledged;
            }
            while most.front().is_some_and(|&(since, _)| at.saturating_since(since) > timeout) {
                most.pop_front();
            }
            let recovering = acknowledged < recovered;
            let reach = if recovering { 0 } else { most.front().map_or(0, |it| it.1).max(initial) };
            if segment.start < segment.after {
                (recovered, initial) = (segment.after, 0);
                most.clear();
            } else if !recovering {
                let in_flight = segment.end.saturating_sub(acknowledged);
                while most.back().is_some_and(|&(_, bytes)| bytes <= in_flight) {
                    most.pop_back();
                }
                most.push_back((at, in_flight));
            }
            u32::try_from(reach).unwrap_or(u32::MAX)
        };
        self.sends.iter().map(of).collect()
    }

    /// A new segment's reason, if its sender's kernel gave one.
    pub fn told(&self, send: usize) -> Option<Told> {
        let sent = &self.sends[send];
        let (told, side) = (sent.packet.sending?, sent.packet.side);
        let before = send.checked_sub(1).map(|it| self.sends[it].packet.entered);
        // The head of the queue may have been held back since before this segment was written.
        let since = told.held_since.max(told.written.map(|it| it.0)).max(before).unwrap_or(sent.packet.entered);
        Some(match (told.held_by, told.trigger) {
            (Some(Hold::Pacing), _) => Told::Waited(DelayCause::Pacing, since),
            (_, Trigger::LossProbeTimer) => Told::Waited(DelayCause::TailLossProbe, since),
            (_, Trigger::PersistTimer) => Told::Waited(DelayCause::ZeroWindow, since),
            (Some(Hold::SmallQueue | Hold::Failed), _) => Told::Waited(DelayCause::sender(side), since),
            // A program writes once an acknowledgement has made room.
            (Some(hold), Trigger::Packet | Trigger::Write) => Told::Released(match hold {
                Hold::SendBuffer => DelayCause::SendBuffer,
                Hold::Nagle | Hold::TsoDeferral if told.trigger == Trigger::Write => return Some(Told::Written),
                Hold::ReceiveWindow => DelayCause::ReceiveWindow,
                Hold::Nagle => DelayCause::Nagle,
                Hold::CongestionWindow | Hold::TsoDeferral => DelayCause::CongestionWindow,
                _ => return Some(Told::Written),
            }),
            _ => Told::Written,
        })
    }

    /// Names the wait before the segment `send`, without a packet from the other host, to `since`.
    pub fn name_wait(&self, send: usize, part: DelayCause, since: Instant, path: &mut CriticalPath) {
        let sent = &self.sends[send];
        let (mut packet, place) = (sent.packet, Place::sender(sent.packet.side));
        // The persist timer filled the small window.
        if part == DelayCause::ZeroWindow
            && let Some(lost) = self.lost_opening(sent.end + 1, since, packet.entered)
        {
            path.name(lost.entered, DelayCause::PersistTimer, place, Some(lost), 0);
        }
        // It probes for the one before.
        if part == DelayCause::TailLossProbe {
            packet = self.sends[send.saturating_sub(1)].packet;
        }
        path.name(since, part, place, Some(packet), 0);
    }

    /// The congestion window's name for a segment behind it.
    pub fn congestion_window(&self, send: usize) -> DelayCause {
        self.cuts.name(send, self.in_flight(&self.sends[send]))
    }

    /// The wait ended by `send`: the last segment with new bytes before it, and the first after it. Others may
    /// have gone out with `send`, at the same instant.
    pub fn wait(&self, send: usize, promptness: Duration) -> Option<(usize, usize)> {
        let at = self.sends[send].packet.entered;
        let is_new = |it: &usize| self.sends[*it].start >= self.sends[*it].after;
        let is_before = |it: &usize| at.saturating_since(self.sends[*it].packet.entered) > promptness;
        let before = (0..send).rev().filter(is_new).find(is_before)?;
        Some((before, (before + 1..send).find(is_new).unwrap_or(send)))
    }

    /// Bytes in flight during the wait ended by `send`, and whether everything written was: the last segment
    /// before tells by PSH, set by a write into a full buffer.
    pub fn flight(&self, send: usize, promptness: Duration) -> Option<(u64, bool)> {
        let before = &self.sends[self.wait(send, promptness)?.0];
        Some((self.in_flight(before), before.packet.headers.flags & TCP_PSH != 0))
    }

    /// Whether everything written was in flight during the wait ended by `send`: an acknowledgement released
    /// nothing. One arrived at most `late` before may still have.
    pub fn ran_out(&self, send: usize, promptness: Duration, late: Duration) -> bool {
        let Some((before, first)) = self.wait(send, promptness) else { return false };
        let (before, at) = (&self.sends[before], self.sends[first].packet.entered);
        let known = self.acks_until(before.packet.entered);
        let acknowledged = known.last().map_or(0, |ack| ack.acknowledged);
        let mut news = self.acks_before(first)[known.len()..].iter().filter(|ack| ack.acknowledged > acknowledged);
        let in_vain =
            news.next().filter(|ack| at.saturating_since(ack.arrived) > late && self.sends[first].end <= ack.edge);
        before.packet.headers.flags & TCP_PSH != 0 && in_vain.is_some() && news.next().is_some()
    }

    pub fn in_flight(&self, sent: &Segment<'_>) -> u64 {
        sent.end.saturating_sub(self.acks_until(sent.packet.entered).last().map_or(0, |ack| ack.acknowledged))
    }
}
