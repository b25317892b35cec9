//! Legs over tables of packets that are written by hand, with exact answers; and over any table: pieces are the leg, whatever the
//! packets are.

use crosswind_attribution::{Attribution, Flow, Hosts, Leg, Part, Piece, flows};
use crosswind_ledger::{
    DropCause, Headers, HttpEnd, HttpFrame, HttpWrite, PacketRecord, Position, QuicLog, TCP, TCP_ACK, TCP_PSH,
    TcpOptions, UDP, Verdict,
};
use crosswind_path::{Side, TimeSpent, loss::LOSS};
use crosswind_units::{Bytes, Duration, Instant};
use proptest::prelude::*;

const PORT: u16 = 40_000;
const PROPAGATION_US: u64 = 1000;
static NO_HTTP: [Vec<HttpEnd>; 2] = [Vec::new(), Vec::new()];
const HOSTS: Hosts = Hosts {
    promptness: Duration::from_micros(2),
    in_order: false,
    tail_loss_probes: true,
    slow_start_after_idle: true,
    nagle: true,
    pacing: false,
    initial_window: None,
    send_buffer: None,
    quic_packet_threshold: 3,
    quic_time_threshold: 9.0 / 8.0,
    quic_stream_window: 1 << 24,
    quic_connection_window: 1 << 26,
};

fn at(us: u64) -> Instant {
    Instant::from_nanos(us * 1000)
}

/// Packets as they enter a path without a link.
#[derive(Default)]
struct Wire {
    packets: Vec<PacketRecord>,
}

impl Wire {
    fn add(&mut self, side: Side, us: u64, arrives: bool, headers: Headers) {
        let index = self.packets.iter().filter(|it| it.side == side).count() as u64;
        let due = at(us + if arrives { PROPAGATION_US } else { 0 });
        let (source_port, destination_port) = if side == Side::Forward { (PORT, 80) } else { (80, PORT) };
        self.packets.push(PacketRecord {
            side,
            index,
            copy: 0,
            flipped_bit: None,
            size: Bytes(u64::from(headers.payload_bytes) + 40),
            headers: Headers { source_port, destination_port, ..headers },
            entered: at(us),
            due,
            spent: TimeSpent { propagation: due.saturating_since(at(us)), ..TimeSpent::default() },
            marked_in: None,
            hop: 0,
            left: arrives.then_some(due),
            verdict: if arrives { Verdict::Delivered } else { Verdict::Dropped(DropCause::Path(LOSS)) },
        });
    }

    /// A segment of the client's.
    fn data(&mut self, us: u64, start: u32, bytes: u32, arrives: bool) {
        let headers =
            Headers { protocol: TCP, flags: TCP_ACK, sequence: 1 + start, payload_bytes: bytes, ..Headers::default() };
        self.add(Side::Forward, us, arrives, headers);
    }

    /// An acknowledgement of the server's.
    fn ack(&mut self, us: u64, up_to: u32, window: u16, has_sack: bool) {
        let options = TcpOptions { has_sack, ..TcpOptions::default() };
        let headers = Headers {
            protocol: TCP,
            flags: TCP_ACK,
            acknowledgement: 1 + up_to,
            window,
            options,
            ..Headers::default()
        };
        self.add(Side::Reverse, us, true, headers);
    }

    fn syns(&mut self) {
        let options = TcpOptions { sack_permitted: true, ..TcpOptions::default() };
        let syn = Headers { protocol: TCP, flags: 2, window: 60_000, options, ..Headers::default() };
        self.add(Side::Forward, 0, true, syn);
        self.add(Side::Reverse, 1000, true, Headers { flags: 2 | TCP_ACK, acknowledgement: 1, ..syn });
    }

    /// What a leg is made of: parts with microseconds, and how often a timer had expired.
    fn pieces(&self, leg: Leg) -> Vec<(Part, u64, u32)> {
        self.pieces_at(HOSTS, leg)
    }

    fn pieces_at(&self, hosts: Hosts, leg: Leg) -> Vec<(Part, u64, u32)> {
        let pieces = Attribution::new(&self.packets, &<[QuicLog; 2]>::default(), &NO_HTTP, hosts).leg(leg);
        assert_is_whole(&pieces, leg.written, leg.received);
        pieces.iter().map(|it| (it.part, it.to.saturating_since(it.from).as_nanos() / 1000, it.count)).collect()
    }

