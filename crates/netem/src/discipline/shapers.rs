//! Disciplines that release packets at a rate: tbf and htb.

use super::attributes::{attribute, attributes, u32_at, u64_at, words};
use crosswind_units::{Bytes, Duration};
use schemars::JsonSchema;
use serde::Serialize;

const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_PRATE64: u16 = 5;
const TCA_TBF_BURST: u16 = 6;
const TCA_TBF_PBURST: u16 = 7;
const TCA_HTB_PARMS: u16 = 1;
const TCA_HTB_INIT: u16 = 2;
const TCA_HTB_RATE64: u16 = 6;
const TCA_HTB_CEIL64: u16 = 7;
/// Makes kernels compute a packet's time instead of looking it up in a table.
const TC_LINKLAYER_ETHERNET: u8 = 1;
/// The kernel's unit for bucket times, ns (`PSCHED_SHIFT`).
const TICK_NS: u64 = 64;
/// A class's quantum in its turn among others; there are none.
const QUANTUM: u32 = 1514;
const HTB_VERSION: u32 = 3;

/// The settings of tbf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tbf {
    /// Rate, in bytes a second.
    pub rate_bytes_per_s: u64,
    /// Size of the bucket; it drops larger packets.
    #[serde(rename = "burst_bytes")]
    #[schemars(with = "u64")]
    pub burst: Bytes,
    /// Rate at which a burst goes, in bytes a second; 0 is unlimited.
    pub peak_bytes_per_s: u64,
    /// Size of the bucket for that rate.
    #[serde(rename = "peak_burst_bytes")]
    #[schemars(with = "u64")]
    pub peak_burst: Bytes,
    /// Bytes that wait; it drops what comes beyond them. Only of a bucket with no other queue inside.
    pub limit_bytes: u32,
}

/// The settings of htb and of its class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Htb {
    /// Rate of the class, in bytes a second.
    pub rate_bytes_per_s: u64,
    /// How much earlier than it must a packet may go.
    #[serde(rename = "burst_ns")]
    #[schemars(with = "u64")]
    pub burst: Duration,
}

/// `struct tc_ratespec`: `cell_log`, `linklayer`, `overhead`, `cell_align`, `mpu`, `rate`.
fn ratespec(rate: u64) -> Vec<u8> {
    let layer = if rate > 0 { TC_LINKLAYER_ETHERNET } else { 0 };
    [[0, layer, 0, 0, 0, 0, 0, 0].as_slice(), &short(rate).to_ne_bytes()].concat()
}

/// The 32-bit field for a rate perhaps too large for it.
pub(super) fn short(rate: u64) -> u32 {
    u32::try_from(rate).unwrap_or(u32::MAX)
}

/// A bucket's size, from the kernel's time to fill it.
fn bucket(ticks: u32, rate: u64) -> Bytes {
    Bytes((u128::from(ticks) * u128::from(TICK_NS) * u128::from(rate) / 1_000_000_000) as u64)
}

/// Whether `found` is `asked`, up to a tick of rounding.
fn is_bucket(found: Bytes, asked: Bytes, rate: u64) -> bool {
    let tick = (u128::from(rate) * u128::from(TICK_NS)).div_ceil(1_000_000_000) as u64;
    asked.0.checked_sub(found.0).is_some_and(|short| short <= tick + 1)
}

impl Tbf {
    pub(super) fn encode(&self) -> Vec<u8> {
        // struct tc_tbf_qopt: rate and peak rate, then limit, buffer, mtu.
        let mut parameters = [ratespec(self.rate_bytes_per_s), ratespec(self.peak_bytes_per_s)].concat();
        parameters.extend(words(&[self.limit_bytes, 0, 0]));
        let mut bytes = Vec::new();
        attribute(&mut bytes, TCA_TBF_PARMS, &parameters);
        for (rate, key) in [(self.rate_bytes_per_s, TCA_TBF_RATE64), (self.peak_bytes_per_s, TCA_TBF_PRATE64)] {
            if rate > u64::from(u32::MAX) {
                attribute(&mut bytes, key, &rate.to_ne_bytes());
            }
        }
        attribute(&mut bytes, TCA_TBF_BURST, &(self.burst.0 as u32).to_ne_bytes());
        if self.peak_bytes_per_s > 0 {
            attribute(&mut bytes, TCA_TBF_PBURST, &(self.peak_burst.0 as u32).to_ne_bytes());
        }
        bytes
    }

