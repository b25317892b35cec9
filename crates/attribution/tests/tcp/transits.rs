//! Single messages, with exact answers.

use super::{HOSTS, NO_HTTP, PORT, Wire, assert_is_whole, at, by, http, transit};
use crosswind_attribution::{Attribution, DelayCause, Hosts, MessageTransit};
use crosswind_ledger::{
    Headers, Hold, HttpFrame, PacketRecord, Position, QuicLog, Sending, TCP, TCP_ACK, TCP_FIN, TCP_PSH, Trigger, UDP,
    Verdict,
};
use crosswind_path::{Side, TimeSpent};
use crosswind_units::{Bytes, Duration};

#[test]
fn a_segment_that_is_sent_at_once_takes_the_time_of_the_path() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(2010, 0, 100, true);
    let expected =
        [(DelayCause::ClientHost, 1, 0), (DelayCause::PropagationForward, 1000, 0), (DelayCause::ServerHost, 5, 0)];
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
        (DelayCause::TailLossProbe, 204_000, 0),
        (DelayCause::RetransmissionTimer, 206_000, 1),
        (DelayCause::RetransmissionTimer, 410_000, 2),
        (DelayCause::PropagationForward, 1000, 0),
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
    // Two round trips after the lost segment, and less than that after the acknowledgement.
    wire.data(15_000, 200, 100, true);
    wire.ack(16_000, 100, 60_000, true);
    wire.data(17_000, 100, 100, true);
    wire.data(17_000, 300, 100, true);
    let position = Some(Position::Bytes { start: 300, end: 400 });
    let expected = [
        (DelayCause::TailLossProbe, 3000, 0),
        (DelayCause::CongestionWindow, 1000, 0),
        (DelayCause::CongestionWindow, 1000, 0),
        (DelayCause::PropagationForward, 1000, 0),
    ];
    let own = MessageTransit { position, alone: false, ..transit(12_000, 18_000, 100) };
    assert_eq!(wire.pieces_at(Hosts { nagle: false, ..HOSTS }, own), expected);
}

#[test]
fn a_probe_is_for_the_segment_before_it_recorded_or_not() {
    for sending in [Some(by(Trigger::LossProbeTimer)), None] {
        let mut wire = Wire::default();
        wire.syns();
        wire.data(5000, 0, 100, true);
        wire.data(15_000, 100, 100, true);
        wire.packets[3].sending = sending;
        let own = transit(5000, 16_000, 200);
        let pieces = Attribution::new(&wire.packets, &<[QuicLog; 2]>::default(), &NO_HTTP, HOSTS).transit(own);
        let found: Vec<_> = pieces.iter().map(|it| (it.part, it.packet.map(|packet| packet.index))).collect();
        assert_eq!(found, [(DelayCause::TailLossProbe, Some(1)), (DelayCause::PropagationForward, Some(2))]);
    }
}

#[test]
fn a_probe_of_new_data_may_follow_two_round_trips_of_the_handshake() {
    // Nothing is acknowledged yet, for the way is longer now. The handshake took 2 ms.
    let waited = |us: u64, pacing| {
        let mut wire = Wire::default();
        wire.syns();
        wire.data(10_000, 0, 1000, true);
        wire.data(10_000 + us, 1000, 1000, true);
        let position = Some(Position::Bytes { start: 0, end: 2000 });
        let own = MessageTransit { position, alone: false, ..transit(10_000, 11_000 + us, 2000) };
        wire.pieces_at(Hosts { nagle: false, pacing, ..HOSTS }, own)
    };
    let then = (DelayCause::PropagationForward, 1000, 0);
    assert_eq!(waited(5000, false), [(DelayCause::TailLossProbe, 5000, 0), then]);
    assert_eq!(waited(3000, false), [(DelayCause::Unknown, 3000, 0), then]);
    assert_eq!(waited(5000, true), [(DelayCause::Pacing, 5000, 0), then]);
}

