//! The kernel's settings, sent by a cell before the first packet.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use crosswind_path::CompiledStage;
use serde::{Deserialize, Serialize};

/// A path, and the details to log about packets.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    /// The kernel's clock at the cell's zero.
    pub origin_ns: u64,
    /// Whether events have packets' bytes.
    pub keeps_bytes: bool,
    /// Each direction's compiled elements, forward first.
    pub stages: [Vec<CompiledStage>; 2],
}

/// Why the kernel did not take them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SettingsError {
    /// The settings come from other sources.
    OtherSources,
    /// They are none.
    Malformed(String),
}

/// The digest of the path's sources.
const SOURCES: &str = env!("SOURCES");

impl Settings {
    /// In the kernel's format: the sources' digest comes first.
    ///
    /// # Errors
    /// Serde's message.
    pub fn to_text(&self) -> Result<String, String> {
        let settings = serde_json::to_string(self).map_err(|error| error.to_string())?;
        Ok(format!("{SOURCES}\n{settings}"))
    }

    /// # Errors
    /// Settings from other sources, and malformed ones.
    pub fn from_text(text: &[u8]) -> Result<Self, SettingsError> {
        match text.strip_prefix(SOURCES.as_bytes()).and_then(|rest| rest.strip_prefix(b"\n")) {
            Some(settings) => {
                serde_json::from_slice(settings).map_err(|error| SettingsError::Malformed(error.to_string()))
            }
            None => Err(SettingsError::OtherSources),
        }
    }
}
