//! netem's settings.

use super::attributes::{attribute, attributes, u32_at, u64_at, words};
use super::shapers::short;
use crosswind_units::{Duration, Probability};
use schemars::JsonSchema;
use serde::{Serialize, Serializer};

const TCA_NETEM_DELAY_DIST: u16 = 2;
const TCA_NETEM_REORDER: u16 = 3;
const TCA_NETEM_CORRUPT: u16 = 4;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const NETEM_LOSS_GI: u16 = 1;
const NETEM_LOSS_GE: u16 = 2;
/// The attribute has others inside (`linux/netlink.h`).
const NLA_F_NESTED: u16 = 1 << 15;

/// A standard deviation, in a distribution table.
const NETEM_DIST_SCALE: f64 = 8192.0;

/// The settings of netem.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Netem {
    /// Packets that it holds; it drops what comes beyond them.
    pub limit_packets: u32,
    /// What it loses.
    #[serde(flatten)]
    pub loss: Loss,
    /// Probability that a packet is duplicated.
    #[serde(serialize_with = "as_fraction")]
    #[schemars(with = "f64")]
    pub duplicate: u32,
    /// Probability that a bit of a packet is flipped.
    #[serde(serialize_with = "as_fraction")]
    #[schemars(with = "f64")]
    pub corrupt: u32,
    /// How long each packet is held.
    #[serde(rename = "delay_ns")]
    #[schemars(with = "u64")]
    pub delay: Duration,
    /// How much longer or shorter.
    #[serde(flatten)]
    pub jitter: Jitter,
    /// Probability that a packet is not held.
    #[serde(serialize_with = "as_fraction")]
    #[schemars(with = "f64")]
    pub reorder: u32,
    /// Behind a packet that was not held, so many less one are; 0 holds all.
    pub reorder_gap: u32,
    /// Rate at which packets follow each other, in bytes a second; 0 is none.
    pub rate_bytes_per_s: u64,
    /// Where its randomness comes from; null where the kernel does not say (before 6.6).
    pub seed: Option<u64>,
}

/// netem's loss model. Probabilities are fractions of the largest 32-bit number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Each by itself.
    Independent(u32),
    /// Gilbert-Elliott: p, r, h (the bad state's delivery probability) and 1-k.
    GilbertElliott([u32; 4]),
    /// Four states: p13, p31, p32, p14, p23.
    FourStates([u32; 5]),
}

/// How much a delay differs from packet to packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Jitter {
    /// What 1 of the distribution stands for; of a uniform one, the most.
    #[serde(rename = "jitter_ns")]
    #[schemars(with = "u64")]
    pub scale: Duration,
    /// The distribution, in parts of 1/8192; none where it is uniform. The kernel does not say which it has.
    #[serde(skip)]
    pub table: Option<Vec<i16>>,
}

/// A probability as a fraction of the largest 32-bit number.
pub fn parts(probability: Probability) -> u32 {
    (probability.as_fraction() * f64::from(u32::MAX)).round() as u32
}

fn fraction(parts: u32) -> f64 {
    f64::from(parts) / f64::from(u32::MAX)
}

#[allow(clippy::trivially_copy_pass_by_ref)] // serde's signature
fn as_fraction<S: Serializer>(parts: &u32, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_f64(fraction(*parts))
}

impl Default for Loss {
    fn default() -> Self {
        Self::Independent(0)
    }
}

/// As in a result: the probability by itself, or those of the model by their names.
#[derive(Serialize, JsonSchema)]
struct LossReport {
    /// Probability that a packet is lost; with a model, 0.
    loss: f64,
    /// Of the Gilbert-Elliott model: p, r, 1-h, 1-k.
    #[serde(skip_serializing_if = "Option::is_none")]
    loss_gemodel: Option<Vec<f64>>,
    /// Of the model with four states: p13, p31, p32, p23, p14.
    #[serde(skip_serializing_if = "Option::is_none")]
    loss_state: Option<Vec<f64>>,
}

