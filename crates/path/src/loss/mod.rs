//! Loss: independent, in bursts, of certain packets, as recorded, or by bit errors. One model at a time.
//!
//! Lost packets are a function of the seed and the packet's index, whatever the timing; for bursts with a length in
//! time, of the seed and the time. After a change of settings, it is as if the new ones had always held.

mod markov;
mod outages;

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::{Cause, Effect, Element, ElementSettings, Outcome, Packet, Schedule, filter};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use crosswind_settings::{SettingError, plain};
use crosswind_units::{Chance, Duration, Probability, Seed};
use markov::{Chain, Markov};
use outages::Outages;

/// A packet was lost.
pub const LOSS: Cause = Cause::new("loss");

/// A mean time in one state: from 1 us to 1 day.
const MIN_TIME_NS: u64 = 1_000;
const MAX_TIME_NS: u64 = 86_400_000_000_000;

/// A burst of more packets is an outage: a change over time says when it is.
const MAX_BURST: f64 = 1e6;

/// The packet size for a loss stated by bit errors.
const FULL_PACKET_BITS: u64 = 1500 * 8;

/// Loss. With `loss` alone, each packet is lost with the same probability, independently of the others; other keys make losses come
/// in bursts, or say which packets are lost.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LossSettings {
    /// Probability that a packet is lost. 1 loses every packet, whatever else is set.
    #[serde(rename = "loss")]
    #[schemars(with = "f64", range(min = 0, max = 1), extend("unit" = "probability"))]
    pub probability: Probability,
    /// Mean number of packets in a burst of lost ones: losses come together where it is more than 1/(1 - `loss`).
    #[serde(rename = "loss_burst", skip_serializing_if = "Option::is_none")]
    #[schemars(
        range(min = 1, max = MAX_BURST),
        extend("only_with" = {"key": "loss", "value": null}, "default_help" = "1/(1 - loss): independent losses")
    )]
    pub burst: Option<f64>,
    /// Mean time that a burst of losses lasts, whatever the number of packets; with `loss`, or with `loss_good`.
    #[serde(rename = "loss_bad_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = MIN_TIME_NS, max = MAX_TIME_NS))]
    pub bad_time: Option<Duration>,
    /// Mean time between two bursts of `loss_bad`.
    #[serde(rename = "loss_good_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "Option<u64>",
        range(min = MIN_TIME_NS, max = MAX_TIME_NS),
        extend("only_with" = {"key": "loss_bad_ns", "value": null}, "default_help" = "what makes loss")
    )]
    pub good_time: Option<Duration>,
    /// Probability that the good state turns into the bad one, at each packet: p of the Gilbert-Elliott model.
    #[serde(rename = "loss_enter", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1), extend("unit" = "probability"))]
    pub enter: Option<Probability>,
    /// Probability that the bad state turns into the good one, at each packet: r of the Gilbert-Elliott model.
    #[serde(rename = "loss_leave", skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "Option<f64>",
        range(min = 0, max = 1),
        extend("unit" = "probability", "only_with" = {"key": "loss_enter", "value": null}, "default_help" = "1 - loss_enter")
    )]
    pub leave: Option<Probability>,
    /// Probability that a packet is lost in the bad state (1-h), with `loss_enter` or `loss_good`.
    #[serde(rename = "loss_in_bad", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1), extend("unit" = "probability", "default_help" = "1"))]
    pub in_bad: Option<Probability>,
    /// Probability that a packet is lost in the good state (1-k), with `loss_enter` or `loss_good`.
    #[serde(rename = "loss_in_good", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1), extend("unit" = "probability", "default_help" = "0"))]
    pub in_good: Option<Probability>,
    /// Of the model with 4 states (1 good, 2 good within a burst, 3 lost within a burst, 4 lost alone): from 1 to 3.
    #[serde(rename = "loss_p13", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1), extend("unit" = "probability"))]
    pub p13: Option<Probability>,
    /// The same, from 3 to 1.
    #[serde(rename = "loss_p31", skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "Option<f64>",
        range(min = 0, max = 1),
        extend("unit" = "probability", "only_with" = {"key": "loss_p13", "value": null}, "default_help" = "1 - loss_p13")
    )]
    pub p31: Option<Probability>,
    /// The same, from 3 to 2.
    #[serde(rename = "loss_p32", skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "Option<f64>",
        range(min = 0, max = 1),
        extend("unit" = "probability", "only_with" = {"key": "loss_p13", "value": null}, "default_help" = "0")
    )]
    pub p32: Option<Probability>,
    /// The same, from 2 to 3.
    #[serde(rename = "loss_p23", skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "Option<f64>",
        range(min = 0, max = 1),
        extend("unit" = "probability", "only_with" = {"key": "loss_p13", "value": null}, "default_help" = "1")
    )]
    pub p23: Option<Probability>,
    /// The same, from 1 to 4.
    #[serde(rename = "loss_p14", skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "Option<f64>",
        range(min = 0, max = 1),
        extend("unit" = "probability", "only_with" = {"key": "loss_p13", "value": null}, "default_help" = "0")
    )]
    pub p14: Option<Probability>,
    /// The packets that are lost, by their index in the direction, from 0 (`index` of packets.arrow).
    #[serde(rename = "lose", skip_serializing_if = "Option::is_none")]
    #[schemars(inner(range(min = 0)))]
    pub indexes: Option<Vec<u64>>,
    /// Loses every packet of this number: with 10 the tenth, the twentieth, and so on.
    #[serde(rename = "lose_every", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub every: Option<u64>,
    /// What becomes of one packet after another, as recorded: 1 is lost, 0 is not. Repeated from the start at its end.
    #[serde(rename = "loss_sequence", skip_serializing_if = "Option::is_none")]
    #[schemars(inner(range(min = 0, max = 1)))]
    pub sequence: Option<Vec<u8>>,
    /// Probability that a bit is wrong: a packet is lost with 1 - (1 - this)^bits.
    #[serde(rename = "bit_error_rate", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1), extend("unit" = "probability"))]
    pub bit_errors: Option<Probability>,
}

