//! Duplication: a copy follows a packet at once, and from there on is a packet of its own. It has its original's index;
//! its own words decide its fate.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::{Element, ElementSettings, Outcome, Schedule, filter};
use alloc::boxed::Box;
use crosswind_units::{Probability, Seed};

/// Duplication of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DuplicateSettings {
    /// Probability that a packet is duplicated: the copy enters the link right behind it.
    #[schemars(with = "f64", range(min = 0, max = 1), extend("unit" = "probability"))]
    pub duplicate: Probability,
}

impl ElementSettings for DuplicateSettings {
    fn element(settings: Schedule<Self>, seed: Seed) -> Option<Box<dyn Element>> {
        settings.ever(Self::is_random).then(|| duplication(settings, seed))
    }

    fn is_random(&self) -> bool {
        self.duplicate > Probability::ZERO
    }
}

/// Duplicates packets at random.
pub fn duplication(settings: Schedule<DuplicateSettings>, seed: Seed) -> Box<dyn Element> {
    let mut chances = settings.map(|settings| settings.duplicate.chance());
    filter(move |packet| {
        let duplicates = chances.at(packet.at).happens(packet.word(seed));
        if duplicates { Outcome::Duplicates } else { Outcome::Passes }
    })
}