    /// The same of a message to the server.
    fn forward(&self, written: u64, received: u64, bytes: u64, alone: bool) -> Vec<(Part, u64, u32)> {
        self.pieces(Leg { alone, ..leg(written, received, bytes) })
    }
}

/// A message to the server.
fn leg(written: u64, received: u64, bytes: u64) -> Leg {
    Leg {
        side: Side::Forward,
        client_port: PORT,
        written: at(written),
        received: at(received),
        bytes,
        position: None,
        alone: true,
        timed: false,
    }
}

fn assert_is_whole(pieces: &[Piece], from: Instant, to: Instant) {
    let ends: Vec<_> = pieces.iter().map(|it| it.to).collect();
    let begins: Vec<_> = pieces.iter().map(|it| it.from).collect();
    assert_eq!([&[from][..], &ends].concat(), [&begins[..], &[to]].concat());
    assert!(pieces.iter().all(|it| it.from < it.to));
}

#[test]
fn a_segment_that_is_sent_at_once_takes_the_time_of_the_path() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(2010, 0, 100, true);
    let expected = [(Part::ClientHost, 1, 0), (Part::PropagationForward, 1000, 0), (Part::ServerHost, 5, 0)];
    assert_eq!(wire.forward(2009, 3015, 100, true), expected);
}

#[test]
fn what_is_lost_at_the_end_is_probed_for_and_then_the_timer_expires_twice() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 100, false);
    wire.data(214_000, 0, 100, false);
    wire.data(420_000, 0, 100, false);
    wire.data(830_000, 0, 100, true);
    let expected = [
        (Part::TailLossProbe, 204_000, 0),
        (Part::RetransmissionTimer, 206_000, 1),
        (Part::RetransmissionTimer, 410_000, 2),
        (Part::PropagationForward, 1000, 0),
    ];
    assert_eq!(wire.forward(10_000, 831_000, 100, true), expected);
}

#[test]
fn a_probe_of_new_data_is_told_whoever_wrote_that_and_whatever_acknowledges_nothing() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(5000, 0, 100, true);
    wire.ack(6000, 100, 60_000, false);
    wire.data(10_000, 100, 100, false);
    wire.ack(13_000, 100, 60_000, false);
    // Two round trips after what was lost, and less than that after the acknowledgement.
    wire.data(15_000, 200, 100, true);
    wire.ack(16_000, 100, 60_000, true);
    wire.data(17_000, 100, 100, true);
    wire.data(17_000, 300, 100, true);
    let position = Some(Position::Bytes { start: 300, end: 400 });
    let expected = [
        (Part::TailLossProbe, 3000, 0),
        (Part::CongestionWindow, 1000, 0),
        (Part::CongestionWindow, 1000, 0),
        (Part::PropagationForward, 1000, 0),
    ];
    let own = Leg { position, alone: false, ..leg(12_000, 18_000, 100) };
    assert_eq!(wire.pieces_at(Hosts { nagle: false, ..HOSTS }, own), expected);
}

#[test]
fn a_message_waits_for_the_recovery_of_another() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 100, false); // another's
    wire.data(12_000, 100, 100, true); // its own
    wire.ack(13_000, 0, 60_000, true);
    wire.data(14_000, 0, 100, true);
    let expected = [(Part::PropagationForward, 1000, 0), (Part::HeadOfLine, 2000, 0)];
    assert_eq!(wire.forward(12_000, 15_000, 100, false), expected);
    // The other waits for what was sent again because an acknowledgement said that something had overtaken it.
    let expected = [(Part::FastRecovery, 4000, 0), (Part::PropagationForward, 1000, 0)];
    assert_eq!(wire.forward(10_000, 15_000, 100, false), expected);
}

