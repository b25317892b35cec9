//! Reads a JSON object section by section, so every error names its key.

use crate::recorded_packets::recorded_packets;
use crosswind_host::read_regular;
use crosswind_settings::{Key, KeyType, SettingError};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

/// An object's sections, and the rest.
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

    /// Any value under `name`.
    pub fn take_any(&mut self, name: &str) -> Option<Value> {
        self.0.shift_remove(name)
    }

    /// The required section called `name`.
    pub fn take_required(&mut self, name: &str) -> Result<Map<String, Value>, SettingError> {
        if !self.0.contains_key(name) {
            return Err(SettingError::missing(name, "docs/cell-protocol.md lists every key"));
        }
        self.take(name)
    }

    /// Everything beside the sections.
    pub fn rest(self) -> Map<String, Value> {
        self.0
    }
}

/// A section with the keys of `T`.
pub fn read_section<T: JsonSchema + DeserializeOwned + 'static>(
    name: &str,
    section: &Map<String, Value>,
) -> Result<T, SettingError> {
    crosswind_settings::read(section).map_err(|error| error.within(name))
}

/// A section with lists, which no key of the catalogue has.
pub fn read_lists<T: DeserializeOwned>(name: &str, section: Map<String, Value>) -> Result<T, SettingError> {
    serde_path_to_error::deserialize(Value::Object(section)).map_err(|error| {
        let key = error.path().to_string();
        let problem = format!("is wrong: {}", error.inner());
        let key = if key == "." { name.to_owned() } else { format!("{name}.{key}") };
        SettingError::new(key, problem, "docs/cell-protocol.md lists every key")
    })
}

/// Replaces each series given as a file, `{"file": "rates.txt"}`, by its numbers, separated by space; a capture gives
/// its packets' times and sizes.
fn read_series_files(section: &mut Map<String, Value>, keys: &[Key]) -> Result<(), SettingError> {
    for key in keys.iter().filter(|key| key.key_type == KeyType::Series) {
        let Some(file) = section.get(&key.name).and_then(|value| value.as_object()?.get("file")?.as_str()) else {
            continue;
        };
        let refused = |problem: String| SettingError::new(&key.name, problem, "give a text file of numbers");
        let unreadable = |problem: String| refused(format!("cannot be read from {file}: {problem}"));
        let bytes = read_regular(file, LONGEST_SERIES).map_err(|error| unreadable(error.to_string()))?;
        if let Some(packets) = recorded_packets(&bytes) {
            let packets = packets.map_err(|problem| refused(format!("{problem}, as a capture: {file}")))?;
            section.insert(key.name.clone(), packets.into());
            continue;
        }
        if bytes.len() as u64 > LONGEST_TEXT {
            return Err(unreadable(format!("as text it has more than {LONGEST_TEXT} bytes")));
        }
        let text = String::from_utf8(bytes).map_err(|_| unreadable("it is no text".to_owned()))?;
        let mut numbers = Vec::new();
        for (line, content) in (1..).zip(text.lines()) {
            for word in content.split_whitespace() {
                let number = word.parse::<Number>();
                numbers.push(number.map_err(|_| refused(format!("has no number in line {line} of {file}: {word}")))?);
            }
        }
        section.insert(key.name.clone(), numbers.into_iter().map(Value::Number).collect());
    }
    Ok(())
}

/// The longest file of text, a trace or a series: 64 MiB.
const LONGEST_TEXT: u64 = 64 << 20;
/// The longest file for a series, perhaps a capture: 1 GiB.
const LONGEST_SERIES: u64 = 1 << 30;

/// A trace file's content, or the reason it cannot be read.
pub fn read_trace(file: &str) -> Result<String, String> {
    let bytes = read_regular(file, LONGEST_TEXT).map_err(|error| format!("cannot be read from {file}: {error}"))?;
    String::from_utf8(bytes).map_err(|_| format!("cannot be read from {file}: it is no text"))
}

/// The same for all series in a path's directions, wherever in `value`.
pub fn read_files_within(value: &mut Value, keys: &[Key]) -> Result<(), SettingError> {
    match value {
        Value::Object(object) => {
            read_series_files(object, keys)?;
            object.values_mut().try_for_each(|inner| read_files_within(inner, keys))
        }
        Value::Array(items) => items.iter_mut().try_for_each(|item| match item {
            Value::Number(_) => Ok(()),
            item => read_files_within(item, keys),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;
    use serde_json::json;
    use std::fs;
    use std::path::Path;

    #[derive(Debug, serde::Deserialize, JsonSchema)]
    #[allow(dead_code)]
    struct Trace {
        /// Rates.
        rates: Vec<f64>,
    }

    #[test]
    fn a_file_of_numbers_is_a_series() {
        let directory = std::env::temp_dir().join(format!("crosswind-series-{}", std::process::id()));
        fs::create_dir(&directory).unwrap();
        let [good, bad] = ["good", "bad"].map(|name| directory.join(name));
        fs::write(&good, "1\n2.5 4\n").unwrap();
        fs::write(&bad, "1 two").unwrap();
        let keys = &crosswind_settings::describe::<Trace>().keys;
        let read = |file: &Path| {
            let mut section = json!({"rates": {"file": file}}).as_object().unwrap().clone();
            read_series_files(&mut section, keys).map(|()| Value::Object(section)).map_err(|error| error.to_string())
        };
        assert_eq!(read(&good), Ok(json!({"rates": [1, 2.5, 4]})));
        assert!(read(&bad).unwrap_err().starts_with("rates has no number in line 1 of "));
        fs::remove_dir_all(&directory).unwrap();
        assert!(read(&good).unwrap_err().starts_with("rates cannot be read from "));
        assert!(read(Path::new("/dev/zero")).unwrap_err().ends_with("/dev/zero: it is not a regular file"));
        assert_eq!(read_trace("/dev/zero"), Err("cannot be read from /dev/zero: it is not a regular file".to_owned()));
    }
}
