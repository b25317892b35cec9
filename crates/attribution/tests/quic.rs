//! Transits over QUIC with handwritten packets and exact answers; with any packets, intervals add up to the transit.

mod common;

use common::NO_HTTP;
use crosswind_attribution::{Attribution, DelayCause, Hosts, MessageTransit};
use crosswind_ledger::{DropCause, Headers, PacketRecord, Position, QuicLog, QuicSpace, UDP, Verdict};
use crosswind_path::{Side, TimeSpent, loss::LOSS};
use crosswind_units::{Bytes, Instant};
use proptest::prelude::*;

const PORT: u16 = 40_000;
/// One way, on a path without a link.
const TRIP_US: u64 = 1000;
const HOSTS: Hosts = Hosts { quic_stream_window: 1000, quic_connection_window: 2000, ..common::HOSTS };

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

/// A two-byte integer (RFC 9000, 16).
fn number(number: u16) -> [u8; 2] {
    (number | 0x4000).to_be_bytes()
}

fn stream(stream: u8, offset: u16, length: u16) -> Vec<u8> {
    [&[0x0e, stream], &number(offset)[..], &number(length), &vec![7; usize::from(length)]].concat()
}

fn ack(largest: u8) -> Vec<u8> {
    vec![2, largest, 0, 0, 0]
}

fn max_stream_data(stream: u8, limit: u16) -> Vec<u8> {
    [&[0x11, stream], &number(limit)[..]].concat()
}

fn max_data(limit: u16) -> Vec<u8> {
    [&[0x10], &number(limit)[..]].concat()
}

const PING: [u8; 1] = [1];

struct Wire {
    packets: Vec<PacketRecord>,
    logs: [QuicLog; 2],
}

impl Wire {
    fn new() -> Self {
        Self { packets: Vec::new(), logs: [QuicLog::new(1000), QuicLog::new(1000)] }
    }

    /// A datagram with one packet, numbered by its position.
    fn add(&mut self, side: Side, us: u64, arrives: bool, frames: &[u8]) {
        let index = self.packets.iter().filter(|it| it.side == side).count() as u64;
        let tail = ((side as u64) << 32) | (index + 1);
        if let Some(packet) =
            self.logs[side as usize].add(side as u32, QuicSpace::Data, index, frames.len() + 20, frames)
        {
            packet.tail = tail;
        }
        self.datagram(side, us, arrives, frames.len() as u32 + 20, tail);
    }

    fn datagram(&mut self, side: Side, us: u64, arrives: bool, bytes: u32, tail: u64) {
        let index = self.packets.iter().filter(|it| it.side == side).count() as u64;
        let due = at(us + if arrives { TRIP_US } else { 0 });
        let (source_port, destination_port) = if side == Side::Forward { (PORT, 443) } else { (443, PORT) };
        let headers = Headers {
            version: 4,
            protocol: UDP,
            source_port,
            destination_port,
            payload_bytes: bytes,
            sequence: (tail >> 32) as u32,
            acknowledgement: tail as u32,
            ..Headers::default()
        };
        self.packets.push(PacketRecord {
            size: Bytes(u64::from(bytes) + 28),
            due,
            spent: TimeSpent { propagation: due.saturating_since(at(us)), ..TimeSpent::default() },
            left: arrives.then_some(due),
            verdict: if arrives { Verdict::Delivered } else { Verdict::Dropped(DropCause::Path(LOSS)) },
            ..PacketRecord::new(side, index, at(us), headers)
        });
    }

    fn client(&mut self, us: u64, arrives: bool, frames: &[u8]) {
        self.add(Side::Forward, us, arrives, frames);
    }

    fn server(&mut self, us: u64, frames: &[u8]) {
        self.add(Side::Reverse, us, true, frames);
    }

