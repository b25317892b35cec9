//! Jitter and overtaking: scripts with exact answers, and statistics of fixed seeds within four standard deviations
//! from theory.
#![allow(clippy::unwrap_used)]

use crosswind_path::delay::DelaySettings;
use crosswind_path::world::World;
use crosswind_path::{Direction, DirectionConfig, ElementSettings, Packet, PathConfig, Side};
use crosswind_units::{Duration, Instant, Seed};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;

fn config(of: &Value) -> DirectionConfig {
    DirectionConfig::from_object(of.as_object().unwrap()).unwrap()
}

/// `count` packets, one every `gap_ns`, in the order of leaving.
fn sent(of: &Value, seed: u64, count: u64, gap_ns: u64) -> Vec<Packet> {
    let mut world = World::new(Direction::from_config(&config(of), Seed(seed)));
    for number in 0..count {
        world.send_at(Instant::from_nanos(number * gap_ns), 1250);
    }
    std::iter::from_fn(|| world.next_fate()).map(|(packet, _)| packet).collect()
}

/// Delays by index.
fn delays(of: &Value, seed: u64, count: u64, gap_ns: u64) -> Vec<f64> {
    let mut packets = sent(of, seed, count, gap_ns);
    packets.sort_by_key(|packet| packet.index);
    packets.iter().map(|packet| (packet.at - packet.entered).as_nanos() as f64).collect()
}

fn indexes(packets: &[Packet]) -> Vec<u64> {
    packets.iter().map(|packet| packet.index).collect()
}

/// `found` is within four standard deviations of `expected`.
#[track_caller]
fn assert_near(found: f64, expected: f64, deviation: f64) {
    assert!((found - expected).abs() < 4.0 * deviation, "{found} is not {expected} +- 4 x {deviation}");
}

/// Quantiles by scipy.stats and numpy, of the distribution as it is defined here: cut at 1/8192 on both sides, linear between 2049
/// quantiles, with mean 0 and standard deviation 1 (exponential: with -1 as its smallest value). The normal one is scipy's `truncnorm`.
#[test]
fn delays_have_the_quantiles_of_their_distribution() {
    let shares = [0.05, 0.25, 0.5, 0.75, 0.95, 0.999];
    let n = 100_000;
    for (distribution, jitter, quantiles) in [
        ("uniform", 10, [-0.9, -0.5, 0.0, 0.5, 0.9, 0.998]),
        ("normal", 5, [-1.472_264, -0.639_112, 0.0, 0.639_112, 1.472_264, 1.982_629]),
        ("pareto", 5, [-0.595_363, -0.492_274, -0.295_388, 0.109_415, 1.502_552, 10.530_846]),
        ("lognormal", 5, [-0.684_782, -0.535_815, -0.304_82, 0.148_629, 1.663_493, 9.590_282]),
        ("exponential", 10, [-0.948_817, -0.712_373, -0.306_814, 0.386_494, 1.996_318, 5.913_494]),
    ] {
        let of = json!({"delay_ns": 10 * MS, "jitter_ns": jitter * MS, "jitter_distribution": distribution});
        let delays = delays(&of, 6, n, 1000 * MS);
        for (share, quantile) in shares.into_iter().zip(quantiles) {
            let limit = (10.0 + f64::from(jitter as u32) * quantile) * 1e6;
            let below = delays.iter().filter(|delay| **delay < limit).count() as f64;
            assert_near(below / n as f64, share, (share * (1.0 - share) / n as f64).sqrt());
        }
        let (least, most) = (delays.iter().copied().fold(f64::MAX, f64::min), config(&of).longest_delay().as_nanos());
        assert!(least >= 0.0 && delays.iter().all(|delay| *delay <= most as f64));
    }
}

