//! Background traffic: its place in the queue, by hand, and against queueing theory.
#![allow(clippy::unwrap_used)]

use crosswind_path::link::QUEUE_FULL;
use crosswind_path::world::{Fate, World};
use crosswind_path::{Arrival, Departure, Direction, DirectionConfig, Packet, PathConfig, Side};
use crosswind_units::{Bytes, Instant, Seed};
use serde_json::{Value, json};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000;

fn config(settings: &Value) -> DirectionConfig {
    DirectionConfig::from_object(settings.as_object().unwrap()).unwrap()
}

fn at(ns: u64) -> Instant {
    Instant::from_nanos(ns)
}

/// Background traffic's fates in so much time: a host's first packet begins it, and another ends it.
fn alone(settings: &Value, seed: u64, seconds: u64) -> Vec<(Packet, Fate)> {
    let mut world = World::new(Direction::from_config(&config(settings), Seed(seed)));
    world.send_at(at(0), 20);
    world.send_at(at(seconds * SECOND), 20);
    world.run();
    world.background().to_vec()
}

#[test]
fn recorded_packets_take_their_place_in_the_queue_and_leave_behind_the_link() {
    // 1250 bytes take 1 ms. The recording begins again after 3 ms, one mean distance after its last packet.
    let link = json!({"rate_bps": 10_000_000, "queue": {"packets": 3}, "delay_ns": 20 * MS,
                      "background_trace": [7.0, 1250, 7.0015, 2500]});
    let mut world = World::new(Direction::from_config(&config(&link), Seed(1)));
    for ns in [0, MS, 2 * MS] {
        world.send_at(at(ns), 1250);
    }
    let hosts: Vec<_> = std::iter::from_fn(|| world.next_fate()).map(|(_, fate)| fate).collect();
    let delivered = |ns: u64| Fate::Delivered(at(ns));
    // Background: 0 to 1 ms, and from 3 to 5 ms. The host's third packet waits behind that.
    assert_eq!(hosts, [delivered(22 * MS), delivered(23 * MS), delivered(26 * MS)]);
    let background: Vec<_> = world.background().iter().map(|(packet, fate)| (packet.index, *fate)).collect();
    assert_eq!(
        background[..4],
        [(0, delivered(MS)), (1, delivered(5 * MS)), (2, delivered(7 * MS)), (3, delivered(9 * MS))]
    );
}

#[test]
fn a_full_queue_drops_background_traffic_too_and_the_next_hop_has_none() {
    let trace = json!([0, 1250, 0, 1250, 0, 1250, 0, 1250]);
    let near =
        json!({"rate_bps": 10_000_000, "queue": {"packets": 2}, "background_trace": trace, "background_once": true});
    let hops = json!([{"name": "near", "forward": near}, {"name": "far", "forward": {"rate_bps": 10_000_000}}]);
    let path = PathConfig::from_object(json!({"hops": hops}).as_object().unwrap()).unwrap();
    let mut world = World::new(path.direction(Side::Forward, Seed(1)));
    world.send_at(at(0), 1250);
    world.send_at(at(MS), 1250);
    let hosts: Vec<_> = std::iter::from_fn(|| world.next_fate()).map(|(_, fate)| fate).collect();
    // One is in transmission and two wait.
    assert_eq!(hosts, [Fate::Dropped(at(0), QUEUE_FULL), Fate::Delivered(at(5 * MS))]);
    let background: Vec<_> =
        world.background().iter().map(|(packet, fate)| (packet.index, packet.hop, *fate)).collect();
    let carried = |index, ns| (index, 0, Fate::Delivered(at(ns)));
    let dropped = (3, 0, Fate::Dropped(at(0), QUEUE_FULL));
    assert_eq!(background, [dropped, carried(0, MS), carried(1, 2 * MS), carried(2, 3 * MS)]);
}

