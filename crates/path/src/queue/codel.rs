//! Controlled delay, `CoDel` (RFC 8289): once all packets leaving within an interval have waited longer than a target,
//! packets are dropped at the head, ever more often until one has not. ECN-capable packets are marked instead, as in
//! Linux.

use super::backlog::{Backlog, Limit};
use super::discipline::{AQM, LinkFacts, Managed, Moment, QUEUE_FULL, Queue, mark};
use super::shared::Signals;
use crate::Packet;
use alloc::boxed::Box;
use crosswind_units::{Bytes, Duration, Instant, Seed};

/// Ethernet's largest packet: with no more bytes waiting, nothing is dropped.
const MTU: Bytes = Bytes(1500);

/// After so many intervals without a drop, the next begin as the first ones did.
const INTERVALS_REMEMBERED: u64 = 16;

/// Its defaults.
pub(super) const SIGNALS: Signals =
    Signals { marking: Some(true), target: Some(Duration::from_millis(5)), interval: Some(Duration::from_millis(100)) };

/// One queue with `CoDel`.
pub struct Codel {
    backlog: Backlog,
    limit: Limit,
    rules: Rules,
    control: Control,
}

impl Queue for Codel {
    fn enqueue(&mut self, moment: &mut Moment<'_>, packet: Box<Packet>) {
        let size = self.backlog.size(&packet);
        if self.limit.takes_or_is_empty(self.backlog.len(), self.backlog.bytes(), size) {
            self.backlog.push(packet);
        } else {
            moment.drop(packet, QUEUE_FULL);
        }
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Box<Packet>> {
        let backlog = &mut self.backlog;
        self.control.dequeue(&self.rules, moment, || backlog.pop().map(|packet| (packet, backlog.bytes())))
    }

    fn len(&self) -> usize {
        self.backlog.len()
    }
}

impl Managed for Codel {
    type Own = ();

    const IS_RANDOM: bool = false;

    fn signals(_interval: Option<Duration>) -> Signals {
        SIGNALS
    }

    fn new(link: &LinkFacts<'_>, _own: &(), _seed: Seed) -> Self {
        Self {
            backlog: Backlog::new(link.counting),
            limit: link.limit,
            rules: Rules::of(link),
            control: Control::default(),
        }
    }

    fn change(&mut self, _now: Instant, link: &LinkFacts<'_>, _own: &()) {
        self.limit = link.limit;
        self.rules = Rules::of(link);
    }
}

/// `CoDel`'s parameters.
pub(super) struct Rules {
    target: Duration,
    interval: Duration,
    /// Bytes that may wait without a drop.
    mtu: u64,
    marking: bool,
}

impl Rules {
    pub(super) fn of(link: &LinkFacts<'_>) -> Self {
        Self {
            target: link.signals.target.unwrap_or_default(),
            interval: link.signals.interval.unwrap_or_default(),
            mtu: link.counting.occupied(MTU).0,
            marking: link.signals.marking.unwrap_or_default(),
        }
    }

    /// The time from a drop to the next after `count` drops: the interval over the square root of the count.
    fn spacing(&self, count: u64) -> Duration {
        let interval = u128::from(self.interval.as_nanos());
        Duration::from_nanos((interval * interval / u128::from(count.max(1))).isqrt() as u64)
    }
}

/// A queue's `CoDel` state, with the RFC's names.
#[derive(Default)]
pub(super) struct Control {
    first_above: Option<Instant>,
    drop_next: Instant,
    count: u64,
    last_count: u64,
    dropping: bool,
}

impl Control {
    /// The packet to transmit next; `next` takes the first one out and says how many bytes wait behind it.
    pub(super) fn dequeue(
        &mut self,
        rules: &Rules,
        moment: &mut Moment<'_>,
        mut next: impl FnMut() -> Option<(Box<Packet>, u64)>,
    ) -> Option<Box<Packet>> {
        let now = moment.now;
        let mut take = |control: &mut Self| {
            let taken = next();
            let drop = control.should_drop(rules, now, taken.as_ref());
            (taken.map(|(packet, _)| packet), drop)
        };
        let (mut packet, drop) = take(self);
        if self.dropping {
            self.dropping = drop;
            while self.dropping && now >= self.drop_next {
                self.count += 1;
                let Some(mut first) = packet else { break };
                if mark(&mut first, rules.marking) {
                    self.drop_next += rules.spacing(self.count);
                    return Some(first);
                }
                moment.drop(first, AQM);
                (packet, self.dropping) = take(self);
                if self.dropping {
                    self.drop_next += rules.spacing(self.count);
                }
            }
        } else if drop {
            if !packet.as_mut().is_some_and(|first| mark(first, rules.marking)) {
                if let Some(first) = packet {
                    moment.drop(first, AQM);
                }
                packet = take(self).0;
            }
            self.dropping = true;
            let since = now.saturating_since(self.drop_next);
            let recent = since.as_nanos() < INTERVALS_REMEMBERED.saturating_mul(rules.interval.as_nanos());
            let more = self.count.saturating_sub(self.last_count);
            self.count = if more > 1 && recent { more } else { 1 };
            self.drop_next = now + rules.spacing(self.count);
            self.last_count = self.count;
        }
        packet
    }

    /// Counts drops at the full queue.
    pub(super) const fn add_drops(&mut self, packets: u64) {
        self.count += packets;
    }

    fn should_drop(&mut self, rules: &Rules, now: Instant, taken: Option<&(Box<Packet>, u64)>) -> bool {
        let above = taken
            .is_some_and(|(packet, behind)| now.saturating_since(packet.at) >= rules.target && *behind > rules.mtu);
        if !above {
            self.first_above = None;
            return false;
        }
        let first = *self.first_above.get_or_insert(now + rules.interval);
        now >= first
    }
}
