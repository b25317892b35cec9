//! What counts as a packet's size.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crosswind_units::Bytes;

/// What counts as a packet's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Counting {
    /// The IP packet.
    #[default]
    Ip,
    /// The IP packet and what Ethernet adds around it.
    Ethernet,
}

// IEEE 802.3: header 14, FCS 4, preamble and SFD 8, inter-packet gap 12; payloads below 46 bytes are padded.
const ETHERNET_OVERHEAD: Bytes = Bytes(38);
const SHORTEST_ETHERNET_PAYLOAD: u64 = 46;

impl Counting {
    /// Bytes that an IP packet of `size` occupies.
    pub fn occupied(self, size: Bytes) -> Bytes {
        match self {
            Self::Ip => size,
            Self::Ethernet => Bytes(size.0.max(SHORTEST_ETHERNET_PAYLOAD)) + ETHERNET_OVERHEAD,
        }
    }

    /// Bytes that are added to a packet that needs no padding.
    pub const fn overhead(self) -> Bytes {
        match self {
            Self::Ip => Bytes(0),
            Self::Ethernet => ETHERNET_OVERHEAD,
        }
    }
}
