//! Random loss: each packet is dropped on its own, with one probability (Bernoulli).

use crate::{Cause, Departure, Effect, Element, ElementSettings, Packet};
use crosswind_units::{Instant, Probability, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A packet was lost at random.
pub const LOSS: Cause = Cause::new("loss");

/// Random loss: each packet is lost with the same probability, independently of the others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LossSettings {
    /// Probability that a packet is lost.
    #[serde(rename = "loss")]
    #[schemars(with = "f64", range(min = 0, max = 1), extend("unit" = "probability"))]
    pub probability: Probability,
}

impl ElementSettings for LossSettings {
    fn element(&self, seed: Seed) -> Option<Box<dyn Element>> {
        (self.probability > Probability::ZERO)
            .then(|| Box::new(RandomLoss::new(self.probability, seed)) as Box<dyn Element>)
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[LOSS]
    }

    fn effect(&self) -> Effect {
        Effect { loss: self.probability, ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        self.probability > Probability::ZERO
    }
}

/// Drops packet `i` depending on word `i` of its seed: the same packets in every run with this seed, whatever the timing.
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
    fn handle_packet(&mut self, _now: Instant, packet: Packet) {
        self.out.push_back(if self.probability.happens(self.seed.word(packet.index)) {
            Departure::Dropped(packet, LOSS)
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