#[test]
fn a_message_waits_for_the_recovery_of_another() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 100, false); // another's
    wire.data(12_000, 100, 100, true); // its own
    wire.ack(13_000, 0, 60_000, true);
    wire.data(14_000, 0, 100, true);
    let expected = [(DelayCause::PropagationForward, 1000, 0), (DelayCause::HeadOfLine, 2000, 0)];
    assert_eq!(wire.forward(12_000, 15_000, 100, false), expected);
    // The other waits for the retransmission: an acknowledgement reported overtaking.
    let expected = [(DelayCause::FastRecovery, 4000, 0), (DelayCause::PropagationForward, 1000, 0)];
    assert_eq!(wire.forward(10_000, 15_000, 100, false), expected);
}

#[test]
fn a_message_whose_bytes_are_known_is_told_from_those_around_it() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 100, true);
    wire.data(15_000, 100, 100, true);
    let of =
        |received, position| wire.pieces(MessageTransit { position, alone: false, ..transit(10_000, received, 90) });
    // The server reads the first when the second has arrived as well.
    let first = Some(Position::Bytes { start: 0, end: 100 });
    assert_eq!(of(18_000, first), [(DelayCause::PropagationForward, 1000, 0), (DelayCause::ServerHost, 7000, 0)]);
    assert_eq!(of(18_000, None)[1..], [(DelayCause::PropagationForward, 1000, 0), (DelayCause::ServerHost, 2000, 0)]);
    // Bytes that are another's beside others may be the end of a handshake for a single message.
    let waits = |alone| wire.pieces(MessageTransit { alone, ..transit(10_001, 11_000, 90) })[0].0;
    assert_eq!([false, true].map(waits), [DelayCause::Unknown, DelayCause::PropagationForward]);
    // Bytes never sent.
    assert_eq!(of(11_000, Some(Position::Bytes { start: 0, end: 150 })), [(DelayCause::Unknown, 1000, 0)]);
}

#[test]
fn early_data_is_told_whatever_was_written_behind_it() {
    // Its sender knows how much was written only at the end of TLS's handshake.
    let mut wire = Wire::default();
    wire.syns();
    wire.data(2000, 0, 376, false);
    wire.data(206_000, 0, 376, true);
    wire.data(208_000, 376, 100, true);
    let position = Some(Position::Bytes { start: 0, end: 476 });
    let expected = [(DelayCause::TailLossProbe, 204_000, 0), (DelayCause::PropagationForward, 1000, 0)];
    assert_eq!(wire.pieces(MessageTransit { position, ..transit(2000, 207_000, 1) }), expected);
}

#[test]
fn a_small_segment_waits_for_an_acknowledgement_that_is_delayed() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 1000, true);
    wire.ack(51_000, 1000, 60_000, false); // 40 ms after it arrived
    wire.data(52_000, 1000, 200, true);
    let expected = [
        (DelayCause::Nagle, 1000, 0),
        (DelayCause::DelayedAcknowledgement, 40_000, 0),
        (DelayCause::Nagle, 1000, 0),
        (DelayCause::PropagationForward, 1000, 0),
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
    let message = MessageTransit { position, alone: false, ..transit(10_100, 11_600, 500) };
    assert_eq!(wire.pieces(message), [(DelayCause::Nagle, 500, 0), (DelayCause::PropagationForward, 1000, 0)]);
    let nodelay = Hosts { nagle: false, ..HOSTS };
    assert_eq!(wire.pieces_at(nodelay, message)[0], (DelayCause::Unknown, 500, 0));
}

#[test]
fn a_pace_holds_messages_back_beside_others_too() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 1000, true);
    wire.data(10_500, 1000, 1000, true);
    let position = Some(Position::Bytes { start: 1000, end: 2000 });
    let message = MessageTransit { position, alone: false, ..transit(9_999, 11_500, 1000) };
    let of = |pacing| wire.pieces_at(Hosts { pacing, nagle: false, ..HOSTS }, message);
    let rest = [(DelayCause::PropagationForward, 1000, 0)];
    assert_eq!(of(true), [&[(DelayCause::ClientHost, 1, 0), (DelayCause::Pacing, 500, 0)][..], &rest].concat());
    assert_eq!(of(false), [&[(DelayCause::ClientHost, 1, 0), (DelayCause::Unknown, 500, 0)][..], &rest].concat());
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
    assert_eq!(wire.forward(10_000, 220_000, 100, true), [(DelayCause::TailLossProbe, 210_000, 0)]);
}

