//! Loss: scripts with exact answers, and statistics of fixed seeds within four standard deviations from theory.
#![allow(clippy::unwrap_used)]

use crosswind_path::loss::{LOSS, LossSettings};
use crosswind_path::world::{Fate, World};
use crosswind_path::{Arrival, DirectionConfig, ElementSettings, Outcome, Packet, PathConfig, Schedule, Side};
use crosswind_units::{Bytes, Instant, Seed};
use serde_json::{Value, json};

fn settings(of: &Value) -> LossSettings {
    DirectionConfig::from_object(of.as_object().unwrap()).unwrap().loss
}

/// Losses among `count` packets, one every `gap_ns`.
fn lost(of: &Value, seed: u64, count: u64, gap_ns: u64) -> Vec<bool> {
    let mut element = LossSettings::element(Schedule::constant(settings(of)), Seed(seed)).unwrap();
    let arrival = Arrival { size: Bytes(1250), ..Arrival::default() };
    (0..count)
        .map(|index| {
            let now = Instant::from_nanos(index * gap_ns);
            element.judge_packet(&mut Packet::entering(index, now, arrival)) == Outcome::Drops(LOSS)
        })
        .collect()
}

fn indexes(of: &Value, count: u64) -> Vec<usize> {
    lost(of, 1, count, 1).iter().enumerate().filter(|(_, lost)| **lost).map(|(index, _)| index).collect()
}

