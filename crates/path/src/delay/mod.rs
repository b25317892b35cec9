//! Propagation: every packet is delayed, by the same time or at random around a mean. The line has no limit and never
//! drops.
//!
//! Packets keep their order even if the delay is random or shrinks: none overtakes earlier arrivals. With `reorder`
//! they may; and some packets may take no time at all and overtake those in flight. A packet's fate is a function of
//! the seed and its index, whatever the timing.

mod jitter;
mod overtaking;
mod shape;

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::{Effect, Element, ElementSettings, Leaving, Packet, Schedule};
use alloc::boxed::Box;
use alloc::format;
use alloc::vec::Vec;
use crosswind_settings::SettingError;
use crosswind_units::{Duration, Instant, Probability, Seed};
use jitter::Jitter;
use overtaking::Overtaking;

use alloc::collections::{BinaryHeap, VecDeque};
use core::cmp::{Ordering, Reverse};
pub use shape::Distribution;
use shape::{Shape, ShapeSettings, Shapes};

/// The longest sensible delay: 10 minutes one way. Beyond it, a mistake in units is likelier.
const MAX_DELAY_NS: u64 = 600_000_000_000;

/// With more, the jitter hardly ever changes.
const MAX_CORRELATION: f64 = 0.999;

const MAX_GAP: u64 = 1000;

/// Propagation delay: the same for every packet, or with jitter; packets keep their order unless they may overtake each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DelaySettings {
    /// One-way propagation delay: the mean, where there is jitter.
    #[serde(rename = "delay_ns")]
    #[schemars(with = "u64", range(max = MAX_DELAY_NS))]
    pub delay: Duration,
    /// How much the delay differs from packet to packet: the standard deviation; of `uniform`, the most. No delay becomes negative.
    #[serde(rename = "jitter_ns")]
    #[schemars(with = "u64", range(max = MAX_DELAY_NS))]
    pub jitter: Duration,
    /// Distribution of the jitter, around the delay as its mean.
    #[serde(rename = "jitter_distribution", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("only_with" = {"key": "jitter_ns", "value": null}, "default_help" = "uniform"))]
    pub distribution: Option<Distribution>,
    /// Values that have the distribution of the jitter, as measured delays: any number of them, in any order and unit. Only their shape
    /// counts: the delay is the mean, and the jitter the standard deviation.
    #[serde(rename = "jitter_values", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("only_with" = {"key": "jitter_ns", "value": null}))]
    pub values: Option<Vec<f64>>,
    /// Probability that a packet has the jitter of the one before it. The jitter of packets that are k apart has this correlation to the
    /// power of k.
    #[serde(rename = "jitter_correlation")]
    #[schemars(with = "f64", range(min = 0, max = MAX_CORRELATION), extend("unit" = "probability"))]
    pub correlation: Probability,
    /// Whether packets may overtake each other, where their delays let them. Otherwise a packet waits for those before it.
    pub reorder: bool,
    /// Share of packets that take no delay and so overtake those in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "Option<f64>",
        range(min = 0, max = 1),
        extend("unit" = "probability", "default_help" = "0; 1 with reorder_gap")
    )]
    pub reorder_share: Option<Probability>,
    /// After a packet that overtakes, the next one to overtake is at least this many packets later; `reorder_share` says which. Without a
    /// share, one in this many packets overtakes.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = MAX_GAP), extend("default_help" = "1"))]
    pub reorder_gap: Option<u64>,
}

impl ElementSettings for DelaySettings {
    fn element(settings: Schedule<Self>, seed: Seed) -> Option<Box<dyn Element>> {
        let delays = settings.ever(|settings| settings.delay > Duration::ZERO);
        delays.then(|| Box::new(Delay::new(settings, seed)) as Box<dyn Element>)
    }

    fn longest_delay(&self) -> Duration {
        self.jitter_around_delay(Seed(0), &mut Shapes::default()).map_or(self.delay, |jitter| jitter.longest())
    }

    fn effect(&self) -> Effect {
        let overtaking = self.overtaking(Seed(0));
        let delayed = 1.0 - overtaking.as_ref().map_or(0.0, Overtaking::share);
        Effect {
            delay: Duration::from_nanos((self.delay.as_nanos() as f64 * delayed + 0.5) as u64),
            random_delay: self.is_random(),
            reorders: overtaking.is_some() || (self.reorder && self.jitter > Duration::ZERO),
            ..Effect::default()
        }
    }

    fn is_random(&self) -> bool {
        let overtakes_at_random = |share: Probability| share > Probability::ZERO && share.as_fraction() < 1.0;
        self.jitter > Duration::ZERO || self.reorder_share.is_some_and(overtakes_at_random)
    }

    fn complete(&mut self) -> Result<(), SettingError> {
        let least = self.shape()?.map_or(0.0, ShapeSettings::least);
        let below = -least * self.jitter.as_nanos() as f64;
        if below as u64 > self.delay.as_nanos() {
            let most = self.delay.as_nanos() as f64 / (below / self.jitter.as_nanos() as f64);
            return Err(SettingError::new(
                "jitter_ns",
                format!("{} makes some delays negative: the mean is {}", self.jitter.as_nanos(), self.delay.as_nanos()),
                format!("with this distribution and delay, it is {} ns at most", most as u64),
            ));
        }
        let overtakes = self.reorder_gap.is_some() || self.reorder_share.is_some_and(|share| share > Probability::ZERO);
        if overtakes && self.delay == Duration::ZERO {
            let key = if self.reorder_gap.is_some() { "reorder_gap" } else { "reorder_share" };
            let hint = "set delay: packets overtake those that are in flight";
            return Err(SettingError::new(key, "is set but delay is not", hint));
        }
        Ok(())
    }
}

