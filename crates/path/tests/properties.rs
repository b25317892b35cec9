//! Properties of every direction: each packet leaves once, in order, and never early.
#![allow(clippy::unwrap_used)]

use crosswind_path::link::LinkRate;
use crosswind_path::world::{Fate, World};
use crosswind_path::{Arrival, Departure, Direction, DirectionConfig, Ecn, PathConfig, Side};
use crosswind_units::{Bytes, Duration, Instant, Seed};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};

const DISCIPLINES: &[&str] = &["fifo", "head_drop", "red", "codel", "fq_codel", "pie", "dualpi2", "cake"];

fn losses() -> impl Strategy<Value = Value> {
    let share = || 0.01..=1.0_f64;
    prop_oneof![
        (0.0..=1.0_f64).prop_map(|loss| json!({"loss": loss})),
        (0.0..=0.5_f64, 1.0..20.0_f64).prop_map(|(loss, burst)| json!({"loss": loss, "loss_burst": burst})),
        (share(), share(), share(), share())
            .prop_map(|(p, r, b, g)| json!({"loss_enter": p, "loss_leave": r, "loss_in_bad": b, "loss_in_good": g})),
        (share(), share()).prop_map(|(a, b)| json!({"loss_p13": a / 2.0, "loss_p31": b / 2.0, "loss_p32": b / 2.0,
                                                    "loss_p23": a, "loss_p14": b / 2.0})),
        (1_000_u64..100_000_000, 1_000_u64..100_000_000)
            .prop_map(|(bad, good)| json!({"loss_bad_ns": bad, "loss_good_ns": good})),
        (1_u64..20).prop_map(|number| json!({"lose_every": number})),
        proptest::collection::vec(0_u64..100, 1..20).prop_map(|indexes| json!({"lose": indexes})),
        proptest::collection::vec(0_u64..2, 1..20).prop_map(|lost| json!({"loss_sequence": lost})),
        (0.0..1e-3_f64).prop_map(|rate| json!({"bit_error_rate": rate})),
    ]
}

/// Sources of varying delay, and whether packets may overtake.
fn jitters() -> impl Strategy<Value = (f64, Value)> {
    let distribution = prop_oneof![
        Just(json!({})),
        Just(json!({"jitter_distribution": "normal"})),
        Just(json!({"jitter_distribution": "pareto", "jitter_correlation": 0.9})),
        Just(json!({"jitter_distribution": "exponential"})),
        Just(json!({"reorder": true})),
    ];
    (prop_oneof![Just(0.0), 0.0..=0.9_f64], distribution)
}

fn configs() -> impl Strategy<Value = DirectionConfig> {
    let packets = (1_u64..20).prop_map(|packets| json!({"packets": packets}));
    let bytes = (1_u64..20_000).prop_map(|bytes| json!({"bytes": bytes}));
    let time = (1_u64..50_000_000).prop_map(|time| json!({"time_ns": time}));
    let burst = proptest::option::of((1_u64..20_000, proptest::option::of(1_000_000_000_u64..2_000_000_000)));
    let link = (1_u64..1_000_000_000, prop_oneof![packets, bytes, time], proptest::sample::select(DISCIPLINES), burst);
    let count = prop_oneof![Just("ip"), Just("ethernet")];
    let overtaking = proptest::option::of((0.0..=1.0_f64, 1_u64..9));
    let copies = prop_oneof![Just(0.0), 0.0..=1.0_f64];
    (0_u64..50_000_000, losses(), proptest::option::of(link), count, jitters(), overtaking, copies).prop_map(
        |(delay_ns, loss, link, count, (jitter, how), overtaking, copies)| {
            let mut settings = json!({"delay_ns": delay_ns, "count": count});
            let mut add = |more: &Value| settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            add(&loss);
            add(&how);
            add(&json!({"hold": [0, 3, 4], "hold_time_ns": delay_ns / 3 + 1}));
            add(&json!({"duplicate": copies, "corrupt": copies / 2.0}));
            add(&json!({"jitter_ns": (delay_ns as f64 * jitter) as u64}));
            if let Some((rate_bps, queue, discipline, burst)) = link {
                add(&json!({"rate_bps": rate_bps, "queue": queue, "discipline": discipline}));
                if matches!(discipline, "codel" | "fq_codel" | "pie" | "dualpi2" | "cake") {
                    // Short enough to cause drops.
                    add(&json!({"queue_target_ns": 100_000}));
                }
                if let Some((bytes, peak)) = burst {
                    add(&json!({"burst_bytes": bytes, "peak_rate_bps": peak}));
                }
            }
            if let Some((share, gap)) = overtaking.filter(|_| delay_ns > 0) {
                add(&json!({"reorder_share": share, "reorder_gap": gap}));
            }
            DirectionConfig::from_object(settings.as_object().unwrap()).unwrap()
        },
    )
}

