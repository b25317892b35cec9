//! Scripts on virtual time, with exact answers.
#![allow(clippy::unwrap_used)]

use crosswind_path::delay::{Delay, DelaySettings};
use crosswind_path::link::{Link, LinkRate, LinkSettings, QUEUE_FULL};
use crosswind_path::loss::{LOSS, LossSettings, losses};
use crosswind_path::mtu::{MTU, MtuSettings, largest_packet};
use crosswind_path::queue::QueueLimit;
use crosswind_path::world::{Fate, World};
use crosswind_path::{Counting, Direction, DirectionConfig, Element, Schedule};
use crosswind_units::{BitRate, Duration, Instant, Probability, Seed};
use serde_json::json;

fn ms(n: u64) -> Instant {
    us(n * 1000)
}

fn us(n: u64) -> Instant {
    Instant::from_nanos(n * 1000)
}

fn link(mbit: u64, counting: Counting, limit: QueueLimit) -> Box<dyn Element> {
    let rate = BitRate::new(mbit * 1_000_000).unwrap();
    let settings =
        LinkSettings { rate: Some(LinkRate::Of(rate)), queue: Some(limit), counting, ..LinkSettings::default() };
    Box::new(Link::new(Schedule::constant(settings), Seed(1)))
}

fn delay(ms: u64) -> Box<dyn Element> {
    Box::new(Delay::new(
        Schedule::constant(DelaySettings { delay: Duration::from_millis(ms), ..DelaySettings::default() }),
        Seed(1),
    ))
}

#[test]
fn transmission_and_flight_add_up() {
    let mut world = World::new(Direction::new(vec![link(10, Counting::IP, QueueLimit::Packets(10)), delay(20)]));
    world.send_at(ms(0), 1250);
    assert_eq!(world.next_delivery(), Some(ms(21))); // 1 ms on the wire + 20 ms in flight
    assert_eq!(world.next_delivery(), None);
}

#[test]
fn a_held_packet_is_late_and_those_behind_it_wait_for_it() {
    let settings = json!({"hold": [3, 1], "hold_time_ns": 1_000_000, "delay_ns": 20_000_000});
    let config = DirectionConfig::from_object(settings.as_object().unwrap()).unwrap();
    let mut world = World::new(Direction::from_config(&config, Seed(1)));
    for sent in [us(0), us(500), us(600), us(2000), us(4000)] {
        world.send_at(sent, 1250);
    }
    let delivered: Vec<_> = std::iter::from_fn(|| world.next_delivery()).collect();
    assert_eq!(delivered, [us(20_000), us(21_500), us(21_500), us(23_000), us(24_000)]);
}

#[test]
fn held_packets_are_named_with_how_long() {
    for (given, said) in [
        (json!({"hold": [1]}), "hold is set but hold_time is not"),
        (json!({"hold_time_ns": 1}), "hold_time_ns is set but hold is not"),
        (json!({"hold": [1], "hold_time_ns": 0}), "hold_time_ns 0 is not between 1 and"),
    ] {
        let refused = DirectionConfig::from_object(given.as_object().unwrap()).unwrap_err().to_string();
        assert!(refused.starts_with(said), "{refused}");
    }
}

#[test]
fn an_empty_chain_is_a_wire_of_no_length() {
    let mut world = World::new(Direction::new(vec![]));
    world.send_at(ms(3), 40);
    assert_eq!(world.next_delivery(), Some(ms(3)));
}

#[test]
fn packets_queue_behind_one_another() {
    let mut world = World::new(Direction::new(vec![link(10, Counting::IP, QueueLimit::Packets(10))]));
    for _ in 0..3 {
        world.send_at(ms(0), 1250);
    }
    world.send_at(us(2500), 1250);
    let times: Vec<_> = std::iter::from_fn(|| world.next_delivery()).collect();
    assert_eq!(times, [ms(1), ms(2), ms(3), ms(4)]);
}

#[test]
fn a_queue_of_two_packets_holds_two_besides_the_one_in_transmission() {
    let mut world = World::new(Direction::new(vec![link(10, Counting::IP, QueueLimit::Packets(2))]));
    for _ in 0..4 {
        world.send_at(ms(0), 1250);
    }
    world.send_at(ms(1), 1250); // the first has just left: a place is free
    assert_eq!(
        world.run(),
        [
            (3, Fate::Dropped(ms(0), QUEUE_FULL)),
            (0, Fate::Delivered(ms(1))),
            (1, Fate::Delivered(ms(2))),
            (2, Fate::Delivered(ms(3))),
            (4, Fate::Delivered(ms(4))),
        ]
    );
}