#[test]
fn jitter_of_values_has_their_shape() {
    // Two in three values are 1: between 1 and 1 lies half, and the other half from there to 4.
    let of = json!({"delay_ns": 100 * MS, "jitter_ns": MS, "jitter_values": [4, 1, 1]});
    let delays = delays(&of, 1, 100_000, 1000 * MS);
    let least = delays.iter().copied().fold(f64::MAX, f64::min);
    assert_near(
        delays.iter().filter(|delay| **delay < least + 10.0).count() as f64 / 1e5,
        0.5,
        (0.25_f64 / 1e5).sqrt(),
    );
    // Mean and deviation are as set. The fourth moment over the squared variance is below 3.
    let mean = delays.iter().sum::<f64>() / 1e5;
    assert_near(mean, 1e8, 1e6 / 1e5_f64.sqrt());
    let variance = delays.iter().map(|delay| (delay - mean) * (delay - mean)).sum::<f64>() / 1e5;
    assert_near(variance, 1e12, 1e12 * (2.0_f64 / 1e5).sqrt());
}

#[test]
fn jitter_is_correlated_as_asked_for_at_every_distance() {
    let n = 200_000;
    let of =
        json!({"delay_ns": 10 * MS, "jitter_ns": 5 * MS, "jitter_distribution": "normal", "jitter_correlation": 0.6});
    let delays = delays(&of, 2, n, 1000 * MS);
    let mean = delays.iter().sum::<f64>() / n as f64;
    let variance = delays.iter().map(|delay| (delay - mean).powi(2)).sum::<f64>();
    for (apart, expected) in [(1, 0.6), (2, 0.36), (3, 0.216), (10, 0.006)] {
        let products = delays.iter().zip(&delays[apart..]).map(|(a, b)| (a - mean) * (b - mean));
        // Bartlett's bound for a process with correlations r^k: (1 + r^2) / (1 - r^2) / n. Products of repeated values
        // vary more: within a run they are squares, with up to twice that variance; runs have 1/(1 - r) packets.
        let deviation = ((1.0 + 0.36) / (1.0 - 0.36) * 2.0 / (1.0 - 0.6) / n as f64).sqrt();
        assert_near(products.sum::<f64>() / variance, expected, deviation);
    }
    // The distribution is unchanged.
    let below = delays.iter().filter(|delay| **delay < 10e6 + 5e6 * 1.472_264).count() as f64 / n as f64;
    assert_near(below, 0.95, (0.95 * 0.05 / n as f64 * 4.0).sqrt());
}

#[test]
fn the_word_of_a_packet_decides_its_jitter_whatever_the_timing() {
    for correlation in [0.0, 0.9] {
        let of = json!({"delay_ns": 10 * MS, "jitter_ns": 8 * MS, "jitter_correlation": correlation, "reorder": true});
        let slow = delays(&of, 3, 2000, 100 * MS);
        assert_eq!(slow, delays(&of, 3, 2000, 10_000));
        assert_ne!(slow, delays(&of, 4, 2000, 10_000));
    }
}

#[test]
fn packets_keep_their_order_unless_they_may_overtake() {
    let of = |reorder: bool| json!({"delay_ns": 10 * MS, "jitter_ns": 9 * MS, "reorder": reorder});
    let kept = sent(&of(false), 1, 2000, MS);
    assert!(indexes(&kept).is_sorted() && kept.is_sorted_by_key(|packet| packet.at));
    let free = sent(&of(true), 1, 2000, MS);
    assert!(!indexes(&free).is_sorted() && free.is_sorted_by_key(|packet| packet.at));
    // Without overtaking, a packet waits for the latest before it.
    let own = delays(&of(true), 1, 2000, MS);
    let mut latest = 0;
    for packet in &kept {
        let index = packet.index as usize;
        latest = latest.max(packet.index * MS + own[index] as u64);
        assert_eq!(packet.at.as_nanos(), latest);
    }
    // In flight is every packet's minimum, 1 ms; the rest is jitter.
    for packet in kept.iter().chain(&free) {
        assert_eq!(packet.spent.propagation, Duration::from_millis(1));
        assert_eq!(packet.spent.propagation + packet.spent.jitter, packet.at - packet.entered);
    }
}