impl ElementSettings for LossSettings {
    fn element(settings: Schedule<Self>, seed: Seed) -> Option<Box<dyn Element>> {
        settings.ever(|settings| settings.model() != Ok(Model::None)).then(|| losses(settings, seed))
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[LOSS]
    }

    fn effect(&self) -> Effect {
        let model = self.model().unwrap_or(Model::None);
        let [loss, loss_after_loss] = model.shares().map(probability);
        let loss_memory = match &model {
            Model::Outages(outages) => Some(outages.memory()),
            _ => None,
        };
        let bit_error_rate = match &model {
            Model::BitErrors(rate) => rate.as_fraction(),
            _ => 0.0,
        };
        // Of certain packets, a share says nothing.
        let changes = matches!(model, Model::Indexes(_));
        Effect { loss, bit_error_rate, loss_after_loss, loss_memory, changes, ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        matches!(self.model(), Ok(Model::Independent(..) | Model::Markov(_) | Model::Outages(_) | Model::BitErrors(_)))
    }

    fn complete(&mut self) -> Result<(), SettingError> {
        self.model().map(|_| ())
    }
}

/// Losses, as a rule for other elements too.
#[derive(Clone, Debug, PartialEq)]
pub enum LossRule {
    /// No packet is lost.
    None,
    /// Each with the same probability.
    Independent(Probability),
    /// By a chain of states, with a step per packet: each state's transition probabilities, and its loss.
    Markov {
        /// For each state.
        rows: Vec<Vec<f64>>,
        /// For each state.
        loss: Vec<f64>,
    },
    /// By time, index or size.
    Other,
}

/// Drops the packets lost by the settings.
pub fn losses(settings: Schedule<LossSettings>, seed: Seed) -> Box<dyn Element> {
    let mut models = settings.map(|settings| settings.model().unwrap_or(Model::None));
    let states = seed.child("state");
    filter(move |packet| {
        let lost = models.at_mut(packet.at).loses(packet, seed, states);
        if lost { Outcome::Drops(LOSS) } else { Outcome::Passes }
    })
}

/// The loss model.
#[derive(Clone, Debug, PartialEq)]
enum Model {
    None,
    Independent(Probability, Chance),
    Markov(Chain),
    Outages(Outages),
    /// In ascending order.
    Indexes(Vec<u64>),
    Every(u64),
    Sequence(Vec<u8>),
    BitErrors(Probability),
}

impl Model {
    fn independent(probability: Probability) -> Self {
        Self::Independent(probability, probability.chance())
    }

