//! The header parser: packets byte by byte, and against etherparse as an oracle on generated and mutilated packets.

#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

#[path = "support/oracle.rs"]
mod oracle;

use crosswind_ledger::{Headers, Service, TcpOptions};
use crosswind_path::Ecn;
use etherparse::{
    IpFragOffset, IpNumber, Ipv4Header, Ipv4Options, Ipv6FragmentHeader, Ipv6Header, Ipv6RawExtHeader, TcpHeader,
    UdpHeader,
};
use oracle::oracle;
use proptest::prelude::*;

const TCP: u8 = 6;
const UDP: u8 = 17;

/// An IPv4 header without options: `length` and `fragment` are its fields.
fn ipv4(protocol: u8, length: u16, fragment: u16, rest: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x45, 0];
    packet.extend(length.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(fragment.to_be_bytes());
    packet.extend([64, protocol, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
    packet.extend(rest);
    packet
}

fn ipv6(next_header: u8, rest: &[u8]) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((rest.len() as u16).to_be_bytes());
    packet.extend([next_header, 64]);
    packet.extend([0xfd; 32]);
    packet.extend(rest);
    packet
}

fn udp(length: u16, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0x9c, 0x40, 0, 53];
    datagram.extend(length.to_be_bytes());
    datagram.extend([0, 0]);
    datagram.extend(payload);
    datagram
}

fn tcp(flags: u8, payload: &[u8]) -> Vec<u8> {
    let mut segment = vec![0x9c, 0x40, 0, 80, 0, 0, 0, 1, 0, 0, 0, 7, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0];
    segment.extend(payload);
    segment
}

const NO_OPTIONS: TcpOptions =
    TcpOptions { window_shift: None, largest_segment: 0, sack_permitted: false, has_sack: false };
const NOTHING: Headers = Headers {
    version: 0,
    protocol: 0,
    source_port: 0,
    destination_port: 0,
    payload_bytes: 0,
    flags: 0,
    sequence: 0,
    acknowledgement: 0,
    window: 0,
    options: NO_OPTIONS,
    ecn: Ecn::NotCapable,
};
const UDP_OF_THREE: Headers = Headers {
    version: 4,
    protocol: UDP,
    source_port: 40_000,
    destination_port: 53,
    payload_bytes: 3,
    flags: 0,
    sequence: 0,
    acknowledgement: 0,
    window: 0,
    options: NO_OPTIONS,
    ecn: Ecn::NotCapable,
};

#[test]
fn a_datagram_over_ipv4() {
    assert_eq!(Headers::parse(&ipv4(UDP, 31, 0, &udp(11, b"abc"))), UDP_OF_THREE);
}

#[test]
fn a_datagram_is_known_by_its_last_eight_bytes() {
    let packet = ipv4(UDP, 28 + 9, 0, &udp(8 + 9, b"abcdefghi"));
    assert_eq!(Headers::parse(&packet).tail(), u64::from_be_bytes(*b"bcdefghi"));
}

#[test]
fn a_segment_over_ipv6_with_its_flags_and_sequence_number() {
    let expected = Headers {
        version: 6,
        protocol: TCP,
        source_port: 40_000,
        destination_port: 80,
        payload_bytes: 2,
        flags: 0x18,
        sequence: 1,
        acknowledgement: 7,
        window: 0xffff,
        ..UDP_OF_THREE
    };
    assert_eq!(Headers::parse(&ipv6(TCP, &tcp(0x18, b"hi"))), expected);
}

