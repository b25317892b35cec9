//! A direction as a list of elements with their settings over time, without text: what a path becomes before it runs.

use crate::derive::{Deserialize, Serialize};
use crate::{Cause, CompiledElement, DirectionConfig, Effect, Element};
use alloc::boxed::Box;
use alloc::vec::Vec;
use crosswind_units::{Duration, Seed};

/// An element that is not made yet: all that it is made of. Settings that ask for nothing make none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompiledStage {
    /// Which hop it is part of, counted from the client's.
    pub hop: u8,
    /// The pair of hosts whose access link it is part of, which no other packets pass; 0: all packets pass it.
    pub pair: u8,
    /// What it is, and its settings over time.
    pub element: CompiledElement,
    /// Where its random numbers come from.
    pub seed: Seed,
}

impl DirectionConfig {
    /// The elements that these settings ask for, each with a random stream of its own.
    pub fn elements(&self, seed: Seed) -> Vec<Box<dyn Element>> {
        self.compiled().into_iter().filter_map(|element| element.make(seed)).collect()
    }

    /// The longest that a packet takes without the time on the wire, or behind other packets.
    pub fn longest_delay(&self) -> Duration {
        self.each().into_iter().fold(Duration::ZERO, |sum, (_, settings)| sum + settings.longest_delay())
    }

    /// What the direction does to traffic as a whole.
    pub fn effect(&self) -> Effect {
        self.each().into_iter().fold(Effect::default(), |before, (_, settings)| before.then(settings.effect()))
    }

    /// Whether the direction does something else to the same packets with another seed.
    pub fn is_random(&self) -> bool {
        self.each().into_iter().any(|(_, settings)| settings.is_random())
    }

    /// Every cause for which some element drops packets.
    pub fn drop_causes() -> Vec<Cause> {
        Self::default().each().into_iter().flat_map(|(_, settings)| settings.drop_causes()).copied().collect()
    }
}
