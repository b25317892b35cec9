//! One sender of a QUIC connection: datagrams, acknowledgements and limits, from both hosts' logs.

use crate::bytes::{Advance, ByteStream};
use crate::cuts::{Cuts, Flight};
use crate::round_trips::{RoundTrips, Sent};
use crate::{DelayCause, Hosts};
use crosswind_ledger::{PacketRecord, QuicFrame, QuicLog, QuicPacket, QuicSpace};
use crosswind_units::{Duration, Instant};
use std::collections::HashMap;
use std::ops::Range;

/// The largest probe datagram: a larger one with a PING searches for the path MTU (RFC 9000, 14.1 and 14.3).
const LARGEST_PROBE: u32 = 1200;

/// For programs, TLS data count as streams with this plus the packet number space as their number, above all others.
pub const HANDSHAKE: u64 = 1 << 62;
/// A round trip, as long as none is known (RFC 9002, section 6.2.2).
const INITIAL_RTT: Duration = Duration::from_millis(333);

/// One host's sending to the other.
pub struct Sender<'a> {
    pub log: &'a QuicLog,
    /// Whether both ends are others' programs.
    is_of_programs: bool,
    /// In the order of entering the path.
    pub sends: Vec<Datagram<'a>>,
    /// In order of arrival.
    pub arrivals: Vec<(Instant, u32)>,
    pub streams: HashMap<u64, ByteStream>,
    /// Its TLS handshake data.
    pub handshake: ByteStream,
    /// Indices in `sends` of messages without a stream.
    pub datagrams: Vec<u32>,
    /// Its receiver's acknowledgements, in order of arrival at the sender.
    pub acks: Vec<Ack>,
    /// How many bytes its receiver takes, likewise.
    pub limits: Vec<Limit>,
    /// Its receiver's initial stream limits, if known.
    first_limits: Option<FirstLimits>,
    /// What cut the congestion window, and the bytes in flight at each sending.
    cuts: Cuts,
    in_flight: Vec<u64>,
}

struct FirstLimits {
    is_client: bool,
    own: u64,
    others: u64,
    one_way: u64,
}

pub struct Datagram<'a> {
    pub packet: &'a PacketRecord,
    /// When it arrived; none if it was lost or damaged.
    pub arrived: Option<Instant>,
    /// In its sender's log; empty if unknown.
    pub packets: Range<u32>,
    /// Stream bytes sent so far, its own included.
    pub new: u64,
}

pub struct Ack {
    pub at: Instant,
    /// The largest number so far.
    pub largest: u64,
    /// For how long packets below it may be unacknowledged before they are lost (RFC 9002, 6.1.2).
    pub patience: Duration,
}

/// When a packet was lost, as its sender saw it.
pub struct Declared {
    pub at: Instant,
    pub part: DelayCause,
    /// Whether by a timer, which is late by up to its granularity.
    pub by_timer: bool,
}

pub struct Limit {
    pub at: Instant,
    /// None for all streams together.
    pub stream: Option<u64>,
    pub bytes: u64,
}

impl<'a> Sender<'a> {
    pub fn new(sends: Vec<Datagram<'a>>, log: &'a QuicLog, is_of_programs: bool) -> Self {
        let (mut copies, mut originals) = (Vec::new(), Vec::with_capacity(sends.len()));
        for datagram in sends {
            if datagram.packet.copy > 0 { &mut copies } else { &mut originals }.push(datagram);
        }
        let mut sender = Self {
            log,
            is_of_programs,
            sends: originals,
            arrivals: Vec::new(),
            streams: HashMap::new(),
            handshake: ByteStream::default(),
            datagrams: Vec::new(),
            acks: Vec::new(),
            limits: Vec::new(),
            first_limits: None,
            cuts: Cuts::default(),
            in_flight: Vec::new(),
        };
        // A copy is another chance to arrive.
        for copy in copies {
            if let (Some(send), Some(at)) = (sender.send_of(copy.packet), copy.arrived) {
                let sent = &mut sender.sends[send];
                if sent.arrived.is_none_or(|before| at < before) {
                    (sent.arrived, sent.packet) = (Some(at), copy.packet);
                }
            }
        }
        sender.arrivals = sender.sends.iter().zip(0..).filter_map(|(sent, at)| Some((sent.arrived?, at))).collect();
        sender.arrivals.sort_unstable();
        sender.add_handshake();
        sender.add_streams();
        let has_datagrams = |send: &u32| {
            sender.frames(*send as usize).filter(|frame| matches!(frame, QuicFrame::Datagram { .. })).count()
        };
        sender.datagrams =
            (0..sender.sends.len() as u32).flat_map(|send| std::iter::repeat_n(send, has_datagrams(&send))).collect();
        sender
    }

