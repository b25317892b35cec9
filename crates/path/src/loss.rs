//! Random loss: each packet is dropped on its own, with one probability (Bernoulli).

use crate::{Cause, Departure, Element, Packet};
use crosswind_units::{Instant, Probability, Seed};
use std::collections::VecDeque;

/// Drops packet `i` when word `i` of its seed says so: the same packets in every run with this seed, whatever the timing.
pub struct RandomLoss {
    probability: Probability,
    seed: Seed,
    out: VecDeque<Departure>,
}

impl RandomLoss {
    /// Loss of `probability`, decided by `seed`.
    pub fn new(probability: Probability, seed: Seed) -> Self {
        Self { probability, seed, out: VecDeque::new() }
    }
}

impl Element for RandomLoss {
    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        let packet = Packet { at: now, ..packet };
        self.out.push_back(if self.probability.happens(self.seed.word(packet.index)) {
            Departure::Dropped(packet, Cause::Loss)
        } else {
            Departure::Forwarded(packet)
        });
    }

    fn poll_packet(&mut self, _now: Instant) -> Option<Departure> {
        self.out.pop_front()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    fn queued(&self) -> usize {
        self.out.len()
    }
}
