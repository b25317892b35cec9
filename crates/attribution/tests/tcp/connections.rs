//! Whole connections, with exact answers.

use super::{HOSTS, PORT, PROPAGATION_US, Wire, at};
use crosswind_attribution::{DelayCause, Flow, Interval, ProgramFacts, flows};
use crosswind_ledger::{Headers, PacketRecord, TCP, TCP_ACK, TCP_FIN, TCP_RST, UDP};
use crosswind_path::{Side, TimeSpent};

/// Flows' time by cause, in microseconds.
fn spent(packets: &[PacketRecord], end: u64) -> Vec<Vec<(DelayCause, u64)>> {
    let of = |pieces: &[Interval]| {
        pieces.iter().map(|it| (it.part, it.to.saturating_since(it.from).as_nanos() / 1000)).collect()
    };
    flows(packets, &ProgramFacts::default(), HOSTS, usize::MAX, at(end)).iter().map(|flow| of(&flow.pieces)).collect()
}

#[test]
fn a_syn_that_nothing_answers_waits_until_its_kernel_or_its_program_gives_up() {
    let mut wire = Wire::default();
    let syn = Headers { protocol: TCP, flags: 2, ..Headers::default() };
    for us in [0, 1_000_000, 3_000_000] {
        wire.add(Side::Forward, us, false, syn);
    }
    // The next timeout is twice as long as the last one's 2 s, or an eighth longer.
    for (end, takes) in [(2_000_000, 3_000_000), (5_000_000, 5_000_000), (60_000_000, 7_500_000)] {
        assert_eq!(spent(&wire.packets, end), [[(DelayCause::SynTimer, takes)]]);
    }
    // A lost answer is none. Its host's next packet ends the wait at the latest.
    wire.add(Side::Reverse, 3_001_000, false, Headers { flags: 2 | TCP_ACK, ..syn });
    wire.add(Side::Forward, 4_000_000, true, Headers { protocol: UDP, payload_bytes: 9, ..syn });
    assert_eq!(
        spent(&wire.packets, 60_000_000)[0],
        [(DelayCause::SynTimer, 3_000_000), (DelayCause::SynTimer, 1_000_000)]
    );
}

#[test]
fn a_server_that_sends_first_waits_for_its_answer_to_a_syn_to_be_sent_again() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(2000, 0, 0, false); // ends the handshake
    let (syn, greeting) = (wire.packets[1].headers, wire.packets[2].headers);
    wire.add(Side::Reverse, 1_001_000, true, syn);
    wire.data(1_002_000, 0, 0, true);
    wire.add(Side::Reverse, 1_003_000, true, Headers { acknowledgement: 1, payload_bytes: 9, ..greeting });
    let expected = [
        (DelayCause::TcpHandshake, 2000),
        (DelayCause::SynTimer, 999_000),
        (DelayCause::TcpHandshake, PROPAGATION_US),
        (DelayCause::PropagationForward, PROPAGATION_US),
        (DelayCause::PropagationReverse, PROPAGATION_US),
    ];
    assert_eq!(spent(&wire.packets, 1_004_000), [expected]);
}

#[test]
fn a_question_that_is_lost_waits_until_it_is_asked_again_from_another_port() {
    let query = Headers { protocol: UDP, payload_bytes: 40, ..Headers::default() };
    let sent = vec![(DelayCause::PropagationForward, PROPAGATION_US)];
    let asked = |arrives: bool| {
        let mut wire = Wire::default();
        for (us, port, bytes) in [(0, PORT, 40), (1_000_000, PORT + 1, 50), (5_000_000, PORT + 2, 40)] {
            wire.add(Side::Forward, us, arrives || us > 0, Headers { payload_bytes: bytes, ..query });
            wire.packets.last_mut().unwrap().headers.source_port = port;
        }
        spent(&wire.packets, 60_000_000)
    };
    assert_eq!(asked(false), [vec![(DelayCause::DatagramLoss, 5_000_000)], sent.clone(), sent.clone()]);
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
    assert_eq!(spent(&wire.packets, 0), [[(DelayCause::DatagramLoss, 300), (DelayCause::ClientHost, 10)]]);
}

#[test]
fn a_client_that_gives_up_waited_for_a_server_that_never_read() {
    let spent = |client: u8, server: u8| {
        let mut wire = Wire::default();
        wire.syns();
        wire.data(2000, 0, 1000, true);
        wire.ack(3000, 1000, 60_000, false);
        for (side, us, flags) in [(Side::Forward, 900_000, client), (Side::Reverse, 901_000, server)] {
            let headers = Headers { protocol: TCP, flags: flags | TCP_ACK, ..Headers::default() };
            let (sequence, acknowledgement) = if side == Side::Forward { (1001, 1) } else { (1, 1001) };
            wire.add(side, us, true, Headers { sequence, acknowledgement, ..headers });
        }
        spent(&wire.packets, 902_000)
    };
    let closing = (DelayCause::Closing, 2 * PROPAGATION_US);
    let unread = [
        (DelayCause::TcpHandshake, 2000),
        (DelayCause::PropagationForward, PROPAGATION_US),
        (DelayCause::ServerHost, 897_000),
        closing,
    ];
    assert_eq!(spent(TCP_FIN, TCP_RST), [unread]);
    // One that closes may have read, and one whose client resets has nothing to close.
    let read = [(DelayCause::TcpHandshake, 2000), (DelayCause::ClientHost, 898_000), closing];
    assert_eq!(spent(TCP_FIN, TCP_FIN), [read]);
    assert_eq!(spent(TCP_RST, TCP_RST), [read]);
}

/// A connection losing its first segment of two, then waiting for its window: as captured from the packet `first` on.
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
    flows(&wire.packets[first..], &ProgramFacts::default(), HOSTS, usize::MAX, at(632_001))
}

#[test]
fn a_capture_that_begins_late_names_nothing_otherwise() {
    let whole = captured_from(0).remove(0);
    assert!(whole.pieces.iter().all(|it| it.part != DelayCause::Unknown));
    let mut unknown = 0;
    for first in 1..13 {
        for piece in captured_from(first).remove(0).pieces {
            let mut same = whole.pieces.iter().filter(|it| it.from < piece.to && piece.from < it.to);
            assert!(
                piece.part == DelayCause::Unknown || same.all(|it| it.part == piece.part),
                "from {first}: {piece:?}"
            );
            unknown += usize::from(piece.part == DelayCause::Unknown);
        }
    }
    assert!(unknown > 12);
}