#[test]
fn late_polling_changes_nothing_of_paths_with_background_traffic() {
    let hop = |arrivals: &str, discipline: &str| {
        json!({"rate_bps": 10_000_000, "queue": {"packets": 20}, "discipline": discipline, "loss": 0.1, "delay_ns": 3 * MS,
               "background_rate_bps": 7_000_000, "background_arrivals": arrivals, "background_flows": 3,
               "background_size_bytes": 700, "jitter_ns": MS})
    };
    let hops = json!([{"name": "a", "forward": hop("poisson", "red")}, {"name": "b", "forward": hop("on_off", "pie")}]);
    let changes = json!([{"start_ns": 50 * MS, "hop": "b", "forward": {"background_rate_bps": 9_000_000}}]);
    let path = PathConfig::from_object(json!({"hops": hops, "changes": changes}).as_object().unwrap()).unwrap();
    let [mut exact, mut late] = [(); 2].map(|()| path.direction(Side::Forward, Seed(3)));
    let arrivals: Vec<u64> = (0..400).map(|number| number * 777_777).collect();
    let arrival = Arrival { size: Bytes(1000), ..Arrival::default() };
    let (mut early, mut at_once) = (Vec::new(), Vec::new());
    for &ns in &arrivals {
        while let Some(next) = exact.next_wakeup().filter(|next| *next <= at(ns)) {
            early.extend(std::iter::from_fn(|| exact.poll_packet(next)));
        }
        exact.handle_packet(at(ns), arrival);
        late.handle_packet(at(ns), arrival);
    }
    for direction in [&mut exact, &mut late] {
        direction.end_background();
    }
    early.extend(std::iter::from_fn(|| exact.poll_packet(at(10 * SECOND))));
    at_once.extend(std::iter::from_fn(|| late.poll_packet(at(10 * SECOND))));
    let key = |departure: &Departure| {
        let packet = departure.packet();
        (packet.is_background, packet.hop, packet.index)
    };
    early.sort_by_key(key);
    at_once.sort_by_key(key);
    assert_eq!(early, at_once);
    let background = early.iter().filter(|departure| departure.packet().is_background).count() as u64;
    assert_eq!([exact.background(), exact.queued() as u64], [background, 0]);
    assert_eq!(early.len() as u64 - background, 400, "each of the hosts' left once");
    assert!(early.iter().any(|departure| matches!(departure, Departure::Dropped(packet, _) if packet.is_background)));
}

#[test]
fn what_comes_is_the_rate_that_was_asked_for() {
    let sent = |settings: Value, seconds| {
        let mut all = settings;
        all["background_rate_bps"] = json!(8_000_000);
        alone(&all, 5, seconds).iter().map(|(packet, _)| packet.at.as_nanos()).collect::<Vec<_>>()
    };
    // 1000 packets a second; each of three flows has its own phase.
    let constant = sent(json!({"background_size_bytes": 1000, "background_flows": 3}), 10);
    assert!(constant.len().abs_diff(10_000) <= 3, "{}", constant.len());
    assert!(constant.iter().zip(&constant[3..]).all(|(one, next)| next.abs_diff(*one).abs_diff(3 * MS) <= 1));
    let poisson = sent(json!({"background_size_bytes": 1000, "background_arrivals": "poisson"}), 30);
    let z = (poisson.len() as f64 - 30_000.0) / 30_000_f64.sqrt();
    assert!(z.abs() < 4.0, "{z}");
    let gaps: Vec<f64> = poisson.windows(2).map(|pair| (pair[1] - pair[0]) as f64 / 1e6).collect();
    for time in [0.1, 1.0, 3.0] {
        let (share, expected) =
            (gaps.iter().filter(|gap| **gap > time).count() as f64, (-time).exp() * gaps.len() as f64);
        let z = (share - expected) / (expected * (1.0 - (-time).exp())).sqrt();
        assert!(z.abs() < 4.0, "{time}: {z}");
    }
    // On a quarter of the time, and four times as fast then: over n rounds of exponential times the time on has the
    // variance 2 T (on off / (on + off))^2 / (on + off) in the time T (Cox 1962, alternating renewal).
    let on_off = json!({"background_size_bytes": 1000, "background_arrivals": "on_off", "background_on_ns": 10 * MS,
                        "background_off_ns": 30 * MS});
    let on_off = sent(on_off, 30);
    let (on, off, length) = (10.0_f64, 30.0, 30_000.0);
    let deviation = (2.0 * length * (on * off / (on + off)).powi(2) / (on + off)).sqrt() * 4.0;
    let z = (on_off.len() as f64 - 30_000.0) / deviation;
    assert!(z.abs() < 4.0, "{z}");
    let quick = on_off.windows(2).filter(|pair| (pair[1] - pair[0]).abs_diff(MS / 4) <= 1).count();
    assert!(quick as f64 > 0.95 * on_off.len() as f64, "{quick}");
}