#[test]
fn options_are_read_as_far_as_they_go() {
    let options = |bytes: &[u8]| {
        let mut segment = tcp(0x02, bytes);
        segment[12] = ((5 + bytes.len() / 4) << 4) as u8;
        Headers::parse(&ipv4(TCP, 20 + segment.len() as u16, 0, &segment)).options
    };
    // A Linux SYN: largest segment, selective acknowledgements, timestamps, nothing, window shift.
    let syn = [2, 4, 5, 180, 4, 2, 8, 10, 0, 0, 0, 1, 0, 0, 0, 0, 1, 3, 3, 7];
    let expected = TcpOptions { window_shift: Some(7), largest_segment: 1460, sack_permitted: true, has_sack: false };
    assert_eq!(options(&syn), expected);
    // An unknown kind is skipped by its length (RFC 9293, 3.1).
    assert_eq!(options(&[255, 3, 3, 3, 3, 7, 0, 0]), TcpOptions { window_shift: Some(7), ..NO_OPTIONS });
    let sack = [1, 1, 5, 10, 0, 0, 0, 1, 0, 0, 0, 9];
    assert_eq!(options(&sack), TcpOptions { has_sack: true, ..NO_OPTIONS });
    // Options after the end, and lengths too short or too long, are not read.
    for broken in [[0, 3, 3, 7], [8, 0, 4, 2], [8, 1, 4, 2], [8, 200, 4, 2]] {
        assert_eq!(options(&broken), NO_OPTIONS, "{broken:?}");
    }
}

#[test]
fn extension_headers_are_skipped() {
    let mut rest = vec![60, 0, 1, 4, 0, 0, 0, 0]; // hop-by-hop: padding, then destination options
    rest.extend([51, 1]); // 16 bytes of destination options, then authentication
    rest.extend([0; 14]);
    rest.extend([UDP, 4]); // authentication: (4 + 2) * 4 = 24 bytes
    rest.extend([0; 22]);
    rest.extend(udp(11, b"abc"));
    assert_eq!(Headers::parse(&ipv6(0, &rest)), Headers { version: 6, ..UDP_OF_THREE });
}

#[test]
fn at_most_eight_extension_headers_are_followed() {
    let chain = |n: usize| {
        let mut rest = [60, 0, 1, 4, 0, 0, 0, 0].repeat(n);
        rest[(n - 1) * 8] = UDP;
        rest.extend(udp(11, b"abc"));
        Headers::parse(&ipv6(60, &rest))
    };
    assert_eq!(chain(8), Headers { version: 6, ..UDP_OF_THREE });
    assert_eq!(chain(9), Headers { version: 6, protocol: 60, ..NOTHING });
}

#[test]
fn a_later_fragment_has_no_ports_and_is_all_payload() {
    let expected = Headers { version: 4, protocol: UDP, payload_bytes: 16, ..NOTHING };
    for offset in [1, 185, 0x1000, 0x1fff] {
        assert_eq!(Headers::parse(&ipv4(UDP, 36, offset, &[7; 16])), expected);
    }
    let mut rest = vec![UDP, 0, 0x05, 0xc8, 0, 0, 0, 1]; // offset 185
    rest.extend([7; 16]);
    assert_eq!(Headers::parse(&ipv6(44, &rest)), Headers { version: 6, ..expected });
}

#[test]
fn a_first_fragment_has_its_ports_and_the_payload_that_is_there() {
    let more_fragments = 0x2000;
    assert_eq!(Headers::parse(&ipv4(UDP, 31, more_fragments, &udp(4000, b"abc"))), UDP_OF_THREE);
}

#[test]
fn lengths_are_clipped_to_the_bytes_that_are_there() {
    assert_eq!(Headers::parse(&ipv4(UDP, 1500, 0, &udp(1480, b"abc"))), UDP_OF_THREE);
    // Bytes behind the IP packet are not part of it.
    assert_eq!(Headers::parse(&ipv4(UDP, 31, 0, &udp(11, b"abc and a trailer"))), UDP_OF_THREE);
    // A super-packet too large for the length field has 0 there.
    assert_eq!(Headers::parse(&ipv4(UDP, 0, 0, &udp(0, b"abc"))), UDP_OF_THREE);
}

#[test]
fn other_protocols_have_a_number_and_nothing_else() {
    let echo_request = [8, 0, 0, 0, 0, 1, 0, 1];
    assert_eq!(Headers::parse(&ipv4(1, 28, 0, &echo_request)), Headers { version: 4, protocol: 1, ..NOTHING });
}

