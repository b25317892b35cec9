//! Kinds of path between two hosts.

use crosswind_units::named;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

named! {
/// What connects the hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Backend {
    /// The emulator, between two TUN devices.
    #[default]
    Tun = "tun",
    /// The kernel's own queueing disciplines, netem among them, in a namespace between the hosts: no emulator.
    Netem = "netem",
    /// A veth pair without segmentation offloads: no emulator.
    Direct = "direct",
    /// The network that is really there, to a server on another machine.
    Network = "network",
}
}

impl Backend {
    /// Whether an emulator, with its own thread, connects the hosts.
    pub const fn is_emulated(self) -> bool {
        matches!(self, Self::Tun)
    }
}
