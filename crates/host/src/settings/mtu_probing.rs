//! When TCP searches for the largest packet that passes.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// As `net.ipv4.tcp_mtu_probing` has it (RFC 4821).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MtuProbing {
    /// Never.
    Off = 0,
    /// Once retransmissions say that large packets get lost.
    BlackHole = 1,
    /// From the start.
    Always = 2,
}

impl MtuProbing {
    /// The value of the sysctl.
    pub(crate) const fn number(self) -> u32 {
        self as u32
    }
}