#[test]
fn the_ports_of_a_segment_that_is_cut_off_are_read() {
    let whole = ipv4(TCP, 60, 0, &tcp(0x02, b""));
    let ports = Headers { version: 4, protocol: TCP, source_port: 40_000, destination_port: 80, ..NOTHING };
    assert_eq!(Headers::parse(&whole[..24]), ports);
    assert_eq!(Headers::parse(&whole[..23]), Headers { source_port: 0, destination_port: 0, ..ports });
}

#[test]
fn bytes_that_are_no_packet_have_no_headers() {
    let header_longer_than_packet = [0x4f; 30];
    let header_too_short = [0x44; 60];
    let other_version = [0x50; 60];
    for garbage in [&[][..], &[0x45], &[0x60; 39], &header_longer_than_packet, &header_too_short, &other_version] {
        assert_eq!(Headers::parse(garbage), NOTHING, "{garbage:?}");
    }
}

prop_compose! {
    fn transport()(
        kind in 0..3u8,
        source in any::<u16>(),
        destination in any::<u16>(),
        flags in any::<u8>(),
        sequence in any::<u32>(),
        options in 0..=10usize,
        payload in prop::collection::vec(any::<u8>(), 0..200),
    ) -> (u8, Vec<u8>) {
        let mut bytes = Vec::new();
        let protocol = match kind {
            0 => {
                let mut header = TcpHeader::new(source, destination, sequence, 1000);
                (header.fin, header.syn, header.rst, header.psh) = (flags & 1 != 0, flags & 2 != 0, flags & 4 != 0, flags & 8 != 0);
                (header.ack, header.urg, header.ece, header.cwr) = (flags & 16 != 0, flags & 32 != 0, flags & 64 != 0, flags & 128 != 0);
                header.set_options_raw(&[1; 40][..options * 4]).unwrap();
                header.write(&mut bytes).unwrap();
                TCP
            }
            1 => {
                let header = UdpHeader::without_ipv4_checksum(source, destination, payload.len()).unwrap();
                bytes.extend(header.to_bytes());
                UDP
            }
            _ => flags,
        };
        bytes.extend(payload);
        (protocol, bytes)
    }
}

prop_compose! {
    fn ipv4_packet()(
        (protocol, rest) in transport(),
        options in 0..=10usize,
        more_fragments: bool,
        offset in prop_oneof![3 => Just(0), 1 => 0..8192u16],
        trailer in 0..8usize,
    ) -> Vec<u8> {
        let mut header = Ipv4Header::new(rest.len() as u16, 64, IpNumber(protocol), [10, 0, 0, 1], [10, 0, 0, 2]).unwrap();
        header.options = Ipv4Options::try_from(&[1; 40][..options * 4]).unwrap();
        header.set_payload_len(rest.len()).unwrap();
        (header.more_fragments, header.fragment_offset) = (more_fragments, IpFragOffset::try_new(offset).unwrap());
        let mut packet = Vec::new();
        header.write(&mut packet).unwrap();
        packet.extend(rest);
        packet.extend(vec![0; trailer]);
        packet
    }
}

