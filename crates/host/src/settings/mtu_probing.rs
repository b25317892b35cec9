//! When TCP searches for the largest packet that passes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// As `net.ipv4.tcp_mtu_probing` has it (RFC 4821).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MtuProbing {
    /// Never.
    Off,
    /// Once retransmissions say that large packets get lost.
    BlackHole,
    /// From the start.
    Always,
}

impl MtuProbing {
    /// The value of the sysctl.
    pub(crate) const fn number(self) -> u32 {
        match self {
            Self::Off => 0,
            Self::BlackHole => 1,
            Self::Always => 2,
        }
    }
}
