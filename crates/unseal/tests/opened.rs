//! What is opened of packets: the samples of RFC 9001, appendix A, and what is no packet of a known connection.
#![allow(clippy::unwrap_used)] // a test that fails

use crosswind_ledger::{QuicFrame, QuicLog, QuicSpace};
use crosswind_path::Side;
use crosswind_unseal::{Datagram, KeyLog, Opened, Opener};
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
    // The transport parameters of the ClientHello.
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
