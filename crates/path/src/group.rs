//! The settings of many kinds of element as one: in a cell those of a direction stand side by side in one JSON object.

use crate::ElementSettings;
use crosswind_settings::{Group, SettingError};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

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
        #[derive(Clone, Debug, Default, PartialEq, serde::Serialize, serde::Deserialize)]
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
            pub fn describe() -> Vec<crate::group::ElementGroup> {
                vec![$(crate::group::ElementGroup {
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
                Ok(Self { $($name: crate::group::read_settings(object)?),* })
            }
        }
    };
}
pub(crate) use elements;

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