#[test]
fn every_packet_of_a_number_overtakes() {
    let of = json!({"delay_ns": 10 * MS, "reorder_gap": 5});
    // One packet every 3 ms: overtaking packets pass the three in flight.
    let left = sent(&of, 1, 12, 3 * MS);
    assert_eq!(indexes(&left), [0, 4, 1, 2, 3, 5, 9, 6, 7, 8, 10, 11]);
    let overtook: Vec<_> =
        left.iter().filter(|packet| packet.at == packet.entered).map(|packet| packet.index).collect();
    assert_eq!(overtook, [4, 9]);
    let many = sent(&json!({"delay_ns": MS, "reorder_gap": 7}), 1, 20_000, 1000);
    assert!(many.iter().all(|packet| (packet.at == packet.entered) == ((packet.index + 1) % 7 == 0)));
}

/// netem: a packet overtakes with the probability once `gap - 1` have not since the last one. So the distances between
/// overtaking packets are gap - 1 and a geometric number.
#[test]
fn distances_between_packets_that_overtake_are_those_of_netem() {
    for (share, gap) in [(0.25, 1), (0.25, 5), (0.5, 20)] {
        let of = json!({"delay_ns": MS, "reorder_share": share, "reorder_gap": gap});
        let packets = sent(&of, 9, 200_000, 2 * MS);
        let overtook: Vec<f64> =
            packets.iter().filter(|packet| packet.at == packet.entered).map(|packet| packet.index as f64).collect();
        let mut waits: Vec<f64> = overtook.windows(2).map(|pair| pair[1] - pair[0] - f64::from(gap - 1)).collect();
        // Counting begins anew every 4096 packets or a few more, where a distance may be longer.
        let all = waits.len() as f64;
        let block = 4096_u32.div_ceil(gap) * gap;
        let border = |pair: &[f64]| (pair[0] / f64::from(block)).floor() < (pair[1] / f64::from(block)).floor();
        let borders: Vec<bool> = overtook.windows(2).map(border).collect();
        let mut keep = borders.iter();
        waits.retain(|_| !keep.next().unwrap());
        assert!(waits.len() as f64 > all - 100.0 && waits.iter().all(|wait| *wait >= 1.0));
        let n = waits.len() as f64;
        assert_near(waits.iter().sum::<f64>() / n, 1.0 / share, ((1.0 - share) / n).sqrt() / share);
        let at_once = waits.iter().filter(|wait| **wait < 1.5).count() as f64;
        assert_near(at_once / n, share, (share * (1.0 - share) / n).sqrt());
        let effect = config(&of).effect();
        let overtaking = 1.0 / (f64::from(gap - 1) + 1.0 / share);
        assert_eq!(effect.delay, Duration::from_nanos((1e6 * (1.0 - overtaking)).round() as u64));
        assert!(effect.reorders && effect.random_delay);
    }
}

#[test]
fn a_delay_that_shrinks_lets_packets_overtake_only_where_they_may() {
    let reorders = |change: Value, reorder: bool| {
        let path = json!({"forward": {"delay_ns": 50, "reorder": reorder}, "changes": [change]});
        PathConfig::from_object(path.as_object().unwrap()).unwrap().effect(Side::Forward).reorders
    };
    let change = |delay_ns: u64, start_ns: u64, for_ns: Option<u64>| {
        let mut change = json!({"start_ns": start_ns, "forward": {"delay_ns": delay_ns}});
        for_ns.inspect(|for_ns| change["for_ns"] = (*for_ns).into());
        change
    };
    // Shorter for good, shorter for a while, longer for a while: at its end it shrinks.
    for shrinks in [change(20, 9, None), change(20, 9, Some(9)), change(90, 9, Some(9)), change(90, 0, Some(9))] {
        assert!(reorders(shrinks.clone(), true) && !reorders(shrinks, false));
    }
    // Longer for good; shorter from the first packet on for good; the other direction; another key.
    let reverse = json!({"start_ns": 9, "reverse": {"delay_ns": 20}});
    for stays in [change(90, 9, None), change(20, 0, None), reverse, json!({"start_ns": 9, "forward": {"loss": 1}})] {
        assert!(!reorders(stays, true));
    }
    let later = json!({"start_ns": 9, "forward": {"delay_ns": 20, "reorder": true}});
    assert!(reorders(later, false));
    let traced = |text: &'static str, once: bool| {
        let path = json!({"forward": {"delay_ns": 50, "reorder": true}, "changes": [{"trace": "t", "once": once}]});
        PathConfig::read(path.as_object().unwrap(), &|_| Ok(text.to_owned())).unwrap().effect(Side::Forward).reorders
    };
    assert!(traced("time delay\n0 10\n1 5\n2 20\n", true) && !traced("time delay\n0 10\n1 15\n2 20\n", true));
    assert!(traced("time delay\n0 10\n1 15\n2 20\n", false), "the trace begins again with the shortest");
}