impl Serialize for Loss {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut report = LossReport { loss: 0.0, loss_gemodel: None, loss_state: None };
        match self {
            Self::Independent(loss) => report.loss = fraction(*loss),
            Self::GilbertElliott([p, r, h, k]) => {
                report.loss_gemodel = Some(vec![fraction(*p), fraction(*r), fraction(u32::MAX - h), fraction(*k)]);
            }
            Self::FourStates([p13, p31, p32, p14, p23]) => {
                report.loss_state = Some([p13, p31, p32, p23, p14].map(|part| fraction(*part)).to_vec());
            }
        }
        report.serialize(serializer)
    }
}

impl JsonSchema for Loss {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        LossReport::schema_name()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        LossReport::json_schema(generator)
    }
}

impl Jitter {
    /// Any distribution: `values` are its quantiles at equal distances, `scale` its unit.
    ///
    /// The kernel's table ends at four times its scale. For a value beyond, the scale grows, and the values shrink.
    pub fn of_table(scale: Duration, values: &[f64]) -> Self {
        let most = values.iter().fold(0.0_f64, |most, value| most.max(value.abs()));
        let larger = (most * NETEM_DIST_SCALE / f64::from(i16::MAX)).max(1.0);
        let table = values.iter().map(|value| (value / larger * NETEM_DIST_SCALE).round() as i16);
        let scale = Duration::from_nanos((scale.as_nanos() as f64 * larger).round() as u64);
        Self { scale, table: Some(table.collect()) }
    }
}

impl Netem {
    pub(super) fn encode(&self) -> Vec<u8> {
        let independent = if let Loss::Independent(loss) = self.loss { loss } else { 0 };
        // struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter.
        let mut bytes = words(&[0, self.limit_packets, independent, self.reorder_gap, self.duplicate, 0]);
        attribute(&mut bytes, TCA_NETEM_LATENCY64, &self.delay.as_nanos().to_ne_bytes());
        attribute(&mut bytes, TCA_NETEM_JITTER64, &self.jitter.scale.as_nanos().to_ne_bytes());
        if let Some(table) = &self.jitter.table {
            let table: Vec<u8> = table.iter().flat_map(|value| value.to_ne_bytes()).collect();
            attribute(&mut bytes, TCA_NETEM_DELAY_DIST, &table);
        }
        let model = match &self.loss {
            Loss::Independent(_) => None,
            Loss::GilbertElliott(parameters) => Some((NETEM_LOSS_GE, words(parameters))),
            Loss::FourStates(parameters) => Some((NETEM_LOSS_GI, words(parameters))),
        };
        if let Some((model, parameters)) = model {
            let mut inner = Vec::new();
            attribute(&mut inner, model, &parameters);
            attribute(&mut bytes, TCA_NETEM_LOSS | NLA_F_NESTED, &inner);
        }
        // Probability and correlation.
        attribute(&mut bytes, TCA_NETEM_REORDER, &words(&[self.reorder, 0]));
        attribute(&mut bytes, TCA_NETEM_CORRUPT, &words(&[self.corrupt, 0]));
        // struct tc_netem_rate: rate, packet_overhead, cell_size, cell_overhead.
        attribute(&mut bytes, TCA_NETEM_RATE, &words(&[short(self.rate_bytes_per_s), 0, 0, 0]));
        if self.rate_bytes_per_s > u64::from(u32::MAX) {
            attribute(&mut bytes, TCA_NETEM_RATE64, &self.rate_bytes_per_s.to_ne_bytes());
        }
        if let Some(seed) = self.seed {
            attribute(&mut bytes, TCA_NETEM_PRNG_SEED, &seed.to_ne_bytes());
        }
        bytes
    }

