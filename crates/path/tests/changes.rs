//! Hops, and a path changing over time: scripts on virtual time, with exact answers.
#![allow(clippy::unwrap_used)]

use crosswind_path::link::QUEUE_FULL;
use crosswind_path::loss::LOSS;
use crosswind_path::world::{Fate, World};
use crosswind_path::{Arrival, Departure, Path, PathConfig, Side};
use crosswind_units::{Bytes, Duration, Instant, Seed};
use serde_json::{Value, json};

fn ms(n: u64) -> Instant {
    us(n * 1000)
}

fn us(n: u64) -> Instant {
    Instant::from_nanos(n * 1000)
}

fn path(settings: &Value) -> PathConfig {
    PathConfig::from_object(settings.as_object().unwrap()).unwrap()
}

fn refused(settings: &Value) -> (String, String) {
    let error = PathConfig::from_object(settings.as_object().unwrap()).unwrap_err();
    (error.to_string(), error.hint)
}

fn world(settings: &Value) -> World {
    World::new(path(settings).direction(Side::Forward, Seed(1)))
}

/// A path with this client-to-server direction and this change.
fn changing(forward: &Value, change: &Value) -> World {
    world(&json!({"forward": forward, "changes": [change]}))
}

#[test]
fn the_slower_of_two_links_makes_the_rate_and_its_queue_the_drops() {
    let hops = json!({"hops": [
        {"name": "wifi", "forward": {"rate_bps": 100_000_000, "delay_ns": 1_000_000}},
        {"name": "dsl", "forward": {"rate_bps": 10_000_000, "queue": {"packets": 1}, "delay_ns": 9_000_000}},
    ]});
    let mut world = world(&hops);
    for _ in 0..4 {
        world.send_at(ms(0), 1250);
    }
    // 100 us each on the first link, 1 ms on it; the second transmits one packet for 1 ms, and one may wait.
    let fates: Vec<_> =
        std::iter::from_fn(|| world.next_fate()).map(|(packet, fate)| (packet.index, packet.hop, fate)).collect();
    assert_eq!(
        fates,
        [
            (2, 1, Fate::Dropped(us(1300), QUEUE_FULL)),
            (3, 1, Fate::Dropped(us(1400), QUEUE_FULL)),
            (0, 1, Fate::Delivered(us(11_100))),
            (1, 1, Fate::Delivered(us(12_100))),
        ]
    );
}

#[test]
fn packets_to_the_client_meet_the_hops_in_the_other_order() {
    let hops = path(&json!({"hops": [
        {"name": "near", "reverse": {"loss": 1}},
        {"name": "far", "reverse": {"delay_ns": 5_000_000}},
    ]}));
    let mut world = World::new(hops.direction(Side::Reverse, Seed(1)));
    world.send_at(ms(0), 100);
    // The hop near the client loses it, after the other hop's delay.
    let (packet, fate) = world.next_fate().unwrap();
    assert_eq!((packet.hop, fate), (0, Fate::Dropped(ms(5), LOSS)));
}

#[test]
fn an_outage_begins_and_ends_to_the_nanosecond() {
    let mut world = changing(&json!({}), &json!({"start_ns": 1000, "for_ns": 500, "forward": {"loss": 1}}));
    for at in [0, 999, 1000, 1499, 1500] {
        world.send_at(Instant::from_nanos(at), 40);
    }
    let lost: Vec<bool> = world.run().into_iter().map(|(_, fate)| matches!(fate, Fate::Dropped(_, LOSS))).collect();
    assert_eq!(lost, [false, false, true, true, false]);
}

#[test]
fn time_begins_with_the_first_packet_of_either_direction() {
    let settings = json!({"changes": [{"start_ns": 1000, "forward": {"loss": 1}, "reverse": {"loss": 1}}]});
    let mut path = Path::from_config(&path(&settings), Seed(1));
    let packet = Arrival { size: Bytes(40), ..Arrival::default() };
    let mut send = |side: Side, at: u64| {
        let now = Instant::from_nanos(at);
        path.handle_packet(side, now, packet);
        path.poll_packet(side, now).unwrap()
    };
    assert!(matches!(send(Side::Forward, 70_000), Departure::Forwarded(packet) if packet.at.as_nanos() == 70_000));
    assert!(matches!(send(Side::Reverse, 70_999), Departure::Forwarded(_)));
    assert!(matches!(send(Side::Reverse, 71_000), Departure::Dropped(packet, LOSS) if packet.at.as_nanos() == 71_000));
}

#[test]
fn a_change_comes_again_and_again() {
    let mut world =
        changing(&json!({}), &json!({"start_ns": 10, "for_ns": 2, "every_ns": 1_000_000, "forward": {"loss": 1}}));
    let times = [0, 10, 11, 12, 110, 1_000_009, 1_000_010, 1_000_011, 1_000_012, 9_000_010];
    for at in times {
        world.send_at(Instant::from_nanos(at), 40);
    }
    let fates = world.run();
    let lost: Vec<u64> = (0_usize..)
        .zip(&fates)
        .filter(|(_, (_, fate))| matches!(fate, Fate::Dropped(..)))
        .map(|(number, _)| times[number])
        .collect();
    assert_eq!(lost, [10, 11, 1_000_010, 1_000_011, 9_000_010]);
}