    fn pieces(&self, transit: MessageTransit) -> Vec<(DelayCause, u64, u32)> {
        let pieces = Attribution::new(&self.packets, &self.logs, &NO_HTTP, HOSTS).transit(transit);
        let ends: Vec<_> = pieces.iter().map(|it| it.to).collect();
        let begins: Vec<_> = pieces.iter().map(|it| it.from).collect();
        assert_eq!([&[transit.written][..], &ends].concat(), [&begins[..], &[transit.received]].concat());
        assert!(pieces.iter().all(|it| it.from < it.to));
        pieces.iter().map(|it| (it.part, it.to.saturating_since(it.from).as_nanos() / 1000, it.count)).collect()
    }

    /// A message to the server on stream 0, ending at `end` bytes.
    fn forward(&self, written: u64, received: u64, bytes: u64, end: u64) -> Vec<(DelayCause, u64, u32)> {
        self.pieces(MessageTransit {
            side: Side::Forward,
            client_port: PORT,
            written: at(written),
            received: at(received),
            bytes,
            position: Some(Position::Stream { stream: 0, start: None, end: Some(end) }),
            alone: false,
            timed: false,
        })
    }
}

const FLIGHT: (DelayCause, u64, u32) = (DelayCause::PropagationForward, TRIP_US, 0);

#[test]
fn a_range_that_is_sent_again_was_lost_and_what_arrived_before_says_how_that_was_known() {
    // Packet 0 has the message; packets 1 to 3 are other streams'.
    let mut threshold = Wire::new();
    threshold.client(10_000, false, &stream(0, 0, 100));
    for number in 1..=3 {
        threshold.client(10_000 + number, true, &stream(4, 0, 100));
    }
    threshold.server(11_003, &ack(3));
    threshold.client(12_003, true, &stream(0, 0, 100));
    assert_eq!(threshold.forward(10_000, 13_003, 100, 100), [(DelayCause::PacketThreshold, 2003, 0), FLIGHT]);

    let mut time = Wire::new();
    time.client(10_000, false, &stream(0, 0, 100));
    time.client(10_001, true, &stream(4, 0, 100));
    time.server(11_001, &ack(1));
    time.client(12_250, true, &stream(0, 0, 100));
    assert_eq!(time.forward(10_000, 13_250, 100, 100), [(DelayCause::TimeThreshold, 2250, 0), FLIGHT]);

    // Two probes, and the second arrives; its acknowledgement tells of the message's earlier loss.
    let mut probed = Wire::new();
    probed.client(10_000, false, &stream(0, 0, 100));
    probed.client(40_000, false, &PING);
    probed.client(100_000, true, &PING);
    probed.server(101_000, &ack(2));
    probed.client(102_000, true, &stream(0, 0, 100));
    let expected = [(DelayCause::ProbeTimer, 90_000, 2), (DelayCause::TimeThreshold, 2000, 0), FLIGHT];
    assert_eq!(probed.forward(10_000, 103_000, 100, 100), expected);

    // A probe that carries it again.
    let mut carried = Wire::new();
    carried.client(10_000, false, &stream(0, 0, 100));
    carried.client(40_000, true, &stream(0, 0, 100));
    assert_eq!(carried.forward(10_000, 41_000, 100, 100), [(DelayCause::ProbeTimer, 30_000, 1), FLIGHT]);
}

#[test]
fn what_is_known_to_be_lost_and_does_not_fit_the_window_waits_for_the_window() {
    // Packets 0 and 1 have the message. The acknowledgement of 4 tells of both losses, packet 1's by its age.
    let mut wire = Wire::new();
    wire.client(10_000, false, &stream(0, 0, 100));
    wire.client(10_000, false, &stream(0, 100, 100));
    for _ in 2..=3 {
        wire.client(11_500, true, &stream(4, 0, 100));
    }
    wire.server(12_500, &ack(3));
    wire.client(13_500, true, &stream(0, 0, 100));
    // The other packet goes when that one is acknowledged, after 5 ms.
    wire.server(19_500, &ack(4));
    wire.client(20_500, true, &stream(0, 100, 100));
    let expected = [
        (DelayCause::TimeThreshold, 3500, 0),
        (DelayCause::ReducedWindow, 1000, 0),
        (DelayCause::DelayedAcknowledgement, 5000, 0),
        (DelayCause::ReducedWindow, 1000, 0),
        FLIGHT,
    ];
    assert_eq!(wire.forward(10_000, 21_500, 200, 200), expected);
}