impl DelaySettings {
    /// So many quantiles of the jitter's distribution at equal distances, where 1 stands for the jitter; none without jitter.
    pub fn jitter_quantiles(&self, number: u64) -> Option<Vec<f64>> {
        let shape = Shapes::default().get(self.shape().ok()??);
        let middle = |place: u64| ((u128::from(2 * place + 1) << 63) / u128::from(number)) as u64;
        Some((0..number).map(|place| shape.at(middle(place))).collect())
    }

    /// The share of overtaking packets, and their gap; none without any.
    pub fn overtaking_packets(&self) -> Option<(Probability, u64)> {
        let share = self.reorder_share.or_else(|| self.reorder_gap.and_then(|_| Probability::new(1.0).ok()))?;
        (share > Probability::ZERO).then(|| (share, self.reorder_gap.unwrap_or(1)))
    }

    /// # Errors
    /// Two distributions, or invalid values.
    fn shape(&self) -> Result<Option<ShapeSettings<'_>>, SettingError> {
        if let (Some(_), Some(_)) = (&self.values, self.distribution) {
            let hint = "the values are the distribution: leave jitter_distribution out";
            return Err(SettingError::new("jitter_values", "and jitter_distribution exclude each other", hint));
        }
        if self.values.as_ref().is_some_and(|values| !Shape::is_of_values(values)) {
            let hint = "give at least two values that differ";
            return Err(SettingError::new("jitter_values", "have no spread", hint));
        }
        if self.jitter == Duration::ZERO {
            return Ok(None);
        }
        let deviations = self.delay.as_nanos() as f64 / self.jitter.as_nanos() as f64;
        Ok(Some(match &self.values {
            Some(values) => ShapeSettings::Values(values),
            None => ShapeSettings::of(self.distribution.unwrap_or_default(), deviations),
        }))
    }

    /// `shapes` has the existing ones: a table of quantiles serves all settings with its shape.
    fn jitter_around_delay(&self, seed: Seed, shapes: &mut Shapes) -> Option<Jitter> {
        let shape = shapes.get(self.shape().ok()??);
        Some(Jitter::new(self.delay, self.jitter, shape, self.correlation, seed))
    }

    fn overtaking(&self, seed: Seed) -> Option<Overtaking> {
        self.overtaking_packets().map(|(share, gap)| Overtaking::new(share, gap, seed))
    }
}

/// A line; a packet takes the delay at its arrival.
pub struct Delay {
    lines: Schedule<Line>,
    in_flight: InFlight,
    /// The last departure among packets that keep their order.
    last_in_order: Instant,
}

/// The line by the settings.
struct Line {
    delay: Duration,
    jitter: Option<Jitter>,
    overtaking: Option<Overtaking>,
    reorder: bool,
}

impl Delay {
    /// An empty line, with random decisions from `seed`.
    pub fn new(settings: Schedule<DelaySettings>, seed: Seed) -> Self {
        let mut shapes = Shapes::default();
        let lines = settings.map(|settings| Line {
            delay: settings.delay,
            jitter: settings.jitter_around_delay(seed.child("jitter"), &mut shapes),
            overtaking: settings.overtaking(seed.child("overtaking")),
            reorder: settings.reorder,
        });
        Self { lines, in_flight: InFlight::default(), last_in_order: Instant::ZERO }
    }
}

impl Element for Delay {
    fn handle_packet(&mut self, mut packet: Box<Packet>) {
        let line = self.lines.at_mut(packet.at);
        if !line.overtaking.as_mut().is_some_and(|overtaking| overtaking.overtakes(&packet)) {
            match &mut line.jitter {
                Some(jitter) => jitter.delay(&mut packet),
                None => packet.propagate(line.delay),
            }
            if !line.reorder {
                packet.hold_until(self.last_in_order);
            }
            self.last_in_order = self.last_in_order.max(packet.at);
        }
        self.in_flight.insert(packet);
    }

    fn poll_packet(&mut self, now: Instant) -> Option<Leaving> {
        if self.in_flight.next()? > now {
            return None;
        }
        self.in_flight.pop().map(Leaving::Forwarded)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.in_flight.next()
    }

    fn carries_background(&self) -> bool {
        false
    }

    fn queued(&self) -> usize {
        self.in_flight.in_order.len() + self.in_flight.early.len()
    }
}

/// Packets by their departure; at one time, in order of arrival.
#[derive(Default)]
struct InFlight {
    /// Each leaves no earlier than those before it.
    in_order: VecDeque<Box<Packet>>,
    /// Those that leave before the last one above and came earlier.
    early: BinaryHeap<Reverse<Early>>,
    count: u64,
}

struct Early {
    /// The packet's.
    at: Instant,
    number: u64,
    packet: Box<Packet>,
}

impl InFlight {
    fn insert(&mut self, packet: Box<Packet>) {
        if self.in_order.back().is_none_or(|last| last.at <= packet.at) {
            return self.in_order.push_back(packet);
        }
        self.count += 1;
        self.early.push(Reverse(Early { at: packet.at, number: self.count, packet }));
    }

    fn next(&self) -> Option<Instant> {
        let early = self.early.peek().map(|Reverse(early)| early.at);
        self.in_order.front().map(|packet| packet.at).into_iter().chain(early).min()
    }

    fn pop(&mut self) -> Option<Box<Packet>> {
        let in_order = self.in_order.front().map(|packet| packet.at);
        match self.early.peek() {
            Some(Reverse(early)) if in_order.is_none_or(|at| early.at < at) => {
                self.early.pop().map(|Reverse(early)| early.packet)
            }
            _ => self.in_order.pop_front(),
        }
    }
}

impl Ord for Early {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}

impl PartialOrd for Early {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Early {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Early {}
