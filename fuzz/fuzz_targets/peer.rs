//! Peers' output: the first byte chooses a client or a server, the second the cuts.

#![no_main]

use crosswind_units::Instant;
use crosswind_workload::{ClientFollower, Expected, Notice, ServerFollower, TrafficPattern};
use libfuzzer_sys::fuzz_target;

const EXCHANGES: u64 = 4;
const ORIGIN_NS: u64 = 1_000_000;
const STARTED: Instant = Instant::from_nanos(1_000_000_000);
const NOW: Instant = Instant::from_nanos(2_000_000_000);
/// Slack for times outside the run: 10 ms, plus the largest resolution a clock can name.
const TOLERANCE_NS: u64 = 10_000_000;

fn expected() -> Expected {
    let traffic = TrafficPattern::Handshakes { count: EXCHANGES, connections: 1 };
    Expected::new("tcp", EXCHANGES, &traffic, ORIGIN_NS, STARTED)
}

fn check_client(input: &[u8], cut: usize) {
    let mut follower = ClientFollower::new(expected());
    let (mut done, mut finished) = (0, 0);
    let taken = input.chunks(cut).try_for_each(|chunk| follower.handle_bytes(NOW, chunk));
    let refused = taken.and_then(|()| follower.handle_end(NOW)).is_err();
    while let Some(notice) = follower.poll_notice() {
        match notice {
            Notice::ExchangeDone(_) => done += 1,
            Notice::Finished => finished += 1,
            Notice::Ready | Notice::Failed { .. } => {}
        }
    }
    assert!(done <= EXCHANGES && finished <= 1);
    if refused {
        return;
    }
    let Ok(report) = follower.into_report() else { return };
    assert_eq!((done, finished), (EXCHANGES, 1));
    assert_eq!(report.samples.len() as u64, EXCHANGES);
    let tolerance_ns = TOLERANCE_NS.saturating_add(report.clock.resolution_ns);
    for (sample, number) in report.samples.iter().zip(0..) {
        assert_eq!((sample.exchange, sample.connection), (number, 0));
        for at in [sample.sent, sample.received].into_iter().flatten() {
            assert!(at.as_nanos() >= STARTED.as_nanos().saturating_sub(tolerance_ns));
            assert!(at.as_nanos() <= NOW.as_nanos().saturating_add(tolerance_ns));
        }
        assert!(sample.sent.zip(sample.received).is_none_or(|(sent, received)| sent <= received));
    }
}

fn check_server(input: &[u8], cut: usize) {
    let (mut whole, mut pieces) = (ServerFollower::default(), ServerFollower::default());
    let of_whole = whole.handle_bytes(input);
    let of_pieces = input.chunks(cut).try_for_each(|chunk| pieces.handle_bytes(chunk));
    assert_eq!(of_whole, of_pieces, "however it is cut, the same is read");
    assert_eq!((whole.implementation(), whole.warnings()), (pieces.implementation(), pieces.warnings()));
}

fuzz_target!(|input: &[u8]| {
    let [choice, cut, output @ ..] = input else { return };
    let cut = usize::from(*cut).max(1);
    if choice & 1 == 0 { check_client(output, cut) } else { check_server(output, cut) }
});