#[test]
fn a_message_whose_bytes_are_known_is_told_from_those_around_it() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 100, true);
    wire.data(15_000, 100, 100, true);
    let of = |received, position| wire.pieces(Leg { position, alone: false, ..leg(10_000, received, 90) });
    // The server reads the first when the second has arrived as well.
    let first = Some(Position::Bytes { start: 0, end: 100 });
    assert_eq!(of(18_000, first), [(Part::PropagationForward, 1000, 0), (Part::ServerHost, 7000, 0)]);
    assert_eq!(of(18_000, None)[1..], [(Part::PropagationForward, 1000, 0), (Part::ServerHost, 2000, 0)]);
    // What is another's beside others may be what one that is alone waits for: the end of a handshake.
    let waits = |alone| wire.pieces(Leg { alone, ..leg(10_001, 11_000, 90) })[0].0;
    assert_eq!([false, true].map(waits), [Part::Unknown, Part::PropagationForward]);
    // Bytes that were never sent.
    assert_eq!(of(11_000, Some(Position::Bytes { start: 0, end: 150 })), [(Part::Unknown, 1000, 0)]);
}

#[test]
fn a_small_segment_waits_for_an_acknowledgement_that_is_delayed() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 1000, true);
    wire.ack(51_000, 1000, 60_000, false); // 40 ms after it arrived
    wire.data(52_000, 1000, 200, true);
    let expected = [
        (Part::Nagle, 1000, 0),
        (Part::DelayedAcknowledgement, 40_000, 0),
        (Part::Nagle, 1000, 0),
        (Part::PropagationForward, 1000, 0),
    ];
    assert_eq!(wire.forward(10_000, 53_000, 1200, true), expected);
}

#[test]
fn a_segment_that_its_program_fills_waited_for_that() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 1000, true);
    // A message of 500 bytes, and another one half a millisecond later.
    wire.data(10_600, 1000, 1000, true);
    let position = Some(Position::Bytes { start: 1000, end: 1500 });
    let message = Leg { position, alone: false, ..leg(10_100, 11_600, 500) };
    assert_eq!(wire.pieces(message), [(Part::Nagle, 500, 0), (Part::PropagationForward, 1000, 0)]);
    let nodelay = Hosts { nagle: false, ..HOSTS };
    assert_eq!(wire.pieces_at(nodelay, message)[0], (Part::Unknown, 500, 0));
}

#[test]
fn a_pace_holds_messages_back_beside_others_too() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 1000, true);
    wire.data(10_500, 1000, 1000, true);
    let position = Some(Position::Bytes { start: 1000, end: 2000 });
    let message = Leg { position, alone: false, ..leg(9_999, 11_500, 1000) };
    let of = |pacing| wire.pieces_at(Hosts { pacing, nagle: false, ..HOSTS }, message);
    let rest = [(Part::PropagationForward, 1000, 0)];
    assert_eq!(of(true), [&[(Part::ClientHost, 1, 0), (Part::Pacing, 500, 0)][..], &rest].concat());
    assert_eq!(of(false), [&[(Part::ClientHost, 1, 0), (Part::Unknown, 500, 0)][..], &rest].concat());
}

#[test]
fn on_a_path_that_takes_no_time_an_acknowledgement_is_no_cause_of_what_it_answers() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 100, false);
    wire.data(220_000, 0, 100, true);
    wire.ack(220_000, 100, 60_000, false);
    for packet in &mut wire.packets {
        (packet.due, packet.spent) = (packet.entered, TimeSpent::default());
        packet.left = packet.left.map(|_| packet.entered);
    }
    assert_eq!(wire.forward(10_000, 220_000, 100, true), [(Part::TailLossProbe, 210_000, 0)]);
}

#[test]
fn a_window_holds_back_what_does_not_fit_it() {
    let windows = [(1000, Part::ReceiveWindow), (60_000, Part::CongestionWindow)];
    for (window, part) in windows {
        let mut wire = Wire::default();
        wire.syns();
        wire.ack(5000, 0, window, false);
        wire.packets[1].headers.window = window;
        wire.data(10_000, 0, 1000, true);
        wire.ack(11_000, 1000, window, false);
        wire.data(12_000, 1000, 1000, true);
        let expected = [(part, 1000, 0), (part, 1000, 0), (Part::PropagationForward, 1000, 0)];
        assert_eq!(wire.forward(10_000, 13_000, 2000, true), expected, "{window}");
    }
}

