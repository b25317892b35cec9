//! Decryption of the samples in RFC 9001, appendix A, and of packets outside known connections.
#![allow(clippy::unwrap_used)] // a test that fails

use crosswind_ledger::{QuicFrame, QuicLog, QuicSpace};
use crosswind_path::Side;
use crosswind_quic_decrypt::{Datagram, KeptDatagrams, KeyLog, Opened, Opener};
use proptest::prelude::*;

const CLIENT: &str = include_str!("rfc9001/client_initial.hex");
const SERVER: &str = include_str!("rfc9001/server_initial.hex");

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|it| it.to_digit(16)).map(|it| it as u8).collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

fn opened(datagrams: &[(Side, u16, &[u8])], keys: &KeyLog) -> Opened {
    let mut opener = Opener::new(keys, 1000);
    for &(side, client_port, payload) in datagrams {
        opener.add(Datagram { side, client_port, server_port: 443, payload });
    }
    opener.finish()
}

fn frames(log: &QuicLog) -> Vec<&[QuicFrame]> {
    log.packets().iter().map(|packet| log.frames(packet)).collect()
}

#[test]
fn the_initial_packets_of_rfc_9001_are_opened_without_keys() {
    let (client, server) = (bytes(CLIENT), bytes(SERVER));
    let found = opened(&[(Side::Forward, 4000, &client), (Side::Reverse, 4000, &server)], &KeyLog::default());
    assert_eq!((found.connections, found.with_secrets), (1, 0));
    let [of_client, of_server] = &found.logs;
    let [first] = of_client.packets() else { panic!("{of_client:?}") };
    assert_eq!((first.number, first.space, first.size, first.is_whole), (2, QuicSpace::Initial, 1200, true));
    assert_eq!(first.tail, 0x0856_972e_194c_d934);
    // The ClientHello's transport parameters.
    let told = [
        QuicFrame::Crypto { offset: 0, length: 241 },
        QuicFrame::MaxData((1 << 62) - 1),
        QuicFrame::StreamLimits { is_client: true, own: 65_535, others: 65_535, one_way: 65_535 },
    ];
    assert_eq!(frames(of_client), [&told[..]]);
    let [answer] = of_server.packets() else { panic!("{of_server:?}") };
    assert_eq!((answer.number, answer.size), (1, 135));
    assert_eq!(
        frames(of_server),
        [&[QuicFrame::Ack { smallest: 0, largest: 0 }, QuicFrame::Crypto { offset: 0, length: 90 }][..]]
    );
}

#[test]
fn a_packet_that_was_cut_off_or_changed_is_none_that_is_known() {
    let (client, server) = (bytes(CLIENT), bytes(SERVER));
    for end in 0..server.len() {
        let found = opened(&[(Side::Forward, 1, &client), (Side::Reverse, 1, &server[..end])], &KeyLog::default());
        assert!(found.logs[1].packets().iter().all(|packet| !packet.is_whole), "{end}");
    }
    let mut changed = server;
    changed[50] ^= 1;
    let found = opened(&[(Side::Forward, 1, &client), (Side::Reverse, 1, &changed)], &KeyLog::default());
    let [packet] = found.logs[1].packets() else { panic!("{found:?}") };
    assert_eq!((packet.is_whole, packet.size), (false, 135));
    // Without its first packet nothing is known to be a connection.
    let found = opened(&[(Side::Reverse, 1, &bytes(SERVER)), (Side::Forward, 1, &client[..1199])], &KeyLog::default());
    assert_eq!((found.connections, found.logs[0].packets().len() + found.logs[1].packets().len()), (0, 0));
}

#[test]
fn keys_of_another_connection_open_nothing() {
    let random = "ebf8fa56f12939b9584a3896472ec40bb863cfd3e86804fe3a47f06a2b69484c";
    let of = |random: &str| {
        let lines = ["CLIENT_TRAFFIC_SECRET_0", "SERVER_TRAFFIC_SECRET_0", "CLIENT_EARLY_TRAFFIC_SECRET"]
            .map(|label| format!("{label} {random} {}\n", "5a".repeat(32)));
        KeyLog::parse(lines.concat().as_bytes())
    };
    let client = bytes(CLIENT);
    let short = [0x41; 60];
    let all: [(Side, u16, &[u8]); 3] =
        [(Side::Forward, 1, &client), (Side::Forward, 1, &short), (Side::Reverse, 1, &short)];
    for (keys, with_secrets) in [(of(&"00".repeat(32)), 0), (of(random), 1)] {
        let found = opened(&all, &keys);
        assert_eq!(found.with_secrets, with_secrets);
        let read = found.logs.iter().flat_map(QuicLog::packets).filter(|packet| packet.is_whole).count();
        assert_eq!(read, 1);
    }
}

/// An IPv4 UDP packet.
fn packet(from: u16, to: u16, payload: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend((28 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
    for field in [from, to, 8 + payload.len() as u16, 0] {
        packet.extend(field.to_be_bytes());
    }
    packet.extend(payload);
    packet
}

#[test]
fn only_datagrams_of_servers_over_quic_are_kept_and_only_as_many_as_may_be() {
    let client = bytes(CLIENT);
    let mut kept = KeptDatagrams::new(3000);
    kept.add(Side::Forward, &packet(4000, 443, b"before"));
    kept.add(Side::Forward, &packet(4000, 443, &client));
    kept.add(Side::Reverse, &packet(443, 4000, b"an answer"));
    kept.add(Side::Forward, &packet(4001, 443, b"from another port"));
    kept.add(Side::Forward, &packet(4000, 53, b"to another server"));
    kept.add(Side::Forward, &packet(4000, 443, b""));
    kept.add(Side::Forward, b"no packet");
    kept.add(Side::Reverse, &packet(443, 4000, &[1; 2000]));
    let all: Vec<_> = kept.iter().map(|it| (it.side, it.client_port, it.server_port, it.payload.len())).collect();
    assert_eq!(all, [(Side::Forward, 4000, 443, 1200), (Side::Reverse, 4000, 443, 9), (Side::Forward, 4001, 443, 17)]);
    assert_eq!(kept.left_out(), 1);
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_harm(
        log in prop::collection::vec(any::<u8>(), 0..400),
        datagrams in prop::collection::vec((any::<bool>(), 0_u16..3, prop::collection::vec(any::<u8>(), 0..60)), 0..20),
        at in 0_usize..20,
    ) {
        let client = bytes(CLIENT);
        let keys = KeyLog::parse(&log);
        let mut all: Vec<(Side, u16, &[u8])> = datagrams
            .iter()
            .map(|(forward, port, payload)| (if *forward { Side::Forward } else { Side::Reverse }, *port, &payload[..]))
            .collect();
        all.insert(at.min(all.len()), (Side::Forward, 1, &client));
        let found = opened(&all, &keys);
        prop_assert_eq!((found.connections, found.with_secrets), (1, 0));
        prop_assert!(found.logs[0].packets().iter().filter(|packet| packet.is_whole).count() <= 1);
    }
}
