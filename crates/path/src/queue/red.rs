//! Random early detection, RED (Floyd and Jacobson 1993): arriving packets are dropped with a probability that grows with the mean
//! queue. Packets whose senders take marks are marked as long as the mean is below the upper threshold (RFC 3168).

use super::{AQM, Backlog, Limit, Moment, QUEUE_FULL, Queue, fraction, mark};
use crate::Packet;
use crate::link::{LinkRate, LinkSettings};
use alloc::boxed::Box;
use crosswind_units::{Bytes, Instant, Seed};

/// What a packet has in the mean: while the link is idle, the mean queue falls as often as such packets could have left.
const MEAN_PACKET: Bytes = Bytes(1000);

/// A queue with RED.
pub struct Red {
    backlog: Backlog,
    limit: Limit,
    rules: Rules,
    seed: Seed,
    /// Bytes that wait in the mean, each arrival weighted.
    mean: f64,
    /// Packets that were neither dropped nor marked since the last one that was, or since the mean queue passed the lower threshold.
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
    /// How long the link takes for a packet of mean size, which is endless where it stands still.
    each_ns: u64,
}

impl Rules {
    fn of(settings: &LinkSettings) -> Self {
        let queueing = &settings.queueing;
        let bytes = |bytes: Option<Bytes>| bytes.unwrap_or_default().0 as f64;
        Self {
            minimum: bytes(queueing.red_minimum),
            maximum: bytes(queueing.red_maximum),
            probability: queueing.red_probability.unwrap_or_default().as_fraction(),
            weight: queueing.red_weight.unwrap_or_default(),
            marking: queueing.marking.unwrap_or_default(),
            each_ns: match settings.rate {
                None => 1,
                Some(LinkRate::Stopped) => u64::MAX,
                Some(LinkRate::Of(rate)) => rate.transmission(MEAN_PACKET, 0).duration.as_nanos().max(1),
            },
        }
    }
}

impl Red {
    /// An empty queue; `seed` decides which packets are dropped.
    pub fn new(settings: &LinkSettings, seed: Seed) -> Self {
        Self {
            backlog: Backlog::new(settings.counting),
            limit: Limit::of(settings),
            rules: Rules::of(settings),
            seed,
            mean: 0.0,
            count: 0,
            idle: Some(Instant::ZERO),
        }
    }

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
        // Section 7 of the paper: so the gap between two is each of 1, 2, .. 1/base with the same probability. (Its figure 2 counts one
        // more packet, which leaves out the last.)
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

    fn change(&mut self, _now: Instant, settings: &LinkSettings) {
        self.limit = Limit::of(settings);
        self.rules = Rules::of(settings);
    }

    fn len(&self) -> usize {
        self.backlog.len()
    }
}
