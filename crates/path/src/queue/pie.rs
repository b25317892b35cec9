//! Proportional integral controller enhanced, PIE (RFC 8033): arriving packets are dropped with a probability that
//! follows the delay and its growth. The delay is the latest departure's, as in Linux.

use super::backlog::{Backlog, Limit, MAX_TIME_NS};
use super::discipline::{AQM, LinkFacts, Managed, Moment, QUEUE_FULL, Queue, fraction, mark};
use super::shared::{Controller, Signals, fill};
use super::updates::Updates;
use crate::Packet;
use crate::derive::{Deserialize, JsonSchema, Serialize};
use alloc::boxed::Box;
use crosswind_settings::SettingError;
use crosswind_units::{Bytes, Duration, Instant, Seed};

/// Where less waits, nothing is dropped: two packets.
const LITTLE: u64 = 2;
const MTU: Bytes = Bytes(1500);

/// Up to this probability packets are marked instead of dropped.
const MARKING: f64 = 0.1;

/// The keys of PIE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PieSettings {
    /// How long a burst may be that is let through after the queue was short.
    #[serde(rename = "pie_burst_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(max = MAX_TIME_NS), extend(
        "default_help" = "150 ms",
        "only_with" = {"key": "discipline", "value": ["pie"]}
    ))]
    pub burst_allowance: Option<Duration>,
}

impl PieSettings {
    /// Fills in defaults if the discipline `is` chosen, else refuses its keys.
    pub fn complete(&mut self, is: bool) -> Result<(), SettingError> {
        fill(&mut self.burst_allowance, is.then_some(Duration::from_millis(150)), "pie_burst_ns", "pie")
    }
}

/// A queue with PIE.
pub struct Pie {
    backlog: Backlog,
    limit: Limit,
    rules: Rules,
    seed: Seed,
    updates: Updates,
    probability: f64,
    /// Sum of the probabilities since the last drop.
    accumulated: f64,
    /// The latest departure's wait.
    delay: Duration,
    old_delay: Duration,
    /// For how long a burst is still let through.
    burst: Duration,
}

struct Rules {
    target: Duration,
    update: Duration,
    alpha: f64,
    beta: f64,
    burst: Duration,
    little: u64,
    marking: bool,
}

impl Rules {
    fn of(link: &LinkFacts<'_>, own: &PieSettings) -> Self {
        let LinkFacts { signals, controller, .. } = link;
        Self {
            target: signals.target.unwrap_or_default(),
            update: controller.update.unwrap_or_default(),
            alpha: controller.alpha.unwrap_or_default(),
            beta: controller.beta.unwrap_or_default(),
            burst: own.burst_allowance.unwrap_or_default(),
            little: LITTLE * link.counting.occupied(MTU).0,
            marking: signals.marking.unwrap_or_default(),
        }
    }
}

impl Pie {
    /// Runs the updates due by `now`.
    fn catch_up(&mut self, now: Instant) {
        while self.updates.due(now, self.rules.update, self.is_at_rest()).is_some() {
            self.update();
        }
    }

    fn is_at_rest(&self) -> bool {
        self.probability == 0.0
            && self.delay == Duration::ZERO
            && self.old_delay == Duration::ZERO
            && self.burst == self.rules.burst
    }

    fn update(&mut self) {
        let rules = &self.rules;
        let [delay, old, target] = [self.delay, self.old_delay, rules.target].map(seconds);
        let mut change = rules.alpha * (delay - target) + rules.beta * (delay - old);
        let steps = [(0.000_001, 2048.0), (0.000_01, 512.0), (0.000_1, 128.0), (0.001, 32.0), (0.01, 8.0), (0.1, 2.0)];
        if let Some((_, divisor)) = steps.iter().find(|(below, _)| self.probability < *below) {
            change /= divisor;
        } else {
            change = change.min(0.02);
        }
        if delay > 0.25 {
            change += 0.02;
        }
        self.probability += change;
        if self.delay == Duration::ZERO && self.old_delay == Duration::ZERO {
            self.probability *= 0.98;
        }
        self.probability = self.probability.clamp(0.0, 1.0);
        self.burst = Duration::from_nanos(self.burst.as_nanos().saturating_sub(rules.update.as_nanos()));
        if self.probability == 0.0 && delay < target / 2.0 && old < target / 2.0 {
            self.burst = rules.burst;
            self.accumulated = 0.0;
        }
        self.old_delay = self.delay;
    }

    fn drops_early(&mut self, packet: &Packet) -> bool {
        let low = seconds(self.delay) < seconds(self.rules.target) / 2.0 && self.probability < 0.2;
        if self.burst > Duration::ZERO || low || self.backlog.bytes() < self.rules.little {
            return false;
        }
        self.accumulated = if self.probability == 0.0 { 0.0 } else { self.accumulated + self.probability };
        if self.accumulated < 0.85 {
            return false;
        }
        let drops = self.accumulated >= 8.5 || fraction(packet.word(self.seed)) < self.probability;
        if drops {
            self.accumulated = 0.0;
        }
        drops
    }
}

fn seconds(duration: Duration) -> f64 {
    duration.as_nanos() as f64 / 1e9
}

impl Queue for Pie {
    fn enqueue(&mut self, moment: &mut Moment<'_>, mut packet: Box<Packet>) {
        self.catch_up(moment.now);
        let size = self.backlog.size(&packet);
        if !self.limit.takes_or_is_empty(self.backlog.len(), self.backlog.bytes(), size) {
            self.accumulated = 0.0;
            moment.drop(packet, QUEUE_FULL);
        } else if self.drops_early(&packet) && !mark(&mut packet, self.rules.marking && self.probability <= MARKING) {
            moment.drop(packet, AQM);
        } else {
            self.backlog.push(packet);
        }
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Box<Packet>> {
        self.catch_up(moment.now);
        let packet = self.backlog.pop()?;
        let waited = moment.now.saturating_since(packet.at);
        self.delay = if self.backlog.len() == 0 { Duration::ZERO } else { waited };
        Some(packet)
    }

    fn len(&self) -> usize {
        self.backlog.len()
    }
}

impl Managed for Pie {
    type Own = PieSettings;

    fn signals(_interval: Option<Duration>) -> Signals {
        Signals { marking: Some(true), target: Some(Duration::from_millis(15)), interval: None }
    }

    fn controller() -> Controller {
        Controller { update: Some(Duration::from_millis(15)), alpha: Some(0.125), beta: Some(1.25) }
    }

    fn new(link: &LinkFacts<'_>, own: &Self::Own, seed: Seed) -> Self {
        let rules = Rules::of(link, own);
        Self {
            backlog: Backlog::new(link.counting),
            limit: link.limit,
            seed,
            updates: Updates::new(rules.update),
            probability: 0.0,
            accumulated: 0.0,
            delay: Duration::ZERO,
            old_delay: Duration::ZERO,
            burst: rules.burst,
            rules,
        }
    }

    fn change(&mut self, now: Instant, link: &LinkFacts<'_>, own: &Self::Own) {
        self.catch_up(now);
        self.limit = link.limit;
        self.rules = Rules::of(link, own);
    }
}
