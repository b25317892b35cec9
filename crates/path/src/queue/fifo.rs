//! First in, first out, with a limit. Where there is no room, the arriving packet is dropped (tail drop), or those that have waited
//! longest (head drop), so that their sender learns of it sooner.

use super::{Backlog, Discipline, Limit, Moment, QUEUE_FULL, Queue};
use crate::Packet;
use crate::link::LinkSettings;
use alloc::boxed::Box;
use crosswind_units::Instant;

/// A queue limited in packets, in bytes or in time.
pub struct Fifo {
    backlog: Backlog,
    limit: Limit,
    head_drop: bool,
}

impl Fifo {
    /// An empty queue.
    pub fn new(settings: &LinkSettings) -> Self {
        let head_drop = settings.queueing.discipline == Discipline::HeadDrop;
        Self { backlog: Backlog::new(settings.counting), limit: Limit::of(settings), head_drop }
    }
}

impl Queue for Fifo {
    fn enqueue(&mut self, moment: &mut Moment<'_>, packet: Box<Packet>) {
        let size = self.backlog.size(&packet);
        while self.head_drop && !self.limit.takes(self.backlog.len(), self.backlog.bytes(), size) {
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

    fn change(&mut self, _now: Instant, settings: &LinkSettings) {
        self.limit = Limit::of(settings);
    }

    fn len(&self) -> usize {
        self.backlog.len()
    }
}