    fn add_streams(&mut self) {
        let mut streams: HashMap<u64, ByteStream> = HashMap::new();
        let mut all = 0;
        for send in 0..self.sends.len() {
            for (number, bytes) in self.pieces(send) {
                let stream = streams.entry(number).or_default();
                let before = stream.sent();
                stream.add(send, bytes);
                all += if number < HANDSHAKE { stream.sent() - before } else { 0 };
            }
            self.sends[send].new = all;
        }
        let mut arrived: HashMap<u64, Vec<(Instant, usize, Range<u64>)>> = HashMap::new();
        for &(at, send) in &self.arrivals {
            let came_early = self.came_early(send as usize);
            for (number, bytes) in self.pieces(send as usize) {
                if number >= HANDSHAKE || !came_early {
                    arrived.entry(number).or_default().push((at, send as usize, bytes));
                }
            }
        }
        for (number, arrivals) in arrived {
            if let Some(stream) = streams.get_mut(&number) {
                stream.follow_receiver(arrivals);
            }
        }
        self.streams = streams;
    }

    fn add_handshake(&mut self) {
        let mut handshake = ByteStream::default();
        for send in 0..self.sends.len() {
            self.crypto(send).for_each(|bytes| handshake.add(send, bytes));
        }
        let arrivals = self.arrivals.iter().map(|&(at, send)| (at, send as usize));
        handshake
            .follow_receiver(arrivals.flat_map(|(at, send)| self.crypto(send).map(move |bytes| (at, send, bytes))));
        self.handshake = handshake;
    }

    /// The advance that completed its handshake data.
    pub fn handshake_end(&self) -> Option<&Advance> {
        self.handshake.completion_of(self.handshake.sent())
    }

    /// Whether a datagram arrived before the handshake was complete: its receiver drops 1-RTT packets then (RFC 9001, 5.7).
    pub fn came_early(&self, send: usize) -> bool {
        let is_after_first = self.handshake.first_with(0).is_some_and(|first| send >= first);
        let arrived = self.sends[send].arrived;
        is_after_first && arrived.is_some_and(|at| self.handshake_end().is_none_or(|end| at < end.at))
    }

    /// Notes the other host's feedback.
    pub fn hear(&mut self, other: &Self, hosts: Hosts) {
        let mut round_trips = RoundTrips::new(self.arrived_packets());
        for &(at, send) in &other.arrivals {
            let sent = other.sends[send as usize].packet.entered;
            for packet in other.packets(send as usize).iter().filter(|it| it.space != QuicSpace::Data) {
                for frame in other.log.frames(packet) {
                    round_trips.add(frame, packet.space, sent, at);
                    match *frame {
                        QuicFrame::MaxData(bytes) => self.limits.push(Limit { at, stream: None, bytes }),
                        QuicFrame::StreamLimits { is_client, own, others, one_way } => {
                            self.first_limits = Some(FirstLimits { is_client, own, others, one_way });
                        }
                        _ => {}
                    }
                }
            }
            for frame in other.frames(send as usize) {
                round_trips.add(&frame, QuicSpace::Data, sent, at);
                match frame {
                    QuicFrame::Ack { largest, .. } => {
                        let largest = self.acks.last().map_or(0, |ack| ack.largest).max(largest);
                        let patience = round_trips.patience(hosts.quic_time_threshold);
                        self.acks.push(Ack { at, largest, patience });
                    }
                    QuicFrame::MaxData(bytes) => self.limits.push(Limit { at, stream: None, bytes }),
                    QuicFrame::MaxStreamData { stream, limit } => {
                        self.limits.push(Limit { at, stream: Some(stream), bytes: limit });
                    }
                    _ => {}
                }
            }
        }
    }

    /// Follows the congestion window, once the other host is heard.
    pub fn follow_cuts(&mut self) {
        let numbers: Vec<(u64, usize)> =
            (0..self.sends.len()).filter_map(|send| Some((self.number(send)?, send))).collect();
        let (mut sent, mut up_to, mut acknowledged) = (0, Vec::with_capacity(self.sends.len()), 0);
        let mut acks = self.acks.iter().peekable();
        for (send, datagram) in self.sends.iter().enumerate() {
            while let Some(ack) = acks.next_if(|ack| ack.at <= datagram.packet.entered) {
                let last = numbers.partition_point(|it| it.0 <= ack.largest).checked_sub(1).map(|it| numbers[it].1);
                acknowledged = last.and_then(|last| up_to.get(last).copied()).unwrap_or(acknowledged);
            }
            sent += u64::from(datagram.packet.headers.payload_bytes);
            up_to.push(sent);
            let again = self.repeated(send).map(|first| self.sends[first].arrived.is_none());
            self.cuts.add(send, Flight { sent, acknowledged }, again);
            self.in_flight.push(sent.saturating_sub(acknowledged));
        }
    }