    pub(super) fn decode(options: &[u8]) -> Option<Self> {
        let (fixed, rest) = options.split_at_checked(24)?;
        let mut netem = Self {
            limit_packets: u32_at(fixed, 4)?,
            loss: Loss::Independent(u32_at(fixed, 8)?),
            reorder_gap: u32_at(fixed, 12)?,
            duplicate: u32_at(fixed, 16)?,
            ..Self::default()
        };
        for (kind, value) in attributes(rest) {
            match kind {
                TCA_NETEM_LATENCY64 => netem.delay = Duration::from_nanos(u64_at(value, 0)?),
                TCA_NETEM_JITTER64 => netem.jitter.scale = Duration::from_nanos(u64_at(value, 0)?),
                TCA_NETEM_REORDER => netem.reorder = u32_at(value, 0)?,
                TCA_NETEM_CORRUPT => netem.corrupt = u32_at(value, 0)?,
                TCA_NETEM_LOSS => netem.loss = Loss::decode(value).unwrap_or(netem.loss),
                TCA_NETEM_RATE => netem.rate_bytes_per_s = netem.rate_bytes_per_s.max(u32_at(value, 0)?.into()),
                TCA_NETEM_RATE64 => netem.rate_bytes_per_s = u64_at(value, 0)?,
                TCA_NETEM_PRNG_SEED => netem.seed = Some(u64_at(value, 0)?),
                _ => {}
            }
        }
        Some(netem)
    }

    /// Kernels report no table, nor an unsupported seed, nor a probability of overtaking without a gap.
    pub(super) fn is_as_asked(&self, asked: &Self) -> bool {
        let jitter = Jitter { table: self.jitter.table.clone(), ..asked.jitter.clone() };
        *self == Self { seed: self.seed.and(asked.seed), jitter, ..asked.clone() }
    }
}

impl Loss {
    fn decode(nested: &[u8]) -> Option<Self> {
        attributes(nested).find_map(|(model, value)| {
            let word = |number: usize| u32_at(value, 4 * number);
            match model {
                NETEM_LOSS_GE => Some(Self::GilbertElliott([word(0)?, word(1)?, word(2)?, word(3)?])),
                NETEM_LOSS_GI => Some(Self::FourStates([word(0)?, word(1)?, word(2)?, word(3)?, word(4)?])),
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::Discipline;
    use super::*;

    #[test]
    fn what_was_encoded_is_decoded() {
        let netem = Netem {
            limit_packets: 1001,
            loss: Loss::Independent(parts(Probability::new(0.05).unwrap())),
            duplicate: 5,
            corrupt: 6,
            delay: Duration::from_millis(10),
            jitter: Jitter { scale: Duration::from_millis(3), table: None },
            reorder: 7,
            reorder_gap: 8,
            rate_bytes_per_s: 1_250_000_000_000,
            seed: Some(7),
        };
        let models = [Loss::GilbertElliott([1, 2, 3, 4]), Loss::FourStates([1, 2, 3, 4, 5]), netem.loss.clone()];
        for loss in models {
            let netem = Discipline::Netem(Netem { loss, ..netem.clone() });
            assert_eq!(Discipline::decode("netem", &netem.encode(), None), Some(netem));
        }
        assert_eq!(Discipline::decode("netem", &[0; 23], None), None);
    }

    #[test]
    fn what_the_kernel_does_not_say_is_as_asked_and_what_it_changed_is_not() {
        let jitter = Jitter::of_table(Duration::from_millis(1), &[-1.0, 1.0]);
        let asked = Netem { limit_packets: 10, jitter, seed: Some(7), ..Netem::default() };
        let found = |change: &dyn Fn(&mut Netem)| {
            let mut found = asked.clone();
            change(&mut found);
            Discipline::Netem(found).is_as_asked(&Discipline::Netem(asked.clone()))
        };
        assert!(found(&|found| found.seed = None));
        assert!(found(&|found| found.jitter.table = None));
        assert!(!found(&|found| found.seed = Some(8)));
        assert!(!found(&|found| found.jitter.scale = Duration::ZERO));
        assert!(!found(&|found| found.limit_packets = 9));
    }

    #[test]
    fn a_table_with_values_beyond_its_end_gets_a_larger_scale() {
        let near = Jitter::of_table(Duration::from_millis(8), &[-1.0, 0.5]);
        assert_eq!(near, Jitter { scale: Duration::from_millis(8), table: Some(vec![-8192, 4096]) });
        let far = Jitter::of_table(Duration::from_millis(8), &[-1.0, 32767.0 / 1024.0]);
        assert_eq!(far, Jitter { scale: Duration::from_millis(64), table: Some(vec![-1024, 32767]) });
    }
}