#[test]
fn flow_control_is_told_from_the_congestion_window_by_what_ended_the_wait() {
    let held = |answer: &[u8], from: u16| {
        let mut wire = Wire::new();
        wire.client(10_000, true, &stream(0, 0, from));
        wire.server(11_000, answer);
        wire.client(12_000, true, &stream(0, from, 100));
        wire.forward(10_000, 13_000, u64::from(from) + 100, u64::from(from) + 100)
    };
    let of = |part| vec![(part, TRIP_US, 0), (part, TRIP_US, 0), FLIGHT];
    // A stream may have 1000 bytes, all together 2000.
    assert_eq!(held(&[ack(0), max_stream_data(0, 5000)].concat(), 1000), of(DelayCause::StreamWindow));
    assert_eq!(held(&[max_data(5000), ack(0)].concat(), 2000), of(DelayCause::ConnectionWindow));
    // Limits not yet reached held nothing back.
    assert_eq!(held(&[ack(0), max_stream_data(0, 5000)].concat(), 900), of(DelayCause::CongestionWindow));
    assert_eq!(held(&ack(0), 500), of(DelayCause::CongestionWindow));
    // No arrival tells its cause.
    assert_eq!(held(&max_data(5000), 500), [(DelayCause::Pacing, 2000, 0), FLIGHT]);
}

#[test]
fn a_message_waits_for_earlier_bytes_of_its_stream_alone() {
    let mut wire = Wire::new();
    wire.client(10_000, false, &stream(0, 0, 100)); // another's
    wire.client(12_000, true, &stream(0, 100, 100));
    wire.client(12_000, true, &stream(4, 0, 100));
    wire.client(14_250, true, &stream(0, 0, 100));
    assert_eq!(wire.forward(12_000, 15_250, 100, 200), [FLIGHT, (DelayCause::HeadOfLine, 2250, 0)]);
    let other = MessageTransit {
        side: Side::Forward,
        client_port: PORT,
        written: at(12_000),
        received: at(13_000),
        bytes: 90,
        position: Some(Position::Stream { stream: 4, start: None, end: None }),
        alone: false,
        timed: false,
    };
    assert_eq!(wire.pieces(other), [FLIGHT]);
}

#[test]
fn what_is_cut_off_in_time_ends_with_what_its_receiver_lacked_then() {
    let until = |wire: &Wire, received| {
        wire.pieces(MessageTransit {
            side: Side::Forward,
            client_port: PORT,
            written: at(10_000),
            received: at(received),
            bytes: 100,
            position: Some(Position::Stream { stream: 0, start: None, end: None }),
            alone: true,
            timed: true,
        })
    };
    let mut wire = Wire::new();
    wire.client(10_000, true, &stream(0, 0, 100));
    wire.client(10_001, false, &stream(0, 100, 100));
    // Successors tell how the loss will be detected.
    for (number, part) in [(2, DelayCause::Unknown), (3, DelayCause::TimeThreshold), (4, DelayCause::TimeThreshold)] {
        assert_eq!(until(&wire, 11_500), [(DelayCause::ClientHost, 1, 0), (part, 1499, 0)]);
        wire.client(10_000 + number, true, &stream(0, 100 * number as u16, 100));
    }
    assert_eq!(until(&wire, 11_500), [(DelayCause::ClientHost, 1, 0), (DelayCause::PacketThreshold, 1499, 0)]);
    wire.server(11_004, &ack(4));
    wire.client(12_004, true, &stream(0, 100, 100));
    assert_eq!(until(&wire, 11_500), [(DelayCause::ClientHost, 1, 0), (DelayCause::PacketThreshold, 1499, 0)]);
    let recovered = [(DelayCause::ClientHost, 1, 0), (DelayCause::PacketThreshold, 2003, 0)];
    assert_eq!(until(&wire, 12_500), [&recovered[..], &[(DelayCause::PropagationForward, 496, 0)]].concat());
    // Everything sent is there; until acknowledged, a window or pacing may hold the rest back.
    assert_eq!(until(&wire, 14_000), [&recovered[..], &[FLIGHT, (DelayCause::Unknown, 996, 0)]].concat());
    wire.server(13_004, &ack(5));
    assert_eq!(until(&wire, 15_000), [&recovered[..], &[FLIGHT, (DelayCause::ClientHost, 1996, 0)]].concat());
    wire.client(14_004, true, &stream(0, 500, 500));
    assert_eq!(until(&wire, 16_000).last(), Some(&(DelayCause::StreamWindow, 996, 0)));
}

