//! A setting that cannot be.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::String;

/// Why a setting was refused: the key, what is wrong with it, and what would be right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The key, dotted from where reading began; none where the whole is wrong.
    pub key: Option<String>,
    /// What is wrong: a sentence whose subject is the key.
    pub problem: String,
    /// What would be right.
    pub hint: String,
}

impl SettingError {
    /// `problem` is a sentence whose subject is `key`, as in `size_bytes` "0 is not between 1 and 1000".
    pub fn new(key: impl Into<String>, problem: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { key: Some(key.into()), problem: problem.into(), hint: hint.into() }
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
