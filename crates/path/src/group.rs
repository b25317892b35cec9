//! The settings of many kinds of element as one: a cell has a direction's side by side in one JSON object.

/// Makes [`DirectionConfig`] from a list of `name: Settings`. An element's name is also its random stream's.
macro_rules! elements {
    ($($name:ident: $settings:ty),* $(,)?) => {
        /// One direction of a hop: the settings of every kind of element.
        #[derive(Clone, Debug, Default, PartialEq, crate::derive::Serialize, crate::derive::Deserialize)]
        #[cfg_attr(feature = "settings", serde(try_from = "serde_json::Map<alloc::string::String, serde_json::Value>"))]
        pub struct DirectionConfig {
            $(
                #[doc = concat!("The settings of the element `", stringify!($name), "`.")]
                #[serde(flatten)]
                pub $name: $settings,
            )*
        }

        /// One kind of element with its settings over time.
        #[derive(Clone, Debug, crate::derive::Serialize, crate::derive::Deserialize)]
        #[allow(non_camel_case_types)] // the elements' names
        pub enum CompiledElement {
            $(
                #[doc = concat!("The element `", stringify!($name), "`.")]
                $name(crate::Schedule<$settings>),
            )*
        }

        impl CompiledElement {
            /// The element, if its settings ever have an effect. It draws from its own stream of its hop's `seed`.
            pub fn make(self, seed: crosswind_units::Seed) -> Option<alloc::boxed::Box<dyn crate::Element>> {
                use crate::ElementSettings;
                match self {
                    $(Self::$name(settings) => <$settings>::element(settings, seed.child(stringify!($name)))),*
                }
            }
        }

        impl DirectionConfig {
            /// Every kind of element's settings, by its name.
            pub(crate) fn each(&self) -> alloc::vec::Vec<(&'static str, &dyn crate::ElementSettings)> {
                alloc::vec![$((stringify!($name), &self.$name)),*]
            }

            /// Every kind of element in packet order, with constant settings.
            pub fn compiled(&self) -> alloc::vec::Vec<CompiledElement> {
                alloc::vec![$(CompiledElement::$name(crate::Schedule::constant(self.$name.clone()))),*]
            }
        }

        #[cfg(feature = "settings")]
        impl DirectionConfig {
            /// Every kind of element with its help and its keys, in packet order.
            pub fn describe() -> alloc::vec::Vec<crate::group::ElementGroup> {
                alloc::vec![$(crate::group::ElementGroup {
                    name: stringify!($name),
                    group: crosswind_settings::describe::<$settings>(),
                }),*]
            }

            /// Reads every kind of element's settings; each takes its own keys from `object`.
            pub(crate) fn read_each(
                object: &serde_json::Map<alloc::string::String, serde_json::Value>,
            ) -> Result<Self, crosswind_settings::SettingError> {
                Ok(Self { $($name: crate::group::read_settings(object)?),* })
            }

            /// The same as [`compiled`](Self::compiled), with `changes` over time.
            ///
            /// # Errors
            /// Changes that lead to mutually exclusive settings.
            pub(crate) fn compiled_with(
                &self,
                changes: &crate::group::Changes,
            ) -> Result<alloc::vec::Vec<CompiledElement>, crosswind_settings::SettingError> {
                Ok(alloc::vec![$(CompiledElement::$name(crate::group::schedule(&self.$name, changes)?)),*])
            }
        }
    };
}
pub(crate) use elements;

#[cfg(feature = "settings")]
pub use json::ElementGroup;
#[cfg(feature = "settings")]
pub(crate) use json::{Changes, read_settings, schedule};

#[cfg(feature = "settings")]
mod json {
    use crate::{Course, ElementSettings, Schedule};
    use alloc::string::String;
    use alloc::vec::Vec;
    use crosswind_settings::{Group, SettingError};
    use schemars::JsonSchema;
    use serde::Serialize;
    use serde::de::DeserializeOwned;
    use serde_json::{Map, Value};

    /// One kind of element, as in the catalogue.
    #[derive(Clone, Debug, PartialEq, Serialize)]
    pub struct ElementGroup {
        /// Its name.
        pub name: &'static str,
        /// Its help and its keys.
        #[serde(flatten)]
        pub group: &'static Group,
    }

    /// Other values for a direction's keys, row by row with times.
    pub(crate) type Changes = [(Course, Vec<Map<String, Value>>)];

    /// One kind of element's settings among the keys of all.
    pub(crate) fn read_settings<T>(object: &Map<String, Value>) -> Result<T, SettingError>
    where
        T: ElementSettings + JsonSchema + DeserializeOwned + 'static,
    {
        let mut settings: T = crosswind_settings::read(&own_keys::<T>(object))?;
        settings.complete()?;
        Ok(settings)
    }

    fn own_keys<T: JsonSchema + 'static>(object: &Map<String, Value>) -> Map<String, Value> {
        let keys = &crosswind_settings::describe::<T>().keys;
        let own = object.iter().filter(|(name, _)| keys.iter().any(|key| key.name == **name));
        own.map(|(name, value)| (name.clone(), value.clone())).collect()
    }

    /// `settings` with `changes` over time.
    ///
    /// # Errors
    /// Changes that lead to mutually exclusive settings.
    pub(crate) fn schedule<T>(settings: &T, changes: &Changes) -> Result<Schedule<T>, SettingError>
    where
        T: ElementSettings + JsonSchema + Clone + Serialize + DeserializeOwned + 'static,
    {
        let own = changes
            .iter()
            .map(|(course, rows)| (course.clone(), rows.iter().map(own_keys::<T>).collect::<Vec<_>>()))
            .filter(|(_, rows)| rows.iter().any(|keys| !keys.is_empty()));
        let (courses, rows): (Vec<Course>, Vec<Vec<Map<String, Value>>>) = own.unzip();
        if courses.is_empty() {
            return Ok(Schedule::constant(settings.clone()));
        }
        if let Some(key) = rows.iter().flatten().flat_map(Map::keys).find(|key| T::fixed_keys().contains(&key.as_str()))
        {
            return Err(SettingError::new(
                key,
                "cannot change over time",
                "give it one value; other keys of the hop can change",
            ));
        }
        let base = match serde_json::to_value(settings) {
            Ok(Value::Object(object)) => object,
            other => unreachable!("settings are no object: {other:?}"),
        };
        Schedule::new(courses, |holding| {
            let mut object = base.clone();
            for (rows, row) in rows.iter().zip(holding) {
                object.extend(row.map(|row| rows[row].clone()).unwrap_or_default());
            }
            read_settings::<T>(&object)
        })
    }
}