#[test]
fn of_what_is_not_known_nothing_is_said() {
    let frames = stream(0, 0, 100);
    let size = frames.len() as u32 + 20;
    let attempt = |tail, bytes| {
        let mut wire = Wire::new();
        wire.client(5000, true, &PING);
        wire.logs[0].add(0, QuicSpace::Data, 1, size as usize, &frames).unwrap().tail = 77;
        wire.datagram(Side::Forward, 10_000, true, bytes, tail);
        wire.forward(10_000, 11_000, 100, 100)
    };
    assert_eq!(attempt(77, size), [FLIGHT]);
    // Another datagram, and one with another size.
    assert_eq!(attempt(78, size), [(DelayCause::Unknown, TRIP_US, 0)]);
    assert_eq!(attempt(77, size + 1), [(DelayCause::Unknown, TRIP_US, 0)]);
    // A stream never sent, and bytes that did not arrive.
    let mut wire = Wire::new();
    wire.client(10_000, false, &frames);
    assert_eq!(wire.forward(10_000, 11_000, 100, 100), [(DelayCause::Unknown, 1000, 0)]);
}

#[test]
fn packets_of_one_datagram_are_found_together() {
    let mut wire = Wire::new();
    let (early, late) = (ack(0), stream(0, 0, 100));
    wire.logs[0].add(0, QuicSpace::Handshake, 0, early.len() + 40, &early).unwrap().tail = 1;
    wire.logs[0].add(0, QuicSpace::Data, 0, late.len() + 20, &late).unwrap().tail = 2;
    wire.datagram(Side::Forward, 10_000, true, (early.len() + late.len() + 60) as u32, 2);
    assert_eq!(wire.forward(10_000, 11_000, 100, 100), [FLIGHT]);
}

fn frames() -> impl Strategy<Value = Vec<u8>> {
    let one = prop_oneof![
        (0_u8..2, 0_u16..5, 1_u16..300).prop_map(|(id, piece, length)| stream(id, piece * 200, length)),
        (0_u8..40).prop_map(ack),
        (0_u8..2, 0_u16..4000).prop_map(|(id, limit)| max_stream_data(id, limit)),
        (0_u16..4000).prop_map(max_data),
        Just(PING.to_vec()),
        Just(vec![0x31, 3, 1, 2, 3]),
        Just(vec![0x3f]),
    ];
    prop::collection::vec(one, 0..3).prop_map(|all| all.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn pieces_are_the_leg_whatever_the_packets_are(
        mut packets in prop::collection::vec((0_u64..40_000, any::<bool>(), prop::bool::weighted(0.8), frames()), 0..50),
        forward: bool, written in 0_u64..40_000, took in 1_u64..20_000, bytes in 0_u64..1000,
        position in prop_oneof![
            Just(None),
            (0_u64..2, prop::option::of(0_u64..1200), prop::option::of(Just(0)))
                .prop_map(|(stream, end, start)| Some(Position::Stream { stream, start, end })),
            (0_u64..5).prop_map(|number| Some(Position::Datagram(number))),
        ],
        alone: bool, timed: bool,
    ) {
        packets.sort_by_key(|it| it.0);
        let mut wire = Wire::new();
        for (us, from_client, arrives, frames) in packets {
            wire.add(if from_client { Side::Forward } else { Side::Reverse }, us, arrives, &frames);
        }
        let side = if forward { Side::Forward } else { Side::Reverse };
        let (written, received) = (at(written), at(written + took));
        wire.pieces(MessageTransit { side, client_port: PORT, written, received, bytes, position, alone, timed });
    }
}