#[test]
fn a_window_holds_back_what_does_not_fit_it() {
    let windows = [(1000, DelayCause::ReceiveWindow), (60_000, DelayCause::CongestionWindow)];
    for (window, part) in windows {
        let mut wire = Wire::default();
        wire.syns();
        wire.ack(5000, 0, window, false);
        wire.packets[1].headers.window = window;
        wire.data(10_000, 0, 1000, true);
        wire.ack(11_000, 1000, window, false);
        wire.data(12_000, 1000, 1000, true);
        let expected = [(part, 1000, 0), (part, 1000, 0), (DelayCause::PropagationForward, 1000, 0)];
        assert_eq!(wire.forward(10_000, 13_000, 2000, true), expected, "{window}");
    }
}

#[test]
fn a_window_waits_for_its_program_where_nothing_had_arrived_since() {
    for (news, part) in [(true, DelayCause::ReceiveWindow), (false, DelayCause::ZeroWindow)] {
        let mut wire = Wire::default();
        wire.syns();
        wire.packets[1].headers.window = 3000;
        wire.data(10_000, 0, 1000, false); // another's
        wire.data(10_001, 1000, 2000, news);
        wire.ack(11_001, 0, 4000, true);
        wire.data(12_001, 3000, 1000, true); // its own
        wire.data(12_002, 0, 3000, true);
        let expected = [
            (part, 501, 0),
            (part, 1000, 0),
            (DelayCause::PropagationForward, 1000, 0),
            (DelayCause::HeadOfLine, 1, 0),
        ];
        let position = Some(Position::Bytes { start: 3000, end: 4000 });
        assert_eq!(wire.pieces(MessageTransit { position, ..transit(10_500, 13_002, 1000) }), expected);
    }
}

/// A window of 1000 bytes is full, then as small as `left`, and its update at 50 ms is lost.
fn with_a_lost_window_update(left: u16) -> Wire {
    let mut wire = Wire::default();
    wire.syns();
    wire.packets[1].headers.window = 1000;
    wire.data(10_000, 0, 1000, true);
    wire.ack(11_000, 1000, left, false);
    wire.ack(50_000, 1000, 5000, false);
    wire.lose_last();
    wire
}

#[test]
fn a_lost_window_update_waits_for_the_persist_timer() {
    let zero_window = |us| (DelayCause::ZeroWindow, us, 0);
    for sending in [None, Some(by(Trigger::PersistTimer))] {
        let mut wire = with_a_lost_window_update(0);
        // Linux asks with the last acknowledged byte's number and no data.
        wire.data(215_000, 999, 0, true);
        wire.packets.last_mut().unwrap().sending = sending;
        wire.ack(216_000, 1000, 5000, false);
        wire.data(217_000, 1000, 1000, true);
        let told =
            [(DelayCause::PersistTimer, 166_000, 0), zero_window(1000), (DelayCause::PropagationForward, 1000, 0)];
        let expected = [&[zero_window(1000), zero_window(39_000)][..], &told].concat();
        assert_eq!(wire.forward(10_000, 218_000, 2000, true), expected);
        // Without the probe, nothing tells who asked.
        wire.packets.remove(5);
        let untold = wire.forward(10_000, 218_000, 2000, true);
        assert!(untold.iter().all(|it| it.0 != DelayCause::PersistTimer), "{untold:?}");
    }
}

