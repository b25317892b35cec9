//! HTTP/2 frames of programs, from their segments: in the clear, and in TLS 1.3 records.
#![allow(clippy::unwrap_used)] // a test that fails

use crosswind_ledger::{HTTP2_PREFACE, Http2Connection, HttpFrame};
use crosswind_path::Side;
use crosswind_quic_decrypt::{KeptSegments, KeyLog, OpenedSegments};
use proptest::prelude::*;
use ring::aead::{AES_128_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::hkdf;

const MOST: usize = 1 << 20;
const SYN: u8 = 2;
const ACK: u8 = 16;
/// Sequence numbers wrap on the way.
const OPENING: u32 = u32::MAX - 40;

/// An IPv4 TCP segment.
fn segment(side: Side, sequence: u32, flags: u8, payload: &[u8]) -> Vec<u8> {
    let [from, to] = side.pick([4000_u16, 443], [443, 4000]);
    let mut packet = vec![0x45, 0];
    packet.extend((40 + payload.len() as u16).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 6, 0, 0, 198, 18, 0, 1, 198, 18, 0, 2]);
    packet.extend([from.to_be_bytes(), to.to_be_bytes()].concat());
    packet.extend([sequence.to_be_bytes(), [0; 4]].concat());
    packet.extend([0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    packet.extend(payload);
    packet
}

fn frame(kind: u8, stream: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0, (payload.len() >> 8) as u8, payload.len() as u8, kind, 0, 0, 0, 0, stream];
    bytes.extend(payload);
    bytes
}

/// A client's preface, its settings, a request's header, and a window.
fn client() -> Vec<u8> {
    let settings = frame(4, 0, &[0, 3, 0, 0, 0, 100, 0, 4, 0, 1, 0, 0]);
    [HTTP2_PREFACE.into(), settings, frame(1, 5, &[7; 30]), frame(8, 5, &[0, 0, 128, 0])].concat()
}

/// A server's settings, and its answer with padding.
fn server() -> Vec<u8> {
    [frame(4, 0, &[]), frame(1, 5, &[9; 20]), frame(0, 5, &[8; 300]), frame(0, 5, &[])].concat()
}

/// A host's bytes behind its SYN, cut into pieces: each begins with sent bytes, and these are sent once more.
fn sent(kept: &mut KeptSegments, side: Side, bytes: &[u8], cuts: &[usize]) {
    let is_client = side == Side::Forward;
    kept.add(side, &segment(side, OPENING, if is_client { SYN } else { SYN | ACK }, &[]));
    let mut start = 0;
    for length in cuts.iter().copied().chain([bytes.len()]) {
        let end = bytes.len().min(start + length);
        let from = start.saturating_sub(3);
        kept.add(side, &segment(side, OPENING.wrapping_add(1 + from as u32), ACK, &bytes[from..end]));
        kept.add(side, &segment(side, OPENING.wrapping_add(1 + from as u32), ACK, &bytes[from..start]));
        start = end;
    }
}

fn opened(client: &[u8], server: &[u8], cuts: &[usize], keys: &KeyLog) -> OpenedSegments {
    let mut kept = KeptSegments::new(MOST);
    kept.add(Side::Forward, &segment(Side::Forward, OPENING, SYN, &[]));
    sent(&mut kept, Side::Reverse, server, cuts);
    sent(&mut kept, Side::Forward, client, cuts);
    kept.open(keys)
}

/// An end's frames, with their places.
fn frames(connection: &Http2Connection, side: Side) -> Vec<(u64, u64, u64, HttpFrame)> {
    let writes = connection.ends[side as usize].writes.iter();
    writes.map(|it| (it.start, it.end, it.stream, it.frame)).collect()
}

#[test]
fn frames_in_the_clear_are_known_by_their_places() {
    let found = opened(&client(), &server(), &[], &KeyLog::default());
    let [connection] = &found.connections[..] else { panic!("{found:?}") };
    assert_eq!((connection.client_port, connection.server_port, connection.opening), (4000, 443, OPENING));
    let of_client = [(24, 45, 0, HttpFrame::InitialWindow(65_536)), (84, 97, 5, HttpFrame::WindowUpdate(32_768))];
    let of_server = [(38, 347, 5, HttpFrame::Data(300)), (347, 356, 5, HttpFrame::Data(0))];
    assert_eq!(frames(connection, Side::Forward), of_client);
    assert_eq!(frames(connection, Side::Reverse), of_server);
}

#[test]
fn a_gap_and_too_many_bytes_end_it_and_other_protocols_cost_nothing() {
    let mut kept = KeptSegments::new(MOST);
    sent(&mut kept, Side::Forward, &client(), &[45]);
    kept.add(Side::Forward, &segment(Side::Forward, OPENING.wrapping_add(500), ACK, &frame(8, 0, &[0; 4])));
    kept.add(Side::Forward, &segment(Side::Forward, OPENING.wrapping_add(98), ACK, &frame(8, 0, &[0; 4])));
    let found = kept.open(&KeyLog::default());
    assert_eq!((frames(&found.connections[0], Side::Forward).len(), found.left_out), (2, 2));

    let http1 = opened(b"GET / HTTP/1.1\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", &[], &KeyLog::default());
    assert_eq!(http1.connections, []);
    // Without a SYN positions are unknown.
    let mut kept = KeptSegments::new(MOST);
    kept.add(Side::Forward, &segment(Side::Forward, 1, ACK, &client()));
    assert_eq!(kept.open(&KeyLog::default()).connections, []);
}

/// Seals records as one end of TLS.
struct Sealer {
    key: LessSafeKey,
    iv: [u8; 12],
    number: u64,
}

impl Sealer {
    fn new(secret: &[u8]) -> Self {
        struct Length(usize);
        impl hkdf::KeyType for Length {
            fn len(&self) -> usize {
                self.0
            }
        }
        let secret = hkdf::Prk::new_less_safe(hkdf::HKDF_SHA256, secret);
        let (mut key, mut iv) = ([0; 16], [0; 12]);
        let length = Length(16);
        secret.expand(&[&[0, 16, 9], b"tls13 key", &[0]], length).unwrap().fill(&mut key).unwrap();
        secret.expand(&[&[0, 12, 8], b"tls13 iv", &[0]], Length(12)).unwrap().fill(&mut iv).unwrap();
        Self { key: LessSafeKey::new(UnboundKey::new(&AES_128_GCM, &key).unwrap()), iv, number: 0 }
    }

    fn seal(&mut self, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut inner = [content, &[kind, 0, 0]].concat();
        let header = [&[23, 3, 3], &(inner.len() as u16 + 16).to_be_bytes()[..]].concat();
        let mut nonce = self.iv;
        nonce[11] ^= self.number as u8;
        self.number += 1;
        let nonce = Nonce::assume_unique_for_key(nonce);
        self.key.seal_in_place_append_tag(nonce, Aad::from(&header), &mut inner).unwrap();
        [header, inner].concat()
    }
}

/// A `ClientHello` with protocols, as a record.
fn hello(protocols: &[u8]) -> Vec<u8> {
    let list = [&(protocols.len() as u16).to_be_bytes(), protocols].concat();
    let extension = [&[0, 16], &(list.len() as u16).to_be_bytes()[..], &list].concat();
    let extensions = [&[0, 43, 0, 3, 2, 3, 4], &extension[..]].concat();
    let content =
        [&[3, 3], &[0x5a; 32][..], &[0, 0, 2, 0x13, 1, 1, 0], &(extensions.len() as u16).to_be_bytes(), &extensions];
    let content = content.concat();
    let message = [&[1, 0], &(content.len() as u16).to_be_bytes()[..], &content].concat();
    [&[22, 3, 1], &(message.len() as u16).to_be_bytes()[..], &message].concat()
}

/// Both ends' bytes over TLS, with a key log.
fn over_tls(protocols: &[u8]) -> (Vec<u8>, Vec<u8>, KeyLog) {
    let labels = [
        "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
        "CLIENT_TRAFFIC_SECRET_0",
        "SERVER_HANDSHAKE_TRAFFIC_SECRET",
        "SERVER_TRAFFIC_SECRET_0",
    ];
    let secret = |number: usize| [number as u8 + 1; 32];
    let line = |(number, label)| format!("{label} {} {}\n", "5a".repeat(32), format!("{:02x}", number + 1).repeat(32));
    let log: String = labels.into_iter().enumerate().map(line).collect();
    let [mut of_client, mut client_data, mut of_server, mut server_data] =
        [0, 1, 2, 3].map(|number| Sealer::new(&secret(number)));
    let (client, server) = (client(), server());
    let sent_by_client = [
        hello(protocols),
        vec![20, 3, 3, 0, 1, 1],
        of_client.seal(22, &[20; 36]),
        client_data.seal(23, &client[..30]),
        client_data.seal(23, &client[30..]),
    ];
    let sent_by_server = [
        vec![22, 3, 3, 0, 4, 2, 0, 0, 0],
        of_server.seal(22, &[8; 700]),
        server_data.seal(22, &[4; 200]),
        server_data.seal(23, &server),
    ];
    (sent_by_client.concat(), sent_by_server.concat(), KeyLog::parse(log.as_bytes()))
}

#[test]
fn frames_in_records_are_at_the_places_of_these() {
    let (client, server, keys) = over_tls(b"\x08http/1.1\x02h2");
    let found = opened(&client, &server, &[], &keys);
    let [connection] = &found.connections[..] else { panic!("{found:?}") };
    let [first, last] = [(client.len() - 67 - 24 - 30 - 24, client.len()), (client.len() - 67 - 24, client.len())];
    assert_eq!(
        frames(connection, Side::Forward),
        [
            (first.0 as u64, first.1 as u64, 0, HttpFrame::InitialWindow(65_536)),
            (last.0 as u64, last.1 as u64, 5, HttpFrame::WindowUpdate(32_768)),
        ]
    );
    let start = (server.len() - 356 - 24) as u64;
    let place = |frame| (start, server.len() as u64, 5, frame);
    assert_eq!(frames(connection, Side::Reverse), [place(HttpFrame::Data(300)), place(HttpFrame::Data(0))]);
    // Without HTTP/2, or without keys, nothing is known.
    assert_eq!(opened(&client, &server, &[], &KeyLog::default()).connections, []);
    let (client, server, keys) = over_tls(b"\x08http/1.1");
    assert_eq!(opened(&client, &server, &[], &keys).connections, []);
}

#[test]
fn records_are_kept_only_as_far_as_may_be() {
    let (client, server, keys) = over_tls(b"\x02h2");
    let mut kept = KeptSegments::new(client.len() + 800);
    sent(&mut kept, Side::Forward, &client, &[]);
    sent(&mut kept, Side::Reverse, &server, &[800, 200]);
    let found = kept.open(&keys);
    assert_eq!((frames(&found.connections[0], Side::Reverse).len(), found.left_out), (0, 4));
}

proptest! {
    #[test]
    fn cuts_and_what_is_sent_again_change_nothing(cuts in prop::collection::vec(1_usize..60, 0..100)) {
        let whole = opened(&client(), &server(), &[], &KeyLog::default());
        prop_assert_eq!(opened(&client(), &server(), &cuts, &KeyLog::default()).connections, whole.connections);
        let (client, server, keys) = over_tls(b"\x02h2");
        let whole = opened(&client, &server, &[], &keys);
        prop_assert_eq!(opened(&client, &server, &cuts, &keys).connections, whole.connections);
    }

    #[test]
    fn any_bytes_are_read_without_harm(
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..10),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..80), 0..10),
        cuts in prop::collection::vec(1_usize..60, 0..20),
        is_sealed: bool,
    ) {
        let (client, server, keys) =
            if is_sealed { over_tls(b"\x02h2") } else { (client(), server(), KeyLog::default()) };
        let mut all = [client, server];
        for (at, byte) in damage {
            let bytes = &mut all[usize::from(byte) % 2];
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        let mut kept = KeptSegments::new(500);
        for (packet, side) in packets.iter().zip(Side::BOTH.into_iter().cycle()) {
            kept.add(side, packet);
            kept.add(side, &segment(side, OPENING.wrapping_add(7), ACK, packet));
        }
        sent(&mut kept, Side::Forward, &all[0], &cuts);
        sent(&mut kept, Side::Reverse, &all[1], &cuts);
        prop_assert!(kept.open(&keys).connections.len() <= 1);
    }
}
