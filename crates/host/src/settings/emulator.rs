//! Where the emulator runs in virtual time.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Where the emulator runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EmulatorPlace {
    /// In a thread of the cell's process, between two TUN devices.
    Process,
    /// In the kernel of virtual time, which is faster.
    Kernel,
}