    pub(super) fn decode(options: &[u8]) -> Option<Self> {
        let mut tbf = Self::default();
        let mut ticks = [0; 2];
        for (kind, value) in attributes(options) {
            match kind {
                TCA_TBF_PARMS => {
                    tbf.rate_bytes_per_s = tbf.rate_bytes_per_s.max(u32_at(value, 8)?.into());
                    tbf.peak_bytes_per_s = tbf.peak_bytes_per_s.max(u32_at(value, 20)?.into());
                    (tbf.limit_bytes, ticks) = (u32_at(value, 24)?, [u32_at(value, 28)?, u32_at(value, 32)?]);
                }
                TCA_TBF_RATE64 => tbf.rate_bytes_per_s = u64_at(value, 0)?,
                TCA_TBF_PRATE64 => tbf.peak_bytes_per_s = u64_at(value, 0)?,
                _ => {}
            }
        }
        tbf.burst = bucket(ticks[0], tbf.rate_bytes_per_s);
        tbf.peak_burst = bucket(ticks[1], tbf.peak_bytes_per_s);
        Some(tbf)
    }

    pub(super) fn is_as_asked(&self, asked: &Self) -> bool {
        *self == Self { burst: self.burst, peak_burst: self.peak_burst, ..asked.clone() }
            && is_bucket(self.burst, asked.burst, asked.rate_bytes_per_s)
            && is_bucket(self.peak_burst, asked.peak_burst, asked.peak_bytes_per_s)
    }
}

impl Htb {
    /// A class with `rate_bytes_per_s` and a bucket filled in about `burst`, in whole kernel ticks.
    pub fn new(rate_bytes_per_s: u64, burst: Duration) -> Self {
        Self { rate_bytes_per_s, burst: Duration::from_nanos(burst.as_nanos() / TICK_NS * TICK_NS) }
    }

    pub(super) fn encode_root() -> Vec<u8> {
        let mut bytes = Vec::new();
        // struct tc_htb_glob: version, rate2quantum, defcls (the one class), debug, direct_pkts.
        attribute(&mut bytes, TCA_HTB_INIT, &words(&[HTB_VERSION, 10, 1, 0, 0]));
        bytes
    }

    pub(super) fn encode_class(&self) -> Vec<u8> {
        let ticks = (self.burst.as_nanos() / TICK_NS) as u32;
        // struct tc_htb_opt: rate, ceil, buffer, cbuffer, quantum, level, prio.
        let mut parameters = [ratespec(self.rate_bytes_per_s), ratespec(self.rate_bytes_per_s)].concat();
        parameters.extend(words(&[ticks, ticks, QUANTUM, 0, 0]));
        let mut bytes = Vec::new();
        attribute(&mut bytes, TCA_HTB_PARMS, &parameters);
        if self.rate_bytes_per_s > u64::from(u32::MAX) {
            attribute(&mut bytes, TCA_HTB_RATE64, &self.rate_bytes_per_s.to_ne_bytes());
            attribute(&mut bytes, TCA_HTB_CEIL64, &self.rate_bytes_per_s.to_ne_bytes());
        }
        bytes
    }

    /// None if packets bypass the one class, or its ceiling differs from its rate.
    pub(super) fn decode(options: &[u8], class: &[u8]) -> Option<Self> {
        let (_, glob) = attributes(options).find(|(kind, _)| *kind == TCA_HTB_INIT)?;
        let (_, parameters) = attributes(class).find(|(kind, _)| *kind == TCA_HTB_PARMS)?;
        let rate_of = |offset: usize, key: u16| {
            let long = attributes(class).find(|(kind, _)| *kind == key).and_then(|(_, value)| u64_at(value, 0));
            long.or_else(|| u32_at(parameters, offset).map(u64::from))
        };
        let (rate, ceiling) = (rate_of(8, TCA_HTB_RATE64)?, rate_of(20, TCA_HTB_CEIL64)?);
        let [buffer, ceiling_buffer] = [u32_at(parameters, 24)?, u32_at(parameters, 28)?];
        let alone = u32_at(glob, 8)? == 1 && rate == ceiling && buffer == ceiling_buffer;
        let burst = Duration::from_nanos(u64::from(buffer) * TICK_NS);
        alone.then_some(Self { rate_bytes_per_s: rate, burst })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Discipline;
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        let tbf = Tbf { rate_bytes_per_s: 1_250_000, limit_bytes: 30_000, ..Tbf::default() };
        let options = Discipline::Tbf(Tbf { burst: Bytes(1500), ..tbf.clone() }).encode();
        assert_eq!(Discipline::decode("tbf", &options, None), Some(Discipline::Tbf(tbf)));
        for rate in [1_250_000, 1_250_000_000_000] {
            let htb = Discipline::Htb(Htb::new(rate, Duration::from_micros(10)));
            assert_eq!(Discipline::decode("htb", &htb.encode(), htb.encode_class().as_deref()), Some(htb));
        }
    }

    #[test]
    fn a_bucket_may_be_a_tick_smaller() {
        let tbf = |burst| Discipline::Tbf(Tbf { rate_bytes_per_s: 1_250_000, burst: Bytes(burst), ..Tbf::default() });
        assert!(tbf(1499).is_as_asked(&tbf(1500)));
        assert!(!tbf(1490).is_as_asked(&tbf(1500)));
    }
}