prop_compose! {
    fn ipv6_packet()(
        (protocol, rest) in transport(),
        hop_by_hop in prop::option::of(0..4usize),
        others in prop::collection::vec((prop::sample::select(vec![43u8, 60]), 0..4usize), 0..4),
        fragment in prop::option::of((any::<bool>(), prop_oneof![Just(0), 0..8192u16])),
        trailer in 0..8usize,
    ) -> Vec<u8> {
        let mut kinds: Vec<(u8, usize)> = Vec::new();
        kinds.extend(hop_by_hop.map(|length| (0, length)));
        kinds.extend(others);
        let mut numbers: Vec<u8> = kinds.iter().map(|(number, _)| *number).collect();
        numbers.extend(fragment.map(|_| 44));
        numbers.push(protocol);
        let mut body = Vec::new();
        for (i, (_, length)) in kinds.iter().enumerate() {
            Ipv6RawExtHeader::new_raw(IpNumber(numbers[i + 1]), &vec![0; 6 + 8 * length]).unwrap().write(&mut body).unwrap();
        }
        if let Some((more, offset)) = fragment {
            let offset = IpFragOffset::try_new(offset).unwrap();
            Ipv6FragmentHeader::new(IpNumber(protocol), offset, more, 1).write(&mut body).unwrap();
        }
        body.extend(rest);
        let mut packet = Vec::new();
        let header = Ipv6Header { next_header: IpNumber(numbers[0]), payload_length: body.len() as u16, ..Ipv6Header::default() };
        header.write(&mut packet).unwrap();
        packet.extend(body);
        packet.extend(vec![0; trailer]);
        packet
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn agrees_with_etherparse(packet in prop_oneof![ipv4_packet(), ipv6_packet()]) {
        if let Some(expected) = oracle(&packet) {
            prop_assert_eq!(Headers::parse(&packet), expected);
        }
    }

    #[test]
    fn agrees_with_etherparse_on_mutilated_packets(
        mut packet in prop_oneof![ipv4_packet(), ipv6_packet()],
        changes in prop::collection::vec((0..80usize, any::<u8>()), 0..6),
        length in 0..400usize,
    ) {
        for (at, value) in changes {
            if let Some(byte) = packet.get_mut(at) {
                *byte = value;
            }
        }
        packet.truncate(length.max(1));
        let headers = Headers::parse(&packet);
        prop_assert!(headers.payload_bytes as usize <= packet.len());
        if let Some(expected) = oracle(&packet) {
            prop_assert_eq!(headers, expected);
        }
    }

    #[test]
    fn no_bytes_make_the_parser_panic(packet in prop::collection::vec(any::<u8>(), 0..200)) {
        let headers = Headers::parse(&packet);
        prop_assert!(headers.payload_bytes as usize <= packet.len());
    }
}

#[test]
fn the_oracle_answers_for_most_generated_packets() {
    use proptest::strategy::ValueTree;
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let strategy = prop_oneof![ipv4_packet(), ipv6_packet()];
    let answered = (0..1000).filter(|_| oracle(&strategy.new_tree(&mut runner).unwrap().current()).is_some()).count();
    assert!(answered > 700, "{answered} of 1000: the comparison above would mean little");
}

#[test]
fn the_bits_about_congestion_are_those_of_the_traffic_class() {
    let ecn = |class: u8| {
        let mut v4 = ipv4(UDP, 31, 0, &udp(11, b"abc"));
        v4[1] = class;
        let mut v6 = ipv6(UDP, &udp(11, b"abc"));
        (v6[0], v6[1]) = (0x60 | class >> 4, class << 4);
        (Headers::parse(&v4).ecn, Headers::parse(&v6).ecn)
    };
    for (class, expected) in [(0xfc, Ecn::NotCapable), (0x01, Ecn::Ect1), (0xb8 | 0x02, Ecn::Ect0), (0x03, Ecn::Marked)]
    {
        assert_eq!(ecn(class), (expected, expected));
    }
}

#[test]
fn service_is_the_codepoint_and_the_addresses() {
    let parsed = |class: u8, last: u8| {
        let mut v4 = ipv4(UDP, 31, 0, &udp(11, b"abc"));
        (v4[1], v4[15]) = (class, last);
        let mut v6 = ipv6(UDP, &udp(11, b"abc"));
        (v6[0], v6[1], v6[23]) = (0x60 | class >> 4, class << 4, last);
        [v4, v6].map(|packet| Service::parse(&packet))
    };
    for ((one, same), other) in parsed(0xb8 | 0x03, 1).into_iter().zip(parsed(0, 1)).zip(parsed(0, 2)) {
        assert_eq!((one.dscp, same.dscp), (46, 0));
        assert_eq!((one.source, one.destination), (same.source, same.destination));
        assert_eq!((one.source == other.source, one.destination == other.destination), (false, true));
    }
    assert_eq!(Service::parse(&[0x45]), Service::default());
}
