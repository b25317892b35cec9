//! Settings from JSON, held to their keys.

use crate::describe::describe;
use crate::error::{Code, Range, SettingError};
use crate::key::{Key, KeyType};
use schemars::JsonSchema;
use serde::de::{DeserializeOwned, Error};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Number, Value};

/// The settings in `object`: only keys of `T`, each with an allowed value.
pub fn read<T: JsonSchema + DeserializeOwned + 'static>(object: &Map<String, Value>) -> Result<T, SettingError> {
    let keys = &describe::<T>().keys;
    check(object, keys)?;
    serde_path_to_error::deserialize(Value::Object(object.clone())).map_err(|error| {
        let name = error.path().iter().next().map(ToString::to_string);
        let key = keys.iter().find(|key| Some(&key.name) == name.as_ref());
        SettingError {
            key: key.map(|key| key.name.clone()),
            code: Code::WrongType,
            problem: format!("is wrong: {}", error.inner()),
            hint: key.map_or_else(|| known(keys), |key| key.help.clone()),
        }
    })
}

/// The same as [`read`], for a field of another struct: `#[serde(deserialize_with = "crosswind_settings::deserialize")]`.
pub fn deserialize<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: JsonSchema + DeserializeOwned + 'static,
{
    read(&Map::deserialize(deserializer)?).map_err(D::Error::custom)
}

/// Whether `object` has only `keys`, with allowed values, and all required ones.
pub fn check(object: &Map<String, Value>, keys: &[Key]) -> Result<(), SettingError> {
    if let Some(unknown) = object.keys().find(|name| keys.iter().all(|key| key.name != **name)) {
        return Err(SettingError::new(unknown, "is not a known key", known(keys)).code(Code::UnknownKey));
    }
    for key in keys {
        match object.get(&key.name) {
            Some(value) => key.check(value)?,
            None if key.required => return Err(SettingError::missing(&key.name, &key.help)),
            None => {}
        }
    }
    Ok(())
}

impl Key {
    /// Whether `value` has the key's type and is within its range.
    pub fn check(&self, value: &Value) -> Result<(), SettingError> {
        if self.nullable && value.is_null() {
            return Ok(());
        }
        let expected = match (self.key_type, value) {
            (KeyType::Integer, Value::Number(number)) if is_whole(number) => return self.check_range(number),
            (KeyType::Number, Value::Number(number)) => return self.check_range(number),
            (KeyType::Choice, Value::String(word)) => return self.check_choice(word),
            (KeyType::Boolean, Value::Bool(_))
            | (KeyType::String | KeyType::Transport | KeyType::File, Value::String(_))
            | (KeyType::Queue | KeyType::Peer, Value::Object(_)) => return Ok(()),
            (KeyType::Arguments, Value::Array(words)) if words.iter().all(Value::is_string) => return Ok(()),
            (KeyType::Series, Value::Array(values)) if values.iter().all(Value::is_number) => {
                return values.iter().filter_map(Value::as_number).try_for_each(|number| self.check_range(number));
            }
            (KeyType::Series, _) => r#"a list of numbers, or {"file": "..."}"#,
            (KeyType::Integer, _) => "a whole number",
            (KeyType::Number, _) => "a number",
            (KeyType::Boolean, _) => "true or false",
            (KeyType::String, _) => "a text",
            (KeyType::Choice, _) => return self.check_choice(&value.to_string()),
            (KeyType::File, _) => "the path of a file",
            (KeyType::Transport, _) => "the name of a transport",
            (KeyType::Queue, _) => r#"{"packets": N} or {"bytes": N}"#,
            (KeyType::Arguments, _) => "a list of texts",
            (KeyType::Peer, _) => r#"null or {"name": "...", "command": [...], "ready": ...}"#,
        };
        Err(self.refused(format!("{value} is not {expected}")).code(Code::WrongType))
    }

    fn check_range(&self, value: &Number) -> Result<(), SettingError> {
        let too_small = self.minimum.as_ref().is_some_and(|minimum| less(value, minimum));
        let too_great = self.maximum.as_ref().is_some_and(|maximum| less(maximum, value))
            || (self.key_type == KeyType::Integer && value.is_f64());
        if !too_small && !too_great {
            return Ok(());
        }
        let range = Range { minimum: self.minimum.clone(), maximum: self.maximum.clone() };
        let code = if too_small { Code::TooSmall(range) } else { Code::TooLarge(range) };
        let problem = match (&self.minimum, &self.maximum) {
            (Some(minimum), Some(maximum)) => format!("{value} is not between {minimum} and {maximum}"),
            (Some(minimum), _) if too_small => format!("{value} is less than {minimum}"),
            (_, Some(maximum)) => format!("{value} is more than {maximum}"),
            _ => format!("{value} is too large"),
        };
        Err(self.refused(problem).code(code))
    }

    fn check_choice(&self, word: &str) -> Result<(), SettingError> {
        let choices = self.choices.as_deref().unwrap_or_default();
        if choices.iter().any(|choice| choice == word) {
            return Ok(());
        }
        let code = Code::UnknownChoice { choices: choices.to_vec() };
        Err(self.refused(format!("{word} is not one of {}", choices.join(", "))).code(code))
    }

    fn refused(&self, problem: String) -> SettingError {
        SettingError::new(&self.name, problem, &self.help)
    }
}

/// Whether a number has no fraction: one too large for an integer is read as a fraction.
fn is_whole(number: &Number) -> bool {
    !number.is_f64() || number.as_f64().is_some_and(|value| value.abs() >= 9e15)
}

/// Whether `a` is less than `b`: exactly, where both are whole.
fn less(a: &Number, b: &Number) -> bool {
    match (a.as_i128(), b.as_i128()) {
        (Some(a), Some(b)) => a < b,
        _ => a.as_f64() < b.as_f64(),
    }
}

fn known(keys: &[Key]) -> String {
    let names: Vec<_> = keys.iter().map(|key| key.name.as_str()).collect();
    format!("known keys: {}", names.join(", "))
}
