//! Bytes, bit rates, and exact transmission times.

use crate::Duration;
use core::ops::{Add, AddAssign, Sub, SubAssign};
#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// A size in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Bytes(pub u64);

/// A rate in bit/s, never zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "u64", into = "u64"))]
pub struct BitRate(u64);

/// A zero rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZeroRateError;

/// A transmission's length: whole nanoseconds, and the rest in units of 1/rate nanosecond.
///
/// Carrying `remainder` into the following back-to-back transmission keeps a busy link exact over any number of
/// packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Transmission {
    /// Whole nanoseconds.
    pub duration: Duration,
    /// The remainder in 1/rate ns, less than the rate.
    pub remainder: u64,
}

impl BitRate {
    /// `bps` bit/s; `None` for zero.
    pub const fn new(bps: u64) -> Option<Self> {
        if bps == 0 { None } else { Some(Self(bps)) }
    }

    /// Bit/s.
    pub const fn as_bps(self) -> u64 {
        self.0
    }

    /// Time to transmit `size`, continuing from the previous transmission's remainder (`carried`).
    pub const fn transmission(self, size: Bytes, carried: u64) -> Transmission {
        let total = size.0 as u128 * 8 * 1_000_000_000 + carried as u128;
        let rate = self.0 as u128;
        Transmission { duration: Duration::from_nanos((total / rate) as u64), remainder: (total % rate) as u64 }
    }
}

impl TryFrom<u64> for BitRate {
    type Error = ZeroRateError;

    fn try_from(bps: u64) -> Result<Self, ZeroRateError> {
        Self::new(bps).ok_or(ZeroRateError)
    }
}

impl From<BitRate> for u64 {
    fn from(rate: BitRate) -> Self {
        rate.0
    }
}

impl core::fmt::Display for ZeroRateError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str("a rate of 0 bit/s transmits nothing")
    }
}

impl core::error::Error for ZeroRateError {}

impl Add for Bytes {
    type Output = Self;
    fn add(self, rhs: Self) -> Self {
        Self(self.0 + rhs.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, rhs: Self) {
        self.0 += rhs.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, rhs: Self) -> Self {
        Self(self.0 - rhs.0)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, rhs: Self) {
        self.0 -= rhs.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_packet_at_10_mbit_takes_1_2_ms() {
        let rate = BitRate::new(10_000_000).unwrap();
        assert_eq!(
            rate.transmission(Bytes(1500), 0),
            Transmission { duration: Duration::from_micros(1200), remainder: 0 }
        );
    }

    #[test]
    fn carried_remainders_lose_nothing() {
        // 1 byte at 3 bit/s is 8/3 s: three in a row are 8 s exactly.
        let rate = BitRate::new(3).unwrap();
        let mut carried = 0;
        let mut total = 0;
        for _ in 0..3 {
            let t = rate.transmission(Bytes(1), carried);
            carried = t.remainder;
            total += t.duration.as_nanos();
        }
        assert_eq!((total, carried), (8_000_000_000, 0));
    }

    #[test]
    fn zero_is_no_rate() {
        assert_eq!(BitRate::new(0), None);
        assert_eq!(serde_json::from_str::<BitRate>("5").unwrap(), BitRate(5));
        assert!(serde_json::from_str::<BitRate>("0").is_err());
    }
}