#[test]
fn a_window_waits_for_its_program_where_nothing_had_arrived_since() {
    for (news, part) in [(true, Part::ReceiveWindow), (false, Part::ZeroWindow)] {
        let mut wire = Wire::default();
        wire.syns();
        wire.packets[1].headers.window = 3000;
        wire.data(10_000, 0, 1000, false); // another's
        wire.data(10_001, 1000, 2000, news);
        wire.ack(11_001, 0, 4000, true);
        wire.data(12_001, 3000, 1000, true); // its own
        wire.data(12_002, 0, 3000, true);
        let expected = [(part, 501, 0), (part, 1000, 0), (Part::PropagationForward, 1000, 0), (Part::HeadOfLine, 1, 0)];
        let position = Some(Position::Bytes { start: 3000, end: 4000 });
        assert_eq!(wire.pieces(Leg { position, ..leg(10_500, 13_002, 1000) }), expected);
    }
}

#[test]
fn what_is_cut_off_in_time_ends_with_what_its_receiver_lacked_then() {
    let until = |wire: &Wire, received| wire.pieces(Leg { timed: true, ..leg(10_000, received, 100) });
    let begins = (Part::ClientHost, 1, 0);
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 1000, true);
    wire.data(10_001, 1000, 1000, false);
    // Nothing behind it tells that it was lost.
    assert_eq!(until(&wire, 11_500), [begins, (Part::Unknown, 1499, 0)]);
    wire.data(10_002, 2000, 1000, true);
    assert_eq!(until(&wire, 11_500), [begins, (Part::FastRecovery, 1499, 0)]);
    wire.ack(11_002, 1000, 60_000, true);
    wire.data(12_002, 1000, 1000, true);
    let recovered = [begins, (Part::FastRecovery, 2001, 0)];
    assert_eq!(until(&wire, 12_500), [&recovered[..], &[(Part::PropagationForward, 498, 0)]].concat());
    // All that was sent is there, and its acknowledgement is not.
    let arrived = [&recovered[..], &[(Part::PropagationForward, 1000, 0)]].concat();
    let then = |wire: &Wire, received, part, us| {
        assert_eq!(until(wire, received), [&arrived[..], &[(part, us, 0)]].concat());
    };
    then(&wire, 13_500, Part::CongestionWindow, 498);
    wire.ack(13_002, 3000, 0, false);
    then(&wire, 14_500, Part::ClientHost, 1498);
    (wire.packets[1].headers.window, wire.packets[5].headers.window) = (3000, 2000);
    then(&wire, 13_500, Part::ReceiveWindow, 498);
    then(&wire, 14_500, Part::ZeroWindow, 1498);
}

#[test]
fn what_no_packet_tells_is_unknown() {
    let mut wire = Wire::default();
    assert_eq!(wire.forward(10_000, 43_000, 60, true), [(Part::Unknown, 33_000, 0)]);
    wire.data(50_000, 0, 100, true);
    assert_eq!(wire.forward(10_000, 43_000, 60, true), [(Part::Unknown, 33_000, 0)]);
}

#[test]
fn a_buffer_is_full_where_all_that_was_written_is_in_flight() {
    let held = |flags: u8, send_buffer| {
        let mut wire = Wire::default();
        wire.syns();
        wire.data(10_000, 0, 1000, true);
        wire.packets[2].headers.flags |= flags;
        wire.ack(11_000, 1000, 60_000, false);
        wire.data(12_000, 1000, 1000, true);
        let (hosts, leg) = (Hosts { send_buffer, ..HOSTS }, leg(10_000, 13_000, 2000));
        Attribution::new(&wire.packets, &<[QuicLog; 2]>::default(), &NO_HTTP, hosts).leg(leg)[0].part
    };
    assert_eq!(held(TCP_PSH, Some(1000)), Part::SendBuffer);
    // There was room, or more to be sent, or the kernel may let the buffer grow.
    assert_eq!(held(TCP_PSH, Some(1001)), Part::CongestionWindow);
    assert_eq!(held(0, Some(1000)), Part::CongestionWindow);
    assert_eq!(held(TCP_PSH, None), Part::CongestionWindow);
}