/// A packet from one of three flows, each with other congestion bits.
fn arrival(index: usize, size: u64) -> Arrival {
    let flow = index % 3;
    let ecn = [Ecn::NotCapable, Ecn::Ect0, Ecn::Ect1][flow];
    Arrival { size: Bytes(size), flow: flow as u32, ecn, buffer: flow as u32, ..Arrival::default() }
}

/// Paths of one to three hops with changing keys: for good, for a time, again and again, at random.
fn paths() -> impl Strategy<Value = PathConfig> {
    let changed = prop_oneof![
        (0.0..=1.0_f64).prop_map(|loss| json!({"loss": loss})),
        (0_u64..50_000_000).prop_map(|delay| json!({"delay_ns": delay})),
        (1_000_u64..1_000_000_000).prop_map(|rate| json!({"rate_bps": rate})),
        (576_u64..1500).prop_map(|mtu| json!({"link_mtu_bytes": mtu})),
    ];
    let time = 1_u64..500_000_000;
    let change = (0_u64..1_000_000_000, 0_u64..1_000_000, time.clone(), proptest::option::of(time), changed);
    (proptest::collection::vec((configs(), configs()), 1..4), proptest::collection::vec(change, 0..4)).prop_filter_map(
        "changes overlap",
        |(hops, changes)| {
            let named = |number: usize| format!("h{number}");
            let count = hops.len();
            let hops: Vec<_> = hops
                .iter()
                .enumerate()
                .map(|(number, (there, back))| json!({"name": named(number), "forward": there, "reverse": back}))
                .collect();
            let change = |(number, (start, spread, lasting, pause, keys)): (
                usize,
                &(u64, u64, u64, Option<u64>, _),
            )| {
                let every = pause.map(|pause| lasting + pause + 1_000_000);
                let mut change =
                    json!({"start_ns": start, "spread_ns": spread, "for_ns": lasting, "hop": named(number % count)});
                change["forward"] = Clone::clone(keys);
                change["reverse"] = Clone::clone(keys);
                if let Some(every) = every {
                    change["every_ns"] = every.into();
                }
                change
            };
            let changes: Vec<_> = changes.iter().enumerate().map(change).collect();
            PathConfig::from_object(json!({"hops": hops, "changes": changes}).as_object().unwrap()).ok()
        },
    )
}

