//! Access links: each serves its pair of hosts, and all meet on the path.
#![allow(clippy::unwrap_used)] // helpers of tests, where a failure is a failed test

use crosswind_path::{Arrival, Departure, Hop, Path, PathConfig, Side};
use crosswind_units::{Bytes, Duration, Instant, Seed};
use serde_json::{Value, json};

fn ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// A link with one packet of 1250 bytes a millisecond, and access links of 5 and 3 ms.
fn path() -> Path {
    let hop = |keys: &Value| {
        let both = json!({"forward": keys, "reverse": keys});
        PathConfig::from_object(both.as_object().unwrap()).unwrap().hops.remove(0)
    };
    let access: Vec<Hop> = [5, 3].map(|ms| hop(&json!({"delay_ns": ms * 1_000_000}))).into();
    let config = PathConfig { hops: vec![hop(&json!({"rate_bps": 10_000_000}))], access, ..PathConfig::default() };
    assert_eq!((config.round_trip(), config.longest_round_trip()), (Duration::ZERO, Duration::from_millis(10)));
    Path::from_config(&config, Seed(1))
}

/// When packets entering at these milliseconds leave, by pair, with the path polled every `step` milliseconds.
fn departures(side: Side, entries: &[(u64, u8)], step: u64) -> Vec<(u8, u64, u8)> {
    let (mut path, mut left) = (path(), Vec::new());
    let mut entries = entries.iter().peekable();
    for now in 0..40 {
        while let Some((_, pair)) = entries.next_if(|(at, _)| *at == now) {
            path.handle_packet(side, ms(now), Arrival { size: Bytes(1250), pair: *pair, ..Arrival::default() });
        }
        if now.is_multiple_of(step) {
            left.extend(std::iter::from_fn(|| path.poll_packet(side, ms(now))));
        }
    }
    assert_eq!(path.queued(), [0, 0]);
    let told = |departure: Departure| {
        let packet = departure.packet();
        (packet.pair, packet.at.as_nanos() / 1_000_000, packet.hop)
    };
    left.into_iter().map(told).collect()
}

#[test]
fn packets_of_all_pairs_meet_in_the_order_of_time_however_late_they_are_polled() {
    let entries = [(0, 1), (1, 2), (2, 2), (3, 1), (4, 0), (5, 0)];
    // Packets reach the link at 5, 4, 5, 8, 4 and 5 ms. At equal times pair 1 comes before 2, and no access link last.
    let expected = [(2, 5, 0), (0, 6, 0), (1, 7, 0), (2, 8, 0), (0, 9, 0), (1, 10, 0)];
    for step in [1, 7, 39] {
        assert_eq!(departures(Side::Forward, &entries, step), expected);
    }
}

#[test]
fn on_the_way_back_the_path_comes_first() {
    let entries = [(0, 1), (0, 2), (0, 0), (10, 2)];
    let mut expected = [(1, 6, 1), (2, 5, 2), (0, 3, 0), (2, 14, 2)];
    expected.sort_by_key(|(_, at, _)| *at);
    assert_eq!(departures(Side::Reverse, &entries, 1), expected);
}
