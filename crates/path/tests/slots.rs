//! A medium with grants: scripts on virtual time, with exact answers, and properties.
#![allow(clippy::unwrap_used)]

use crosswind_path::slots::GRANT_QUEUE;
use crosswind_path::world::{Fate, World};
use crosswind_path::{Arrival, Departure, PathConfig, Side};
use crosswind_units::{Bytes, Instant, Seed};
use proptest::prelude::*;
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

fn path(settings: &Value) -> PathConfig {
    PathConfig::from_object(settings.as_object().unwrap()).unwrap()
}

fn slots(settings: &Value) -> World {
    World::new(path(&json!({"forward": settings})).direction(Side::Forward, Seed(1)))
}

/// The first grant in a period of 10 ms.
fn phase_ns() -> u64 {
    let mut world = slots(&json!({"grant_period_ns": 10 * MS}));
    world.send_at(Instant::ZERO, 1);
    world.next_delivery().unwrap().as_nanos()
}

#[test]
fn packets_leave_together_in_the_next_grant() {
    let phase = phase_ns();
    assert!(0 < phase && phase <= 10 * MS);
    let mut world = slots(&json!({"grant_period_ns": 10 * MS}));
    for at in [0, 1, phase - 1, phase, phase + 1, phase + 35 * MS] {
        world.send_at(Instant::from_nanos(at), 1500);
    }
    let grants: Vec<u64> =
        std::iter::from_fn(|| world.next_delivery()).map(|at| (at.as_nanos() - phase) / MS).collect();
    assert_eq!(grants, [0, 0, 0, 10, 10, 40]);
}

#[test]
fn a_grant_carries_its_bytes_and_a_packet_that_is_cut_leaves_with_its_last_one() {
    let phase = phase_ns();
    let mut world = slots(&json!({"grant_period_ns": 10 * MS, "grant_bytes": 1000}));
    for size in [600, 600, 600, 1000, 100, 100] {
        world.send_at(Instant::ZERO, size);
    }
    let spent: Vec<_> = std::iter::from_fn(|| world.next_fate())
        .map(|(packet, _)| {
            assert_eq!(packet.spent.jitter.as_nanos(), phase, "until the first grant each would have waited alone");
            (packet.at.as_nanos() - phase, packet.spent.queueing.as_nanos())
        })
        .collect();
    // 600; 400 + 200; 600; 200 + 800; 200 + 100; 100: bytes 1000, 2000 and 3000 end the grants.
    let ends = [0, 10 * MS, 10 * MS, 20 * MS, 20 * MS, 20 * MS].map(|end| (end, end));
    assert_eq!(spent, ends);
}

#[test]
fn what_a_grant_does_not_use_is_lost_and_what_does_not_fit_is_dropped() {
    let phase = phase_ns();
    let settings = json!({"grant_period_ns": 10 * MS, "grant_bytes": 1000, "grant_queue": {"packets": 2}});
    let mut world = slots(&settings);
    for (at, size) in [(0, 100), (1, 100), (2, 100), (phase + 1, 1000), (phase + 2, 1)] {
        world.send_at(Instant::from_nanos(at), size);
    }
    let at = |ms: u64| Instant::from_nanos(phase + ms * MS);
    assert_eq!(
        world.run(),
        [
            (2, Fate::Dropped(Instant::from_nanos(2), GRANT_QUEUE)),
            (0, Fate::Delivered(at(0))),
            (1, Fate::Delivered(at(0))),
            (3, Fate::Delivered(at(10))),
            (4, Fate::Delivered(at(20))),
        ]
    );
}

#[test]
fn grants_of_bytes_make_a_rate() {
    let config = path(
        &json!({"forward": {"grant_period_ns": 10 * MS, "grant_bytes": 1250, "grant_queue": {"time_ns": 50 * MS}}}),
    );
    let effect = serde_json::to_value(config.effect(Side::Forward)).unwrap();
    assert_eq!(
        [&effect["rate_bps"], &effect["queue"], &effect["delay_ns"], &effect["random_delay"]],
        [&json!(1_000_000), &json!({"bytes": 6250}), &json!(5 * MS), &json!(true)]
    );
}

#[test]
fn impossible_settings_are_refused_by_key() {
    for (settings, message) in [
        (json!({"grant_bytes": 9}), "forward.grant_bytes is set but grant_period is not: packets need no grant"),
        (
            json!({"grant_period_ns": MS, "grant_queue": {"time_ns": 9}}),
            "forward.grant_queue is a time but grant is not set: grants of any size have no rate",
        ),
        (
            json!({"grant_period_ns": MS, "grant_queue": {"packets": 0}}),
            "forward.grant_queue of 0 would drop every packet that has to wait",
        ),
    ] {
        let path = json!({"forward": settings});
        assert_eq!(PathConfig::from_object(path.as_object().unwrap()).unwrap_err().to_string(), message);
    }
}

proptest! {
    #[test]
    fn no_packet_is_lost_or_overtaken_and_late_polling_changes_nothing(
        periods in (10_000_u64..50_000_000, proptest::option::of(10_000_u64..50_000_000)),
        bytes in proptest::option::of(1_u64..5000),
        (start, lasting, pause) in (0_u64..500_000_000, 1_000_000_u64..100_000_000, 1_000_000_u64..100_000_000),
        sends in proptest::collection::vec((0_u64..1_000_000_000, 20_u64..1500), 1..100),
        seed in any::<u64>(),
    ) {
        let mut forward = json!({"grant_period_ns": periods.0, "grant_queue": {"packets": 20}});
        if let Some(bytes) = bytes {
            forward["grant_bytes"] = bytes.into();
        }
        let changed = match periods.1 {
            None => json!({"grant_period_ns": null, "grant_bytes": null, "grant_queue": null}),
            period => json!({"grant_period_ns": period}),
        };
        let change = json!({"start_ns": start, "for_ns": lasting, "every_ns": lasting + pause, "forward": changed});
        let path = path(&json!({"forward": forward, "changes": [change]}));
        let mut sends = sends;
        sends.sort_unstable();
        let mut exact = World::new(path.direction(Side::Forward, Seed(seed)));
        let mut late = path.direction(Side::Forward, Seed(seed));
        for &(at, size) in &sends {
            exact.send_at(Instant::from_nanos(at), size);
            late.handle_packet(Instant::from_nanos(at), Arrival { size: Bytes(size), ..Arrival::default() });
        }
        let mut early: Vec<_> = std::iter::from_fn(|| exact.next_fate()).map(|(packet, _)| packet).collect();
        let far = Instant::from_nanos(u64::MAX / 2);
        let mut at_once = Vec::new();
        let mut last = None;
        while let Some(departure) = late.poll_packet(far) {
            let packet = *departure.packet();
            prop_assert_eq!(packet.entered + packet.spent.total(), packet.at);
            if matches!(departure, Departure::Forwarded(_)) {
                prop_assert!(last < Some((packet.at, packet.index)));
                last = Some((packet.at, packet.index));
            }
            at_once.push(packet);
        }
        early.sort_by_key(|packet| packet.index);
        at_once.sort_by_key(|packet| packet.index);
        prop_assert_eq!((early.len(), exact.queued()), (sends.len(), 0));
        prop_assert_eq!(early, at_once);
    }
}
