//! A toy: the first packets of a direction are dropped, and then each at random.

use crate::{Cause, Effect, Element, ElementSettings, filter};
use crosswind_units::{Probability, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A packet was one of the first.
pub const TOO_EARLY: Cause = Cause::new("too_early");
/// A packet was unlucky.
pub const UNLUCKY: Cause = Cause::new("unlucky");

/// Drops the first packets, and others at random.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToySettings {
    /// How many packets are dropped before the first one passes.
    #[schemars(range(min = 0, max = 1000), extend("unit" = "packets"))]
    pub drop_first: u64,
    /// Probability that a later packet is dropped.
    #[schemars(with = "f64", range(min = 0, max = 1), extend("unit" = "probability"))]
    pub bad_luck: Probability,
}

impl ElementSettings for ToySettings {
    fn element(&self, seed: Seed) -> Option<Box<dyn Element>> {
        let Self { drop_first, bad_luck } = *self;
        (*self != Self::default()).then(|| {
            filter(move |packet| match packet.index {
                early if early < drop_first => Some(TOO_EARLY),
                later => bad_luck.happens(seed.word(later)).then_some(UNLUCKY),
            })
        })
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[TOO_EARLY, UNLUCKY]
    }

    fn effect(&self) -> Effect {
        Effect { loss: self.bad_luck, loss_after_loss: self.bad_luck, ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        self.bad_luck > Probability::ZERO
    }
}
