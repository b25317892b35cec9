//! Queueing disciplines with their settings, as rtnetlink carries them (`linux/pkt_sched.h`).

use crosswind_units::{Bytes, Duration, Probability};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const TCA_TBF_PARMS: u16 = 1;
const TCA_TBF_RATE64: u16 = 4;
const TCA_TBF_BURST: u16 = 6;
/// Kernels then compute the time of a packet instead of looking it up in a table.
const TC_LINKLAYER_ETHERNET: u8 = 1;

/// A queueing discipline and its settings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Discipline {
    /// Loss, then the time on the wire, then delay.
    Netem(Netem),
    /// A token bucket, and a queue before it that is limited in bytes.
    Tbf(Tbf),
}

/// The settings of netem.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Netem {
    /// Packets that it holds; it drops what comes beyond them.
    pub limit_packets: u32,
    /// Probability that a packet is lost.
    #[serde(serialize_with = "as_fraction")]
    #[schemars(with = "f64")]
    pub loss: u32,
    /// How long each packet is held.
    #[serde(rename = "delay_ns")]
    #[schemars(with = "u64")]
    pub delay: Duration,
    /// Rate at which packets follow each other, in bytes a second; 0 is none.
    pub rate_bytes_per_s: u64,
    /// Where its randomness comes from; null where the kernel does not say (before 6.6).
    pub seed: Option<u64>,
}

/// The settings of tbf.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Tbf {
    /// Rate, in bytes a second.
    pub rate_bytes_per_s: u64,
    /// Size of the bucket.
    #[serde(rename = "burst_bytes")]
    #[schemars(with = "u64")]
    pub burst: Bytes,
    /// Bytes that wait; it drops what comes beyond them.
    pub limit_bytes: u32,
}

impl Discipline {
    /// Its name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Netem(_) => "netem",
            Self::Tbf(_) => "tbf",
        }
    }

    /// As `TCA_OPTIONS` of a request.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Netem(netem) => netem.encode(),
            Self::Tbf(tbf) => tbf.encode(),
        }
    }

    /// From `TCA_OPTIONS` of an answer; none for other kinds, and what is too short.
    pub fn decode(kind: &str, options: &[u8]) -> Option<Self> {
        match kind {
            "netem" => Netem::decode(options).map(Self::Netem),
            "tbf" => Tbf::decode(options).map(Self::Tbf),
            _ => None,
        }
    }

    /// Whether the kernel made of `asked` what it says here. Kernels that do not know a seed do not say one.
    pub fn is_as_asked(&self, asked: &Self) -> bool {
        match (self, asked) {
            (Self::Netem(found), Self::Netem(asked)) => {
                *found == Netem { seed: found.seed.and(asked.seed), ..asked.clone() }
            }
            (Self::Tbf(found), Self::Tbf(asked)) => {
                let tick = Bytes((u128::from(asked.rate_bytes_per_s) * 64).div_ceil(1_000_000_000) as u64);
                let short = asked.burst.0.checked_sub(found.burst.0);
                *found == Tbf { burst: found.burst, ..asked.clone() } && short.is_some_and(|short| short <= tick.0 + 1)
            }
            _ => false,
        }
    }
}

