//! What attribution costs: `cargo bench -p crosswind-attribution`. It prints figures and makes no judgement.

#![allow(clippy::unwrap_used)] // a benchmark that cannot run stops

use crosswind_attribution::{Attribution, Hosts, Leg, flows};
use crosswind_ledger::{Headers, HttpEnd, PacketRecord, QuicLog, TCP, TCP_ACK, Verdict};
use crosswind_path::{Side, TimeSpent};
use crosswind_units::{Bytes, Duration, Instant};
use std::hint::black_box;
use std::time;

const PACKETS: u64 = 1_000_000;
const PROPAGATION: Duration = Duration::from_millis(10);
const SEGMENT: u32 = 1448;
/// Of a segment on a link of 100 Mbit/s.
const ON_THE_WIRE: Duration = Duration::from_micros(120);
static NO_HTTP: [Vec<HttpEnd>; 2] = [Vec::new(), Vec::new()];
const HOSTS: Hosts = Hosts {
    promptness: Duration::from_micros(2),
    tail_loss_probes: true,
    slow_start_after_idle: true,
    nagle: false,
    pacing: false,
    initial_window: None,
    send_buffer: None,
    quic_packet_threshold: 3,
    quic_stream_window: 1 << 24,
    quic_connection_window: 1 << 26,
};

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
}

fn measure_flows(name: &str, packets: &[PacketRecord]) {
    let before = peak_memory();
    let start = time::Instant::now();
    let pieces: usize =
        black_box(flows(packets, HOSTS, 100_000, Instant::from_nanos(0))).iter().map(|flow| flow.pieces.len()).sum();
    let taken = start.elapsed().as_secs_f64();
    let [peak, before] = [peak_memory(), before].map(|bytes| bytes as f64 / 1_048_576.0);
    println!(
        "{name}: {} packets, {pieces} pieces in {taken:.2} s; peak memory {peak:.0} MiB, before {before:.0} MiB",
        packets.len()
    );
}

fn measure(name: &str, packets: &[PacketRecord], legs: &[(Side, Instant, Instant)]) {
    let before = peak_memory();
    let start = time::Instant::now();
    let quic = <[QuicLog; 2]>::default();
    let attribution = Attribution::new(packets, &quic, &NO_HTTP, HOSTS);
    let sorted = start.elapsed();
    let mut pieces = 0;
    for &(side, written, received) in legs {
        let leg =
            Leg { side, client_port: 40_000, written, received, bytes: 100, position: None, alone: true, timed: false };
        pieces += black_box(attribution.leg(leg)).len();
    }
    let mib = |bytes: u64| bytes as f64 / 1_048_576.0;
    println!(
        "{name}: {} packets, {} legs, {pieces} pieces in {:.2} s, of which {:.2} s sort packets; peak memory {:.0} MiB, before {:.0} MiB",
        packets.len(),
        legs.len(),
        start.elapsed().as_secs_f64(),
        sorted.as_secs_f64(),
        mib(peak_memory()),
        mib(before),
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

/// A hundred transfers that share a link.
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
    PacketRecord {
        side,
        index,
        headers: Headers {
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
        },
        copy: 0,
        flipped_bit: None,
        size: Bytes(u64::from(bytes) + 52),
        entered,
        due,
        spent,
        marked_in: None,
        hop: 0,
        left: arrives.then_some(due),
        verdict: if arrives { Verdict::Delivered } else { Verdict::Queued },
    }
}

/// Bytes of memory that this process had at most.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}
