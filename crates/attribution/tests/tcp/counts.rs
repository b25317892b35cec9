//! Programs' connections with their kernels' counts.

use super::{HOSTS, PORT, Wire, at};
use crosswind_attribution::{DelayCause, ProgramFacts, SocketCounts, flows};
use crosswind_path::Side;
use crosswind_units::Duration;

/// The client's socket, which its kernel saw to its end without any limit.
fn counts() -> SocketCounts {
    SocketCounts {
        client_port: PORT,
        server_port: 80,
        side: Side::Forward,
        seen: at(500),
        until: None,
        paces: None,
        send_buffer: None,
        receive_window_limited: Some(Duration::ZERO),
        send_buffer_limited: Duration::ZERO,
        congestion_windows: [].into(),
        tolerance: Duration::ZERO,
    }
}

/// What the client's data waited for longest on its only connection, and for how many microseconds.
fn longest(wire: &Wire, counts: Option<SocketCounts>) -> (DelayCause, u64) {
    let facts = ProgramFacts { sockets: counts.into_iter().collect(), ..ProgramFacts::default() };
    let flows = flows(&wire.packets, &facts, HOSTS, usize::MAX, at(100_000));
    let by_cause = flows[0].spent[Side::Forward as usize];
    let us = DelayCause::ALL.iter().zip(by_cause).map(|(&cause, time)| (cause, time.as_nanos() / 1000));
    us.max_by_key(|it| it.1).unwrap_or((DelayCause::Unknown, 0))
}

/// The client sends `at_once` segments whenever all before are acknowledged, to a receiver with a window.
fn rounds(at_once: u32, window: u16) -> Wire {
    let mut wire = Wire::default();
    wire.syns();
    wire.packets[1].headers.window = window;
    for round in 0..10 {
        let (us, before) = (2000 + 2001 * u64::from(round), round * at_once * 1000);
        for segment in 0..at_once {
            wire.data(us, before + segment * 1000, 1000, true);
        }
        wire.ack(us + 1001, before + at_once * 1000, window, false);
    }
    wire
}

#[test]
fn a_receive_window_is_told_as_long_as_the_kernel_counted_it() {
    let wire = rounds(1, 1000);
    let (cause, inferred) = longest(&wire, None);
    assert_eq!(cause, DelayCause::ReceiveWindow);
    let of = |us| SocketCounts { receive_window_limited: Some(Duration::from_micros(us)), ..counts() };
    assert_eq!(longest(&wire, Some(of(inferred))), (DelayCause::ReceiveWindow, inferred));
    assert_eq!(longest(&wire, Some(of(0))), (DelayCause::CongestionWindow, inferred));
    // The rest is unknown. What a wait may look longer for is not.
    assert_eq!(longest(&wire, Some(of(inferred - 5000))), (DelayCause::ReceiveWindow, inferred - 5000));
    assert_eq!(longest(&wire, Some(of(5000))), (DelayCause::Unknown, inferred - 5000));
    let tolerant = SocketCounts { tolerance: Duration::from_micros(inferred - 5000), ..of(5000) };
    assert_eq!(longest(&wire, Some(tolerant)), (DelayCause::ReceiveWindow, inferred));
}

#[test]
fn counts_are_for_their_own_connection_and_their_own_time() {
    let wire = rounds(1, 1000);
    let inferred = longest(&wire, None);
    let ended = SocketCounts { until: Some(at(1500)), ..counts() };
    let server = SocketCounts { side: Side::Reverse, ..counts() };
    let other = SocketCounts { server_port: 81, ..counts() };
    let short = SocketCounts { receive_window_limited: None, ..counts() };
    for others in [ended, server, other, short] {
        assert_eq!(longest(&wire, Some(others)), inferred);
    }
    // A later connection between the same ports has the later counts.
    let mut wire = wire;
    let mut syn = wire.packets[0].headers;
    syn.sequence = 1_000_000;
    wire.add(Side::Forward, 50_000, true, syn);
    assert_eq!(longest(&wire, Some(SocketCounts { seen: at(50_001), ..counts() })), inferred);
    assert_eq!(longest(&wire, Some(counts())).0, DelayCause::CongestionWindow);
}

#[test]
fn a_full_send_buffer_is_told_by_its_size_within_a_wide_congestion_window() {
    let wire = rounds(4, 60_000);
    assert_eq!(longest(&wire, None).0, DelayCause::ClientHost);
    let of = |window, send_buffer| {
        let congestion_windows = [(at(0), window), (at(90_000), window)].into();
        longest(&wire, Some(SocketCounts { congestion_windows, send_buffer: Some(send_buffer), ..counts() })).0
    };
    assert_eq!(of(60_000, 8000), DelayCause::SendBuffer);
    // There was room in the buffer, or none in the window.
    assert_eq!([of(60_000, 8001), of(4000, 8000)], [DelayCause::ClientHost; 2]);
}

#[test]
fn pacing_is_the_sockets_own() {
    let mut wire = Wire::default();
    wire.syns();
    for segment in 0..40 {
        wire.data(2000 + 100 * u64::from(segment), segment * 1000, 1000, true);
    }
    let of = |paces| longest(&wire, Some(SocketCounts { paces: Some(paces), ..counts() })).0;
    assert_eq!((of(true), of(false)), (DelayCause::Pacing, DelayCause::ClientHost));
}