/// The kernel's probabilities are parts of the largest number of 32 bits.
pub fn parts(probability: Probability) -> u32 {
    (probability.as_fraction() * f64::from(u32::MAX)).round() as u32
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn as_fraction<S: Serializer>(parts: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(f64::from(*parts) / f64::from(u32::MAX))
}

impl Netem {
    fn encode(&self) -> Vec<u8> {
        // struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter.
        let mut bytes: Vec<u8> =
            [0, self.limit_packets, self.loss, 0, 0, 0].into_iter().flat_map(u32::to_ne_bytes).collect();
        attribute(&mut bytes, TCA_NETEM_LATENCY64, &self.delay.as_nanos().to_ne_bytes());
        if self.rate_bytes_per_s > 0 {
            // struct tc_netem_rate: rate, packet_overhead, cell_size, cell_overhead.
            let rate = [short(self.rate_bytes_per_s), 0, 0, 0];
            attribute(&mut bytes, TCA_NETEM_RATE, &rate.into_iter().flat_map(u32::to_ne_bytes).collect::<Vec<_>>());
            attribute(&mut bytes, TCA_NETEM_RATE64, &self.rate_bytes_per_s.to_ne_bytes());
        }
        if let Some(seed) = self.seed {
            attribute(&mut bytes, TCA_NETEM_PRNG_SEED, &seed.to_ne_bytes());
        }
        bytes
    }

    fn decode(options: &[u8]) -> Option<Self> {
        let (fixed, rest) = options.split_at_checked(24)?;
        let mut netem = Self { limit_packets: u32_at(fixed, 4)?, loss: u32_at(fixed, 8)?, ..Self::default() };
        for (kind, value) in attributes(rest) {
            match kind {
                TCA_NETEM_LATENCY64 => netem.delay = Duration::from_nanos(u64_at(value, 0)?),
                TCA_NETEM_RATE => netem.rate_bytes_per_s = netem.rate_bytes_per_s.max(u32_at(value, 0)?.into()),
                TCA_NETEM_RATE64 => netem.rate_bytes_per_s = u64_at(value, 0)?,
                TCA_NETEM_PRNG_SEED => netem.seed = Some(u64_at(value, 0)?),
                _ => {}
            }
        }
        Some(netem)
    }
}

impl Tbf {
    fn encode(&self) -> Vec<u8> {
        // struct tc_tbf_qopt: rate and peak rate, each a struct tc_ratespec, then limit, buffer, mtu.
        let ratespec =
            |rate: u32| [[0, TC_LINKLAYER_ETHERNET, 0, 0, 0, 0, 0, 0].as_slice(), &rate.to_ne_bytes()].concat();
        let mut parameters = [ratespec(short(self.rate_bytes_per_s)), ratespec(0)].concat();
        parameters.extend([self.limit_bytes, 0, 0].into_iter().flat_map(u32::to_ne_bytes));
        let mut bytes = Vec::new();
        attribute(&mut bytes, TCA_TBF_PARMS, &parameters);
        if self.rate_bytes_per_s > u64::from(u32::MAX) {
            attribute(&mut bytes, TCA_TBF_RATE64, &self.rate_bytes_per_s.to_ne_bytes());
        }
        attribute(&mut bytes, TCA_TBF_BURST, &(self.burst.0 as u32).to_ne_bytes());
        bytes
    }

    /// The kernel says the size of the bucket as the time to fill it, in ticks of 64 ns.
    fn decode(options: &[u8]) -> Option<Self> {
        let mut tbf = Self::default();
        let mut ticks = 0;
        for (kind, value) in attributes(options) {
            match kind {
                TCA_TBF_PARMS => {
                    tbf.rate_bytes_per_s = tbf.rate_bytes_per_s.max(u32_at(value, 8)?.into());
                    (tbf.limit_bytes, ticks) = (u32_at(value, 24)?, u64::from(u32_at(value, 28)?));
                }
                TCA_TBF_RATE64 => tbf.rate_bytes_per_s = u64_at(value, 0)?,
                _ => {}
            }
        }
        let bytes = u128::from(ticks) * 64 * u128::from(tbf.rate_bytes_per_s) / 1_000_000_000;
        tbf.burst = Bytes(bytes as u64);
        Some(tbf)
    }
}

/// What the field of 32 bits says of a rate that may not fit.
fn short(rate: u64) -> u32 {
    u32::try_from(rate).unwrap_or(u32::MAX)
}

/// Appends an attribute, padded to four bytes.
pub fn attribute(bytes: &mut Vec<u8>, kind: u16, value: &[u8]) {
    bytes.extend(((value.len() + 4) as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(value);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(bytes.get(0..2)?.try_into().ok()?));
        let kind = u16::from_ne_bytes(bytes.get(2..4)?.try_into().ok()?);
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        // The two upper bits say how the value is to be read.
        Some((kind & 0x3fff, value))
    })
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        let netem = Discipline::Netem(Netem {
            limit_packets: 1001,
            loss: parts(Probability::new(0.05).unwrap()),
            delay: Duration::from_millis(10),
            rate_bytes_per_s: 1_250_000_000_000,
            seed: Some(7),
        });
        assert_eq!(Discipline::decode("netem", &netem.encode()), Some(netem));
        let tbf = Tbf { rate_bytes_per_s: 1_250_000, burst: Bytes(0), limit_bytes: 30_000 };
        let options = Discipline::Tbf(Tbf { burst: Bytes(1500), ..tbf.clone() }).encode();
        assert_eq!(Discipline::decode("tbf", &options), Some(Discipline::Tbf(tbf)));
        assert_eq!(Discipline::decode("netem", &[0; 23]), None);
    }

    #[test]
    fn what_the_kernel_does_not_say_is_as_asked_and_what_it_changed_is_not() {
        let asked = Netem { limit_packets: 10, seed: Some(7), ..Netem::default() };
        let found = |change: &dyn Fn(&mut Netem)| {
            let mut found = asked.clone();
            change(&mut found);
            Discipline::Netem(found).is_as_asked(&Discipline::Netem(asked.clone()))
        };
        assert!(found(&|found| found.seed = None));
        assert!(!found(&|found| found.seed = Some(8)));
        assert!(!found(&|found| found.limit_packets = 9));
        let tbf = |burst| Discipline::Tbf(Tbf { rate_bytes_per_s: 1_250_000, burst: Bytes(burst), limit_bytes: 1 });
        assert!(tbf(1499).is_as_asked(&tbf(1500)));
        assert!(!tbf(1490).is_as_asked(&tbf(1500)));
    }
}