#[test]
fn what_is_left_of_a_packet_is_transmitted_at_the_new_rate() {
    // 1250 bytes are 10,000 bits: 0.5 ms at 10 Mbit/s send 5,000 bits, the others take 5 ms at 1 Mbit/s.
    let mut slower =
        changing(&json!({"rate_bps": 10_000_000}), &json!({"start_ns": 500_000, "forward": {"rate_bps": 1_000_000}}));
    slower.send_at(ms(0), 1250);
    slower.send_at(ms(0), 1250);
    assert_eq!([slower.next_delivery(), slower.next_delivery()], [Some(us(5500)), Some(us(15_500))]);
    // After a near stall of 20 ms a link continues in place: 1 bit/s makes 0.02 bits of progress, 2 ns at 10 Mbit/s.
    let stall = json!({"start_ns": 500_000, "for_ns": 20_000_000, "forward": {"rate_bps": 1}});
    let mut stalled = changing(&json!({"rate_bps": 10_000_000}), &stall);
    stalled.send_at(ms(0), 1250);
    assert_eq!(stalled.next_delivery(), Some(Instant::from_nanos(20_999_998)));
    // A link without a limit empties its queue at once.
    let mut freed = changing(
        &json!({"rate_bps": 1_000_000}),
        &json!({"start_ns": 4_000_000, "forward": {"rate_bps": null, "queue": null}}),
    );
    for _ in 0..3 {
        freed.send_at(ms(0), 1250);
    }
    assert_eq!(freed.run().into_iter().map(|(_, fate)| fate).collect::<Vec<_>>(), [Fate::Delivered(ms(4)); 3]);
}

#[test]
fn a_queue_that_shrinks_keeps_what_waits() {
    let shrink = json!({"start_ns": 1, "forward": {"queue": {"packets": 1}}});
    let mut world = changing(&json!({"rate_bps": 10_000_000, "queue": {"packets": 3}}), &shrink);
    for at in [0, 0, 0, 0, 10] {
        world.send_at(us(at), 1250);
    }
    world.send_at(us(3500), 1250);
    let fates = world.run();
    let dropped: Vec<u64> =
        fates.iter().filter(|(_, fate)| matches!(fate, Fate::Dropped(..))).map(|(index, _)| *index).collect();
    assert_eq!((dropped, fates.len()), (vec![4], 6));
}

#[test]
fn packets_in_flight_keep_their_order_when_the_delay_shrinks() {
    let mut world = changing(
        &json!({"delay_ns": 50_000_000}),
        &json!({"start_ns": 10_000_000, "forward": {"delay_ns": 5_000_000}}),
    );
    for at in [0, 9, 10, 60] {
        world.send_at(ms(at), 40);
    }
    let arrived: Vec<_> = std::iter::from_fn(|| world.next_fate())
        .map(|(packet, _)| (packet.index, packet.at, packet.spent.propagation, packet.spent.jitter))
        .collect();
    let of_ms = Duration::from_millis;
    assert_eq!(
        arrived,
        [
            (0, ms(50), of_ms(50), of_ms(0)),
            (1, ms(59), of_ms(50), of_ms(0)),
            // On its own it would be there after 15 ms: it is held behind the one before it.
            (2, ms(59), of_ms(5), of_ms(44)),
            (3, ms(65), of_ms(5), of_ms(0)),
        ]
    );
}

#[test]
fn a_change_at_random_begins_within_its_spread_and_with_the_seed() {
    let settings = json!({"changes": [{"start_ns": 1000, "spread_ns": 1000, "forward": {"loss": 1}}]});
    let first_lost = |seed: u64| {
        let mut world = World::new(path(&settings).direction(Side::Forward, Seed(seed)));
        for at in 0..3000 {
            world.send_at(Instant::from_nanos(at), 40);
        }
        world.run().iter().position(|(_, fate)| matches!(fate, Fate::Dropped(..))).unwrap()
    };
    let starts: Vec<usize> = (0..200).map(first_lost).collect();
    assert_eq!(first_lost(7), starts[7]);
    assert!(starts.iter().all(|start| (1000..=2000).contains(start)));
    // Uniform: each half gets 100 of 200, within four standard deviations.
    let late = starts.iter().filter(|start| **start > 1500).count();
    assert!((72..=128).contains(&late), "{late}");
    assert!(path(&settings).is_random() && !path(&json!({})).is_random());
}

#[test]
fn an_effect_has_the_longest_outage() {
    let config = path(&json!({
        "hops": [{"name": "a"}, {"name": "b"}],
        "changes": [
            {"hop": "a", "for_ns": 7, "forward": {"loss": 1.0}},
            {"hop": "b", "start_ns": 9, "for_ns": 5, "forward": {"loss": 1.0}, "reverse": {"loss": 0.5}},
        ],
    }));
    let outage = |side| config.effect(side).outage;
    assert_eq!((outage(Side::Forward), outage(Side::Reverse)), (Duration::from_nanos(7), Duration::ZERO));
    let for_good = path(&json!({"changes": [{"reverse": {"loss": 1.0}}]}));
    assert_eq!(for_good.effect(Side::Reverse).outage, Duration::from_nanos(86_400_000_000_000));
}

