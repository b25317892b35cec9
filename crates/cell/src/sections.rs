//! Reading a JSON object section by section, so that every error names its key.

use crosswind_settings::SettingError;
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

/// The sections of an object, and what stands beside them.
pub struct Sections(Map<String, Value>);

impl Sections {
    /// Of `object`.
    pub const fn new(object: Map<String, Value>) -> Self {
        Self(object)
    }

    /// The section called `name`; empty where there is none.
    pub fn take(&mut self, name: &str) -> Result<Map<String, Value>, SettingError> {
        match self.0.shift_remove(name) {
            None => Ok(Map::new()),
            Some(Value::Object(section)) => Ok(section),
            Some(_) => Err(SettingError::new(name, "is no JSON object", "docs/cell-protocol.md lists every key")),
        }
    }

    /// The section called `name`, which has to be there.
    pub fn take_required(&mut self, name: &str) -> Result<Map<String, Value>, SettingError> {
        if !self.0.contains_key(name) {
            return Err(SettingError::new(name, "is missing", "docs/cell-protocol.md lists every key"));
        }
        self.take(name)
    }

    /// What stands beside the sections.
    pub fn rest(self) -> Map<String, Value> {
        self.0
    }
}

/// A section whose keys are those of `T`.
pub fn read_section<T: JsonSchema + DeserializeOwned + 'static>(
    name: &str,
    section: &Map<String, Value>,
) -> Result<T, SettingError> {
    crosswind_settings::read(section).map_err(|error| error.within(name))
}

/// A section that has lists, which no key of the catalogue has.
pub fn read_lists<T: DeserializeOwned>(name: &str, section: Map<String, Value>) -> Result<T, SettingError> {
    serde_path_to_error::deserialize(Value::Object(section)).map_err(|error| {
        let key = error.path().to_string();
        let problem = format!("is wrong: {}", error.inner());
        let key = if key == "." { name.to_owned() } else { format!("{name}.{key}") };
        SettingError::new(key, problem, "docs/cell-protocol.md lists every key")
    })
}
