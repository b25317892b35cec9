//! Dual queue with a coupled PI controller, `DualPI2` (RFC 9332): packets from senders reacting to every mark (L4S:
//! ECT(1) or CE) have a queue of their own, served first and marked above a short delay. Its marks are coupled to the
//! other queue's drops, so both kinds of senders get the same rate. Choices the RFC leaves open are Linux's: the queues
//! share the link by weights, the controller follows the longer delay, and drops and marks happen at departure.

use super::backlog::{Backlog, Limit, MAX_TIME_NS, QueueLimit};
use super::discipline::{AQM, LinkFacts, Managed, Moment, QUEUE_FULL, Queue, fraction, mark};
use super::shared::{Controller, Signals, fill};
use super::updates::Updates;
use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::{Ecn, Packet};
use alloc::boxed::Box;
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Bytes, Duration, Instant, Seed};

const MTU: Bytes = Bytes(1500);

/// The classic queue's percentage of the link while packets wait in both.
const CLASSIC_WEIGHT: i64 = 10;
const L4S_WEIGHT: i64 = 100 - CLASSIC_WEIGHT;

/// The keys of `DualPI2`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DualPi2Settings {
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
}

impl DualPi2Settings {
    /// Fills in defaults if the discipline `is` chosen, else refuses its keys.
    pub fn complete(&mut self, is: bool) -> Result<(), SettingError> {
        fill(&mut self.coupling, is.then_some(2.0), "dualpi2_coupling", "dualpi2")?;
        fill(&mut self.step, is.then_some(Duration::from_millis(1)), "dualpi2_step_ns", "dualpi2")
    }
}

/// Two queues and their controller.
pub struct DualPi2 {
    l4s: Backlog,
    classic: Backlog,
    limit: Limit,
    rules: Rules,
    draws: Draws,
    updates: Updates,
    /// The controller's probability: classic packets have its square.
    probability: f64,
    old_delay: Duration,
    /// The classic queue's turn if above 0.
    credit: i64,
}

/// The sources of a packet's random words: two for the square of the probability, one for the coupled mark.
struct Draws {
    squared: [Seed; 2],
    coupled: Seed,
}

struct Rules {
    target: Duration,
    update: Duration,
    alpha: f64,
    beta: f64,
    coupling: f64,
    step: Duration,
    /// The credit when nothing waits.
    credit: i64,
}

impl Rules {
    fn of(link: &LinkFacts<'_>, own: &DualPi2Settings) -> Self {
        Self {
            target: link.signals.target.unwrap_or_default(),
            update: link.controller.update.unwrap_or_default(),
            alpha: link.controller.alpha.unwrap_or_default(),
            beta: link.controller.beta.unwrap_or_default(),
            coupling: own.coupling.unwrap_or_default(),
            step: own.step.unwrap_or_default(),
            credit: link.counting.occupied(MTU).0 as i64 * (CLASSIC_WEIGHT - L4S_WEIGHT),
        }
    }
}

impl DualPi2 {
    /// Runs the updates due by `now`.
    fn catch_up(&mut self, now: Instant) {
        while let Some(at) = self.updates.due(now, self.rules.update, self.is_at_rest()) {
            self.update(at);
        }
    }

    fn is_at_rest(&self) -> bool {
        self.probability == 0.0 && self.old_delay == Duration::ZERO && self.len() == 0
    }

    fn update(&mut self, now: Instant) {
        let delay = self.l4s.head_waited(now).max(self.classic.head_waited(now)).unwrap_or_default();
        let [seconds, old, target] =
            [delay, self.old_delay, self.rules.target].map(|duration| duration.as_nanos() as f64 / 1e9);
        let change = self.rules.alpha * (seconds - target) + self.rules.beta * (seconds - old);
        self.probability = (self.probability + change).clamp(0.0, 1.0);
        self.old_delay = delay;
    }

    fn take(&mut self) -> Option<(Box<Packet>, bool)> {
        let both = self.l4s.len() > 0 && self.classic.len() > 0;
        let from_l4s = if both { self.credit <= 0 } else { self.l4s.len() > 0 };
        let Some(packet) = (if from_l4s { self.l4s.pop() } else { self.classic.pop() }) else {
            self.credit = self.rules.credit;
            return None;
        };
        if both {
            let weight = if from_l4s { CLASSIC_WEIGHT } else { -L4S_WEIGHT };
            self.credit += weight * self.l4s.size(&packet) as i64;
        }
        Some((packet, from_l4s))
    }

    /// Whether the packet leaves, with or without a mark, rather than being dropped.
    fn passes(&self, packet: &mut Packet, from_l4s: bool, waited: Duration) -> bool {
        let coupled = self.rules.coupling * self.probability;
        let happens = |probability: f64, seed: Seed| fraction(packet.word(seed)) < probability;
        let squared = self.draws.squared.iter().all(|seed| happens(self.probability, *seed));
        // Where every L4S packet is marked, marks no longer slow anybody down.
        let overloaded = coupled >= 1.0;
        if !from_l4s {
            return !squared || (mark(packet, !overloaded));
        }
        if overloaded && squared {
            return false;
        }
        if waited > self.rules.step || happens(coupled, self.draws.coupled) {
            mark(packet, true);
        }
        true
    }
}

impl Queue for DualPi2 {
    fn enqueue(&mut self, moment: &mut Moment<'_>, packet: Box<Packet>) {
        self.catch_up(moment.now);
        let size = self.l4s.size(&packet);
        let bytes = self.l4s.bytes() + self.classic.bytes();
        if !self.limit.takes_or_is_empty(self.len(), bytes, size) {
            moment.drop(packet, QUEUE_FULL);
        } else if matches!(packet.ecn, Ecn::Ect1 | Ecn::Marked) {
            self.l4s.push(packet);
        } else {
            self.classic.push(packet);
        }
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Box<Packet>> {
        self.catch_up(moment.now);
        loop {
            let (mut packet, from_l4s) = self.take()?;
            let waited = moment.now.saturating_since(packet.at);
            if self.passes(&mut packet, from_l4s, waited) {
                return Some(packet);
            }
            moment.drop(packet, AQM);
        }
    }

    fn len(&self) -> usize {
        self.l4s.len() + self.classic.len()
    }
}

impl Managed for DualPi2 {
    type Own = DualPi2Settings;

    fn signals(_interval: Option<Duration>) -> Signals {
        Signals { target: Some(Duration::from_millis(15)), ..Signals::default() }
    }

    fn controller() -> Controller {
        Controller { update: Some(Duration::from_millis(16)), alpha: Some(0.16), beta: Some(3.2) }
    }

    fn limit(_rate: Option<BitRate>, _interval: Duration) -> QueueLimit {
        QueueLimit::Packets(10_000)
    }

    fn new(link: &LinkFacts<'_>, own: &Self::Own, seed: Seed) -> Self {
        let rules = Rules::of(link, own);
        Self {
            l4s: Backlog::new(link.counting),
            classic: Backlog::new(link.counting),
            limit: link.limit,
            draws: Draws { squared: [seed.child("first"), seed.child("second")], coupled: seed.child("coupled") },
            updates: Updates::new(rules.update),
            probability: 0.0,
            old_delay: Duration::ZERO,
            credit: rules.credit,
            rules,
        }
    }

    fn change(&mut self, now: Instant, link: &LinkFacts<'_>, own: &Self::Own) {
        self.catch_up(now);
        self.limit = link.limit;
        self.rules = Rules::of(link, own);
    }
}
