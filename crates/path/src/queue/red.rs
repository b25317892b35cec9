//! Random early detection, RED (Floyd and Jacobson 1993): arriving packets are dropped with a probability that grows
//! with the mean queue. ECN-capable packets are marked while the mean is below the upper threshold (RFC 3168).

use super::backlog::{Backlog, Limit, MAX_QUEUE};
use super::discipline::{AQM, LinkFacts, Managed, Moment, QUEUE_FULL, Queue, fraction, mark};
use super::shared::{Signals, fill};
use crate::Packet;
use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::rate::LinkRate;
use alloc::boxed::Box;
use crosswind_settings::SettingError;
use crosswind_units::{Bytes, Duration, Instant, Probability, Seed};

/// The mean packet size: while the link is idle, the mean queue falls as often as such packets could have left.
const MEAN_PACKET: Bytes = Bytes(1000);

/// The keys of RED.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct RedSettings {
    /// Mean queue from which on packets are dropped or marked at random.
    #[serde(rename = "red_min_bytes", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_QUEUE), extend(
        "default_help" = "5 packets of 1500 bytes",
        "only_with" = {"key": "discipline", "value": ["red"]}
    ))]
    pub minimum: Option<Bytes>,
    /// Mean queue from which on every packet is dropped.
    #[serde(rename = "red_max_bytes", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_QUEUE), extend(
        "default_help" = "three times red_min",
        "only_with" = {"key": "discipline", "value": ["red"]}
    ))]
    pub maximum: Option<Bytes>,
    /// Probability of a drop or a mark where the mean queue is just below `red_max`.
    #[serde(rename = "red_probability", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0, max = 1), extend(
        "unit" = "probability",
        "default_help" = "0.02",
        "only_with" = {"key": "discipline", "value": ["red"]}
    ))]
    pub probability: Option<Probability>,
    /// Weight of the queue of now in the mean queue.
    #[serde(rename = "red_weight", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.000_001, max = 1), extend(
        "default_help" = "0.002",
        "only_with" = {"key": "discipline", "value": ["red"]}
    ))]
    pub weight: Option<f64>,
}

impl RedSettings {
    /// Fills in defaults if the discipline `is` chosen, else refuses its keys.
    pub fn complete(&mut self, is: bool) -> Result<(), SettingError> {
        fill(&mut self.minimum, is.then_some(Bytes(7500)), "red_min_bytes", "red")?;
        let maximum = self.minimum.map(|minimum| Bytes(3 * minimum.0));
        fill(&mut self.maximum, maximum, "red_max_bytes", "red")?;
        let probability = Probability::new(0.02).ok().filter(|_| is);
        fill(&mut self.probability, probability, "red_probability", "red")?;
        fill(&mut self.weight, is.then_some(0.002), "red_weight", "red")?;
        if self.maximum <= self.minimum && self.minimum.is_some() {
            return Err(SettingError::new("red_max_bytes", "is not more than red_min", "give a greater red_max"));
        }
        Ok(())
    }
}

/// A queue with RED.
pub struct Red {
    backlog: Backlog,
    limit: Limit,
    rules: Rules,
    seed: Seed,
    /// The mean queue in bytes (EWMA over arrivals).
    mean: f64,
    /// Packets since the last drop or mark, or since the mean queue passed the lower threshold.
    count: u64,
    /// Since when the link has had nothing to send.
    idle: Option<Instant>,
}

struct Rules {
    minimum: f64,
    maximum: f64,
    probability: f64,
    weight: f64,
    marking: bool,
    /// The link's time for a mean packet, endless while stalled.
    each_ns: u64,
}

impl Rules {
    fn of(link: &LinkFacts<'_>, own: &RedSettings) -> Self {
        let bytes = |bytes: Option<Bytes>| bytes.unwrap_or_default().0 as f64;
        Self {
            minimum: bytes(own.minimum),
            maximum: bytes(own.maximum),
            probability: own.probability.unwrap_or_default().as_fraction(),
            weight: own.weight.unwrap_or_default(),
            marking: link.signals.marking.unwrap_or_default(),
            each_ns: match link.rate {
                None => 1,
                Some(LinkRate::Stopped) => u64::MAX,
                Some(LinkRate::Of(rate)) => rate.transmission(MEAN_PACKET, 0).duration.as_nanos().max(1),
            },
        }
    }
}

impl Red {
    fn average(&mut self, now: Instant) {
        match self.idle.take() {
            Some(since) => {
                let each = self.rules.each_ns;
                let packets = (now.saturating_since(since).as_nanos() / each).min(1 << 20);
                self.mean *= power(1.0 - self.rules.weight, packets);
            }
            None => self.mean += self.rules.weight * (self.backlog.bytes() as f64 - self.mean),
        }
    }

    /// Whether the packet is dropped, or may be marked instead.
    fn verdict(&mut self, packet: &Packet) -> Verdict {
        let Rules { minimum, maximum, probability, .. } = self.rules;
        if self.mean < minimum || self.mean >= maximum {
            self.count = 0;
            return if self.mean < minimum { Verdict::Passes } else { Verdict::Drops };
        }
        // Section 7 of the paper: so each gap 1, 2, .. 1/base has the same probability. (Its figure 2 counts one more
        // packet, excluding the last gap.)
        let base = probability * (self.mean - minimum) / (maximum - minimum);
        let spread = 1.0 - self.count as f64 * base;
        let chance = if spread > 0.0 { base / spread } else { 1.0 };
        let hit = fraction(packet.word(self.seed)) < chance;
        self.count = if hit { 0 } else { self.count + 1 };
        if hit { Verdict::Marks } else { Verdict::Passes }
    }
}

enum Verdict {
    Passes,
    Marks,
    Drops,
}

/// `base` to the power of `exponent`, by squaring: the same on every machine.
fn power(mut base: f64, mut exponent: u64) -> f64 {
    let mut product = 1.0;
    while exponent > 0 {
        if exponent & 1 == 1 {
            product *= base;
        }
        base *= base;
        exponent >>= 1;
    }
    product
}

impl Queue for Red {
    fn enqueue(&mut self, moment: &mut Moment<'_>, mut packet: Box<Packet>) {
        self.average(moment.now);
        let drops = match self.verdict(&packet) {
            Verdict::Passes => false,
            Verdict::Marks => !mark(&mut packet, self.rules.marking),
            Verdict::Drops => true,
        };
        let size = self.backlog.size(&packet);
        if drops {
            moment.drop(packet, AQM);
        } else if self.limit.takes_or_is_empty(self.backlog.len(), self.backlog.bytes(), size) {
            self.backlog.push(packet);
        } else {
            moment.drop(packet, QUEUE_FULL);
        }
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Box<Packet>> {
        let packet = self.backlog.pop();
        if packet.is_none() {
            self.idle.get_or_insert(moment.now);
        }
        packet
    }

    fn len(&self) -> usize {
        self.backlog.len()
    }
}

impl Managed for Red {
    type Own = RedSettings;

    fn signals(_interval: Option<Duration>) -> Signals {
        Signals { marking: Some(true), ..Signals::default() }
    }

    fn new(link: &LinkFacts<'_>, own: &Self::Own, seed: Seed) -> Self {
        Self {
            backlog: Backlog::new(link.counting),
            limit: link.limit,
            rules: Rules::of(link, own),
            seed,
            mean: 0.0,
            count: 0,
            idle: Some(Instant::ZERO),
        }
    }

    fn change(&mut self, _now: Instant, link: &LinkFacts<'_>, own: &Self::Own) {
        self.limit = link.limit;
        self.rules = Rules::of(link, own);
    }
}
