//! QUIC connections, by packets with known frames.
//!
//! Packets are found in the packet table by their last eight bytes. A datagram with unknown packets explains nothing:
//! the time before it is unknown.

use crate::critical_path::Interval;
use crate::links::Links;
use crate::quic_direction::Direction;
use crate::quic_sender::{Datagram, Sender};
use crate::tcp_sender::arrived;
use crate::{DelayCause, Hosts};
use crosswind_ledger::{PacketRecord, QuicLog, QuicSpace};
use crosswind_path::Side;
use crosswind_units::Instant;
use std::ops::Range;

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
    all_of(&packets, known, hosts, false)
}

/// The connections between two programs' ports, in the order of entering; none for ports without known QUIC packets.
/// Packets before the first known one belong to the first.
pub fn connections_of_programs<'a>(
    packets: &[&'a PacketRecord],
    known: &[FrameIndex<'a>; 2],
    hosts: Hosts,
) -> Vec<QuicConnection<'a>> {
    all_of(packets, known, hosts, true)
}

fn all_of<'a>(
    packets: &[&'a PacketRecord],
    known: &[FrameIndex<'a>; 2],
    hosts: Hosts,
    is_of_programs: bool,
) -> Vec<QuicConnection<'a>> {
    let all = by_connection(packets, known, is_of_programs);
    all.into_iter().map(|datagrams| QuicConnection::new(datagrams, known, hosts, is_of_programs)).collect()
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
    /// In the order of entering.
    pub packets: Vec<&'a PacketRecord>,
    pub began: Instant,
    pub hosts: Hosts,
    is_of_programs: bool,
    forward: Sender<'a>,
    reverse: Sender<'a>,
}

impl<'a> QuicConnection<'a> {
    fn new(datagrams: Vec<Datagram<'a>>, known: &[FrameIndex<'a>; 2], hosts: Hosts, is_of_programs: bool) -> Self {
        let packets: Vec<_> = datagrams.iter().map(|it| it.packet).collect();
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
        Self { packets, began, hosts, is_of_programs, forward, reverse }
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

    /// A direction, as a walk needs it.
    pub fn direction<'w>(&'w self, side: Side, links: &'w Links<'a>) -> Direction<'w, 'a> {
        let (sender, back) = (self.sender(side), self.sender(side.opposite()));
        Direction { side, sender, back, hosts: self.hosts, links, is_of_programs: self.is_of_programs }
    }

    /// Whether the sending in a direction is known.
    pub fn knows(&self, side: Side) -> bool {
        !self.sender(side).log.packets().is_empty()
    }

    /// When the receiver had a whole stream, by `before`.
    pub fn arrival(&self, side: Side, stream: u64, before: Instant) -> Option<Instant> {
        let stream = self.sender(side).streams.get(&stream)?;
        stream.completion_of(stream.sent()).map(|done| done.at).filter(|&at| at <= before)
    }
}
