//! Which clock a cell runs on.

use crosswind_settings::Layered;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The clock of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostClock {
    /// Real where the machine allows that, else virtual. Whoever starts a cell decides; a cell that is started so takes
    /// the clock that it finds.
    #[default]
    Auto,
    /// The machine's, with the machine's noise.
    Real,
    /// That of a kernel of its own, which jumps over waiting: nothing is measured of the machine.
    Virtual,
}

impl Layered for HostClock {}

impl std::fmt::Display for HostClock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Real => "real",
            Self::Virtual => "virtual",
        })
    }
}