#[test]
fn a_lost_window_update_may_wait_for_the_persist_timer_to_fill_what_is_open() {
    let mut wire = with_a_lost_window_update(500);
    wire.data(215_000, 1000, 500, true);
    wire.packets.last_mut().unwrap().sending = Some(Sending {
        held_by: Some(Hold::ReceiveWindow),
        held_since: Some(at(10_000)),
        written: Some((at(10_000), at(10_000))),
        ..by(Trigger::PersistTimer)
    });
    let expected = [
        (DelayCause::ZeroWindow, 40_000, 0),
        (DelayCause::PersistTimer, 165_000, 0),
        (DelayCause::PropagationForward, 1000, 0),
    ];
    assert_eq!(wire.forward(10_000, 216_000, 1500, true), expected);
}

#[test]
fn a_tail_loss_probe_tells_of_what_was_lost_before_it() {
    // The last two segments, or the last one and a FIN: the second is sent again, and its acknowledgement tells of the first.
    for (bytes, from_kernel) in [(100, false), (0, false), (0, true)] {
        let mut wire = Wire::default();
        wire.syns();
        wire.data(10_000, 0, 100, false);
        wire.data(10_000, 100, bytes, false);
        wire.data(214_000, 100, bytes, true);
        wire.ack(215_000, 0, 60_000, true);
        wire.data(216_000, 0, 100, true);
        for (packet, trigger) in [(3, Trigger::Close), (4, Trigger::LossProbeTimer), (6, Trigger::Packet)] {
            let packet = &mut wire.packets[packet];
            packet.headers.flags |= if bytes == 0 && packet.headers.sequence > 100 { TCP_FIN } else { 0 };
            packet.sending = from_kernel.then(|| by(trigger));
        }
        let expected = [
            (DelayCause::TailLossProbe, 204_000, 0),
            (DelayCause::FastRecovery, 2000, 0),
            (DelayCause::PropagationForward, 1000, 0),
        ];
        assert_eq!(wire.forward(10_000, 217_000, 100, true), expected, "{bytes}, {from_kernel}");
    }
}

#[test]
fn what_is_cut_off_in_time_ends_with_what_its_receiver_lacked_then() {
    let until = |wire: &Wire, received| wire.pieces(MessageTransit { timed: true, ..transit(10_000, received, 100) });
    let begins = (DelayCause::ClientHost, 1, 0);
    let mut wire = Wire::default();
    wire.syns();
    wire.data(10_000, 0, 1000, true);
    wire.data(10_001, 1000, 1000, false);
    // Nothing behind it tells of its loss.
    assert_eq!(until(&wire, 11_500), [begins, (DelayCause::Unknown, 1499, 0)]);
    wire.data(10_002, 2000, 1000, true);
    assert_eq!(until(&wire, 11_500), [begins, (DelayCause::FastRecovery, 1499, 0)]);
    wire.ack(11_002, 1000, 60_000, true);
    wire.data(12_002, 1000, 1000, true);
    let recovered = [begins, (DelayCause::FastRecovery, 2001, 0)];
    assert_eq!(until(&wire, 12_500), [&recovered[..], &[(DelayCause::PropagationForward, 498, 0)]].concat());
    // Everything sent is there, its acknowledgement is not.
    let arrived = [&recovered[..], &[(DelayCause::PropagationForward, 1000, 0)]].concat();
    let then = |wire: &Wire, received, part, us| {
        assert_eq!(until(wire, received), [&arrived[..], &[(part, us, 0)]].concat());
    };
    then(&wire, 13_500, DelayCause::CongestionWindow, 498);
    wire.ack(13_002, 3000, 0, false);
    then(&wire, 14_500, DelayCause::ClientHost, 1498);
    (wire.packets[1].headers.window, wire.packets[5].headers.window) = (3000, 2000);
    then(&wire, 13_500, DelayCause::ReceiveWindow, 498);
    then(&wire, 14_500, DelayCause::ZeroWindow, 1498);
}