proptest! {
    #[test]
    fn every_packet_leaves_once_in_order_and_never_early(
        config in configs(),
        seed in any::<u64>(),
        sends in proptest::collection::vec((0_u64..10_000_000, 20_u64..1500), 1..100),
    ) {
        let mut world = World::new(Direction::from_config(&config, Seed(seed)));
        for (index, &(at, size)) in sends.iter().enumerate() {
            world.arrive_at(Instant::from_nanos(at), arrival(index, size));
        }
        let mut seen = BTreeSet::new();
        let mut last_delivery = None;
        let mut last_index = BTreeMap::new();
        while let Some((packet, fate)) = world.next_fate() {
            prop_assert!(seen.insert((packet.index, packet.copy)));
            prop_assert_eq!(packet.entered + packet.spent.total(), packet.at);
            prop_assert_eq!(packet.at, match fate { Fate::Delivered(at) | Fate::Dropped(at, _) => at });
            if let Fate::Delivered(at) = fate {
                let delay = if config.effect().random_delay || config.effect().reorders {
                    prop_assert!(at - packet.entered >= packet.spent.propagation);
                    Duration::ZERO
                } else {
                    // Most packets are not held back.
                    Duration::from_nanos(
                        config.longest_delay().as_nanos() - config.hold.time.map_or(0, Duration::as_nanos),
                    )
                };
                prop_assert!(at >= packet.entered + delay);
                if let Some(rate) = config.link.rate.and_then(LinkRate::moving) {
                    let rate = if config.link.burst.is_some() { config.link.peak_rate } else { Some(rate) };
                    let size = config.link.counting.occupied(packet.size);
                    let wire = rate.map_or(Duration::ZERO, |rate| rate.transmission(size, 0).duration);
                    prop_assert!(at >= packet.entered + delay + wire);
                }
                prop_assert!(last_delivery <= Some(at));
                let before = last_index.insert(packet.flow, packet.index);
                prop_assert!(config.effect().reorders || before <= Some(packet.index));
                last_delivery = Some(at);
            }
        }
        prop_assert_eq!(seen.len(), sends.len() + world.duplicated() as usize);
        prop_assert_eq!(world.queued(), 0);
    }

    #[test]
    fn hops_and_changes_lose_no_packet_and_keep_the_order(
        path in paths(),
        side in prop_oneof![Just(Side::Forward), Just(Side::Reverse)],
        sends in proptest::collection::vec((0_u64..2_000_000_000, 20_u64..1500), 1..100),
    ) {
        let mut world = World::new(path.direction(side, Seed(3)));
        for (index, &(at, size)) in sends.iter().enumerate() {
            world.arrive_at(Instant::from_nanos(at), arrival(index, size));
        }
        let overtakes = path.effect(side).reorders;
        let mut seen = BTreeSet::new();
        let mut last = None;
        let mut last_index = BTreeMap::new();
        while let Some((packet, fate)) = world.next_fate() {
            prop_assert!(seen.insert((packet.index, packet.copy)));
            prop_assert_eq!(packet.entered + packet.spent.total(), packet.at);
            if let Fate::Delivered(at) = fate {
                prop_assert!(last <= Some(at));
                // One hop's mark takes a packet into another queue of the next (dualpi2).
                let before = last_index.insert(packet.flow, packet.index);
                prop_assert!(overtakes || packet.flow == 1 || before <= Some(packet.index));
                last = Some(at);
            }
        }
        prop_assert_eq!((seen.len(), world.queued()), (sends.len() + world.duplicated() as usize, 0));
        // Late polling changes nothing, also across changes.
        let mut sends = sends;
        sends.sort_unstable();
        let mut exact = World::new(path.direction(side, Seed(3)));
        let mut late = path.direction(side, Seed(3));
        for (index, &(at, size)) in sends.iter().enumerate() {
            exact.arrive_at(Instant::from_nanos(at), arrival(index, size));
            late.handle_packet(Instant::from_nanos(at), arrival(index, size));
        }
        let far = Instant::from_nanos(u64::MAX / 2);
        let mut nominal: Vec<_> = std::iter::from_fn(|| late.poll_packet(far))
            .filter(|departure| !matches!(departure, Departure::Duplicated(_)))
            .map(|departure| *departure.packet())
            .collect();
        let mut expected: Vec<_> = std::iter::from_fn(|| exact.next_fate()).map(|(packet, _)| packet).collect();
        nominal.sort_by_key(|packet| (packet.index, packet.copy));
        expected.sort_by_key(|packet| (packet.index, packet.copy));
        prop_assert_eq!(nominal, expected);
    }

    #[test]
    fn polling_late_changes_no_nominal_time(
        config in configs(),
        sends in proptest::collection::vec((0_u64..1_000_000, 20_u64..1500), 1..50),
    ) {
        let mut sends = sends;
        sends.sort_unstable();
        let mut exact = World::new(Direction::from_config(&config, Seed(1)));
        let mut late = Direction::from_config(&config, Seed(1));
        for (index, &(at, size)) in sends.iter().enumerate() {
            exact.arrive_at(Instant::from_nanos(at), arrival(index, size));
            late.handle_packet(Instant::from_nanos(at), arrival(index, size));
        }
        let far = Instant::from_nanos(u64::MAX);
        let mut nominal: Vec<_> = std::iter::from_fn(|| late.poll_packet(far))
            .filter(|departure| !matches!(departure, Departure::Duplicated(_)))
            .map(|departure| match departure {
                Departure::Dropped(packet, cause) => (packet, Fate::Dropped(packet.at, cause)),
                _ => (*departure.packet(), Fate::Delivered(departure.packet().at)),
            })
            .collect();
        let mut fates: Vec<_> = std::iter::from_fn(|| exact.next_fate()).collect();
        nominal.sort_by_key(|(packet, _)| (packet.index, packet.copy));
        fates.sort_by_key(|(packet, _)| (packet.index, packet.copy));
        prop_assert_eq!(nominal, fates);
    }

    #[test]
    fn a_queue_whose_link_and_parameters_change_loses_no_packet_whenever_it_is_polled(
        discipline in proptest::sample::select(DISCIPLINES),
        rates in (100_000_u64..10_000_000, 100_000_u64..10_000_000),
        burst in proptest::option::of(1_u64..10_000),
        limits in (2_u64..50, 2_u64..50),
        (start, lasting, pause) in (0_u64..1_000_000_000, 1_000_000_u64..200_000_000, 1_000_000_u64..200_000_000),
        sends in proptest::collection::vec((0_u64..2_000_000_000, 20_u64..1500), 1..200),
        delay in 0_u64..3,
    ) {
        let mut forward = json!({
            "rate_bps": rates.0, "queue": {"packets": limits.0}, "discipline": discipline, "delay_ns": delay * 1_000_000,
        });
        let mut changed = json!({"rate_bps": rates.1, "queue": {"time_ns": limits.1 * 1_000_000}});
        match discipline {
            "codel" | "fq_codel" | "pie" | "dualpi2" | "cake" => changed["queue_target_ns"] = 1_000_000.into(),
            "red" => changed["red_max_bytes"] = 8000.into(),
            _ => {}
        }
        if let Some(burst) = burst {
            forward["burst_bytes"] = burst.into();
            changed["burst_bytes"] = (burst / 2 + 1).into();
        }
        let change = json!({"start_ns": start, "for_ns": lasting, "every_ns": lasting + pause, "forward": changed});
        let path = json!({"forward": forward, "changes": [change]});
        let path = PathConfig::from_object(path.as_object().unwrap()).unwrap();
        let mut sends = sends;
        sends.sort_unstable();
        let mut exact = path.direction(Side::Forward, Seed(5));
        let mut late = path.direction(Side::Forward, Seed(5));
        let mut early = Vec::new();
        for (index, &(at, size)) in sends.iter().enumerate() {
            let at = Instant::from_nanos(at);
            // One is polled at all its wakeups, and between; the other never before the end.
            while let Some(next) = exact.next_wakeup().filter(|next| *next <= at) {
                early.extend(std::iter::from_fn(|| exact.poll_packet(next)));
            }
            early.extend(std::iter::from_fn(|| exact.poll_packet(at)));
            exact.handle_packet(at, arrival(index, size));
            late.handle_packet(at, arrival(index, size));
        }
        let far = Instant::from_nanos(u64::MAX / 2);
        early.extend(std::iter::from_fn(|| exact.poll_packet(far)));
        let mut at_once: Vec<_> = std::iter::from_fn(|| late.poll_packet(far)).collect();
        for departures in [&mut early, &mut at_once] {
            departures.sort_by_key(|departure| departure.packet().index);
        }
        prop_assert_eq!((early.len(), exact.queued(), late.queued()), (sends.len(), 0, 0));
        prop_assert_eq!(early, at_once);
    }
}