/// The mean over so many seeds, with its standard error.
fn over_seeds(seeds: u64, mean: impl Fn(u64) -> f64) -> (f64, f64) {
    let means: Vec<f64> = (1..=seeds).map(mean).collect();
    let n = seeds as f64;
    let middle = means.iter().sum::<f64>() / n;
    let variance = means.iter().map(|mean| (mean - middle).powi(2)).sum::<f64>() / (n - 1.0);
    (middle, (variance / n).sqrt())
}

/// 1250 bytes take 1 ms.
fn mm(load: f64, flows: u32, queue: u64) -> Value {
    json!({"rate_bps": 10_000_000, "queue": {"packets": queue}, "background_size_bytes": 1250,
           "background_rate_bps": (load * 1e7) as u64, "background_arrivals": "poisson", "background_flows": flows})
}

#[test]
fn poisson_packets_wait_at_a_link_as_long_as_those_of_m_d_1() {
    for (load, flows) in [(0.5, 1), (0.8, 8)] {
        let (wait, error) = over_seeds(10, |seed| {
            let packets = alone(&mm(load, flows, 100_000), seed, 20);
            let waits = packets.iter().skip(500).map(|(packet, _)| packet.spent.queueing.as_nanos() as f64);
            waits.sum::<f64>() / (packets.len() - 500) as f64 / 1e6
        });
        // Pollaczek-Khinchine: rho / (2 (1 - rho)) service times.
        let theory = load / (2.0 * (1.0 - load));
        println!(
            "rho {load}, {flows} flows: {wait:.4} +- {error:.4} ms, theory {theory:.4}, z {:.2}",
            (wait - theory) / error
        );
        assert!((wait - theory).abs() < 4.0 * error, "{load}: {wait} +- {error}, {theory}");
        assert!(error < 0.03 * theory, "{load}: {error}");
    }
}

/// The mean wait, in service times, for packets from equal flows at constant rates with own phases (N D/D/1): each
/// finds the others' work (Roberts and Virtamo, "The superposition of periodic cell arrival streams in an ATM
/// multiplexer", IEEE Trans. Commun. 39, 1991). `period` is in service times.
fn wait_of_nd_d_1(flows: u32, period: f64) -> f64 {
    let others = flows - 1;
    let choose = |n: u32| (0..n).map(|k| f64::from(others - k) / f64::from(n - k)).product::<f64>();
    let exceeds = |work: f64| -> f64 {
        let term = |n: u32| {
            let share = (f64::from(n) - work) / period;
            let (own, rest) = (share.powi(n as i32), (1.0 - share).powi((others - n) as i32));
            choose(n) * own * rest * (period - f64::from(others) + work) / (period - f64::from(n) + work)
        };
        (work.floor() as u32 + 1..=others).map(term).sum()
    };
    let steps = 1000 * others;
    (0..steps).map(|step| exceeds((f64::from(step) + 0.5) / 1000.0) / 1000.0).sum()
}

