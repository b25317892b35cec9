//! COBALT, the queue management of CAKE: `CoDel`, whose count falls step by step after a queue was short, and BLUE, which drops packets
//! at random of a flow that fills the memory all the same (Høiland-Jørgensen, Täht and Morton, LANMAN 2018, section III-A).

use crate::Packet;
use crate::queue::discipline::{fraction, mark};
use crosswind_units::{Duration, Instant, Seed};

/// By how much BLUE's probability grows when the memory is full, and falls when the queue is found empty.
const MORE: f64 = 1.0 / 256.0;
const LESS: f64 = 1.0 / 4096.0;

/// Packets that wait for less than so many times as long as the largest takes on the wire are never dropped.
const SPARED: u64 = 4;

/// The parameters of one tin.
#[derive(Clone, Copy, Default)]
pub struct Rules {
    pub target: Duration,
    pub interval: Duration,
    /// How long the largest packet takes on the wire.
    pub largest: Duration,
}

impl Rules {
    /// At a rate at which the largest packet takes `largest`: the target is at least one and a half times that.
    pub fn new(target: Duration, interval: Duration, largest: Duration) -> Self {
        let lifted = target.max(Duration::from_nanos(largest.as_nanos() * 3 / 2));
        let more = Duration::from_nanos(lifted.as_nanos() - target.as_nanos());
        let interval = (interval + more).max(lifted + lifted);
        Self { target: lifted, interval, largest }
    }

    /// The time from one signal to the next: the interval over the square root of the count.
    fn spacing(&self, count: u64) -> Duration {
        let interval = u128::from(self.interval.as_nanos());
        Duration::from_nanos((interval * interval / u128::from(count.max(1))).isqrt() as u64)
    }
}

/// What is remembered of one queue.
#[derive(Default)]
pub struct Cobalt {
    count: u64,
    dropping: bool,
    /// When the next signal is due; without a count, until when the queue counts as active.
    next: Instant,
    /// Whether the count has ever changed. Before that, Linux has no root yet, and the first signal does not wait for the interval.
    has_root: bool,
    probability: f64,
    changed: Instant,
}

impl Cobalt {
    fn spacing(&self, rules: &Rules) -> Duration {
        if self.has_root { rules.spacing(self.count) } else { Duration::ZERO }
    }

    fn count_to(&mut self, count: u64, rules: &Rules) {
        (self.count, self.has_root) = (count, true);
        self.next += self.spacing(rules);
    }

    /// Whether the probability may change again.
    fn may_change(&mut self, rules: &Rules, now: Instant) -> bool {
        let may = now.saturating_since(self.changed) > rules.target;
        if may {
            self.changed = now;
        }
        may
    }

    /// Whether a packet that has waited since `packet.at` is to be dropped. It is marked instead where its sender takes marks.
    pub fn drops(&mut self, rules: &Rules, now: Instant, packet: &mut Packet, blue: Seed) -> bool {
        let waited = now.saturating_since(packet.at);
        let is_due = self.count > 0 && now >= self.next;
        let mut late = now > self.next;
        let above = waited > rules.target && waited.as_nanos() > rules.largest.as_nanos() * SPARED;
        if above && !self.dropping {
            self.next = now + self.spacing(rules);
        }
        self.dropping = above;
        if above {
            self.count = self.count.max(1);
        }
        let mut drops = false;
        if is_due && above {
            drops = !mark(packet, true);
            self.count_to(self.count + 1, rules);
            late = now > self.next;
        } else if is_due {
            while self.count > 0 && now >= self.next {
                self.count_to(self.count - 1, rules);
            }
            late = now > self.next;
        }
        // Marks do not keep a packet from BLUE: its sender did not react to them.
        drops |= self.probability > 0.0 && fraction(packet.word(blue)) < self.probability;
        if self.count == 0 {
            self.next = now + rules.interval;
        } else if late && !drops {
            self.next = now;
        }
        drops
    }

    /// The memory was full, and a packet of this queue was dropped for it.
    pub fn handle_full(&mut self, rules: &Rules, now: Instant) {
        if self.may_change(rules, now) {
            self.probability = (self.probability + MORE).min(1.0);
        }
        (self.dropping, self.next) = (true, now);
        self.count = self.count.max(1);
    }

    /// It was the queue's turn, and it was empty. Whether there is still something to remember of it.
    pub fn handle_empty(&mut self, rules: &Rules, now: Instant) -> bool {
        if self.probability > 0.0 && self.may_change(rules, now) {
            self.probability = (self.probability - LESS).max(0.0);
        }
        self.dropping = false;
        if self.count > 0 && now >= self.next {
            self.count_to(self.count - 1, rules);
        }
        self.probability > 0.0 || self.count > 0 || now < self.next
    }
}