#[test]
fn what_jitter_does_is_known_beforehand() {
    let of = |of: Value| config(&of).delay;
    let with_jitter = of(json!({"delay_ns": 10, "jitter_ns": 4}));
    let effect = with_jitter.effect();
    assert_eq!((effect.delay, effect.random_delay, effect.reorders), (Duration::from_nanos(10), true, false));
    assert_eq!(with_jitter.longest_delay(), Duration::from_nanos(14));
    assert!(of(json!({"delay_ns": 10, "jitter_ns": 4, "reorder": true})).effect().reorders);
    assert!(!of(json!({"delay_ns": 10, "reorder": true})).effect().reorders);
    let every: DelaySettings = of(json!({"delay_ns": 10, "reorder_gap": 2}));
    assert!(!every.is_random() && every.effect().reorders && every.effect().delay == Duration::from_nanos(5));
}

#[test]
fn jitter_that_cannot_be_is_refused() {
    for (of, message) in [
        (json!({"jitter_ns": 5}), "jitter_ns 5 makes some delays negative: the mean is 0"),
        (json!({"delay_ns": 10, "jitter_ns": 11}), "jitter_ns 11 makes some delays negative: the mean is 10"),
        (
            json!({"delay_ns": 100, "jitter_ns": 101, "jitter_distribution": "exponential"}),
            "jitter_ns 101 makes some delays negative: the mean is 100",
        ),
        (
            json!({"delay_ns": 9, "jitter_ns": 1, "jitter_distribution": "normal", "jitter_values": [1, 2]}),
            "jitter_values and jitter_distribution exclude each other",
        ),
        (json!({"delay_ns": 9, "jitter_ns": 1, "jitter_values": [2, 2]}), "jitter_values have no spread"),
        (json!({"jitter_correlation": 1}), "jitter_correlation 1 is not between 0 and 0.999"),
        (
            json!({"jitter_distribution": "gamma"}),
            "jitter_distribution gamma is not one of uniform, normal, pareto, lognormal, exponential",
        ),
        (json!({"reorder_share": 0.1}), "reorder_share is set but delay is not"),
        (json!({"reorder_gap": 5}), "reorder_gap is set but delay is not"),
        (json!({"delay_ns": 9, "reorder_gap": 0}), "reorder_gap 0 is not between 1 and 1000"),
    ] {
        let refused = DirectionConfig::from_object(of.as_object().unwrap()).map(|_| ());
        assert_eq!(refused.unwrap_err().to_string(), message, "{of}");
    }
    let hint = |of: Value| DirectionConfig::from_object(of.as_object().unwrap()).unwrap_err().hint;
    assert_eq!(hint(json!({"delay_ns": 10, "jitter_ns": 11})), "with this distribution and delay, it is 10 ns at most");
    for distribution in ["uniform", "normal", "pareto", "lognormal", "exponential"] {
        config(&json!({"delay_ns": 1000, "jitter_ns": 1000, "jitter_distribution": distribution}));
    }
}
