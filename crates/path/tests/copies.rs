//! Copies and flipped bits: scripts with exact answers, and statistics of fixed seeds within four standard deviations.
#![allow(clippy::unwrap_used)]

use crosswind_path::link::QUEUE_FULL;
use crosswind_path::world::{Fate, World};
use crosswind_path::{Arrival, Departure, Direction, DirectionConfig, Packet, PathConfig, Side};
use crosswind_units::{Bytes, Instant, Seed};
use serde_json::{Value, json};
use std::collections::BTreeSet;

fn config(of: &Value) -> DirectionConfig {
    DirectionConfig::from_object(of.as_object().unwrap()).unwrap()
}

fn world(of: &Value, seed: u64) -> World {
    World::new(Direction::from_config(&config(of), Seed(seed)))
}

fn ms(n: u64) -> Instant {
    Instant::from_nanos(n * 1_000_000)
}

#[test]
fn a_copy_follows_its_original_over_the_link_and_takes_a_place_in_the_queue() {
    let mut world =
        world(&json!({"duplicate": 1, "rate_bps": 10_000_000, "queue": {"packets": 2}, "delay_ns": 5_000_000}), 1);
    // 1250 bytes take 1 ms. The first packet is on the wire, its copy and the second wait: the second's copy does not
    // fit.
    world.send_at(ms(0), 1250);
    world.send_at(ms(0), 1250);
    let fates: Vec<_> =
        std::iter::from_fn(|| world.next_fate()).map(|(packet, fate)| (packet.index, packet.copy, fate)).collect();
    assert_eq!(
        fates,
        [
            (1, 1, Fate::Dropped(ms(0), QUEUE_FULL)),
            (0, 0, Fate::Delivered(ms(6))),
            (0, 1, Fate::Delivered(ms(7))),
            (1, 0, Fate::Delivered(ms(8))),
        ]
    );
    assert_eq!((world.duplicated(), world.queued()), (2, 0));
}

#[test]
fn the_owner_of_the_bytes_is_told_of_a_copy_before_the_original_is_gone() {
    for delay in [0, 1000] {
        let mut direction = Direction::from_config(&config(&json!({"duplicate": 1, "delay_ns": delay})), Seed(1));
        let arrival = Arrival { size: Bytes(100), buffer: 7, ..Arrival::default() };
        direction.handle_packet(ms(3), arrival);
        assert_eq!(direction.queued(), 2);
        let out: Vec<_> = std::iter::from_fn(|| direction.poll_packet(ms(9))).collect();
        let packets: Vec<&Packet> = out.iter().map(Departure::packet).collect();
        assert!(matches!(*out, [Departure::Duplicated(_), Departure::Forwarded(_), Departure::Forwarded(_)]));
        assert_eq!(packets.iter().map(|packet| packet.copy).collect::<Vec<_>>(), [1, 0, 1]);
        assert!(packets.iter().all(|packet| packet.buffer == 7 && packet.index == 0 && packet.entered == ms(3)));
        assert_eq!(direction.queued(), 0);
    }
}

#[test]
fn every_hop_makes_copies_and_no_two_have_one_number() {
    let hop = |name: &str| json!({"name": name, "forward": {"duplicate": 1, "delay_ns": 10}});
    let hops = json!({"hops": [hop("a"), hop("b"), hop("c")]});
    let path = PathConfig::from_object(hops.as_object().unwrap()).unwrap();
    let mut world = World::new(path.direction(Side::Forward, Seed(1)));
    world.send_at(ms(0), 100);
    let copies: BTreeSet<u16> = std::iter::from_fn(|| world.next_fate()).map(|(packet, _)| packet.copy).collect();
    assert_eq!((copies.into_iter().collect::<Vec<_>>(), world.duplicated()), ((0..8).collect(), 7));
}

#[test]
fn a_copy_has_chances_of_its_own() {
    // Behind the copying hop packet and copy are lost independently: in a quarter of all cases both.
    let path = json!({"hops": [
        {"name": "a", "forward": {"duplicate": 1}},
        {"name": "b", "forward": {"loss": 0.5, "delay_ns": 1_000_000, "jitter_ns": 1_000_000, "reorder": true}},
    ]});
    let path = PathConfig::from_object(path.as_object().unwrap()).unwrap();
    let mut world = World::new(path.direction(Side::Forward, Seed(4)));
    let n: u32 = 100_000;
    for number in 0..u64::from(n) {
        world.send_at(ms(number), 100);
    }
    let delivered: Vec<Packet> = std::iter::from_fn(|| world.next_fate())
        .filter(|(_, fate)| matches!(fate, Fate::Delivered(_)))
        .map(|(packet, _)| packet)
        .collect();
    let mut times = vec![Vec::new(); n as usize];
    for packet in delivered {
        times[packet.index as usize].push(packet.at);
    }
    let of = |count: usize| times.iter().filter(|times| times.len() == count).count() as f64;
    for (count, share) in [(0, 0.25_f64), (1, 0.5), (2, 0.25)] {
        let deviation = (f64::from(n) * share * (1.0 - share)).sqrt();
        assert!((of(count) - f64::from(n) * share).abs() < 4.0 * deviation, "{count}: {}", of(count));
    }
    // Their jitter differs, but for a coincidence in 2 ms.
    let both = times.iter().filter(|times| times.len() == 2);
    assert!(both.filter(|times| times[0] == times[1]).count() < 10);
}

#[test]
fn packets_are_duplicated_and_corrupted_at_the_rates_that_were_asked_for() {
    let n = 200_000_u32;
    let mut world = world(&json!({"duplicate": 0.02, "corrupt": 0.03}), 5);
    for number in 0..u64::from(n) {
        world.send_at(ms(number), 125);
    }
    let packets: Vec<Packet> = std::iter::from_fn(|| world.next_fate()).map(|(packet, _)| packet).collect();
    let near = |count: f64, n: f64, share: f64| (count - n * share).abs() < 4.0 * (n * share * (1.0 - share)).sqrt();
    assert!(near(world.duplicated() as f64, f64::from(n), 0.02));
    let flipped: Vec<u32> = packets.iter().filter_map(|packet| packet.flipped_bit).collect();
    assert!(near(flipped.len() as f64, packets.len() as f64, 0.03));
    // The 1000 bits are equally likely, except the version's 4.
    assert!(flipped.iter().all(|bit| (4..1000).contains(bit)));
    let low = flipped.iter().filter(|bit| **bit < 502).count() as f64;
    assert!(near(low, flipped.len() as f64, 0.5));
}

#[test]
fn a_corrupted_packet_is_lost_to_the_host_and_a_copy_changes_no_forecast() {
    let effect = config(&json!({"corrupt": 0.25, "duplicate": 0.5})).effect();
    assert_eq!((effect.loss.as_fraction(), effect.loss_after_loss.as_fraction()), (0.25, 0.25));
    assert!(config(&json!({"duplicate": 0.5})).is_random() && config(&json!({"corrupt": 0.5})).is_random());
}
