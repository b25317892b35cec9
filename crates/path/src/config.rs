//! What a path is asked to be, as it stands in a cell, checked.
//!
//! Which elements there are, only `registry.rs` says; everything here goes through its list.

use crate::registry::DirectionConfig;
use crate::{Cause, Effect, Element};
use crosswind_settings::{Key, SettingError};
use crosswind_units::{Duration, Seed};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Both directions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PathConfig {
    /// Client to server.
    pub forward: DirectionConfig,
    /// Server to client.
    pub reverse: DirectionConfig,
}

impl DirectionConfig {
    /// The keys of every kind of element.
    pub fn keys() -> Vec<Key> {
        Self::describe().into_iter().flat_map(|element| element.group.keys.clone()).collect()
    }

    /// The settings in `object`, checked, with every default filled in.
    pub fn from_object(object: &Map<String, Value>) -> Result<Self, SettingError> {
        crosswind_settings::check(object, &Self::keys())?;
        Self::read_each(object)
    }

    /// The elements that these settings ask for, each with a random stream of its own.
    pub fn elements(&self, seed: Seed) -> Vec<Box<dyn Element>> {
        self.each().into_iter().filter_map(|(name, settings)| settings.element(seed.child(name))).collect()
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

impl TryFrom<Map<String, Value>> for DirectionConfig {
    type Error = SettingError;

    fn try_from(object: Map<String, Value>) -> Result<Self, SettingError> {
        Self::from_object(&object)
    }
}