    /// The earlier datagram with some of a datagram's stream bytes, if any.
    pub fn repeated(&self, send: usize) -> Option<usize> {
        self.pieces(send).find_map(|(number, bytes)| {
            self.streams.get(&number)?.first_with(bytes.start).filter(|&first| first < send)
        })
    }

    /// The congestion window's name for a datagram that waited for it.
    pub fn congestion_window(&self, send: usize) -> DelayCause {
        self.cuts.name(send, self.in_flight.get(send).copied().unwrap_or(0))
    }

    fn arrived_packets(&self) -> impl Iterator<Item = (QuicSpace, Sent)> {
        let arrived = self.sends.iter().enumerate().filter_map(|(send, sent)| Some((send, sent, sent.arrived?)));
        arrived.flat_map(move |(send, sent, arrived)| {
            self.packets(send).iter().map(move |packet| {
                let is_silent = |frame: &QuicFrame| matches!(frame, QuicFrame::Ack { .. } | QuicFrame::Close);
                let asks_for_ack = !self.log.frames(packet).iter().all(is_silent);
                let sent = Sent { number: packet.number, at: sent.packet.entered, arrived, asks_for_ack };
                (packet.space, sent)
            })
        })
    }

    pub fn packets(&self, send: usize) -> &'a [QuicPacket] {
        let Range { start, end } = self.sends[send].packets;
        &self.log.packets()[start as usize..end as usize]
    }

    /// A datagram's frames, in packets able to carry streams.
    pub fn frames(&self, send: usize) -> impl Iterator<Item = QuicFrame> + use<'a> {
        let log = self.log;
        let packets = self.packets(send).iter().filter(|it| it.space == QuicSpace::Data);
        packets.flat_map(move |packet| log.frames(packet).iter().copied())
    }

    /// A datagram's streams, and their bytes.
    pub fn pieces(&self, send: usize) -> impl Iterator<Item = (u64, Range<u64>)> + use<'a> {
        let (log, is_of_programs) = (self.log, self.is_of_programs);
        self.packets(send).iter().flat_map(move |packet| {
            let handshake = HANDSHAKE + packet.space as u64;
            log.frames(packet).iter().filter_map(move |frame| match *frame {
                QuicFrame::Stream { stream, offset, length, .. } if length > 0 => {
                    Some((stream, offset..offset + u64::from(length)))
                }
                QuicFrame::Crypto { offset, length } if is_of_programs && length > 0 => {
                    Some((handshake, offset..offset + u64::from(length)))
                }
                _ => None,
            })
        })
    }

    /// The TLS bytes in a datagram's Handshake packets.
    pub fn crypto(&self, send: usize) -> impl Iterator<Item = Range<u64>> + use<'a> {
        let log = self.log;
        let packets = self.packets(send).iter().filter(|it| it.space == QuicSpace::Handshake);
        packets.flat_map(move |packet| log.frames(packet)).filter_map(|frame| match *frame {
            QuicFrame::Crypto { offset, length } => Some(offset..offset + u64::from(length)),
            _ => None,
        })
    }

    /// Whether a later datagram repeats TLS data of an earlier one.
    pub fn repeats_handshake(&self, earlier: usize, later: usize) -> bool {
        let tls = |send: usize| {
            self.packets(send).iter().flat_map(|packet| {
                self.log.frames(packet).iter().filter_map(move |frame| match *frame {
                    QuicFrame::Crypto { offset, length } => Some((packet.space, offset, offset + u64::from(length))),
                    _ => None,
                })
            })
        };
        tls(earlier).any(|(space, from, to)| tls(later).any(|it| it.0 == space && it.1 < to && from < it.2))
    }

    /// Whether, until a time, the other host acknowledged a later packet than those of a datagram.
    pub fn is_acknowledged_beyond(&self, send: usize, until: Instant, back: &Self) -> bool {
        let heard = &back.arrivals[..back.arrivals.partition_point(|it| it.0 <= until)];
        self.packets(send).iter().any(|packet| {
            heard.iter().any(|&(_, answer)| {
                let answers = back.packets(answer as usize).iter().filter(|it| it.space == packet.space);
                answers
                    .flat_map(|it| back.log.frames(it))
                    .any(|frame| matches!(frame, QuicFrame::Ack { largest, .. } if *largest > packet.number))
            })
        })
    }

    pub fn number(&self, send: usize) -> Option<u64> {
        self.number_in(QuicSpace::Data, send)
    }

    pub fn number_in(&self, space: QuicSpace, send: usize) -> Option<u64> {
        self.packets(send).iter().rfind(|it| it.space == space).map(|it| it.number)
    }

    pub fn send_of(&self, packet: &PacketRecord) -> Option<usize> {
        self.sends.binary_search_by_key(&packet.index, |it| it.packet.index).ok()
    }

    /// Datagrams from number `from` on, sent until `until`.
    pub fn between(&self, from: usize, until: Instant) -> Range<usize> {
        from..self.sends.partition_point(|it| it.packet.entered <= until).max(from)
    }

    pub fn is_probe(&self, send: usize) -> bool {
        self.sends[send].packet.headers.payload_bytes <= LARGEST_PROBE
            && self.frames(send).any(|frame| frame == QuicFrame::Ping)
    }

    /// The last arrival by `until` among the datagrams before another one, and its time. Without path delay that one
    /// counts.
    pub fn arrival_before(&self, send: usize, until: Instant) -> Option<(Instant, usize)> {
        let until = self.arrivals.partition_point(|it| it.0 <= until);
        self.arrivals[..until].iter().rev().map(|&(at, it)| (at, it as usize)).find(|it| it.1 < send)
    }

    /// The acknowledgements after `from` and until `to`.
    pub fn acks_between(&self, from: Instant, to: Instant) -> &[Ack] {
        let until = self.acks.partition_point(|ack| ack.at <= to);
        &self.acks[self.acks.partition_point(|ack| ack.at <= from).min(until)..until]
    }

    /// When the sender declared the datagram at number `send` lost, if it did; none if a packet in it is acknowledged.
    pub fn declared_lost(&self, send: usize, packet_threshold: u32) -> Option<Declared> {
        let (number, sent) = (self.number(send)?, self.sends[send].packet.entered);
        let mut timer: Option<Instant> = None;
        let later = self.acks.partition_point(|ack| ack.at <= sent);
        for ack in self.acks[later..].iter().filter(|ack| ack.largest > number) {
            if timer.is_some_and(|due| due < ack.at) {
                break;
            }
            let at = ack.at;
            if ack.largest >= number + u64::from(packet_threshold) {
                return Some(Declared { at, part: DelayCause::PacketThreshold, by_timer: false });
            }
            if at.saturating_since(sent) >= ack.patience {
                return Some(Declared { at, part: DelayCause::TimeThreshold, by_timer: false });
            }
            timer = Some(sent + ack.patience);
        }
        timer.map(|at| Declared { at, part: DelayCause::TimeThreshold, by_timer: true })
    }

    /// Whether at `at` an earlier datagram was still in flight, not overtaken by anything.
    pub fn is_in_flight(&self, send: usize, at: Instant) -> bool {
        let until = self.acks.partition_point(|ack| ack.at <= at);
        let largest = self.acks[..until].last().map(|ack| ack.largest);
        let previous = (0..send).rev().find_map(|it| self.number(it));
        previous.is_some_and(|previous| largest.is_none_or(|largest| largest < previous))
    }

    /// About a round trip at `at`, rather more than less.
    pub fn round_trip(&self, at: Instant) -> Duration {
        let until = self.acks.partition_point(|ack| ack.at <= at);
        self.acks[..until].last().map_or(INITIAL_RTT, |ack| ack.patience)
    }

    /// A stream's initial limit: its receiver's, or Crosswind's own setting; for other programs possibly none.
    pub fn first_limit(&self, stream: u64, of_hosts: u64) -> u64 {
        let opened_by_client = stream & 1 == 0;
        match &self.first_limits {
            Some(limits) if stream & 2 != 0 => limits.one_way,
            Some(limits) if opened_by_client == limits.is_client => limits.own,
            Some(limits) => limits.others,
            None if self.is_of_programs => u64::MAX,
            None => of_hosts,
        }
    }

    /// The same for all streams together, as a limit that was announced.
    pub const fn first_limit_of_all(&self, of_hosts: u64) -> u64 {
        match &self.first_limits {
            Some(_) => 0,
            None if self.is_of_programs => u64::MAX,
            None => of_hosts,
        }
    }

    /// How many bytes a stream, or all together, might have before `at`.
    pub fn limit(&self, stream: Option<u64>, at: Instant, at_first: u64) -> u64 {
        let until = self.limits.partition_point(|it| it.at < at);
        let of_stream = self.limits[..until].iter().filter(|it| it.stream == stream);
        of_stream.map(|it| it.bytes).max().unwrap_or(0).max(at_first)
    }
}
