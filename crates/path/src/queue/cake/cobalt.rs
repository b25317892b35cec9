//! COBALT, CAKE's queue management: `CoDel`, with a count that falls step by step after a queue was short, and BLUE,
//! which drops random packets from a flow that still fills the memory (Høiland-Jørgensen, Täht and Morton, LANMAN 2018,
//! section III-A).

use crate::Packet;
use crate::queue::discipline::{fraction, mark};
use crosswind_units::{Duration, Instant, Seed};

/// By how much BLUE's probability grows when the memory is full, and falls when the queue is found empty.
const MORE: f64 = 1.0 / 256.0;
const LESS: f64 = 1.0 / 4096.0;

/// Packets with a wait below so many of the largest packet's transmission times are never dropped.
const SPARED: u64 = 4;

/// One tin's parameters.
#[derive(Clone, Copy, Default)]
pub struct Rules {
    pub target: Duration,
    pub interval: Duration,
    /// How long the largest packet takes on the wire.
    pub largest: Duration,
}

impl Rules {
    /// `largest`: the largest packet's transmission time; the target is at least one and a half times that.
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

/// One queue's state.
#[derive(Default)]
pub struct Cobalt {
    count: u64,
    dropping: bool,
    /// When the next signal is due; without a count, until when the queue counts as active.
    next: Instant,
    /// Whether the count has ever changed. Before, Linux has no root yet, and the first signal skips the interval.
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

    fn may_change(&mut self, rules: &Rules, now: Instant) -> bool {
        let may = now.saturating_since(self.changed) > rules.target;
        if may {
            self.changed = now;
        }
        may
    }

    /// Whether to drop a packet waiting since `packet.at`. With an ECN-capable sender it is marked instead.
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

    /// The memory was full, and this queue lost a packet for it.
    pub fn handle_full(&mut self, rules: &Rules, now: Instant) {
        if self.may_change(rules, now) {
            self.probability = (self.probability + MORE).min(1.0);
        }
        (self.dropping, self.next) = (true, now);
        self.count = self.count.max(1);
    }

    /// The queue had its turn and was empty. Returns whether its state still matters.
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