#[test]
fn a_buffer_is_full_where_an_acknowledgement_lets_nothing_be_sent() {
    let held = |flags: u8, acknowledged: &[u32], in_order| {
        let mut wire = Wire::default();
        wire.syns();
        wire.data(10_000, 0, 1000, true);
        wire.data(10_000, 1000, 1000, true);
        wire.packets[3].headers.flags |= flags;
        for &up_to in acknowledged {
            wire.ack(11_000, up_to, 60_000, false);
        }
        wire.data(12_001, 2000, 1000, true);
        wire.pieces_at(Hosts { in_order, ..HOSTS }, leg(10_000, 13_001, 3000))[0].0
    };
    assert_eq!(held(TCP_PSH, &[1000, 2000], true), Part::SendBuffer);
    // There was more to be sent; one acknowledgement let it be sent; its sender may have answered the first of them.
    assert_eq!(held(0, &[1000, 2000], true), Part::CongestionWindow);
    assert_eq!(held(TCP_PSH, &[2000], true), Part::CongestionWindow);
    assert_eq!(held(TCP_PSH, &[1000, 2000], false), Part::CongestionWindow);
}

#[test]
fn a_window_that_was_full_for_an_instant_alone_is_not_what_a_segment_waited_for() {
    let held = |edge: u16| {
        let mut wire = Wire::default();
        wire.syns();
        wire.packets[1].headers.window = edge;
        wire.data(10_000, 0, 1000, true);
        wire.data(10_000, 1000, 1000, true);
        wire.ack(11_000, 1000, 1000, false);
        wire.ack(11_000, 2000, 60_000, false);
        wire.data(12_000, 2000, 1000, true);
        wire.forward(10_000, 13_000, 3000, true)[0].0
    };
    assert_eq!([held(60_000), held(2000)], [Part::CongestionWindow, Part::ReceiveWindow]);
}

/// 1000 bytes take 800 us on a link of 10 Mbit/s.
#[test]
fn while_the_link_carries_the_messages_own_bytes_that_is_what_it_takes() {
    let packet = |index: u64, port: u16, begins_us: u64| {
        let spent = TimeSpent {
            serialisation: Duration::from_micros(800),
            queueing: Duration::from_micros(begins_us - 10_000),
            propagation: Duration::from_micros(1000),
            ..TimeSpent::default()
        };
        let due = at(begins_us + 1800);
        let headers = Headers {
            protocol: UDP,
            source_port: port,
            destination_port: 80,
            payload_bytes: 972,
            ..Headers::default()
        };
        PacketRecord {
            side: Side::Forward,
            index,
            copy: 0,
            flipped_bit: None,
            size: Bytes(1000),
            headers,
            entered: at(10_000),
            due,
            spent,
            marked_in: None,
            hop: 0,
            left: Some(due),
            verdict: Verdict::Delivered,
        }
    };
    let own = |index, begins| packet(index, PORT, begins);
    let packets = [packet(0, 9, 10_000), own(1, 10_800), own(2, 11_600), packet(3, 9, 12_400), own(4, 13_200)];
    let (link, queue) = ((Part::SerialisationForward, 800, 0), (Part::QueueingForward, 800, 0));
    let expected = [queue, link, link, queue, link, (Part::PropagationForward, 1000, 0)];
    let wire = Wire { packets: packets.to_vec() };
    assert_eq!(wire.forward(10_000, 15_000, 2900, true), expected);
}

#[test]
fn bytes_may_wait_behind_an_acknowledgement_of_their_own_connection() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 0, true); // an acknowledgement, for 800 us on the link
    wire.data(10_001, 0, 100, true);
    for (packet, begins) in wire.packets[2..].iter_mut().zip([10_000, 10_800]) {
        packet.spent.serialisation = Duration::from_micros(800);
        packet.spent.queueing = at(begins).saturating_since(packet.entered);
        packet.due = at(begins + 1800);
        packet.left = Some(packet.due);
    }
    let expected = [
        (Part::ClientHost, 2, 0),
        (Part::QueueingForward, 799, 0),
        (Part::SerialisationForward, 800, 0),
        (Part::PropagationForward, 1000, 0),
    ];
    assert_eq!(wire.forward(9_999, 12_600, 100, true), expected);
}

/// What a client or a server wrote over HTTP/2, at which microsecond.
fn http(writes: impl IntoIterator<Item = (u64, u64, u64, u64, HttpFrame)>) -> Vec<HttpEnd> {
    let writes =
        writes.into_iter().map(|(us, start, end, stream, frame)| HttpWrite { at: at(us), start, end, stream, frame });
    vec![HttpEnd { client_port: PORT, began: at(2000), writes: writes.collect() }]
}

