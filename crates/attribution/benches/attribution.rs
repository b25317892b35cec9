//! Attribution's cost: `cargo bench -p crosswind-attribution`, or `make bench BENCH=attribution`. It prints figures
//! beside the targets, and makes no judgement.

#![allow(clippy::unwrap_used)] // a benchmark that cannot run stops

#[path = "../tests/common/mod.rs"]
mod common;

use common::{HOSTS, NO_HTTP};
use crosswind_attribution::{Attribution, MessageTransit, ProgramFacts, flows};
use crosswind_ledger::{Headers, PacketRecord, Position, QuicLog, QuicSpace, TCP, TCP_ACK, UDP, Verdict};
use crosswind_path::{Side, TimeSpent};
use crosswind_units::{Bytes, Duration, Instant};
use std::collections::VecDeque;
use std::hint::black_box;

const PACKETS: u64 = 1_000_000;
const TARGET: &str = "target: 2 s, 200 MiB";
const PROPAGATION: Duration = Duration::from_millis(10);
const SEGMENT: u32 = 1448;
/// A segment's time on a link of 100 Mbit/s.
const ON_THE_WIRE: Duration = Duration::from_micros(120);

fn main() {
    let transfer = transfer();
    measure_flows("one connection", &transfer);
    let whole = |packets: &[PacketRecord]| {
        let ends = packets.iter().filter_map(|it| it.left);
        (Instant::from_nanos(0), ends.max().unwrap())
    };
    let (written, received) = whole(&transfer);
    measure("one transfer", &transfer, &[(Side::Forward, written, received)]);
    let echoes = echoes();
    measure_flows("one connection of turns", &echoes);
    measure_flows("a hundred connections", &shared());
    let legs: Vec<_> = echoes.iter().map(|it| (it.side, it.entered, it.left.unwrap())).collect();
    measure("messages and answers", &echoes, &legs);
    let (datagrams, logs, end) = over_quic();
    measured("one transfer over QUIC", &datagrams, || {
        let (written, received) = whole(&datagrams);
        let position = Some(Position::Stream { stream: 0, start: None, end: Some(end) });
        Attribution::new(&datagrams, &logs, &NO_HTTP, HOSTS)
            .transit(transit(Side::Forward, written, received, position))
            .len()
    });
}

const fn transit(side: Side, written: Instant, received: Instant, position: Option<Position>) -> MessageTransit {
    MessageTransit { side, client_port: 40_000, written, received, bytes: 100, position, alone: true, timed: false }
}

fn measure_flows(name: &str, packets: &[PacketRecord]) {
    measured(name, packets, || {
        let found = black_box(flows(packets, &ProgramFacts::default(), HOSTS, 100_000, Instant::from_nanos(0)));
        found.iter().map(|flow| flow.pieces.len()).sum()
    });
}

fn measure(name: &str, packets: &[PacketRecord], legs: &[(Side, Instant, Instant)]) {
    let quic = <[QuicLog; 2]>::default();
    measured(name, packets, || {
        let attribution = Attribution::new(packets, &quic, &NO_HTTP, HOSTS);
        legs.iter()
            .map(|&(side, written, received)| attribution.transit(transit(side, written, received, None)).len())
            .sum()
    });
}

/// Prints time and memory beside the packets. Returns the number of intervals found.
fn measured(name: &str, packets: &[PacketRecord], find: impl FnOnce() -> usize) {
    if std::env::args().skip(1).any(|asked| !asked.starts_with('-') && !name.contains(&asked)) {
        return;
    }
    let before = memory("VmRSS:");
    // Resets the peak (proc_pid_clear_refs(5)).
    std::fs::write("/proc/self/clear_refs", "5").unwrap();
    let start = processor_time();
    let pieces = find();
    let taken = processor_time() - start;
    let more = memory("VmHWM:").saturating_sub(before) / 1024;
    println!(
        "{name}: {} packets, {pieces} pieces in {taken:.2} s of processor time with {more} MiB more   ({TARGET})",
        packets.len()
    );
}

/// A window of 100 segments, an acknowledgement for every second one; one segment in a hundred is lost, and sent again a round
/// trip later.
fn transfer() -> Vec<PacketRecord> {
    let mut packets = Vec::new();
    let (mut at, mut position, mut acks) = (0_u64, 0_u32, 0);
    while (packets.len() as u64) < PACKETS {
        let index = packets.len() as u64;
        let lost = index % 100 == 7;
        packets.push(segment(Side::Forward, index, at, position, 0, SEGMENT, !lost));
        if lost {
            let again = at + 2 * PROPAGATION.as_nanos();
            packets.push(segment(Side::Forward, index + 1, again, position, 0, SEGMENT, true));
        }
        position = position.wrapping_add(SEGMENT);
        if index.is_multiple_of(3) {
            let arrived = at + ON_THE_WIRE.as_nanos() + PROPAGATION.as_nanos();
            packets.push(segment(Side::Reverse, acks, arrived, 0, position, 0, true));
            acks += 1;
        }
        at += ON_THE_WIRE.as_nanos();
    }
    packets
}

