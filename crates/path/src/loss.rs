//! Random loss: each packet is dropped on its own, with one probability (Bernoulli).

use crate::{Cause, Effect, Element, ElementSettings, Schedule, filter};
use crosswind_units::{Probability, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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
    fn element(settings: Schedule<Self>, seed: Seed) -> Option<Box<dyn Element>> {
        settings.ever(Self::is_random).then(|| random_loss(settings, seed))
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[LOSS]
    }

    fn effect(&self) -> Effect {
        Effect { loss: self.probability, loss_after_loss: self.probability, ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        self.probability > Probability::ZERO
    }
}

/// Drops packet `i` depending on word `i` of its seed: the same packets in every run with this seed, whatever the timing.
pub fn random_loss(mut settings: Schedule<LossSettings>, seed: Seed) -> Box<dyn Element> {
    filter(move |packet| settings.at(packet.at).probability.happens(seed.word(packet.index)).then_some(LOSS))
}
