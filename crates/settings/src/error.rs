//! An invalid setting.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

/// Name endings that carry a unit.
pub(crate) const ENDINGS: [&str; 4] = ["_ns", "_bytes", "_bps", "_per_s"];

/// A key's name in texts: without the ending that carries its unit.
pub fn plain(key: &str) -> &str {
    ENDINGS.into_iter().find_map(|ending| key.strip_suffix(ending)).unwrap_or(key)
}

/// A setting's kind of mistake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(
    feature = "read",
    derive(serde::Serialize, schemars::JsonSchema),
    serde(tag = "code", rename_all = "snake_case")
)]
pub enum Code {
    /// It does not go with other settings, or is wrong for a reason of its own.
    #[default]
    Impossible,
    /// There is no such key.
    UnknownKey,
    /// It has to be given.
    Missing,
    /// It has another type.
    WrongType,
    /// It is less than the least value.
    #[cfg(feature = "read")]
    TooSmall(Range),
    /// It is more than the greatest value.
    #[cfg(feature = "read")]
    TooLarge(Range),
    /// It is none of its possible words.
    UnknownChoice {
        /// These words.
        choices: alloc::vec::Vec<String>,
    },
}

/// The range of a number.
#[cfg(feature = "read")]
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, schemars::JsonSchema)]
pub struct Range {
    /// The least value that is accepted.
    pub minimum: Option<serde_json::Number>,
    /// The greatest value that is accepted.
    pub maximum: Option<serde_json::Number>,
}

/// Why a setting was refused: the key, its fault, and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The key, dotted from where reading began; none where the whole is wrong.
    pub key: Option<String>,
    /// The kind of mistake.
    pub code: Code,
    /// The fault: a sentence with the key as subject.
    pub problem: String,
    /// The remedy.
    pub hint: String,
}

impl SettingError {
    /// `problem` is a sentence with `key` as subject, as in `size_bytes` "0 is not between 1 and 1000". It names other
    /// keys as [`plain`] does, as in a study.
    pub fn new(key: impl Into<String>, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { key: Some(key.into()), code: Code::default(), problem: problem.into(), hint: hint.into() }
    }

    /// `key` has to be given.
    pub fn missing(key: impl Into<String>, hint: impl Into<String>) -> Self {
        Self::new(key, "is missing", hint).code(Code::Missing)
    }

    /// The same error, with this kind.
    #[must_use]
    pub fn code(self, code: Code) -> Self {
        Self { code, ..self }
    }

    /// The same error where the settings stand under `outer`: `size_bytes` becomes `workload.size_bytes`.
    #[must_use]
    pub fn within(mut self, outer: &str) -> Self {
        self.key = Some(self.key.map_or_else(|| outer.to_owned(), |key| format!("{outer}.{key}")));
        self
    }
}

impl core::fmt::Display for SettingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match &self.key {
            Some(key) => write!(f, "{key} {}", self.problem),
            None => f.write_str(&self.problem),
        }
    }
}

impl core::error::Error for SettingError {}
