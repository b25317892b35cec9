//! The names of profiles.

use crosswind_settings::Layered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A bundle of host settings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostProfile {
    /// Linux as it is.
    #[default]
    Linux,
    /// FreeBSD 8.2.
    #[serde(rename = "freebsd-8")]
    FreeBsd8,
}

impl Layered for HostProfile {}

impl HostProfile {
    /// Every profile.
    pub const ALL: [Self; 2] = [Self::Linux, Self::FreeBsd8];
}
