//! The kinds of path between two hosts.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What connects the hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The emulator, between two TUN devices.
    #[default]
    Tun,
    /// The kernel's own queueing disciplines, netem among them, in a namespace between the hosts: no emulator.
    Netem,
    /// A veth pair without segmentation offloads: no emulator.
    Direct,
    /// The network that is really there, to a server on another machine.
    Network,
}

impl Backend {
    /// Whether the emulator connects the hosts, for which a thread of its own runs.
    pub const fn is_emulated(self) -> bool {
        matches!(self, Self::Tun)
    }

    /// Its name in a cell.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Tun => "tun",
            Self::Netem => "netem",
            Self::Direct => "direct",
            Self::Network => "network",
        }
    }
}
