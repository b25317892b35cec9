//! A toy: some packets of a direction are dropped by their numbers, others at random.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::{Cause, Effect, Element, ElementSettings, Outcome, Schedule, filter};
use alloc::boxed::Box;
use alloc::vec::Vec;
use crosswind_units::{Probability, Seed};

/// A packet had one of the numbers.
pub const NUMBERED: Cause = Cause::new("numbered");
/// Another packet was unlucky.
pub const UNLUCKY: Cause = Cause::new("unlucky");

/// Drops packets by number, and others at random.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToySettings {
    /// Numbers of packets that are dropped, from 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(inner(range(max = 1000)), extend("unit" = "packets"))]
    pub drops: Option<Vec<u64>>,
    /// Probability that another packet is dropped.
    #[schemars(with = "f64", range(min = 0, max = 1), extend("unit" = "probability"))]
    pub bad_luck: Probability,
}

impl ElementSettings for ToySettings {
    fn element(mut settings: Schedule<Self>, seed: Seed) -> Option<Box<dyn Element>> {
        settings.ever(|settings| *settings != Self::default()).then(|| {
            filter(move |packet| {
                let Self { drops, bad_luck } = settings.at(packet.at);
                match packet.index {
                    index if drops.as_ref().is_some_and(|drops| drops.contains(&index)) => Outcome::Drops(NUMBERED),
                    index if bad_luck.happens(seed.word(index)) => Outcome::Drops(UNLUCKY),
                    _ => Outcome::Passes,
                }
            })
        })
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[NUMBERED, UNLUCKY]
    }

    fn effect(&self) -> Effect {
        Effect { loss: self.bad_luck, loss_after_loss: self.bad_luck, ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        self.bad_luck > Probability::ZERO
    }
}
