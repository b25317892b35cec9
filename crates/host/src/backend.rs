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
    /// A veth pair without segmentation offloads: no emulator.
    Direct,
    /// The network that is really there, to a server on another machine.
    Network,
}
