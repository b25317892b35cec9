//! Which discipline a queue has, its parameters and its limit.

use super::cake::{Isolation, Tins, default_memory};
use crate::derive::{Deserialize, JsonSchema, Serialize};
use alloc::format;
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Bytes, Duration, Probability};

/// Packets or bytes of a queue: more never wait on one machine.
const MAX_QUEUE: u64 = 1_000_000_000;

/// The longest limit in time, and the longest parameter: 100 s.
const MAX_TIME_NS: u64 = 100_000_000_000;

/// The shortest time between two updates of a probability: 100 us.
const MIN_UPDATE_NS: u64 = 100_000;

/// Queues of a discipline that has one for each flow.
const MAX_FLOWS: u32 = 65_536;

/// The limit of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum QueueLimit {
    /// In packets.
    Packets(u64),
    /// In bytes, counted as the link counts them.
    Bytes(u64),
    /// In nanoseconds: what the link sends in that time at its rate.
    #[serde(rename = "time_ns")]
    Time(u64),
}

impl Default for QueueLimit {
    fn default() -> Self {
        Self::Packets(1000)
    }
}

impl QueueLimit {
    /// The same in packets or bytes where it is in time and there is a rate.
    #[must_use]
    pub fn at_rate(self, rate: Option<BitRate>) -> Self {
        match (self, rate) {
            (Self::Time(ns), Some(rate)) => {
                let bytes = u128::from(rate.as_bps()) * u128::from(ns) / 8_000_000_000;
                Self::Bytes(u64::try_from(bytes).unwrap_or(u64::MAX))
            }
            _ => self,
        }
    }

    /// Whether it can be one.
    pub(crate) fn check(self, key: &str) -> Result<(), SettingError> {
        match self {
            Self::Packets(0) | Self::Bytes(0) | Self::Time(0) => Err(SettingError::new(
                key,
                "of 0 would drop every packet that has to wait",
                "give at least 1 packet or 1 byte",
            )),
            Self::Packets(limit) | Self::Bytes(limit) if limit > MAX_QUEUE => Err(SettingError::new(
                key,
                format!("of {limit} is more than {MAX_QUEUE} packets or bytes"),
                "give a smaller limit",
            )),
            Self::Time(ns) if ns > MAX_TIME_NS => Err(SettingError::new(
                key,
                format!("of {ns} ns is longer than {} s", MAX_TIME_NS / 1_000_000_000),
                "give a shorter time",
            )),
            _ => Ok(()),
        }
    }
}

/// Which packets a queue drops or marks, and which goes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Discipline {
    /// First in, first out; where the queue is full, arriving packets are dropped.
    #[default]
    Fifo,
    /// First in, first out; where the queue is full, the packets that have waited longest are dropped.
    HeadDrop,
    /// Random early detection (Floyd and Jacobson 1993).
    Red,
    /// Controlled delay (RFC 8289).
    Codel,
    /// A queue with controlled delay for each flow (RFC 8290).
    FqCodel,
    /// Proportional integral controller enhanced (RFC 8033).
    Pie,
    /// Two queues, for senders of L4S and others (RFC 9332).
    Dualpi2,
    /// Common applications kept enhanced: a queue for each flow, equal shares for hosts, and tins by DSCP ("Piece of CAKE", LANMAN 2018).
    Cake,
}

impl Discipline {
    /// Whether it drops or marks packets before the queue is full.
    pub const fn is_active(self) -> bool {
        !matches!(self, Self::Fifo | Self::HeadDrop)
    }

    /// Whether it draws random numbers.
    pub const fn is_random(self) -> bool {
        matches!(self, Self::Red | Self::Pie | Self::FqCodel | Self::Dualpi2 | Self::Cake)
    }
}

