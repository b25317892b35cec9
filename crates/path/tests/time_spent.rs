//! A packet's time by cause, exactly, on virtual time.
#![allow(clippy::unwrap_used)]

use crosswind_path::world::World;
use crosswind_path::{Direction, DirectionConfig, Element, Leaving, Packet, TimeSpent};
use crosswind_units::{Duration, Instant, Seed};
use serde_json::json;

fn us(n: u64) -> Instant {
    Instant::from_nanos(n * 1000)
}

fn config(settings: &serde_json::Value) -> DirectionConfig {
    DirectionConfig::from_object(settings.as_object().unwrap()).unwrap()
}

/// Propagation, serialisation, queueing and jitter of every leaving packet, in microseconds.
fn spent_us(world: &mut World) -> Vec<[u64; 4]> {
    let all = |TimeSpent { propagation, serialisation, queueing, jitter }: TimeSpent| {
        [propagation, serialisation, queueing, jitter].map(|time| time.as_nanos() / 1000)
    };
    std::iter::from_fn(|| world.next_fate()).map(|(packet, _)| all(packet.spent)).collect()
}

#[test]
fn flight_transmission_and_waiting_are_told_apart() {
    // 1250 bytes take 1 ms at 10 Mbit/s.
    let settings = json!({"delay_ns": 20_000_000, "rate_bps": 10_000_000});
    let mut world = World::new(Direction::from_config(&config(&settings), Seed(1)));
    for at in [0, 0, 300, 9000] {
        world.send_at(us(at), 1250);
    }
    assert_eq!(
        spent_us(&mut world),
        [[20_000, 1000, 0, 0], [20_000, 1000, 1000, 0], [20_000, 1000, 1700, 0], [20_000, 1000, 0, 0]]
    );
}

#[test]
fn an_ethernet_frame_is_transmitted_for_its_own_size() {
    let settings = json!({"rate_bps": 8_000_000, "count": "ethernet"});
    let mut world = World::new(Direction::from_config(&config(&settings), Seed(1)));
    world.send_at(us(0), 1500);
    world.send_at(us(0), 40);
    assert_eq!(spent_us(&mut world), [[0, 1538, 0, 0], [0, 84, 1538, 0]]);
}

#[test]
fn a_busy_link_carries_fractions_of_a_nanosecond_as_transmission_and_not_as_waiting() {
    // 1000 bytes at 7 Mbit/s are 1142857 1/7 ns: the seventh packet takes a nanosecond more than the first.
    let settings = json!({"rate_bps": 7_000_000});
    let mut world = World::new(Direction::from_config(&config(&settings), Seed(1)));
    for _ in 0..7 {
        world.send_at(us(0), 1000);
    }
    let transmissions: Vec<u64> =
        std::iter::from_fn(|| world.next_fate()).map(|(packet, _)| packet.spent.serialisation.as_nanos()).collect();
    assert_eq!(transmissions, [1_142_857, 1_142_857, 1_142_857, 1_142_857, 1_142_857, 1_142_857, 1_142_858]);
}

#[test]
fn a_packet_that_is_dropped_has_spent_no_time() {
    let settings = json!({"rate_bps": 10_000_000, "queue": {"packets": 1}, "delay_ns": 5_000_000});
    let mut world = World::new(Direction::from_config(&config(&settings), Seed(1)));
    for _ in 0..3 {
        world.send_at(us(0), 1250);
    }
    assert_eq!(spent_us(&mut world), [[0, 0, 0, 0], [5000, 1000, 0, 0], [5000, 1000, 1000, 0]]);
}

/// Holds every other packet back, without a queue.
struct HoldsBack {
    time: Duration,
    #[allow(clippy::vec_box)] // it is given boxes
    held: Vec<Box<Packet>>,
}

impl Element for HoldsBack {
    fn handle_packet(&mut self, mut packet: Box<Packet>) {
        packet.hold(if packet.index.is_multiple_of(2) { Duration::ZERO } else { self.time });
        self.held.push(packet);
        self.held.sort_by_key(|packet| packet.at);
    }

    fn poll_packet(&mut self, now: Instant) -> Option<Leaving> {
        let due = self.held.first()?.at <= now;
        due.then(|| Leaving::Forwarded(self.held.remove(0)))
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.held.first().map(|packet| packet.at)
    }

    fn queued(&self) -> usize {
        self.held.len()
    }
}

#[test]
fn an_element_that_holds_packets_back_does_not_call_it_queueing() {
    let mut elements: Vec<Box<dyn Element>> =
        vec![Box::new(HoldsBack { time: Duration::from_micros(400), held: Vec::new() })];
    elements.extend(config(&json!({"rate_bps": 10_000_000, "delay_ns": 1_000_000})).elements(Seed(1)));
    let mut world = World::new(Direction::new(elements));
    for at in [0, 100] {
        world.send_at(us(at), 1250);
    }
    // The second is held back until 500 us, and waits behind the first until 1000 us.
    assert_eq!(spent_us(&mut world), [[1000, 1000, 0, 0], [1000, 1000, 500, 400]]);
}