    fn loses(&mut self, packet: &Packet, seed: Seed, states: Seed) -> bool {
        let index = packet.index;
        match self {
            Self::None => false,
            Self::Independent(_, chance) => chance.happens(packet.word(seed)),
            Self::Markov(chain) => chain.loss(states, index).happens(packet.word(seed)),
            Self::Outages(outages) => outages.loss(states, packet.at).happens(packet.word(seed)),
            Self::Indexes(indexes) => indexes.binary_search(&index).is_ok(),
            Self::Every(number) => (index + 1).is_multiple_of(*number),
            Self::Sequence(lost) => lost[(index % lost.len() as u64) as usize] == 1,
            Self::BitErrors(rate) => probability(wrong(*rate, packet.size.0 * 8)).happens(packet.word(seed)),
        }
    }

    /// The share of lost packets, and that share right behind a lost one.
    fn shares(&self) -> [f64; 2] {
        match self {
            Self::None | Self::Indexes(_) => [0.0, 0.0],
            Self::Independent(probability, _) => [probability.as_fraction(); 2],
            Self::Markov(chain) => chain.markov().shares(),
            Self::Outages(outages) => outages.shares(),
            Self::Every(number) => [1.0 / *number as f64, if *number == 1 { 1.0 } else { 0.0 }],
            Self::Sequence(lost) => {
                let count = lost.iter().map(|lost| f64::from(*lost)).sum::<f64>();
                let behind = lost.iter().skip(1).chain(lost.first());
                let twice = lost.iter().zip(behind).filter(|pair| *pair == (&1, &1)).count() as f64;
                [count / lost.len() as f64, if count > 0.0 { twice / count } else { 0.0 }]
            }
            Self::BitErrors(rate) => [wrong(*rate, FULL_PACKET_BITS); 2],
        }
    }
}

/// The probability of at least one wrong bit among so many. By logarithms, as 1 - 1e-12 has few digits.
fn wrong(rate: Probability, bits: u64) -> f64 {
    -libm::expm1(bits as f64 * libm::log1p(-rate.as_fraction()))
}

fn probability(share: f64) -> Probability {
    Probability::new(share.clamp(0.0, 1.0)).unwrap_or_default()
}

/// The models, each with its keys.
const MODELS: [(&str, &[&str]); 7] = [
    ("loss_enter", &["loss_leave", "loss_in_bad", "loss_in_good"]),
    ("loss_bad_ns", &["loss", "loss_good_ns", "loss_in_bad", "loss_in_good"]),
    ("loss_p13", &["loss_p31", "loss_p32", "loss_p23", "loss_p14"]),
    ("lose", &[]),
    ("lose_every", &[]),
    ("loss_sequence", &[]),
    ("bit_error_rate", &[]),
];

impl LossSettings {
    /// The loss rule.
    pub fn rule(&self) -> LossRule {
        match self.model() {
            Ok(Model::None) | Err(_) => LossRule::None,
            Ok(Model::Independent(probability, _)) => LossRule::Independent(probability),
            Ok(Model::Markov(chain)) => {
                let (rows, loss) = chain.markov().probabilities();
                LossRule::Markov { rows: rows.to_vec(), loss: loss.to_vec() }
            }
            Ok(_) => LossRule::Other,
        }
    }