#[test]
fn what_a_path_does_is_that_of_its_hops() {
    let config = path(&json!({
        "hops": [
            {"name": "a", "forward": {"delay_ns": 1000, "rate_bps": 5000, "loss": 0.5}},
            {"name": "b", "forward": {"delay_ns": 500, "rate_bps": 4000, "loss": 0.5}},
        ],
        "changes": [{"hop": "b", "for_ns": 1, "forward": {"delay_ns": 9000}}],
    }));
    let effect = config.effect(Side::Forward);
    assert_eq!((effect.delay, effect.loss.as_fraction()), (Duration::from_nanos(1500), 0.75));
    assert_eq!((effect.rate.unwrap().as_bps(), effect.changes), (4000, true));
    assert!(!config.effect(Side::Reverse).changes);
    assert_eq!(effect.outage, Duration::ZERO);
    assert_eq!(config.round_trip(), Duration::from_nanos(10_000));
    // Written settings are read back unchanged.
    let Value::Object(written) = serde_json::to_value(&config).unwrap() else { panic!() };
    assert_eq!(PathConfig::from_object(&written), Ok(config));
}

#[test]
fn hops_and_changes_that_cannot_be_are_refused_by_key() {
    let hop = |name: &str| json!({"name": name});
    let change = |change: Value| json!({"changes": [change]});
    for (settings, message) in [
        (json!({"hop": []}), "hop is not a known key"),
        (json!({"hops": []}), "hops is empty"),
        (json!({"hops": [{"forward": {}}]}), "hops.0.name is missing"),
        (json!({"hops": [hop("a"), hop("a")]}), "hops.1.name a is the name of two hops"),
        (json!({"hops": [hop("a")], "forward": {}}), "hops and forward or reverse exclude each other"),
        (json!({"hops": [{"name": "a", "forward": {"loss": 2}}]}), "hops.0.forward.loss 2 is not between 0 and 1"),
        (change(json!({"start_ns": 1})), "changes.0.forward changes nothing"),
        (change(json!({"hop": "x", "forward": {"loss": 1}})), "changes.0.hop x is no hop"),
        (change(json!({"forward": {"los": 1}})), "changes.0.forward.los is not a known key"),
        (
            change(json!({"for_ns": 0, "forward": {"loss": 1}})),
            "changes.0.for_ns 0 is not between 1 and 86400000000000",
        ),
        (
            change(json!({"for_ns": 1_000_000, "every_ns": 1_000_000, "forward": {"loss": 1}})),
            "changes.0.every_ns is not longer than for",
        ),
        (
            change(json!({"forward": {"queue": {"packets": 5}}})),
            "queue is set but rate is not: an unlimited link has no queue",
        ),
        (
            json!({"hops": [{"name": "a", "forward": {"rate_bps": 0}}]}),
            "hops.0.forward.rate_bps lets nothing pass: 0 may hold for a time only",
        ),
        (
            json!({"forward": {"rate_bps": 9}, "changes": [{"forward": {"discipline": "codel"}}]}),
            "discipline cannot change over time",
        ),
        (json!({"hops": [hop("a"), hop("b")], "changes": [{"forward": {"loss": 1}}]}), "changes.0.hop is missing"),
    ] {
        assert_eq!(refused(&settings).0, message);
    }
}

#[test]
fn two_changes_of_one_key_at_one_time_are_refused() {
    let two = |a: Value, b: Value| {
        let with = |mut keys: Value| {
            keys["forward"] = json!({"loss": 1});
            keys
        };
        PathConfig::from_object(json!({"changes": [with(a), with(b)]}).as_object().unwrap()).map(|_| ())
    };
    let ms = 1_000_000;
    let once = |start: u64, lasting: u64| json!({"start_ns": start * ms, "for_ns": lasting * ms});
    let again = |start: u64, lasting: u64, every: u64| json!({"start_ns": start * ms, "for_ns": lasting * ms, "every_ns": every * ms});
    for (a, b) in [
        (once(0, 10), once(9, 5)),
        (json!({"start_ns": 3 * ms}), once(100, 5)),
        (once(0, 10), json!({"start_ns": 0, "spread_ns": 20 * ms, "for_ns": 1})),
        (again(0, 10, 100), once(205, 1)),
        (once(95, 10), again(0, 10, 100)),
        (again(0, 10, 100), again(50, 10, 70)),
    ] {
        let error = two(a.clone(), b.clone()).unwrap_err().to_string();
        assert_eq!(error, "changes.1.start_ns changes loss while another change of it may hold", "{a} {b}");
    }
    for (a, b) in [
        (once(0, 10), once(10, 5)),
        (again(0, 10, 100), once(210, 90)),
        (again(0, 10, 100), again(50, 10, 200)),
        (again(100, 10, 100), once(0, 100)),
    ] {
        assert_eq!(two(a.clone(), b.clone()), Ok(()), "{a} {b}");
    }
}
