//! A link's rate, which may be a stall.

use crate::derive::{Deserialize, Serialize};
use crosswind_units::BitRate;

/// A link's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(from = "u64", into = "u64")]
pub enum LinkRate {
    /// It stands still: 0 bit/s.
    Stopped,
    /// It transmits.
    Of(BitRate),
}

impl LinkRate {
    /// The transmission rate, unless stalled.
    pub const fn moving(self) -> Option<BitRate> {
        match self {
            Self::Stopped => None,
            Self::Of(rate) => Some(rate),
        }
    }

    /// In bit/s; 0 where it stands still.
    pub const fn as_bps(self) -> u64 {
        match self {
            Self::Stopped => 0,
            Self::Of(rate) => rate.as_bps(),
        }
    }
}

impl From<u64> for LinkRate {
    fn from(bps: u64) -> Self {
        BitRate::new(bps).map_or(Self::Stopped, Self::Of)
    }
}

impl From<LinkRate> for u64 {
    fn from(rate: LinkRate) -> Self {
        rate.as_bps()
    }
}