/// Lengths of `which` runs, without the first and the last run.
fn runs(lost: &[bool], which: bool) -> Vec<f64> {
    let mut runs: Vec<(bool, f64)> = Vec::new();
    for is_lost in lost {
        match runs.last_mut() {
            Some((last, length)) if last == is_lost => *length += 1.0,
            _ => runs.push((*is_lost, 1.0)),
        }
    }
    let inner = &runs[1..runs.len() - 1];
    inner.iter().filter(|(of, _)| *of == which).map(|(_, length)| *length).collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn share(lost: &[bool]) -> f64 {
    lost.iter().filter(|lost| **lost).count() as f64 / lost.len() as f64
}

/// `found` is within four standard deviations of `expected`.
#[track_caller]
fn assert_near(found: f64, expected: f64, deviation: f64) {
    assert!((found - expected).abs() < 4.0 * deviation, "{found} is not {expected} +- 4 x {deviation}");
}

#[test]
fn lost_packets_are_known_before_they_are_sent() {
    let gilbert = json!({"loss": 0.05, "loss_burst": 3.0});
    for (hops, known) in [
        (json!({"forward": {"loss": 0.1, "delay_ns": 1000, "rate_bps": 1_000_000_000}}), true),
        (json!({"hops": [{"name": "a", "forward": {"loss": 0.1}}, {"name": "b", "forward": gilbert}]}), true),
        (json!({"forward": {"lose_every": 7}}), true),
        (json!({"forward": {"loss": 0.1, "loss_bad_ns": 1_000_000}}), false),
        (json!({"forward": {"bit_error_rate": 1e-5}}), false),
        (json!({"forward": {"loss": 0.1, "delay_ns": 1000, "jitter_ns": 10}}), false),
        (json!({"forward": {"loss": 0.1}, "changes": [{"start_ns": 5, "forward": {"loss": 0.2}}]}), false),
    ] {
        let config = PathConfig::from_object(hops.as_object().unwrap()).unwrap();
        assert_eq!(config.without_index_losses().is_some(), known, "{hops}");
        if known {
            for seed in (0..20).map(Seed) {
                let mut world = World::new(config.direction(Side::Forward, seed));
                (0..200).for_each(|at| world.send_at(Instant::from_nanos(at * 100_000), 100));
                let fates = std::iter::from_fn(|| world.next_fate());
                let mut lost: Vec<_> = fates
                    .filter(|(_, fate)| matches!(fate, Fate::Dropped(..)))
                    .map(|(packet, _)| packet.index)
                    .collect();
                lost.sort_unstable();
                assert_eq!(config.lost_packets(Side::Forward, seed, 200).unwrap(), lost, "{hops}");
            }
        }
    }
}

#[test]
fn certain_packets_are_lost_by_their_index_or_number_or_as_recorded() {
    assert_eq!(indexes(&json!({"lose": [7, 0, 3]}), 20), [0, 3, 7]);
    assert_eq!(indexes(&json!({"lose_every": 10}), 35), [9, 19, 29]);
    assert_eq!(indexes(&json!({"loss_sequence": [0, 1, 1, 0]}), 10), [1, 2, 5, 6, 9]);
    assert_eq!(indexes(&json!({"loss": 1, "lose_every": 10}), 3), [0, 1, 2]);
}

#[test]
fn bursts_are_geometric_with_the_mean_that_was_asked_for() {
    for (loss, burst) in [(0.1, 1.11), (0.1, 2.5), (0.02, 4.0), (0.3, 20.0), (0.9, 10.0)] {
        let drawn = lost(&json!({"loss": loss, "loss_burst": burst}), 11, 1_000_000, 1);
        let (leave, enter) = (1.0 / burst, loss / (1.0 - loss) / burst);
        // The states one packet after another have the correlation 1 - enter - leave.
        let correlation: f64 = 1.0 - enter - leave;
        let deviation = (loss * (1.0 - loss) / 1e6 * (1.0 + correlation) / (1.0 - correlation)).sqrt();
        assert_near(share(&drawn), loss, deviation);
        for (which, end) in [(true, leave), (false, enter)] {
            let lengths = runs(&drawn, which);
            let n = lengths.len() as f64;
            assert_near(mean(&lengths), 1.0 / end, ((1.0 - end) / n).sqrt() / end);
            for longer_than in [1, 2, 5] {
                let tail = (1.0 - end).powi(longer_than);
                let count = lengths.iter().filter(|length| **length > f64::from(longer_than)).count() as f64;
                assert_near(count / n, tail, (tail * (1.0 - tail) / n).sqrt());
            }
        }
    }
}

#[test]
fn a_burst_of_chance_is_no_burst() {
    let drawn = lost(&json!({"loss": 0.2, "loss_burst": 1.25}), 3, 1_000_000, 1);
    let again: Vec<bool> = drawn.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
    assert_near(share(&again), 0.2, (0.2 * 0.8 / again.len() as f64).sqrt());
    let config = settings(&json!({"loss": 0.2, "loss_burst": 1.25})).effect();
    assert!((config.loss_after_loss.as_fraction() - 0.2).abs() < 1e-12);
}

/// netem's `gemodel p r 1-h 1-k`: steady-state loss (p (1-h) + r (1-k)) / (p + r) (tc-netem(8) and the paper it cites).
#[test]
fn four_parameters_lose_what_the_manual_of_netem_says() {
    for [p, r, in_bad, in_good] in [[0.01, 0.3, 0.8, 0.001], [0.4, 0.2, 0.5, 0.1], [0.9, 0.8, 1.0, 0.0]] {
        let of = json!({"loss_enter": p, "loss_leave": r, "loss_in_bad": in_bad, "loss_in_good": in_good});
        let drawn = lost(&of, 5, 1_000_000, 1);
        let bad: f64 = p / (p + r);
        let loss = (p * in_bad + r * in_good) / (p + r);
        let effect = settings(&of).effect();
        assert!((effect.loss.as_fraction() - loss).abs() < 1e-12);
        let correlation: f64 = 1.0 - p - r;
        let spread = (in_bad - in_good) * (in_bad - in_good) * bad * (1.0 - bad);
        let variance = loss * (1.0 - loss) + 2.0 * spread * correlation / (1.0 - correlation);
        assert_near(share(&drawn), loss, (variance / 1e6).sqrt());
        // Among pairs: both lost with the probability loss^2 + spread x correlation.
        let again: Vec<bool> = drawn.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        let after_loss = loss + spread * correlation / loss;
        assert!((effect.loss_after_loss.as_fraction() - after_loss).abs() < 1e-12);
        // Pairs overlap: a share of correlated ones, correlated no more than the states.
        let dependence = (1.0 + correlation.abs()) / (1.0 - correlation.abs());
        assert_near(
            share(&again),
            after_loss,
            (after_loss * (1.0 - after_loss) / again.len() as f64 * dependence).sqrt(),
        );
    }
    // The defaults of netem: r is 1 - p, all is lost in the bad state and nothing in the good one.
    let defaults = settings(&json!({"loss_enter": 0.3})).effect();
    assert!((defaults.loss.as_fraction() - 0.3).abs() < 1e-12);
}

/// netem's `loss state`, as tc-netem(8) defines its states, walked here one packet at a time with another generator.
#[test]
fn four_states_lose_as_the_states_of_netem_do() {
    let [p13, p31, p32, p23, p14] = [0.02, 0.3, 0.2, 0.6, 0.01];
    let mut number: u64 = 1;
    let mut uniform = || {
        // Knuth's MMIX generator.
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (number >> 11) as f64 / (1_u64 << 53) as f64
    };
    let mut state = 1;
    let walked: Vec<bool> = (0..1_000_000)
        .map(|_| {
            let u = uniform();
            state = match state {
                1 if u < p14 => 4,
                1 if u < p14 + p13 => 3,
                2 if u < p23 => 3,
                3 if u < p32 => 2,
                3 if u < p32 + p31 => 1,
                4 => 1,
                stays => stays,
            };
            state >= 3
        })
        .collect();
    let of = json!({"loss_p13": p13, "loss_p31": p31, "loss_p32": p32, "loss_p23": p23, "loss_p14": p14});
    let drawn = lost(&of, 8, 1_000_000, 1);
    let effect = settings(&of).effect();
    let (loss, after_loss) = (effect.loss.as_fraction(), effect.loss_after_loss.as_fraction());
    // The chain is reversible (its states form a tree), its second eigenvalue below 0.86: that bounds a mean's
    // deviation.
    let dependence: f64 = (1.0 + 0.86) / (1.0 - 0.86);
    for of_two in [&walked, &drawn] {
        assert_near(share(of_two), loss, (loss * (1.0 - loss) / 1e6 * dependence).sqrt());
        let again: Vec<bool> = of_two.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        let n = again.len() as f64;
        assert_near(share(&again), after_loss, (after_loss * (1.0 - after_loss) / n * dependence).sqrt());
    }
    // Bursts of losses in a row: in state 3 each ends with p31 + p32, in state 4 after one.
    let lengths = [runs(&walked, true), runs(&drawn, true)];
    for longer_than in 1..6 {
        let [walked, drawn] = lengths.each_ref().map(|lengths| {
            let longer = lengths.iter().filter(|length| **length > f64::from(longer_than)).count() as f64;
            (longer / lengths.len() as f64, lengths.len() as f64)
        });
        let deviation = (walked.0 * (1.0 - walked.0) * (1.0 / walked.1 + 1.0 / drawn.1)).sqrt();
        assert_near(drawn.0, walked.0, deviation);
    }
}

#[test]
fn bursts_in_time_do_not_depend_on_the_packets() {
    // 5 ms in every 100 ms on average, whatever is sent.
    let of = json!({"loss": 0.05, "loss_bad_ns": 5_000_000});
    assert_eq!(of["loss"], settings(&of).effect().loss.as_fraction());
    let fine = lost(&of, 4, 4_000_000, 10_000);
    let coarse = lost(&of, 4, 4_000_000 / 37, 370_000);
    assert!(coarse.iter().enumerate().all(|(number, lost)| *lost == fine[number * 37]));
    // 40 s: both times are exponential. Runs are seen to 10 us; shorter ones may be missed.
    for (which, mean_us) in [(true, 5_000.0), (false, 95_000.0)] {
        let lengths = runs(&fine, which);
        let n = lengths.len() as f64;
        assert_near(mean(&lengths) * 10.0, mean_us, mean_us * (1.0 / n.sqrt() + 0.005 / 4.0));
        for multiple in [0.5_f64, 1.0, 2.0] {
            let longer = lengths.iter().filter(|length| **length * 10.0 > mean_us * multiple).count() as f64;
            let tail = (-multiple).exp();
            assert_near(longer / n, tail, (tail * (1.0 - tail) / n).sqrt());
        }
    }
    // A packet behind a lost one by t is lost with loss + (1 - loss) e^(-t/4.75 ms).
    for apart in [100, 1000] {
        let again: Vec<bool> =
            fine.iter().zip(&fine[apart..]).filter(|(first, _)| **first).map(|(_, then)| *then).collect();
        let expected = 0.05 + 0.95 * (-(apart as f64) * 0.01 / 4.75).exp();
        // As many independent samples as there are bursts, at least.
        let bursts = runs(&fine, true).len() as f64;
        assert_near(share(&again), expected, (2.0 * expected * (1.0 - expected) / bursts).sqrt());
    }
}

#[test]
fn a_loss_by_bit_errors_grows_with_the_size() {
    let of = json!({"bit_error_rate": 1e-5});
    // 1 - (1 - 1e-5)^10000 by the binomial series, and with 12,000 bits for full packets.
    let exact = -f64::exp_m1(10_000.0 * f64::ln_1p(-1e-5));
    assert!((exact - 0.095_163).abs() < 1e-6);
    assert_near(share(&lost(&of, 2, 1_000_000, 1)), exact, (exact * (1.0 - exact) / 1e6).sqrt());
    assert!((settings(&of).effect().loss.as_fraction() - 0.113_080).abs() < 1e-6);
}

#[test]
fn the_effect_of_certain_losses_is_exact() {
    let shares = |of: Value| {
        let effect = settings(&of).effect();
        (effect.loss.as_fraction(), effect.loss_after_loss.as_fraction(), effect.changes)
    };
    assert_eq!(shares(json!({"lose_every": 4})), (0.25, 0.0, false));
    assert_eq!(shares(json!({"lose_every": 1})), (1.0, 1.0, false));
    assert_eq!(shares(json!({"loss_sequence": [1, 0, 0, 1]})), (0.5, 0.5, false));
    assert_eq!(shares(json!({"lose": [3]})), (0.0, 0.0, true));
    let random = |of: Value| settings(&of).is_random();
    assert!(![json!({"lose": [3]}), json!({"lose_every": 2}), json!({"loss_sequence": [1]})].into_iter().any(random));
    assert!(
        [json!({"loss": 0.1}), json!({"loss_enter": 0.1}), json!({"bit_error_rate": 1e-9})].into_iter().all(random)
    );
}

#[test]
fn settings_of_two_models_and_of_none_are_refused() {
    for (of, message) in [
        (json!({"loss": 0.1, "loss_enter": 0.1}), "loss_enter and loss exclude each other"),
        (json!({"lose": [1], "lose_every": 2}), "lose_every and lose exclude each other"),
        (json!({"loss_enter": 0.1, "loss_bad_ns": 1000}), "loss_bad_ns and loss_enter exclude each other"),
        (json!({"loss_enter": 0.1, "loss_p14": 0.1}), "loss_p14 and loss_enter exclude each other"),
        (json!({"loss_burst": 2, "loss_bad_ns": 1000}), "loss_bad_ns and loss_burst exclude each other"),
        (json!({"loss": 0.1, "loss_bad_ns": 1000, "loss_good_ns": 1000}), "loss_good_ns and loss exclude each other"),
        (json!({"loss_leave": 0.1}), "loss_leave is set but loss_enter is not"),
        (json!({"loss_in_bad": 0.1}), "loss_in_bad is set but loss_enter or loss_bad is not"),
        (json!({"loss": 0.1, "loss_bad_ns": 1000, "loss_in_bad": 0.5}), "loss_good_ns is missing"),
        (json!({"loss": 0.9, "loss_burst": 5}), "loss_burst 5 is too short for a loss of 0.9"),
        (
            json!({"loss": 0.999, "loss_bad_ns": 1000}),
            "loss_bad_ns 1000 with a loss of 0.999 leaves 1 ns between bursts",
        ),
        (json!({"loss_enter": 0.1, "loss_leave": 0}), "loss_leave 0 lets the first burst never end"),
        (json!({"loss_p13": 0.6, "loss_p14": 0.5}), "loss_p13 and loss_p14 are 1.100000 together"),
        (json!({"loss_p13": 0.1, "loss_p31": 0.6, "loss_p32": 0.5}), "loss_p31 and loss_p32 are 1.100000 together"),
        (json!({"loss_p13": 0.1, "loss_p31": 0}), "loss_p31 and loss_p32 are 0: no burst would end"),
        (json!({"loss_p13": 0.1, "loss_p32": 0.1, "loss_p23": 0}), "loss_p23 0 lets state 2 never end"),
        (json!({"loss_sequence": [0, 2]}), "loss_sequence 2 is not between 0 and 1"),
        (json!({"lose": [-1]}), "lose -1 is less than 0"),
        (json!({"lose_every": 0}), "lose_every 0 is less than 1"),
        (json!({"loss_burst": 0.5}), "loss_burst 0.5 is not between 1 and 1000000"),
    ] {
        let refused = DirectionConfig::from_object(of.as_object().unwrap()).map(|_| ());
        assert_eq!(refused.unwrap_err().to_string(), message, "{of}");
    }
}
