//! Disciplines that hold packets for a shaper.

use super::attributes::{attribute, attributes, u32_at, words};
use crosswind_units::{Bytes, Duration, Probability};
use schemars::JsonSchema;
use serde::Serialize;

const TCA_RED_PARMS: u16 = 1;
const TCA_RED_STAB: u16 = 2;
const TCA_RED_MAX_P: u16 = 3;
const TC_RED_ECN: u8 = 1;
/// Above the upper threshold it drops packets it would otherwise mark.
const TC_RED_HARDDROP: u8 = 2;
/// The idle table's cell size, packets of this size: how much the mean queue falls while nothing waits.
const RED_IDLE: usize = 256;
const MEAN_PACKET: f64 = 1000.0;

/// The settings of a queue that drops packets only where it is full.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Fifo {
    /// Packets or bytes that may wait.
    pub limit: u32,
}

/// The settings of red. It drops the packets that wait beyond its limit by a queue inside.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Red {
    /// Mean queue from which on it drops or marks at random.
    #[serde(rename = "min_bytes")]
    #[schemars(with = "u64")]
    pub minimum: Bytes,
    /// Mean queue from which on it drops every packet.
    #[serde(rename = "max_bytes")]
    #[schemars(with = "u64")]
    pub maximum: Bytes,
    /// The weight of the queue of now in the mean is 1 over 2 to the power of this.
    pub weight_log: u8,
    /// Probability just below the upper threshold.
    #[schemars(with = "f64")]
    pub probability: Probability,
    /// Whether it marks packets whose senders take marks.
    pub ecn: bool,
    /// The rate at which packets leave, of which it knows how many could have left while none waited.
    #[serde(skip)]
    pub rate_bytes_per_s: u64,
}

/// The settings of codel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Codel {
    /// Packets that may wait.
    pub limit_packets: u32,
    /// How long packets may wait before it begins to drop or mark.
    pub target_us: u32,
    /// How long they have to wait longer before it does.
    pub interval_us: u32,
    /// Whether it marks packets whose senders take marks.
    pub ecn: bool,
}

/// The settings of `fq_codel`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FqCodel {
    /// Those of each queue; the limit is that of all together.
    #[serde(flatten)]
    pub codel: Codel,
    /// Queues among which it divides flows.
    pub flows: u32,
    /// What a flow sends in its turn.
    pub quantum_bytes: u32,
}

/// The settings of pie.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Pie {
    /// Packets that may wait.
    pub limit_packets: u32,
    /// How long they should wait at most.
    pub target_us: u32,
    /// How often it computes its probability.
    pub update_us: u32,
    /// How much that grows with the delay, in sixteenths.
    pub alpha: u32,
    /// How much it grows with the delay's growth, in sixteenths.
    pub beta: u32,
    /// Whether it marks packets whose senders take marks.
    pub ecn: bool,
}

