//! Every queue discipline against its specification's pseudocode, written down again here as plainly as it stands there: the same
//! packets arrive, and the same have to be dropped and marked, at the same times.
#![allow(clippy::unwrap_used)]

mod cake;
mod codel;
mod dualpi2;
mod fq_codel;
mod pie;
mod red;

use crosswind_path::world::{Fate, World};
use crosswind_path::{Arrival, Direction, DirectionConfig, Ecn};
use crosswind_units::{Bytes, Instant, Seed};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// 8 Mbit/s: a byte takes 1000 ns.
const RATE_BPS: u64 = 8_000_000;
const BYTE_NS: u64 = 1000;
const MS: u64 = 1_000_000;

#[derive(Clone, Copy, Debug)]
struct Pkt {
    index: u64,
    size: u64,
    flow: u32,
    ecn: Ecn,
    /// When it entered the queue.
    enqueued: u64,
}

/// A packet's fate: time, delivery, and congestion bits.
type End = (u64, bool, Ecn);

/// A reference's drops, with times.
type Drops = Vec<(Pkt, u64)>;

/// A discipline as its specification has it.
trait Reference {
    fn enqueue(&mut self, pkt: Pkt, now: u64, drops: &mut Drops);
    fn dequeue(&mut self, now: u64, drops: &mut Drops) -> Option<Pkt>;
}

/// A link with a reference as its queue. At equal times a departure comes before an arrival.
fn simulate(reference: &mut dyn Reference, arrivals: &[(u64, Pkt)]) -> BTreeMap<u64, End> {
    let mut ends = BTreeMap::new();
    let mut drops = Drops::new();
    let mut sending: Option<(Pkt, u64)> = None;
    let mut arrivals = arrivals.iter().peekable();
    loop {
        match (sending, arrivals.peek()) {
            (Some((pkt, end)), next) if next.is_none_or(|(at, _)| end <= *at) => {
                ends.insert(pkt.index, (end, true, pkt.ecn));
                sending = reference.dequeue(end, &mut drops).map(|pkt| (pkt, end + pkt.size * BYTE_NS));
            }
            (_, Some((at, pkt))) => {
                reference.enqueue(Pkt { enqueued: *at, ..*pkt }, *at, &mut drops);
                if sending.is_none() {
                    sending = reference.dequeue(*at, &mut drops).map(|pkt| (pkt, at + pkt.size * BYTE_NS));
                }
                arrivals.next();
            }
            _ => break,
        }
        for (pkt, at) in drops.drain(..) {
            ends.insert(pkt.index, (at, false, pkt.ecn));
        }
    }
    ends
}

/// The same by the path.
fn emulate(settings: &Value, seed: u64, arrivals: &[(u64, Pkt)]) -> BTreeMap<u64, End> {
    let mut settings = settings.clone();
    settings["rate_bps"] = RATE_BPS.into();
    let config = DirectionConfig::from_object(settings.as_object().unwrap()).unwrap();
    let mut world = World::new(Direction::from_config(&config, Seed(seed)));
    for (at, pkt) in arrivals {
        let arrival = Arrival { size: Bytes(pkt.size), flow: pkt.flow, ecn: pkt.ecn, ..Arrival::default() };
        world.arrive_at(Instant::from_nanos(*at), arrival);
    }
    std::iter::from_fn(|| world.next_fate())
        .map(|(packet, fate)| (packet.index, (packet.at.as_nanos(), matches!(fate, Fate::Delivered(_)), packet.ecn)))
        .collect()
}

fn link_seed(seed: u64) -> Seed {
    Seed(seed).child("link")
}

/// From 0 to less than 1.
fn unit(word: u64) -> f64 {
    (word >> 11) as f64 / 2_f64.powi(53)
}

/// A load's phases: packets, their percentage of the link, and their congestion bits.
fn loads() -> impl Strategy<Value = (u64, Vec<(u64, u64)>)> {
    (any::<u64>(), proptest::collection::vec((1_u64..500, 20_u64..600), 1..6))
}

/// Packets of 64 to 1500 bytes from a few flows; `kinds` are their congestion bits, by flow in turn.
fn arrivals(seed: u64, phases: &[(u64, u64)], kinds: &[Ecn]) -> Vec<(u64, Pkt)> {
    let words = Seed(seed).child("arrivals");
    let (mut now, mut index) = (0, 0);
    let mut packets = Vec::new();
    for &(count, load) in phases {
        for _ in 0..count {
            let word = words.word(index);
            let size = 64 + (word >> 8) % 1437;
            let flow = (word & 7) as usize;
            let ecn = kinds[flow % kinds.len()];
            packets.push((now, Pkt { index, size, flow: flow as u32 * 7919, ecn, enqueued: now }));
            // As long as the packet would take at the load, or twice that, or not at all.
            now += size * BYTE_NS * 100 / load * ((word >> 40) % 3);
            index += 1;
        }
    }
    packets
}

/// Compares the path with a reference, and returns the numbers of drops and marks.
fn assert_same(settings: &Value, seed: u64, arrivals: &[(u64, Pkt)], reference: &mut dyn Reference) -> (usize, usize) {
    let (ours, theirs) = (emulate(settings, seed, arrivals), simulate(reference, arrivals));
    for ((index, ours), theirs) in ours.iter().zip(theirs.values()) {
        assert_eq!(ours, theirs, "packet {index}");
    }
    assert_eq!((ours.len(), theirs.len()), (arrivals.len(), arrivals.len()));
    let entered: BTreeMap<u64, Ecn> = arrivals.iter().map(|(_, pkt)| (pkt.index, pkt.ecn)).collect();
    let marked = ours.iter().filter(|(index, (.., ecn))| *ecn != entered[index]).count();
    (ours.values().filter(|(_, delivered, _)| !delivered).count(), marked)
}

/// Enough to fill any queue for ten seconds, a pause, and a second time.
const HEAVY: [(u64, u64); 4] = [(4000, 300), (400, 20), (3000, 150), (500, 60)];

const MIXED: [Ecn; 2] = [Ecn::NotCapable, Ecn::Ect0];
const ALL: [Ecn; 4] = [Ecn::NotCapable, Ecn::Ect1, Ecn::Ect0, Ecn::Marked];