/// A hundred transfers sharing a link.
fn shared() -> Vec<PacketRecord> {
    let mut packets = transfer();
    let mut positions = [0_u32; 100];
    for (index, packet) in packets.iter_mut().enumerate() {
        let which = index % 100;
        let port = 40_000 + which as u16;
        match packet.side {
            Side::Forward => packet.headers.source_port = port,
            Side::Reverse => packet.headers.destination_port = port,
        }
        packet.spent.queueing = Duration::from_millis(50);
        packet.due += packet.spent.queueing;
        packet.left = packet.left.map(|_| packet.due);
        let position = &mut positions[which];
        if packet.side == Side::Forward {
            packet.headers.sequence = position.wrapping_add(1);
            *position = position.wrapping_add(SEGMENT);
        } else {
            packet.headers.acknowledgement = position.wrapping_add(1);
        }
    }
    packets
}

/// One datagram in a hundred is lost, and its bytes are sent again a round trip later. Every second one is
/// acknowledged, and every twentieth opens the stream's window further. Returns the stream's length, too.
fn over_quic() -> (Vec<PacketRecord>, [QuicLog; 2], u64) {
    const BYTES: u64 = 1200;
    let mut logs = [QuicLog::new(PACKETS as usize), QuicLog::new(PACKETS as usize)];
    let mut packets: Vec<PacketRecord> = Vec::new();
    let mut again: VecDeque<(u64, u64)> = VecDeque::new();
    let (mut at, mut end, mut sent, mut answers) = (0, 0, 0, 0);
    let number = |number: u64| (number | 0xc000_0000_0000_0000).to_be_bytes();
    let mut add = |packets: &mut Vec<PacketRecord>, side: Side, index: u64, at: u64, payload: &[u8], arrives: bool| {
        let tail = ((side as u64) << 32) | (index + 1);
        let size = payload.len() + 30;
        logs[side as usize].add(side as u32, QuicSpace::Data, index, size, payload).unwrap().tail = tail;
        let mut packet = segment(side, index, at, 0, 0, size as u32, arrives);
        packet.headers.protocol = UDP;
        (packet.headers.sequence, packet.headers.acknowledgement) = ((tail >> 32) as u32, tail as u32);
        packets.push(packet);
    };
    while (packets.len() as u64) < PACKETS {
        let is_due = again.front().is_some_and(|it| it.0 <= at);
        let from = if is_due { again.pop_front() } else { None }.map_or(end, |it| it.1);
        end = end.max(from + BYTES);
        let arrives = sent % 100 != 7;
        if !arrives {
            again.push_back((at + 2 * PROPAGATION.as_nanos(), from));
        }
        let data =
            [&[0x0e, 0], &number(from)[..], &(BYTES as u16 | 0x4000).to_be_bytes(), &[7; BYTES as usize]].concat();
        add(&mut packets, Side::Forward, sent, at, &data, arrives);
        if sent % 2 == 0 {
            let mut answer = [&[2], &number(sent)[..], &[0, 0, 0]].concat();
            if sent % 20 == 0 {
                answer.extend([&[0x11, 0], &number(end + (1 << 24))[..]].concat());
            }
            add(&mut packets, Side::Reverse, answers, at + PROPAGATION.as_nanos(), &answer, true);
            answers += 1;
        }
        (sent, at) = (sent + 1, at + ON_THE_WIRE.as_nanos());
    }
    (packets, logs, end)
}

/// One after another.
fn echoes() -> Vec<PacketRecord> {
    let trip = 2 * PROPAGATION.as_nanos();
    let pair = |number: u64| {
        let position = (number * 100) as u32;
        [
            segment(Side::Forward, number, number * trip, position, position, 100, true),
            segment(Side::Reverse, number, number * trip + trip / 2, position, position.wrapping_add(100), 100, true),
        ]
    };
    (0..PACKETS / 2).flat_map(pair).collect()
}

fn segment(
    side: Side,
    index: u64,
    at: u64,
    position: u32,
    acknowledged: u32,
    bytes: u32,
    arrives: bool,
) -> PacketRecord {
    let (source_port, destination_port) = if side == Side::Forward { (40_000, 80) } else { (80, 40_000) };
    let entered = Instant::from_nanos(at);
    let on_the_wire = if bytes == SEGMENT { ON_THE_WIRE } else { Duration::ZERO };
    let spent = TimeSpent { propagation: PROPAGATION, serialisation: on_the_wire, ..TimeSpent::default() };
    let due = entered + spent.total();
    let headers = Headers {
        version: 4,
        protocol: TCP,
        source_port,
        destination_port,
        flags: TCP_ACK,
        sequence: position.wrapping_add(1),
        acknowledgement: acknowledged.wrapping_add(1),
        window: u16::MAX,
        payload_bytes: bytes,
        ..Headers::default()
    };
    PacketRecord {
        size: Bytes(u64::from(bytes) + 52),
        due,
        spent,
        left: arrives.then_some(due),
        verdict: if arrives { Verdict::Delivered } else { Verdict::Queued },
        ..PacketRecord::new(side, index, entered, headers)
    }
}

/// This process's processor time in seconds, independent of other load (`proc_pid_schedstat(5)`).
fn processor_time() -> f64 {
    let spent = std::fs::read_to_string("/proc/self/schedstat").unwrap();
    spent.split_whitespace().next().unwrap().parse::<u64>().unwrap() as f64 / 1e9
}

/// This process's memory, KiB: a line in its status.
fn memory(which: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with(which)).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}