#[test]
fn a_queue_in_bytes_counts_bytes() {
    let mut world = World::new(Direction::new(vec![link(8, Counting::IP, QueueLimit::Bytes(1500))]));
    for size in [1000, 1000, 600, 500] {
        world.send_at(ms(0), size);
    }
    // The first is transmitted, the second waits (1000 of 1500), 600 do not fit, 500 do.
    assert_eq!(
        world.run(),
        [
            (2, Fate::Dropped(ms(0), QUEUE_FULL)),
            (0, Fate::Delivered(ms(1))),
            (1, Fate::Delivered(ms(2))),
            (3, Fate::Delivered(us(2500))),
        ]
    );
}

#[test]
fn ethernet_counts_38_bytes_more_and_pads() {
    let mut world = World::new(Direction::new(vec![link(8, Counting::ETHERNET, QueueLimit::Packets(9))]));
    world.send_at(ms(0), 1500);
    world.send_at(ms(10), 40);
    assert_eq!(world.next_delivery(), Some(us(1538)));
    assert_eq!(world.next_delivery(), Some(us(10_084)));
}

#[test]
fn a_busy_link_does_not_drift() {
    // 1000 packets of 1000 bytes at 7 Mbit/s: 8/7 s, cut to whole nanoseconds once, not a thousand times.
    let mut world = World::new(Direction::new(vec![link(7, Counting::IP, QueueLimit::Packets(1000))]));
    for _ in 0..1000 {
        world.send_at(ms(0), 1000);
    }
    let last = std::iter::from_fn(|| world.next_delivery()).last();
    assert_eq!(last, Some(Instant::from_nanos(1_142_857_142)));
}

#[test]
fn a_delay_line_never_drops() {
    let mut world = World::new(Direction::new(vec![delay(100)]));
    for i in 0..100_000 {
        world.send_at(us(i), 1500);
    }
    assert_eq!(std::iter::from_fn(|| world.next_delivery()).count(), 100_000);
}

#[test]
fn a_link_drops_what_is_larger_than_its_mtu_at_once() {
    let settings = MtuSettings { link_mtu_bytes: Some(1400), mtu_black_hole: false };
    let mut world = World::new(Direction::new(vec![largest_packet(Schedule::constant(settings)), delay(5)]));
    for (time, size) in [(0, 1400), (1, 1401), (2, 40)] {
        world.send_at(ms(time), size);
    }
    let fates = world.run();
    assert_eq!(fates, [(1, Fate::Dropped(ms(1), MTU)), (0, Fate::Delivered(ms(5))), (2, Fate::Delivered(ms(7)))]);
}

#[test]
fn loss_is_decided_by_seed_and_index_alone() {
    let dropped = |gap_us: u64, size: u64| -> Vec<u64> {
        let settings = LossSettings { probability: Probability::new(0.1).unwrap(), ..LossSettings::default() };
        let loss = losses(Schedule::constant(settings), Seed(7));
        let mut world = World::new(Direction::new(vec![loss, delay(5)]));
        for i in 0..1000 {
            world.send_at(us(i * gap_us), size);
        }
        let mut fates = world.run();
        fates.retain(|(_, fate)| matches!(fate, Fate::Dropped(_, LOSS)));
        fates.into_iter().map(|(index, _)| index).collect()
    };
    assert_eq!(dropped(1, 40), dropped(900, 1500));
}

#[test]
fn packets_are_lost_at_the_configured_rate() {
    let count = |seed: u64, p: f64| {
        let loss = Probability::new(p).unwrap();
        (0..1_000_000).filter(|&i| loss.happens(Seed(seed).child("loss").word(i))).count() as f64
    };
    for (seed, p) in [(1, 0.01_f64), (2, 0.1), (3, 0.5)] {
        // Four standard deviations of a binomial of a million: a fixed seed, so the test is deterministic.
        let deviation = 4.0 * (1e6 * p * (1.0 - p)).sqrt();
        assert!((count(seed, p) - 1e6 * p).abs() < deviation);
    }
    assert_eq!((count(1, 0.0), count(1, 1.0)), (0.0, 1e6));
}

#[test]
fn a_loss_does_not_depend_on_the_loss_before_it() {
    // P(loss | previous lost) is P(loss): four standard deviations around it, fixed seed.
    let loss = Probability::new(0.2).unwrap();
    let lost: Vec<bool> = (0..1_000_000).map(|i| loss.happens(Seed(9).word(i))).collect();
    let after_loss: Vec<bool> = lost.windows(2).filter(|w| w[0]).map(|w| w[1]).collect();
    let n = after_loss.len() as f64;
    let again = after_loss.iter().filter(|&&l| l).count() as f64 / n;
    assert!((again - 0.2).abs() < 4.0 * (0.2 * 0.8 / n).sqrt());
}