#[test]
fn constant_flows_wait_at_a_link_as_long_as_those_of_n_d_d_1() {
    // One flow in 25 service times finds another in transmission for half of one, at one of 25 places.
    assert!((wait_of_nd_d_1(2, 25.0) - 0.5 / 25.0).abs() < 1e-9);
    for (flows, load) in [(2, 0.5), (8, 0.8), (20, 0.95)] {
        // 1250 bytes take 10 ms. After one period everything repeats.
        let settings = json!({"rate_bps": 1_000_000, "queue": {"packets": 1000}, "background_size_bytes": 1250,
                              "background_rate_bps": (load * 1e6) as u64, "background_flows": flows});
        let (wait, error) = over_seeds(2000, |seed| {
            let packets = alone(&settings, seed, 1);
            let waits =
                packets.iter().skip(2 * flows as usize).map(|(packet, _)| packet.spent.queueing.as_nanos() as f64);
            waits.sum::<f64>() / (packets.len() - 2 * flows as usize) as f64 / 1e7
        });
        let theory = wait_of_nd_d_1(flows, f64::from(flows) / load);
        println!(
            "{flows} flows at {load}: {wait:.4} +- {error:.4} service times, theory {theory:.4}, z {:.2}",
            (wait - theory) / error
        );
        assert!((wait - theory).abs() < 4.0 * error, "{flows}: {wait} +- {error}, {theory}");
        assert!(error < 0.04 * theory, "{flows}: {error}");
    }
}

/// Loss in M/D/1/N, with the packet in transmission among the N (Brun and Garcia, "Analytical solution of finite
/// capacity M/D/1 queues", J. Appl. Prob. 37, 2000, equations 5 and 9).
fn loss_of_m_d_1(load: f64, places: u32) -> f64 {
    let term = |n: f64, k: u32| {
        let factorial: f64 = (1..=k).map(f64::from).product();
        let left = n - f64::from(k);
        (-1_f64).powi(k as i32) / factorial * left.powi(k as i32) * (left * load).exp() * load.powi(k as i32)
    };
    let sum: f64 = (0..places).map(|k| term(f64::from(places - 1), k)).sum();
    1.0 - sum / (1.0 + load * sum)
}

#[test]
fn a_short_queue_loses_as_many_poisson_packets_as_m_d_1_n() {
    assert!((loss_of_m_d_1(0.5, 1) - 0.5 / 1.5).abs() < 1e-12, "one place alone is Erlang's");
    for (load, waiting) in [(0.9, 4), (1.2, 9)] {
        let (loss, error) = over_seeds(10, |seed| {
            let packets = alone(&mm(load, 1, waiting), seed, 20);
            packets.iter().filter(|(_, fate)| matches!(fate, Fate::Dropped(..))).count() as f64 / packets.len() as f64
        });
        let theory = loss_of_m_d_1(load, waiting as u32 + 1);
        println!(
            "rho {load}, {waiting} waiting: {loss:.5} +- {error:.5}, theory {theory:.5}, z {:.2}",
            (loss - theory) / error
        );
        assert!((loss - theory).abs() < 4.0 * error, "{load}: {loss} +- {error}, {theory}");
    }
}

#[test]
fn settings_that_do_not_go_together_are_refused() {
    let refused =
        |settings: Value| DirectionConfig::from_object(settings.as_object().unwrap()).unwrap_err().to_string();
    for (settings, sentence) in [
        (json!({"background_flows": 2}), "background_flows is set but background_rate is not"),
        (
            json!({"background_rate_bps": 1, "background_on_ns": MS}),
            "background_on_ns is set but background_arrivals is not on_off",
        ),
        (
            json!({"background_rate_bps": 1, "background_trace": [0, 1]}),
            "background_trace and background_rate exclude each other",
        ),
        (json!({"background_trace": []}), "background_trace has no packets"),
        (json!({"background_trace": [0, 1, 2]}), "background_trace has 3 numbers: the last packet has no size"),
        (
            json!({"background_trace": [1, 1, 0, 1]}),
            "background_trace has packet 2 at 0 s, which is before the one in front of it",
        ),
        (
            json!({"background_trace": [0, 1, 1, 70_000]}),
            "background_trace has 70000 for the size of packet 2, which is not 1 to 65535",
        ),
        (
            json!({"background_trace": [1, 1, 1, 1]}),
            "background_trace lasts no time, and would begin again at once: set background_once",
        ),
    ] {
        assert_eq!(refused(settings), sentence);
    }
}
