//! cake's settings.

use super::attributes::{attribute, attributes, u32_at, u64_at};
use crosswind_path::queue::{Isolation, Tins};
use schemars::JsonSchema;
use serde::Serialize;

const TCA_CAKE_BASE_RATE64: u16 = 2;
const TCA_CAKE_DIFFSERV_MODE: u16 = 3;
const TCA_CAKE_FLOW_MODE: u16 = 5;
const TCA_CAKE_RTT: u16 = 7;
const TCA_CAKE_TARGET: u16 = 8;
const TCA_CAKE_STATS_TIN_STATS: u16 = 10;
const TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS: u16 = 8;

/// In the kernel's order.
const ISOLATIONS: [Isolation; 8] = [
    Isolation::Flowblind,
    Isolation::Srchost,
    Isolation::Dsthost,
    Isolation::Hosts,
    Isolation::Flows,
    Isolation::DualSrchost,
    Isolation::DualDsthost,
    Isolation::TripleIsolate,
];

/// In the kernel's order.
const TINS: [Tins; 4] = [Tins::Diffserv3, Tins::Diffserv4, Tins::Diffserv8, Tins::Besteffort];

/// The settings of cake. Its limit is the one that it gives itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Cake {
    /// Rate at which packets leave, in bytes a second.
    pub rate_bytes_per_s: u64,
    /// Into which tins packets are sorted, by their DSCP.
    pub tins: Tins,
    /// Who gets an equal share.
    pub isolation: Isolation,
    /// How long packets may wait before it begins to drop or mark.
    pub target_us: u32,
    /// How long they have to wait longer before it does.
    pub interval_us: u32,
}

impl Cake {
    pub(super) fn encode(&self) -> Vec<u8> {
        let tins = TINS.iter().position(|tins| *tins == self.tins).unwrap_or_default();
        let isolation = ISOLATIONS.iter().position(|isolation| *isolation == self.isolation).unwrap_or_default();
        let mut bytes = Vec::new();
        attribute(&mut bytes, TCA_CAKE_BASE_RATE64, &self.rate_bytes_per_s.to_ne_bytes());
        for (key, value) in [
            (TCA_CAKE_DIFFSERV_MODE, tins as u32),
            (TCA_CAKE_FLOW_MODE, isolation as u32),
            (TCA_CAKE_RTT, self.interval_us),
            (TCA_CAKE_TARGET, self.target_us),
        ] {
            attribute(&mut bytes, key, &value.to_ne_bytes());
        }
        bytes
    }

    pub(super) fn decode(options: &[u8]) -> Option<Self> {
        let find = |key: u16| attributes(options).find(|(kind, _)| *kind == key).map(|(_, value)| value);
        let word = |key: u16| u32_at(find(key)?, 0);
        Some(Self {
            rate_bytes_per_s: u64_at(find(TCA_CAKE_BASE_RATE64)?, 0)?,
            tins: *TINS.get(word(TCA_CAKE_DIFFSERV_MODE)? as usize)?,
            isolation: *ISOLATIONS.get(word(TCA_CAKE_FLOW_MODE)? as usize)?,
            target_us: word(TCA_CAKE_TARGET)?,
            interval_us: word(TCA_CAKE_RTT)?,
        })
    }

    /// Packets marked in all its tins: `statistics` is an answer's `TCA_STATS_APP`.
    pub(super) fn marked(statistics: &[u8]) -> u64 {
        let nested = |kind: u16, of: &[u8]| -> Vec<u8> {
            attributes(of).find(|(found, _)| *found == kind).map_or_else(Vec::new, |(_, value)| value.to_vec())
        };
        let tins = nested(TCA_CAKE_STATS_TIN_STATS, statistics);
        let marked = |tin: &[u8]| u32_at(&nested(TCA_CAKE_TIN_STATS_ECN_MARKED_PACKETS, tin), 0).unwrap_or_default();
        attributes(&tins).map(|(_, tin)| u64::from(marked(tin))).sum()
    }
}
