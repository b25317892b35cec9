//! What a cell tells the kernel before the first packet.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use crosswind_path::CompiledStage;
use serde::{Deserialize, Serialize};

/// A path, and what is to be told of its packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// What the kernel's clock shows where the cell's shows zero.
    pub origin_ns: u64,
    /// Whether events have the bytes of packets.
    pub keeps_bytes: bool,
    /// All that the elements of each direction are made of, forward first.
    pub stages: [Vec<CompiledStage>; 2],
}

/// Why the kernel did not take them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// It was built from other sources of the path.
    OtherSources,
    /// They are none.
    Malformed(String),
}

/// Of the sources of the path.
const SOURCES: &str = env!("SOURCES");

impl Settings {
    /// As the kernel reads them: after the digest of the sources.
    ///
    /// # Errors
    /// What serde says.
    pub fn to_text(&self) -> Result<String, String> {
        let settings = serde_json::to_string(self).map_err(|error| error.to_string())?;
        Ok(format!("{SOURCES}\n{settings}"))
    }

    /// # Errors
    /// Settings of other sources, and none.
    pub fn from_text(text: &[u8]) -> Result<Self, SettingsError> {
        match text.strip_prefix(SOURCES.as_bytes()).and_then(|rest| rest.strip_prefix(b"\n")) {
            Some(settings) => {
                serde_json::from_slice(settings).map_err(|error| SettingsError::Malformed(error.to_string()))
            }
            None => Err(SettingsError::OtherSources),
        }
    }
}