    /// # Errors
    /// Settings of two models, or of no possible one.
    fn model(&self) -> Result<Model, SettingError> {
        if self.probability.as_fraction() >= 1.0 {
            return Ok(Model::independent(self.probability));
        }
        let set = self.set();
        let chosen: Vec<_> = MODELS.iter().filter(|(key, _)| set.contains(key)).collect();
        let (name, own): (&str, &[&str]) = match *chosen {
            [] => ("loss", &["loss_burst"]),
            [(key, own)] => (key, own),
            [(first, _), (second, _), ..] => return Err(excluded(second, first)),
        };
        if let Some(other) = set.iter().find(|key| **key != name && !own.contains(key)) {
            return Err(if ["loss", "loss_burst"].contains(other) {
                excluded(name, other)
            } else if name == "loss" {
                let needed = MODELS.iter().filter(|(_, own)| own.contains(other)).map(|(key, _)| plain(key));
                SettingError::new(
                    *other,
                    format!("is set but {} is not", needed.collect::<Vec<_>>().join(" or ")),
                    "docs/study.md says which keys of loss belong together",
                )
            } else {
                excluded(other, name)
            });
        }
        let or = |key: Option<Probability>, default: f64| key.map_or(default, Probability::as_fraction);
        let in_states = || [or(self.in_good, 0.0), or(self.in_bad, 1.0)];
        if let Some(enter) = self.enter.map(Probability::as_fraction) {
            return gilbert_elliott(enter, or(self.leave, 1.0 - enter), in_states());
        }
        if let Some(bad) = self.bad_time {
            return self.outages(bad, in_states());
        }
        if let Some(p13) = self.p13.map(Probability::as_fraction) {
            let [p31, p32] = [or(self.p31, 1.0 - p13), or(self.p32, 0.0)];
            return four_states([p13, p31, p32, or(self.p23, 1.0), or(self.p14, 0.0)]);
        }
        if let Some(rate) = self.bit_errors {
            return Ok(if rate > Probability::ZERO { Model::BitErrors(rate) } else { Model::None });
        }
        if let Some(number) = self.every {
            return Ok(Model::Every(number));
        }
        if let Some(indexes) = &self.indexes {
            let mut indexes = indexes.clone();
            indexes.sort_unstable();
            return Ok(if indexes.is_empty() { Model::None } else { Model::Indexes(indexes) });
        }
        if let Some(lost) = &self.sequence {
            return Ok(if lost.contains(&1) { Model::Sequence(lost.clone()) } else { Model::None });
        }
        match self.burst {
            _ if self.probability == Probability::ZERO => Ok(Model::None),
            None => Ok(Model::independent(self.probability)),
            Some(burst) => bursts(self.probability.as_fraction(), burst),
        }
    }

    /// Losses with a length in time.
    fn outages(&self, bad: Duration, in_states: [f64; 2]) -> Result<Model, SettingError> {
        let loss = self.probability.as_fraction();
        let bad_ns = bad.as_nanos() as f64;
        match self.good_time {
            Some(_) if loss > 0.0 => Err(excluded("loss_good_ns", "loss")),
            Some(good) => Ok(Model::Outages(Outages::new(good.as_nanos() as f64, bad_ns, in_states.map(probability)))),
            None if self.in_bad.or(self.in_good).is_some() => Err(SettingError::missing(
                "loss_good_ns",
                "with loss_in_bad or loss_in_good, give the mean time in each state",
            )),
            None if loss > 0.0 => {
                let good_ns = bad_ns * (1.0 - loss) / loss;
                if good_ns < MIN_TIME_NS as f64 {
                    return Err(SettingError::new(
                        "loss_bad_ns",
                        format!("{} with a loss of {loss} leaves {good_ns:.0} ns between bursts", bad.as_nanos()),
                        format!("there are at least {MIN_TIME_NS} ns: give longer bursts, or less loss"),
                    ));
                }
                Ok(Model::Outages(Outages::new(good_ns, bad_ns, in_states.map(probability))))
            }
            None => Ok(Model::None),
        }
    }

