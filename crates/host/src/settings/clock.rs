//! Which clock a cell runs on.

use crosswind_settings::Layered;
use crosswind_units::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named! {
/// The clock of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum HostClock {
    /// Real where the machine allows that, else virtual. Whoever starts a cell decides; a cell that is started so takes
    /// the clock that it finds.
    #[default]
    Auto = "auto",
    /// The machine's, with the machine's noise.
    Real = "real",
    /// That of a kernel of its own, which jumps over waiting: nothing is measured of the machine.
    Virtual = "virtual",
}
}

impl Layered for HostClock {}
