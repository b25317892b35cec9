//! Connections between programs over HTTP/2 whose frames are known, with exact answers.

use super::{HOSTS, PORT, Wire, at, http};
use crosswind_attribution::{DelayCause, Flow, ProgramFacts, flows};
use crosswind_ledger::{Headers, Http2Connection, HttpFrame, TCP, TCP_ACK};
use crosswind_path::Side;

type Frame = (u64, u64, u64, HttpFrame);

/// A segment from the server.
fn answer(wire: &mut Wire, us: u64, start: u32, bytes: u32, up_to: u32) {
    let (sequence, acknowledgement) = (1 + start, 1 + up_to);
    let window = 60_000;
    wire.add(
        Side::Reverse,
        us,
        true,
        Headers {
            protocol: TCP,
            flags: TCP_ACK,
            sequence,
            acknowledgement,
            payload_bytes: bytes,
            window,
            ..Headers::default()
        },
    );
}

/// The client's connection. Frames: bytes and stream.
fn flow(wire: &Wire, client: &[Frame], server: &[Frame]) -> Flow {
    let ends = [client, server].map(|frames| {
        let writes = frames.iter().map(|&(start, end, stream, frame)| (0, start, end, stream, frame));
        http(writes).remove(0)
    });
    let http2 = vec![Http2Connection { client_port: PORT, server_port: 80, opening: 0, ends }];
    let facts = ProgramFacts { http2, ..ProgramFacts::default() };
    flows(&wire.packets, &facts, HOSTS, usize::MAX, at(1_000_000)).remove(0)
}

/// Its time by cause, in microseconds.
fn spent(flow: &Flow) -> Vec<(DelayCause, u64)> {
    flow.pieces.iter().map(|it| (it.part, it.to.saturating_since(it.from).as_nanos() / 1000)).collect()
}

/// A client with 1000 bytes of data, and 500 a round trip later.
fn upload() -> Wire {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(2000, 0, 20, true);
    answer(&mut wire, 3000, 0, 15, 20);
    wire.data(4000, 20, 1000, true);
    answer(&mut wire, 5000, 15, 15, 1020);
    wire.data(6000, 1020, 500, true);
    wire
}

const CLIENT: [Frame; 2] = [(20, 1020, 1, HttpFrame::Data(1000)), (1020, 1520, 1, HttpFrame::Data(500))];
const INITIAL: Frame = (0, 15, 0, HttpFrame::InitialWindow(1000));
const OPEN: [(DelayCause, u64); 3] =
    [(DelayCause::TcpHandshake, 2000), (DelayCause::PropagationForward, 1000), (DelayCause::PropagationReverse, 1000)];

/// A round trip for a window, and the data that it held.
const fn held(window: DelayCause) -> [(DelayCause, u64); 3] {
    [(window, 1000), (window, 1000), (DelayCause::PropagationForward, 1000)]
}

#[test]
fn a_stream_waits_for_its_window_or_for_settings() {
    for update in [(15, 30, 1, HttpFrame::WindowUpdate(500)), (15, 30, 0, HttpFrame::InitialWindow(1500))] {
        let flow = flow(&upload(), &CLIENT, &[INITIAL, update]);
        assert_eq!(spent(&flow), [&OPEN[..], &held(DelayCause::StreamWindow)].concat());
        let [window] = &flow.windows[..] else { panic!("{:?}", flow.windows) };
        assert_eq!((window.data, window.part), (Side::Forward, DelayCause::StreamWindow));
        assert_eq!((window.times, window.bytes, flow.turns), (1, 1000, 2));
    }
}

#[test]
fn all_streams_wait_for_the_connections_window() {
    let client = [(20, 1020, 1, HttpFrame::Data(65_535)), (1020, 1520, 3, HttpFrame::Data(500))];
    let flow = flow(&upload(), &client, &[(15, 30, 0, HttpFrame::WindowUpdate(40_000))]);
    assert_eq!(spent(&flow), [&OPEN[..], &held(DelayCause::ConnectionWindow)].concat());
    assert_eq!(flow.windows.iter().map(|it| it.bytes).collect::<Vec<_>>(), [65_535]);
}

#[test]
fn other_updates_hold_nothing() {
    let waited = [
        (DelayCause::PropagationForward, 1000),
        (DelayCause::PropagationReverse, 1000),
        (DelayCause::PropagationForward, 1000),
    ];
    for server in [
        // Another stream's, and one where there was room.
        [INITIAL, (15, 30, 3, HttpFrame::WindowUpdate(500))],
        [(0, 15, 0, HttpFrame::InitialWindow(1500)), (15, 30, 1, HttpFrame::WindowUpdate(500))],
        // Smaller initial windows.
        [(0, 15, 0, HttpFrame::InitialWindow(1500)), (15, 30, 0, HttpFrame::InitialWindow(100))],
    ] {
        assert_eq!(spent(&flow(&upload(), &CLIENT, &server)), [&OPEN[..], &waited].concat());
    }
}

#[test]
fn a_program_that_came_later_than_its_window_had_not_waited_for_it() {
    let mut wire = Wire::default();
    wire.syns();
    wire.data(2000, 0, 20, true);
    answer(&mut wire, 3000, 0, 30, 20);
    wire.data(4000, 20, 1000, true);
    wire.data(4000, 1020, 500, true);
    let flow = flow(&wire, &CLIENT, &[INITIAL, (15, 30, 1, HttpFrame::WindowUpdate(500))]);
    assert_eq!(spent(&flow), [&OPEN[..], &[(DelayCause::PropagationForward, 1000)]].concat());
    assert_eq!(flow.windows, []);
}

#[test]
fn a_lost_update_is_sent_again() {
    let mut wire = upload();
    wire.packets.truncate(5);
    answer(&mut wire, 5000, 15, 15, 1020);
    wire.lose_last();
    answer(&mut wire, 405_000, 15, 15, 1020);
    wire.data(406_000, 1020, 500, true);
    let flow = flow(&wire, &CLIENT, &[INITIAL, (15, 30, 1, HttpFrame::WindowUpdate(500))]);
    let expected = [
        (DelayCause::StreamWindow, 1000),
        (DelayCause::TailLossProbe, 400_000),
        (DelayCause::StreamWindow, 1000),
        (DelayCause::PropagationForward, 1000),
    ];
    assert_eq!(spent(&flow), [&OPEN[..], &expected].concat());
}

#[test]
fn rounds_are_told_only_of_what_frames_do_not_name() {
    let mut wire = Wire::default();
    wire.syns();
    let (mut client, mut server) = (Vec::new(), vec![(0, 15, 0, HttpFrame::InitialWindow(20_000))]);
    for round in 0..6 {
        let (start, us) = (20_000 * round, 4000 + 2000 * u64::from(round));
        wire.data(us, start, 20_000, true);
        answer(&mut wire, us + 1000, 15 * round, 15, start + 20_000);
        client.push((start.into(), u64::from(start) + 20_000, 1, HttpFrame::Data(20_000)));
        server.push((15 * u64::from(round), 15 * u64::from(round) + 15, 1, HttpFrame::WindowUpdate(20_000)));
    }
    let told = |frames: &[Frame]| {
        let flow = flow(&wire, &client, frames);
        flow.windows.iter().map(|it| (it.part, it.times, it.bytes)).collect::<Vec<_>>()
    };
    assert_eq!(told(&server), [(DelayCause::StreamWindow, 5, 20_000)]);
    assert_eq!(told(&[]), [(DelayCause::PropagationForward, 5, 20_000)]);
}