    /// The given keys.
    fn set(&self) -> Vec<&'static str> {
        let keys = [
            ("loss", self.probability > Probability::ZERO),
            ("loss_burst", self.burst.is_some()),
            ("loss_bad_ns", self.bad_time.is_some()),
            ("loss_good_ns", self.good_time.is_some()),
            ("loss_enter", self.enter.is_some()),
            ("loss_leave", self.leave.is_some()),
            ("loss_in_bad", self.in_bad.is_some()),
            ("loss_in_good", self.in_good.is_some()),
            ("loss_p13", self.p13.is_some()),
            ("loss_p31", self.p31.is_some()),
            ("loss_p32", self.p32.is_some()),
            ("loss_p23", self.p23.is_some()),
            ("loss_p14", self.p14.is_some()),
            ("lose", self.indexes.is_some()),
            ("lose_every", self.every.is_some()),
            ("loss_sequence", self.sequence.is_some()),
            ("bit_error_rate", self.bit_errors.is_some()),
        ];
        keys.into_iter().filter(|(_, is_set)| *is_set).map(|(key, _)| key).collect()
    }
}

fn excluded(key: &str, other: &str) -> SettingError {
    SettingError::new(
        key,
        format!("and {} exclude each other", plain(other)),
        "a hop loses packets by one model in each direction",
    )
}

/// Gilbert's model by its two plain numbers.
fn bursts(loss: f64, burst: f64) -> Result<Model, SettingError> {
    let (leave, least) = (1.0 / burst, loss / (1.0 - loss));
    if burst < least {
        return Err(SettingError::new(
            "loss_burst",
            format!("{burst} is too short for a loss of {loss}"),
            format!("where {loss} of all packets are lost, a mean burst has at least {least:.3} packets"),
        ));
    }
    gilbert_elliott(leave * least, leave, [0.0, 1.0])
}

fn gilbert_elliott(enter: f64, leave: f64, in_states: [f64; 2]) -> Result<Model, SettingError> {
    if leave == 0.0 && enter > 0.0 {
        return Err(SettingError::new("loss_leave", "0 lets the first burst never end", "give more than 0"));
    }
    let bad = if enter > 0.0 { enter / (enter + leave) } else { 0.0 };
    let markov = Markov::new(&[&[1.0 - enter, enter], &[leave, 1.0 - leave]], &[1.0 - bad, bad], &in_states);
    Ok(Model::Markov(Chain::new(markov)))
}

fn four_states([p13, p31, p32, p23, p14]: [f64; 5]) -> Result<Model, SettingError> {
    for (keys, sum) in [(["loss_p13", "loss_p14"], p13 + p14), (["loss_p31", "loss_p32"], p31 + p32)] {
        if sum > 1.0 + 1e-9 {
            let problem = format!("and {} are {sum:.6} together", keys[1]);
            return Err(SettingError::new(keys[0], problem, "both leave one state: together they are 1 at most"));
        }
    }
    if p13 > 0.0 && p31 + p32 == 0.0 {
        return Err(SettingError::new(
            "loss_p31",
            "and loss_p32 are 0: no burst would end",
            "give one of them more than 0",
        ));
    }
    if p32 > 0.0 && p23 == 0.0 {
        return Err(SettingError::new(
            "loss_p23",
            "0 lets state 2 never end",
            "give more than 0, or leave loss_p32 out",
        ));
    }
    // Of the states together: as often from 1 to 3 as back, from 3 to 2 as back, from 1 to 4 as back. Without an end of bursts but in
    // state 2, state 1 is left for good.
    let weights = if p13 == 0.0 { [1.0, 0.0, 0.0, p14] } else { [p31 * p23, p13 * p32, p13 * p23, p14 * p31 * p23] };
    let weights = if p13 > 0.0 && p32 == 0.0 { [p31, 0.0, p13, p14 * p31] } else { weights };
    let all: f64 = weights.iter().sum();
    let rows: [[f64; 4]; 4] = [
        [1.0 - p13 - p14, 0.0, p13, p14],
        [0.0, 1.0 - p23, p23, 0.0],
        [p31, p32, 1.0 - p31 - p32, 0.0],
        [1.0, 0.0, 0.0, 0.0],
    ];
    let rows: Vec<&[f64]> = rows.iter().map(<[f64; 4]>::as_slice).collect();
    Ok(Model::Markov(Chain::new(Markov::new(&rows, &weights.map(|weight| weight / all), &[0.0, 0.0, 1.0, 1.0]))))
}
