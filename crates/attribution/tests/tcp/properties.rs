//! Over any packet table: intervals add up to the transit, or the connection.

use super::{HOSTS, NO_HTTP, PORT, Wire, assert_is_whole, at, http};
use crosswind_attribution::{Attribution, Hosts, MessageTransit, ProgramFacts, flows};
use crosswind_ledger::{Headers, Http2Connection, HttpFrame, PacketRecord, Position, QuicLog, TCP, TcpOptions, UDP};
use crosswind_path::Side;
use crosswind_units::Duration;
use proptest::prelude::*;

fn packets() -> impl Strategy<Value = Vec<PacketRecord>> {
    let packet = (
        (any::<bool>(), 0_u64..200_000, 0_u64..50_000, 0_u64..3000, any::<bool>()),
        (
            any::<bool>(),
            0_u32..5,
            0_u32..5,
            any::<u8>(),
            prop::sample::select(vec![0_u16, 1000, 60_000]),
            any::<bool>(),
        ),
    );
    prop::collection::vec(packet, 0..60).prop_map(|all| {
        let mut all: Vec<_> = all.into_iter().collect();
        all.sort_by_key(|it| it.0.1);
        let mut wire = Wire::default();
        for ((forward, us, propagation, serialisation, arrives), (tcp, start, acked, flags, window, has_sack)) in all {
            let options = TcpOptions { has_sack, sack_permitted: true, ..TcpOptions::default() };
            let headers = Headers {
                protocol: if tcp { TCP } else { UDP },
                flags: flags & 0x12,
                sequence: (u32::MAX - 1500).wrapping_add(start * 1000),
                acknowledgement: (u32::MAX - 1500).wrapping_add(acked * 1000),
                payload_bytes: 1000 * (start % 3),
                window,
                options,
                ..Headers::default()
            };
            wire.add(if forward { Side::Forward } else { Side::Reverse }, us, arrives, headers);
            if let Some(packet) = wire.packets.last_mut().filter(|_| arrives) {
                packet.spent.propagation = Duration::from_micros(propagation);
                packet.spent.serialisation = Duration::from_micros(serialisation);
                packet.due = packet.entered + packet.spent.total();
                packet.left = Some(packet.due);
            }
        }
        wire.packets
    })
}

/// An end's successive writes.
fn writes() -> impl Strategy<Value = Vec<(u64, u64, u64, u64, HttpFrame)>> {
    let frame = prop_oneof![
        (0_u32..3000).prop_map(HttpFrame::Data),
        (0_u32..3000).prop_map(HttpFrame::WindowUpdate),
        (0_u32..3000).prop_map(HttpFrame::InitialWindow),
        Just(HttpFrame::Other),
    ];
    prop::collection::vec((0_u64..200_000, 1_u64..1500, 0_u64..4, frame), 0..20).prop_map(|mut all| {
        all.sort_by_key(|it| it.0);
        let mut position = 0;
        let placed = all.into_iter().map(|(us, length, stream, frame)| {
            position += length;
            (us, position - length, position, stream, frame)
        });
        placed.collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn pieces_are_the_leg_whatever_the_packets_are(
        packets in packets(), forward: bool, written in 0_u64..200_000, took in 1_u64..100_000, bytes in 0_u64..5000,
        alone: bool, timed: bool,
    ) {
        let side = if forward { Side::Forward } else { Side::Reverse };
        let (written, received) = (at(written), at(written + took));
        let transit = MessageTransit { side, client_port: PORT, written, received, bytes, position: None, alone, timed };
        let pieces = Attribution::new(&packets, &<[QuicLog; 2]>::default(), &NO_HTTP, HOSTS).transit(transit);
        assert_is_whole(&pieces, written, received);
    }

    #[test]
    fn pieces_are_the_flow_whatever_the_packets_are(packets in packets(), pacing: bool) {
        let hosts = Hosts { pacing, ..HOSTS };
        for flow in flows(&packets, &ProgramFacts::default(), hosts, usize::MAX, at(300_000)) {
            assert_is_whole(&flow.pieces, flow.from, flow.to);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn pieces_are_the_flow_whatever_its_http2_frames_are(
        packets in packets(), writes in prop::array::uniform2(writes()),
    ) {
        let ends = writes.map(|writes| http(writes).remove(0));
        let opening = packets.first().map_or(0, |it| it.headers.sequence);
        let http2 = vec![Http2Connection { client_port: PORT, server_port: 80, opening, ends }];
        let facts = ProgramFacts { http2, ..ProgramFacts::default() };
        for flow in flows(&packets, &facts, HOSTS, usize::MAX, at(300_000)) {
            assert_is_whole(&flow.pieces, flow.from, flow.to);
        }
    }

    #[test]
    fn pieces_are_the_leg_whatever_http_wrote(
        packets in packets(), writes in prop::array::uniform2(writes()), forward: bool, written in 0_u64..200_000,
        took in 1_u64..100_000, stream in 1_u64..4,
    ) {
        let side = if forward { Side::Forward } else { Side::Reverse };
        let (written, received) = (at(written), at(written + took));
        let position = Some(Position::Stream { stream, start: None, end: None });
        let transit = MessageTransit { side, client_port: PORT, written, received, bytes: 100, position, alone: false, timed: false };
        let (quic, http, facts) = (<[QuicLog; 2]>::default(), writes.map(http), ProgramFacts::default());
        let attribution = Attribution::new(&packets, &quic, &http, HOSTS).with_exchanges(&packets, &facts, HOSTS, Duration::from_micros(5));
        assert_is_whole(&attribution.transit(transit), written, received);
        assert_is_whole(&attribution.exchange(None, written, received), written, received);
        prop_assert!(attribution.request_arrival(PORT, stream, received).is_none_or(|at| at <= received));
    }
}