#[test]
fn what_no_packet_tells_is_unknown() {
    let mut wire = Wire::default();
    assert_eq!(wire.forward(10_000, 43_000, 60, true), [(DelayCause::Unknown, 33_000, 0)]);
    wire.data(50_000, 0, 100, true);
    assert_eq!(wire.forward(10_000, 43_000, 60, true), [(DelayCause::Unknown, 33_000, 0)]);
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
        let (hosts, transit) = (Hosts { send_buffer, ..HOSTS }, transit(10_000, 13_000, 2000));
        Attribution::new(&wire.packets, &<[QuicLog; 2]>::default(), &NO_HTTP, hosts).transit(transit)[0].part
    };
    assert_eq!(held(TCP_PSH, Some(1000)), DelayCause::SendBuffer);
    // There was room, or more to be sent, or the kernel may let the buffer grow.
    assert_eq!(held(TCP_PSH, Some(1001)), DelayCause::CongestionWindow);
    assert_eq!(held(0, Some(1000)), DelayCause::CongestionWindow);
    assert_eq!(held(TCP_PSH, None), DelayCause::CongestionWindow);
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
        wire.pieces_at(Hosts { in_order, ..HOSTS }, transit(10_000, 13_001, 3000))[0].0
    };
    assert_eq!(held(TCP_PSH, &[1000, 2000], true), DelayCause::SendBuffer);
    // There was more to be sent; one acknowledgement let it be sent; its sender may have answered the first of them.
    assert_eq!(held(0, &[1000, 2000], true), DelayCause::CongestionWindow);
    assert_eq!(held(TCP_PSH, &[2000], true), DelayCause::CongestionWindow);
    assert_eq!(held(TCP_PSH, &[1000, 2000], false), DelayCause::CongestionWindow);
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
    assert_eq!([held(60_000), held(2000)], [DelayCause::CongestionWindow, DelayCause::ReceiveWindow]);
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
        let entered = PacketRecord::new(Side::Forward, index, at(10_000), headers);
        PacketRecord { size: Bytes(1000), due, spent, left: Some(due), verdict: Verdict::Delivered, ..entered }
    };
    let own = |index, begins| packet(index, PORT, begins);
    let packets = [packet(0, 9, 10_000), own(1, 10_800), own(2, 11_600), packet(3, 9, 12_400), own(4, 13_200)];
    let (link, queue) = ((DelayCause::SerialisationForward, 800, 0), (DelayCause::QueueingForward, 800, 0));
    let expected = [queue, link, link, queue, link, (DelayCause::PropagationForward, 1000, 0)];
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
        (DelayCause::ClientHost, 2, 0),
        (DelayCause::QueueingForward, 799, 0),
        (DelayCause::SerialisationForward, 800, 0),
        (DelayCause::PropagationForward, 1000, 0),
    ];
    assert_eq!(wire.forward(9_999, 12_600, 100, true), expected);
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
    let parts = |stream, update| {
        let first = (10_000, 0, 1000, 1, HttpFrame::Data(1000));
        let client = http([first, (12_000, 1000, 1500, 1, HttpFrame::Data(500))]);
        let server = http([(3000, 0, 15, 0, HttpFrame::InitialWindow(1000)), (11_000, 15, 28, stream, update)]);
        let position = Some(Position::Stream { stream: 1, start: None, end: None });
        let transit = MessageTransit { position, alone: false, ..transit(10_000, 13_000, 1500) };
        let pieces =
            Attribution::new(&wire.packets, &<[QuicLog; 2]>::default(), &[client, server], HOSTS).transit(transit);
        assert_is_whole(&pieces, at(10_000), at(13_000));
        pieces.iter().map(|it| (it.part, it.to.saturating_since(it.from).as_nanos() / 1000)).collect::<Vec<_>>()
    };
    let waited = |part| vec![(part, 1000), (part, 1000), (DelayCause::PropagationForward, 1000)];
    assert_eq!(parts(1, HttpFrame::WindowUpdate(500)), waited(DelayCause::StreamWindow));
    assert_eq!(parts(0, HttpFrame::InitialWindow(1500)), waited(DelayCause::StreamWindow));
    // Another stream's window is not the cause.
    assert_eq!(parts(3, HttpFrame::WindowUpdate(500)), waited(DelayCause::Nagle));
}