fn encode(values: &[(u16, u32)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in values {
        attribute(&mut bytes, *key, &value.to_ne_bytes());
    }
    bytes
}

fn value_of(options: &[u8], key: u16) -> Option<u32> {
    attributes(options).find(|(kind, _)| *kind == key).and_then(|(_, value)| u32_at(value, 0))
}

/// Whether a time matches the request: the kernel's units are at most 1.024 us.
const fn is_time(found_us: u32, asked_us: u32) -> bool {
    found_us.abs_diff(asked_us) <= 2
}

impl Fifo {
    pub(super) fn encode(&self) -> Vec<u8> {
        words(&[self.limit])
    }

    pub(super) fn decode(options: &[u8]) -> Option<Self> {
        Some(Self { limit: u32_at(options, 0)? })
    }
}

impl Red {
    pub(super) fn encode(&self) -> Vec<u8> {
        let (cell_log, idle) = self.idle();
        // struct tc_red_qopt: limit, qth_min, qth_max, Wlog, Plog, Scell_log, flags.
        let flags = TC_RED_HARDDROP | if self.ecn { TC_RED_ECN } else { 0 };
        // The limit of a queue about to be replaced.
        let mut parameters = words(&[self.maximum.0 as u32, self.minimum.0 as u32, self.maximum.0 as u32]);
        parameters.extend([self.weight_log, 0, cell_log, flags]);
        let mut bytes = Vec::new();
        attribute(&mut bytes, TCA_RED_PARMS, &parameters);
        attribute(&mut bytes, TCA_RED_STAB, &idle);
        attribute(&mut bytes, TCA_RED_MAX_P, &super::parts(self.probability).to_ne_bytes());
        bytes
    }

    /// The mean queue's halvings while nothing waits, for each cell of so many microseconds.
    fn idle(&self) -> (u8, Vec<u8>) {
        let packet_us = MEAN_PACKET * 1e6 / self.rate_bytes_per_s.max(1) as f64;
        let halvings_per_us = -(1.0 - f64::from(self.weight_log).exp2().recip()).log2() / packet_us;
        let longest_us = 31.0 / halvings_per_us;
        let cell_log = (0..31).find(|log| longest_us / f64::from(*log).exp2() < 512.0).unwrap_or(31);
        let cell_us = f64::from(cell_log).exp2();
        let halvings = |cell: usize| (cell as f64 * cell_us * halvings_per_us).min(31.0) as u8;
        (cell_log as u8, (0..RED_IDLE).map(|cell| if cell == RED_IDLE - 1 { 31 } else { halvings(cell) }).collect())
    }

    pub(super) fn decode(options: &[u8]) -> Option<Self> {
        let (_, parameters) = attributes(options).find(|(kind, _)| *kind == TCA_RED_PARMS)?;
        let flags = *parameters.get(15)?;
        let probability = f64::from(value_of(options, TCA_RED_MAX_P)?) / f64::from(u32::MAX);
        let red = Self {
            minimum: Bytes(u32_at(parameters, 4)?.into()),
            maximum: Bytes(u32_at(parameters, 8)?.into()),
            weight_log: *parameters.get(12)?,
            probability: Probability::new(probability).ok()?,
            ecn: flags & TC_RED_ECN != 0,
            rate_bytes_per_s: 0,
        };
        (flags & TC_RED_HARDDROP != 0).then_some(red)
    }

    /// The kernel says no rate.
    pub(super) fn is_as_asked(&self, asked: &Self) -> bool {
        let same = super::parts(self.probability) == super::parts(asked.probability);
        same && *self == Self { probability: self.probability, rate_bytes_per_s: 0, ..asked.clone() }
    }
}

impl Codel {
    /// Keys: target, limit, interval, ecn.
    const KEYS: [u16; 4] = [1, 2, 3, 4];

    pub(super) fn encode(&self) -> Vec<u8> {
        let [target, limit, interval, ecn] = Self::KEYS;
        let values = [(target, self.target_us), (limit, self.limit_packets), (interval, self.interval_us)];
        encode(&[values.as_slice(), &[(ecn, self.ecn.into())]].concat())
    }

    pub(super) fn decode(options: &[u8]) -> Option<Self> {
        let [target, limit, interval, ecn] = Self::KEYS.map(|key| value_of(options, key));
        Some(Self { limit_packets: limit?, target_us: target?, interval_us: interval?, ecn: ecn? != 0 })
    }

    pub(super) fn is_as_asked(&self, asked: &Self) -> bool {
        let same = Self { target_us: self.target_us, interval_us: self.interval_us, ..asked.clone() };
        *self == same && is_time(self.target_us, asked.target_us) && is_time(self.interval_us, asked.interval_us)
    }
}

impl FqCodel {
    const FLOWS: u16 = 5;
    const QUANTUM: u16 = 6;
    const MEMORY_LIMIT: u16 = 9;

    pub(super) fn encode(&self) -> Vec<u8> {
        // A limit in packets alone: memory's, 32 MB, may come first.
        let own = [(Self::FLOWS, self.flows), (Self::QUANTUM, self.quantum_bytes), (Self::MEMORY_LIMIT, u32::MAX)];
        [self.codel.encode(), encode(&own)].concat()
    }

    pub(super) fn decode(options: &[u8]) -> Option<Self> {
        let [flows, quantum] = [Self::FLOWS, Self::QUANTUM].map(|key| value_of(options, key));
        Some(Self { codel: Codel::decode(options)?, flows: flows?, quantum_bytes: quantum? })
    }

    pub(super) fn is_as_asked(&self, asked: &Self) -> bool {
        *self == Self { codel: self.codel.clone(), ..asked.clone() } && self.codel.is_as_asked(&asked.codel)
    }
}

impl Pie {
    /// Keys: target, limit, update, alpha, beta, ecn.
    const KEYS: [u16; 6] = [1, 2, 3, 4, 5, 6];

    pub(super) fn encode(&self) -> Vec<u8> {
        let values = [self.target_us, self.limit_packets, self.update_us, self.alpha, self.beta, self.ecn.into()];
        encode(&Self::KEYS.into_iter().zip(values).collect::<Vec<_>>())
    }

    pub(super) fn decode(options: &[u8]) -> Option<Self> {
        let [target, limit, update, alpha, beta, ecn] = Self::KEYS.map(|key| value_of(options, key));
        Some(Self {
            limit_packets: limit?,
            target_us: target?,
            update_us: update?,
            alpha: alpha?,
            beta: beta?,
            ecn: ecn? != 0,
        })
    }

    pub(super) fn is_as_asked(&self, asked: &Self) -> bool {
        *self == Self { target_us: self.target_us, ..asked.clone() } && is_time(self.target_us, asked.target_us)
    }
}

/// A time in whole microseconds, if it is.
pub fn micros(time: Duration) -> Option<u32> {
    let whole = time.as_nanos().is_multiple_of(1000);
    whole.then(|| u32::try_from(time.as_nanos() / 1000).ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::super::{Cake, Discipline};
    use super::*;
    use crosswind_path::queue::{Isolation, Tins};

    #[test]
    fn what_was_encoded_is_decoded() {
        let codel = Codel { limit_packets: 1000, target_us: 5000, interval_us: 100_000, ecn: true };
        let pie = Pie { limit_packets: 1, target_us: 2, update_us: 3, alpha: 4, beta: 5, ecn: false };
        let red = Red {
            minimum: Bytes(7500),
            maximum: Bytes(22_500),
            weight_log: 9,
            probability: Probability::new(0.02).unwrap(),
            ecn: true,
            rate_bytes_per_s: 1_250_000,
        };
        let cake = Cake {
            rate_bytes_per_s: 1_250_000,
            tins: Tins::Besteffort,
            isolation: Isolation::DualDsthost,
            target_us: 5000,
            interval_us: 100_000,
        };
        let disciplines = [
            Discipline::Pfifo(Fifo { limit: 21 }),
            Discipline::Red(red),
            Discipline::Codel(codel.clone()),
            Discipline::FqCodel(FqCodel { codel, flows: 1024, quantum_bytes: 1514 }),
            Discipline::Pie(pie),
            Discipline::Cake(cake),
        ];
        for asked in disciplines {
            let found = Discipline::decode(asked.kind(), &asked.encode(), None).unwrap();
            assert!(found.is_as_asked(&asked), "{found:?}");
        }
    }

    #[test]
    fn the_mean_queue_of_red_is_halved_as_often_as_packets_could_have_left() {
        let red = Red { weight_log: 9, rate_bytes_per_s: 1_250_000, ..Red::default() };
        let (cell_log, idle) = red.idle();
        // A packet of 1000 bytes takes 800 us; the mean falls by 1/512 at each, and so to a half after 354.5 of them.
        let cell = (354.6 * 800.0 / f64::from(cell_log).exp2()) as usize + 1;
        assert_eq!((idle[cell - 2], idle[cell], idle.len()), (0, 1, 256));
    }
}