/// The discipline of the queue, and its parameters. Those that it does not have are not there.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct QueueSettings {
    /// Which packets the queue before the link drops or marks, and which goes next.
    #[schemars(extend("only_with" = {"key": "rate_bps", "value": null}))]
    pub discipline: Discipline,
    /// Whether the queue marks packets whose senders take marks (ECN), where it would drop others.
    #[serde(rename = "queue_marks", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default_help" = "true",
        "only_with" = {"key": "discipline", "value": ["red", "codel", "fq_codel", "pie"]}
    ))]
    pub marking: Option<bool>,
    /// How long packets may wait before the queue begins to drop or mark.
    #[serde(rename = "queue_target_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_TIME_NS), extend(
        "default_help" = "5 ms; with pie and dualpi2 15 ms, with cake a twentieth of the interval",
        "only_with" = {"key": "discipline", "value": ["codel", "fq_codel", "pie", "dualpi2", "cake"]}
    ))]
    pub target: Option<Duration>,
    /// How long packets have to wait longer than the target before the first is dropped or marked.
    #[serde(rename = "queue_interval_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_TIME_NS), extend(
        "default_help" = "100 ms",
        "only_with" = {"key": "discipline", "value": ["codel", "fq_codel", "cake"]}
    ))]
    pub interval: Option<Duration>,
    /// Queues among which flows are divided.
    #[serde(rename = "queue_flows", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_FLOWS), extend(
        "default_help" = "1024",
        "only_with" = {"key": "discipline", "value": ["fq_codel"]}
    ))]
    pub flows: Option<u32>,
    /// What a flow sends in its turn.
    #[serde(rename = "queue_quantum_bytes", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 256, max = 1_000_000_000), extend(
        "default_help" = "1514 bytes",
        "only_with" = {"key": "discipline", "value": ["fq_codel"]}
    ))]
    pub quantum: Option<Bytes>,
    /// How often the probability of a drop or a mark is computed.
    #[serde(rename = "queue_update_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = MIN_UPDATE_NS, max = MAX_TIME_NS), extend(
        "default_help" = "15 ms; with dualpi2 16 ms",
        "only_with" = {"key": "discipline", "value": ["pie", "dualpi2"]}
    ))]
    pub update: Option<Duration>,
    /// How much the probability grows at each update, for each second of delay beyond the target.
    #[serde(rename = "queue_alpha", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000), extend(
        "default_help" = "0.125; with dualpi2 0.16",
        "only_with" = {"key": "discipline", "value": ["pie", "dualpi2"]}
    ))]
    pub alpha: Option<f64>,
    /// How much the probability grows at each update, for each second by which the delay has grown.
    #[serde(rename = "queue_beta", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1000), extend(
        "default_help" = "1.25; with dualpi2 3.2",
        "only_with" = {"key": "discipline", "value": ["pie", "dualpi2"]}
    ))]
    pub beta: Option<f64>,
    /// How long a burst may be that is let through after the queue was short.
    #[serde(rename = "pie_burst_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(max = MAX_TIME_NS), extend(
        "default_help" = "150 ms",
        "only_with" = {"key": "discipline", "value": ["pie"]}
    ))]
    pub burst_allowance: Option<Duration>,
    /// How many times as large the probability of a mark of L4S is as the square root of that of a drop.
    #[serde(rename = "dualpi2_coupling", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 100), extend(
        "default_help" = "2",
        "only_with" = {"key": "discipline", "value": ["dualpi2"]}
    ))]
    pub coupling: Option<f64>,
    /// How long an L4S packet may wait without a mark.
    #[serde(rename = "dualpi2_step_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(max = MAX_TIME_NS), extend(
        "default_help" = "1 ms",
        "only_with" = {"key": "discipline", "value": ["dualpi2"]}
    ))]
    pub step: Option<Duration>,
    /// Into which tins packets are sorted by their DSCP, each with a rate of its own up to which it goes before the others.
    #[serde(rename = "cake_tins", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default_help" = "diffserv3",
        "only_with" = {"key": "discipline", "value": ["cake"]}
    ))]
    pub tins: Option<Tins>,
    /// Who gets an equal share of the link: flows, hosts, or both.
    #[serde(rename = "cake_isolation", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default_help" = "triple_isolate",
        "only_with" = {"key": "discipline", "value": ["cake"]}
    ))]
    pub isolation: Option<Isolation>,
    /// Mean queue from which on packets are dropped or marked at random.
    #[serde(rename = "red_min_bytes", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_QUEUE), extend(
        "default_help" = "5 packets of 1500 bytes",
        "only_with" = {"key": "discipline", "value": ["red"]}
    ))]
    pub red_minimum: Option<Bytes>,
    /// Mean queue from which on every packet is dropped.
    #[serde(rename = "red_max_bytes", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_QUEUE), extend(
        "default_help" = "three times red_min",
        "only_with" = {"key": "discipline", "value": ["red"]}
    ))]
    pub red_maximum: Option<Bytes>,
    /// Probability of a drop or a mark where the mean queue is just below `red_max`.
    #[serde(rename = "red_probability", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1), extend(
        "unit" = "probability",
        "default_help" = "0.02",
        "only_with" = {"key": "discipline", "value": ["red"]}
    ))]
    pub red_probability: Option<Probability>,
    /// Weight of the queue of now in the mean queue.
    #[serde(rename = "red_weight", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.000_001, max = 1), extend(
        "default_help" = "0.002",
        "only_with" = {"key": "discipline", "value": ["red"]}
    ))]
    pub red_weight: Option<f64>,
}