#[test]
fn a_window_of_http2_holds_back_what_does_not_fit_it() {
    let mut wire = Wire::default();
    wire.syns();
    let reverse = |sequence: u32, bytes, acknowledged: u32| Headers {
        protocol: TCP,
        flags: TCP_ACK,
        sequence: 1 + sequence,
        acknowledgement: 1 + acknowledged,
        payload_bytes: bytes,
        window: 60_000,
        ..Headers::default()
    };
    wire.add(Side::Reverse, 3000, true, reverse(0, 15, 0));
    wire.data(10_000, 0, 1000, true);
    wire.add(Side::Reverse, 11_000, true, reverse(15, 13, 1000));
    wire.data(12_000, 1000, 500, true);
    let parts = |more, stream| {
        let first = (10_000, 0, 1000, 1, HttpFrame::Data(1000));
        let client = http([first, (12_000, 1000, 1500, 1, HttpFrame::Data(500))]);
        let server = http([
            (3000, 0, 15, 0, HttpFrame::InitialWindow(1000)),
            (11_000, 15, 28, stream, HttpFrame::WindowUpdate(more)),
        ]);
        let position = Some(Position::Stream { stream: 1, start: None, end: None });
        let leg = Leg { position, alone: false, ..leg(10_000, 13_000, 1500) };
        let pieces = Attribution::new(&wire.packets, &<[QuicLog; 2]>::default(), &[client, server], HOSTS).leg(leg);
        assert_is_whole(&pieces, at(10_000), at(13_000));
        pieces.iter().map(|it| (it.part, it.to.saturating_since(it.from).as_nanos() / 1000)).collect::<Vec<_>>()
    };
    let waited = |part| vec![(part, 1000), (part, 1000), (Part::PropagationForward, 1000)];
    assert_eq!(parts(500, 1), waited(Part::StreamWindow));
    // Another stream's window is not what it waited for.
    assert_eq!(parts(500, 3), waited(Part::Nagle));
}

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

/// What flows were spent on: parts with microseconds.
fn spent(packets: &[PacketRecord], end: u64) -> Vec<Vec<(Part, u64)>> {
    let of = |pieces: &[Piece]| {
        pieces.iter().map(|it| (it.part, it.to.saturating_since(it.from).as_nanos() / 1000)).collect()
    };
    flows(packets, HOSTS, usize::MAX, at(end)).iter().map(|flow| of(&flow.pieces)).collect()
}

#[test]
fn a_syn_that_nothing_answers_waits_until_its_kernel_or_its_program_gives_up() {
    let mut wire = Wire::default();
    let syn = Headers { protocol: TCP, flags: 2, ..Headers::default() };
    for us in [0, 1_000_000, 3_000_000] {
        wire.add(Side::Forward, us, false, syn);
    }
    // The next timeout is twice as long as the last one, which was 2 s, or an eighth longer.
    for (end, takes) in [(2_000_000, 3_000_000), (5_000_000, 5_000_000), (60_000_000, 7_500_000)] {
        assert_eq!(spent(&wire.packets, end), [[(Part::SynTimer, takes)]]);
    }
    // An answer that is lost is none. What its host sends next ends the wait at the latest.
    wire.add(Side::Reverse, 3_001_000, false, Headers { flags: 2 | TCP_ACK, ..syn });
    wire.add(Side::Forward, 4_000_000, true, Headers { protocol: UDP, payload_bytes: 9, ..syn });
    assert_eq!(spent(&wire.packets, 60_000_000)[0], [(Part::SynTimer, 3_000_000), (Part::SynTimer, 1_000_000)]);
}

#[test]
fn a_question_that_is_lost_waits_until_it_is_asked_again_from_another_port() {
    let query = Headers { protocol: UDP, payload_bytes: 40, ..Headers::default() };
    let sent = vec![(Part::PropagationForward, PROPAGATION_US)];
    let asked = |arrives: bool| {
        let mut wire = Wire::default();
        for (us, port, bytes) in [(0, PORT, 40), (1_000_000, PORT + 1, 50), (5_000_000, PORT + 2, 40)] {
            wire.add(Side::Forward, us, arrives || us > 0, Headers { payload_bytes: bytes, ..query });
            wire.packets.last_mut().unwrap().headers.source_port = port;
        }
        spent(&wire.packets, 60_000_000)
    };
    assert_eq!(asked(false), [vec![(Part::DatagramLoss, 5_000_000)], sent.clone(), sent.clone()]);
    // Where nothing was lost it may be another question.
    assert_eq!(asked(true), [sent.clone(), sent.clone(), sent]);
}

