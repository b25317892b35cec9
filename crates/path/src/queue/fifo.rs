//! First in, first out, with a limit. A full queue drops the arriving packet (tail drop), or the longest-waiting
//! packets (head drop), so their sender learns of it sooner.

use super::backlog::{Backlog, Limit};
use super::discipline::{LinkFacts, Managed, Moment, QUEUE_FULL, Queue};
use crate::Packet;
use alloc::boxed::Box;
use crosswind_units::{Instant, Seed};

/// A queue limited in packets, in bytes or in time.
pub struct Fifo<const HEAD_DROP: bool> {
    backlog: Backlog,
    limit: Limit,
}

impl<const HEAD_DROP: bool> Queue for Fifo<HEAD_DROP> {
    fn enqueue(&mut self, moment: &mut Moment<'_>, packet: Box<Packet>) {
        let size = self.backlog.size(&packet);
        while HEAD_DROP && !self.limit.takes(self.backlog.len(), self.backlog.bytes(), size) {
            let Some(first) = self.backlog.pop() else { break };
            moment.drop(first, QUEUE_FULL);
        }
        if self.limit.takes(self.backlog.len(), self.backlog.bytes(), size) {
            self.backlog.push(packet);
        } else {
            moment.drop(packet, QUEUE_FULL);
        }
    }

    fn dequeue(&mut self, _moment: &mut Moment<'_>) -> Option<Box<Packet>> {
        self.backlog.pop()
    }

    fn pass(&mut self, _moment: &mut Moment<'_>, packet: Box<Packet>) -> Option<Box<Packet>> {
        Some(packet)
    }

    fn len(&self) -> usize {
        self.backlog.len()
    }
}

impl<const HEAD_DROP: bool> Managed for Fifo<HEAD_DROP> {
    type Own = ();

    const IS_ACTIVE: bool = false;

    const IS_RANDOM: bool = false;

    fn new(link: &LinkFacts<'_>, _own: &(), _seed: Seed) -> Self {
        Self { backlog: Backlog::new(link.counting), limit: link.limit }
    }

    fn change(&mut self, _now: Instant, link: &LinkFacts<'_>, _own: &()) {
        self.limit = link.limit;
    }
}
