//! How a packet's size is counted.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crosswind_units::Bytes;

/// What counts as a packet's size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Counting {
    /// What occupies the link and a queue in bytes: the IP packet, or the Ethernet frame with all that surrounds it.
    #[serde(rename = "count")]
    pub frame: Frame,
    /// What the link adds to each packet beside what `count` does.
    #[serde(rename = "link_overhead_bytes", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(max = MAX_OVERHEAD), extend(
        "default_help" = "none",
        "only_with" = {"key": "rate_bps", "value": null}
    ))]
    pub added: Option<Bytes>,
    /// What a packet occupies at least.
    #[serde(rename = "link_mpu_bytes", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(max = MAX_OVERHEAD), extend(
        "default_help" = "none",
        "only_with" = {"key": "rate_bps", "value": null}
    ))]
    pub smallest: Option<Bytes>,
    /// How the link cuts packets up: ATM into cells of 53 bytes for each 48, PTM with a byte more for each 64.
    #[serde(rename = "link_cells", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default_help" = "none",
        "only_with" = {"key": "rate_bps", "value": null}
    ))]
    pub cells: Option<Cells>,
}

/// What a packet is sent in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Frame {
    /// The IP packet.
    #[default]
    Ip,
    /// The IP packet and what Ethernet adds around it.
    Ethernet,
}

/// What a frame is cut up into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Cells {
    /// Cells of ATM, of which the last is padded (ITU-T I.361).
    Atm,
    /// Packet transfer mode, which has a byte of 65 for itself (IEEE 802.3, clause 61).
    Ptm,
}

// IEEE 802.3: header 14, FCS 4, preamble and SFD 8, inter-packet gap 12; payloads below 46 bytes are padded.
const ETHERNET_OVERHEAD: Bytes = Bytes(38);
const SHORTEST_ETHERNET_PAYLOAD: u64 = 46;

const MAX_OVERHEAD: u64 = 256;

/// A packet without padding.
const LARGE: Bytes = Bytes(1500);

impl Counting {
    /// The IP packet alone.
    pub const IP: Self = Self::in_frame(Frame::Ip);
    /// The Ethernet frame with preamble and gap.
    pub const ETHERNET: Self = Self::in_frame(Frame::Ethernet);

    const fn in_frame(frame: Frame) -> Self {
        Self { frame, added: None, smallest: None, cells: None }
    }

    /// Bytes occupied by an IP packet of `size`.
    pub fn occupied(self, size: Bytes) -> Bytes {
        let frame = match self.frame {
            Frame::Ip => size,
            Frame::Ethernet => Bytes(size.0.max(SHORTEST_ETHERNET_PAYLOAD)) + ETHERNET_OVERHEAD,
        };
        let bytes = (frame + self.added.unwrap_or_default()).max(self.smallest.unwrap_or_default()).0;
        Bytes(match self.cells {
            None => bytes,
            Some(Cells::Atm) => bytes.div_ceil(48) * 53,
            Some(Cells::Ptm) => bytes + bytes.div_ceil(64),
        })
    }

    /// Bytes added to a packet of 1500 bytes.
    pub fn overhead(self) -> Bytes {
        Bytes(self.occupied(LARGE).0 - LARGE.0)
    }
}