#[test]
fn datagrams_that_cross_on_a_path_that_takes_no_time_are_not_each_others_cause() {
    let mut wire = Wire::default();
    let datagram = Headers { protocol: UDP, payload_bytes: 40, ..Headers::default() };
    for (us, side, arrives) in
        [(0, Side::Forward, false), (300, Side::Forward, true), (300, Side::Reverse, true), (310, Side::Forward, true)]
    {
        wire.add(side, us, arrives, datagram);
        let packet = wire.packets.last_mut().unwrap();
        (packet.due, packet.spent) = (packet.entered, TimeSpent::default());
        packet.left = packet.left.map(|_| packet.entered);
    }
    assert_eq!(spent(&wire.packets, 0), [[(Part::DatagramLoss, 300), (Part::ClientHost, 10)]]);
}

/// A connection that loses its first segment of two, and then waits for its window: as its capture has it from the packet `first` on.
fn captured_from(first: usize) -> Vec<Flow> {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 1000, false);
    wire.data(10_001, 1000, 1000, true);
    wire.ack(11_001, 0, 60_000, true);
    wire.data(12_001, 0, 1000, true);
    wire.ack(13_001, 2000, 1000, false);
    wire.data(14_001, 2000, 1000, true);
    wire.ack(15_001, 3000, 60_000, false);
    wire.data(16_001, 3000, 1000, false);
    wire.data(220_001, 3000, 1000, false);
    wire.data(630_001, 3000, 1000, true);
    wire.ack(631_001, 4000, 60_000, false);
    flows(&wire.packets[first..], HOSTS, usize::MAX, at(632_001))
}

#[test]
fn a_capture_that_begins_late_names_nothing_otherwise() {
    let whole = captured_from(0).remove(0);
    assert!(whole.pieces.iter().all(|it| it.part != Part::Unknown));
    let mut unknown = 0;
    for first in 1..13 {
        for piece in captured_from(first).remove(0).pieces {
            let mut same = whole.pieces.iter().filter(|it| it.from < piece.to && piece.from < it.to);
            assert!(piece.part == Part::Unknown || same.all(|it| it.part == piece.part), "from {first}: {piece:?}");
            unknown += usize::from(piece.part == Part::Unknown);
        }
    }
    assert!(unknown > 12);
}

/// What an end wrote, one after another.
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
        let leg = Leg { side, client_port: PORT, written, received, bytes, position: None, alone, timed };
        let pieces = Attribution::new(&packets, &<[QuicLog; 2]>::default(), &NO_HTTP, HOSTS).leg(leg);
        assert_is_whole(&pieces, written, received);
    }

    #[test]
    fn pieces_are_the_flow_whatever_the_packets_are(packets in packets(), pacing: bool) {
        let hosts = Hosts { pacing, ..HOSTS };
        for flow in flows(&packets, hosts, usize::MAX, at(300_000)) {
            assert_is_whole(&flow.pieces, flow.from, flow.to);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn pieces_are_the_leg_whatever_http_wrote(
        packets in packets(), writes in prop::array::uniform2(writes()), forward: bool, written in 0_u64..200_000,
        took in 1_u64..100_000, stream in 1_u64..4,
    ) {
        let side = if forward { Side::Forward } else { Side::Reverse };
        let (written, received) = (at(written), at(written + took));
        let position = Some(Position::Stream { stream, start: None, end: None });
        let leg = Leg { side, client_port: PORT, written, received, bytes: 100, position, alone: false, timed: false };
        let (quic, http) = (<[QuicLog; 2]>::default(), writes.map(http));
        let attribution = Attribution::new(&packets, &quic, &http, HOSTS).with_exchanges(&packets, HOSTS, Duration::from_micros(5));
        assert_is_whole(&attribution.leg(leg), written, received);
        assert_is_whole(&attribution.exchange(None, written, received), written, received);
        prop_assert!(attribution.request_arrival(PORT, stream, received).is_none_or(|at| at <= received));
    }
}
