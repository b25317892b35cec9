//! What a path is asked to be, as it stands in a cell, checked.
//!
//! In a cell the settings of all elements of a direction stand side by side in one JSON object. Which elements there are,
//! only `registry.rs` says; everything here goes through its list.

use crate::registry::DirectionConfig;
use crate::{Cause, Effect, Element, ElementSettings};
use crosswind_settings::{Group, SettingError};
use crosswind_units::{Duration, Seed};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Both directions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct PathConfig {
    /// Client to server.
    pub forward: DirectionConfig,
    /// Server to client.
    pub reverse: DirectionConfig,
}

/// One kind of element, as the catalogue lists it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ElementGroup {
    /// Its name.
    pub name: &'static str,
    /// Its help and its keys.
    #[serde(flatten)]
    pub group: &'static Group,
}

/// Makes [`DirectionConfig`] from a list of `name: Settings`. The name of an element is also the name of its random stream.
macro_rules! elements {
    ($($name:ident: $settings:ty),* $(,)?) => {
        /// One direction of a path: the settings of every kind of element.
        #[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
        #[serde(try_from = "serde_json::Map<String, serde_json::Value>")]
        pub struct DirectionConfig {
            $(
                #[doc = concat!("The settings of the element `", stringify!($name), "`.")]
                #[serde(flatten)]
                pub $name: $settings,
            )*
        }

        impl DirectionConfig {
            /// Every kind of element with its help and its keys, in the order in which a packet meets them.
            pub fn describe() -> Vec<crate::ElementGroup> {
                vec![$(crate::ElementGroup {
                    name: stringify!($name),
                    group: crosswind_settings::describe::<$settings>(),
                }),*]
            }

            /// The settings of every kind of element, by its name.
            pub(crate) fn each(&self) -> Vec<(&'static str, &dyn crate::ElementSettings)> {
                vec![$((stringify!($name), &self.$name)),*]
            }

            /// Reads the settings of every kind of element; each takes its own keys from `object`.
            pub(crate) fn read_each(
                object: &serde_json::Map<String, serde_json::Value>,
            ) -> Result<Self, crosswind_settings::SettingError> {
                Ok(Self { $($name: crate::config::read_settings(object)?),* })
            }
        }
    };
}
pub(crate) use elements;

impl DirectionConfig {
    /// The settings in `object`, checked, with every default filled in.
    pub fn from_object(object: &Map<String, Value>) -> Result<Self, SettingError> {
        let keys: Vec<_> = Self::describe().into_iter().flat_map(|element| element.group.keys.clone()).collect();
        crosswind_settings::check(object, &keys)?;
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

    /// What the direction does to traffic on average.
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

/// The settings of one kind of element among the keys of all.
pub(crate) fn read_settings<T>(object: &Map<String, Value>) -> Result<T, SettingError>
where
    T: ElementSettings + JsonSchema + DeserializeOwned + 'static,
{
    let keys = &crosswind_settings::describe::<T>().keys;
    let own: Map<String, Value> = object
        .iter()
        .filter(|(name, _)| keys.iter().any(|key| key.name == **name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let mut settings: T = crosswind_settings::read(&own)?;
    settings.complete()?;
    Ok(settings)
}
