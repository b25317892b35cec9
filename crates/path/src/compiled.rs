//! A direction as a list of elements with their settings over time, without text: a path's form before it runs.

use crate::derive::{Deserialize, Serialize};
use crate::{Cause, CompiledElement, DirectionConfig, Effect, Element};
use alloc::boxed::Box;
use alloc::vec::Vec;
use crosswind_units::{Duration, Seed};

/// An element before it is made. Settings at their defaults make none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CompiledStage {
    /// Its hop, counted from the client's.
    pub hop: u8,
    /// The pair of hosts of its access link, which only their packets pass; 0: all packets pass it.
    pub pair: u8,
    /// Kind and settings over time.
    pub element: CompiledElement,
    /// Where its random numbers come from.
    pub seed: Seed,
}

impl DirectionConfig {
    /// The elements for these settings, each with a random stream of its own.
    pub fn elements(&self, seed: Seed) -> Vec<Box<dyn Element>> {
        self.compiled().into_iter().filter_map(|element| element.make(seed)).collect()
    }

    /// The longest delay of a packet, without time on the wire or behind other packets.
    pub fn longest_delay(&self) -> Duration {
        self.each().into_iter().fold(Duration::ZERO, |sum, (_, settings)| sum + settings.longest_delay())
    }

    /// The direction's overall effect on traffic.
    pub fn effect(&self) -> Effect {
        self.each().into_iter().fold(Effect::default(), |before, (_, settings)| before.then(settings.effect()))
    }

    /// Whether the direction does something else to the same packets with another seed.
    pub fn is_random(&self) -> bool {
        self.each().into_iter().any(|(_, settings)| settings.is_random())
    }

    /// Every element's drop causes.
    pub fn drop_causes() -> Vec<Cause> {
        Self::default().each().into_iter().flat_map(|(_, settings)| settings.drop_causes()).copied().collect()
    }
}