/// Fates of packets entering at these times, in microseconds, with these sizes.
fn fates(settings: &serde_json::Value, sends: &[(u64, u64)]) -> Vec<(u64, Fate)> {
    let config = DirectionConfig::from_object(settings.as_object().unwrap()).unwrap();
    let mut world = World::new(Direction::from_config(&config, Seed(1)));
    for &(at, size) in sends {
        world.send_at(us(at), size);
    }
    world.run()
}

#[test]
fn a_queue_in_time_holds_what_the_link_sends_in_it() {
    // 10 Mbit/s send 2500 bytes in 2 ms: two packets wait beside the one in transmission.
    let settings = json!({"rate_bps": 10_000_000, "queue": {"time_ns": 2_000_000}});
    let dropped = (3, Fate::Dropped(us(0), QUEUE_FULL));
    let passed = [(0, 1), (1, 2), (2, 3)].map(|(index, at)| (index, Fate::Delivered(ms(at))));
    assert_eq!(fates(&settings, &[(0, 1250); 4]), [&[dropped], &passed[..]].concat());
}

#[test]
fn a_head_drop_queue_drops_what_has_waited_longest() {
    let settings = json!({"rate_bps": 10_000_000, "queue": {"packets": 2}, "discipline": "head_drop"});
    let found = fates(&settings, &[(0, 1250), (0, 1250), (0, 1250), (500, 1250)]);
    assert_eq!(
        found,
        [
            (1, Fate::Dropped(us(500), QUEUE_FULL)),
            (0, Fate::Delivered(ms(1))),
            (2, Fate::Delivered(ms(2))),
            (3, Fate::Delivered(ms(3))),
        ]
    );
    // In bytes, the arriving packet displaces as many as it needs; one larger than the queue goes itself.
    let settings = json!({"rate_bps": 10_000_000, "queue": {"bytes": 1000}, "discipline": "head_drop"});
    let dropped: Vec<u64> = fates(&settings, &[(0, 1250), (0, 400), (1, 400), (2, 800), (3, 1001)])
        .into_iter()
        .filter_map(|(index, fate)| matches!(fate, Fate::Dropped(..)).then_some(index))
        .collect();
    assert_eq!(dropped, [1, 2, 3, 4]);
}

#[test]
fn a_token_bucket_sends_its_burst_at_once_and_then_at_the_rate() {
    // 8 Mbit/s are a byte a microsecond. Three packets of 1000 bytes go at once, then one each millisecond.
    let settings = json!({"rate_bps": 8_000_000, "burst_bytes": 3000});
    let at = |fates: Vec<(u64, Fate)>| -> Vec<u64> {
        let at = |fate| match fate {
            Fate::Delivered(at) | Fate::Dropped(at, _) => at.as_nanos() / 1000,
        };
        fates.into_iter().map(|(_, fate)| at(fate)).collect()
    };
    assert_eq!(at(fates(&settings, &[(0, 1000); 6])), [0, 0, 0, 1000, 2000, 3000]);
    // After a pause the bucket has the tokens from it, and never more than the burst.
    let pauses = [(0, 3000), (1500, 1000), (1500, 1000), (9000, 2000), (9000, 1000), (9000, 1000)];
    assert_eq!(at(fates(&settings, &pauses)), [0, 1500, 2000, 9000, 9000, 10_000]);
    // At a peak rate of 80 Mbit/s a packet takes 100 us, and earns tokens for a tenth of another.
    let peak = json!({"rate_bps": 8_000_000, "burst_bytes": 3000, "peak_rate_bps": 80_000_000});
    assert_eq!(at(fates(&peak, &[(0, 1000); 6])), [100, 200, 300, 1100, 2100, 3100]);
    // A packet larger than the burst goes when the bucket is full, and the next waits for its debt.
    let small = json!({"rate_bps": 8_000_000, "burst_bytes": 500});
    assert_eq!(at(fates(&small, &[(0, 1000), (0, 1000)])), [0, 1000]);
}

#[test]
fn a_token_bucket_loses_no_fraction_of_a_token() {
    // 7 Mbit/s: 1000 bytes come in 1142857 1/7 ns. After 7000 packets 8 s have passed to the nanosecond.
    let settings = json!({"rate_bps": 7_000_000, "burst_bytes": 1000, "queue": {"packets": 10_000}});
    let (_, last) = fates(&settings, &vec![(0, 1000); 7001]).pop().unwrap();
    assert_eq!(last, Fate::Delivered(ms(8000)));
}