/// Fills in the default of a parameter that the discipline has; one that it does not have is refused.
fn fill<T>(parameter: &mut Option<T>, default: Option<T>, key: &str, has: &str) -> Result<(), SettingError> {
    if parameter.is_some() && default.is_none() {
        let problem = "is set but the discipline does not have it";
        return Err(SettingError::new(key, problem, format!("leave {key} out, or choose {has}")));
    }
    if parameter.is_none() {
        *parameter = default;
    }
    Ok(())
}

impl QueueSettings {
    /// Keys that are the same at all times.
    pub(crate) const FIXED: &'static [&'static str] = &["discipline", "queue_flows", "cake_tins", "cake_isolation"];

    /// The limit that the discipline has in Linux.
    pub(crate) fn default_limit(&self, rate: Option<BitRate>) -> QueueLimit {
        match self.discipline {
            Discipline::FqCodel => QueueLimit::Packets(10_240),
            Discipline::Dualpi2 => QueueLimit::Packets(10_000),
            Discipline::Cake => QueueLimit::Bytes(default_memory(rate, self.interval.unwrap_or_default())),
            _ => QueueLimit::default(),
        }
    }

    /// Fills in the parameters of the discipline, and refuses those that it does not have.
    pub(crate) fn complete(&mut self) -> Result<(), SettingError> {
        use Discipline::{Cake, Codel, Dualpi2, FqCodel, Pie, Red};
        let is = self.discipline;
        let millis = |ms: u64| Some(Duration::from_millis(ms));
        let codel = matches!(is, Codel | FqCodel);
        let marks = (is == Red || is == Pie || codel).then_some(true);
        fill(&mut self.marking, marks, "queue_marks", "red, codel, fq_codel or pie")?;
        let of = |discipline: Discipline| is == discipline;
        fill(&mut self.tins, of(Cake).then(Tins::default), "cake_tins", "cake")?;
        fill(&mut self.isolation, of(Cake).then(Isolation::default), "cake_isolation", "cake")?;
        let interval = millis(100).filter(|_| codel || is == Cake);
        fill(&mut self.interval, interval, "queue_interval_ns", "codel, fq_codel or cake")?;
        let target = match is {
            Codel | FqCodel => millis(5),
            Pie | Dualpi2 => millis(15),
            // Linux takes a twentieth of the round trip that it is told.
            Cake => self.interval.map(|interval| Duration::from_nanos((interval.as_nanos() / 20).max(1))),
            _ => None,
        };
        fill(&mut self.target, target, "queue_target_ns", "codel, fq_codel, pie, dualpi2 or cake")?;
        fill(&mut self.flows, of(FqCodel).then_some(1024), "queue_flows", "fq_codel")?;
        fill(&mut self.quantum, of(FqCodel).then_some(Bytes(1514)), "queue_quantum_bytes", "fq_codel")?;
        let (update, alpha, beta) = match is {
            Pie => (millis(15), Some(0.125), Some(1.25)),
            Dualpi2 => (millis(16), Some(0.16), Some(3.2)),
            _ => (None, None, None),
        };
        fill(&mut self.update, update, "queue_update_ns", "pie or dualpi2")?;
        fill(&mut self.alpha, alpha, "queue_alpha", "pie or dualpi2")?;
        fill(&mut self.beta, beta, "queue_beta", "pie or dualpi2")?;
        fill(&mut self.burst_allowance, millis(150).filter(|_| of(Pie)), "pie_burst_ns", "pie")?;
        fill(&mut self.coupling, of(Dualpi2).then_some(2.0), "dualpi2_coupling", "dualpi2")?;
        fill(&mut self.step, millis(1).filter(|_| of(Dualpi2)), "dualpi2_step_ns", "dualpi2")?;
        fill(&mut self.red_minimum, of(Red).then_some(Bytes(7500)), "red_min_bytes", "red")?;
        let maximum = self.red_minimum.map(|minimum| Bytes(3 * minimum.0));
        fill(&mut self.red_maximum, maximum, "red_max_bytes", "red")?;
        let probability = Probability::new(0.02).ok().filter(|_| of(Red));
        fill(&mut self.red_probability, probability, "red_probability", "red")?;
        fill(&mut self.red_weight, of(Red).then_some(0.002), "red_weight", "red")?;
        if self.red_maximum <= self.red_minimum && self.red_minimum.is_some() {
            return Err(SettingError::new("red_max_bytes", "is not more than red_min_bytes", "give a greater red_max"));
        }
        Ok(())
    }
}
