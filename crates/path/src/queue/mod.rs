//! Queues before a link, one discipline a file.

mod backlog;
mod cake;
mod codel;
mod dualpi2;
mod fifo;
mod fq_codel;
mod pie;
mod red;
mod settings;
mod updates;

pub(crate) use backlog::{Backlog, Limit};
pub use cake::{Cake, Isolation, Tins};
pub use codel::Codel;
pub use dualpi2::DualPi2;
pub use fifo::Fifo;
pub use fq_codel::FqCodel;
pub use pie::Pie;
pub use red::Red;
pub use settings::{Discipline, QueueLimit, QueueSettings};

use crate::link::LinkSettings;
use crate::{Cause, Ecn, Leaving, Packet};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use crosswind_units::{Instant, Seed};

/// The queue before the link was full.
pub const QUEUE_FULL: Cause = Cause::new("queue");

/// The queue's discipline dropped a packet before the queue was full, to slow its sender down.
pub const AQM: Cause = Cause::new("aqm");

/// Decides which packets wait, which of them goes next, and which are dropped or marked. Calls come in the order of nominal time, in
/// which nothing happens to the queue between two of them.
pub trait Queue: Send {
    /// Takes a packet that arrives while the link is busy, and may drop it or others.
    fn enqueue(&mut self, moment: &mut Moment<'_>, packet: Box<Packet>);

    /// The packet to transmit next. Others may be dropped.
    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Box<Packet>>;

    /// Takes a packet that arrives while the link is idle and nothing waits: what is to be transmitted at once.
    fn pass(&mut self, moment: &mut Moment<'_>, packet: Box<Packet>) -> Option<Box<Packet>> {
        self.enqueue(moment, packet);
        self.dequeue(moment)
    }

    /// Sets other settings from `now` on. What waits beyond a limit stays.
    fn change(&mut self, now: Instant, settings: &LinkSettings);

    /// Packets waiting.
    fn len(&self) -> usize;

    /// Whether no packet waits.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// When something happens to a queue, and where dropped packets go.
pub struct Moment<'a> {
    /// The nominal time.
    pub now: Instant,
    out: &'a mut VecDeque<Leaving>,
}

impl<'a> Moment<'a> {
    /// What is dropped at `now` is appended to `out`.
    pub const fn new(now: Instant, out: &'a mut VecDeque<Leaving>) -> Self {
        Self { now, out }
    }

    /// Drops a packet that waits, or that arrives now.
    pub fn drop(&mut self, mut packet: Box<Packet>, cause: Cause) {
        packet.queue_until(self.now);
        self.out.push_back(Leaving::Dropped(packet, cause));
    }
}

/// The queue that `settings` ask for at first.
pub(crate) fn queue_of(settings: &LinkSettings, seed: Seed) -> Box<dyn Queue> {
    match settings.queueing.discipline {
        Discipline::Fifo | Discipline::HeadDrop => Box::new(Fifo::new(settings)),
        Discipline::Red => Box::new(Red::new(settings, seed)),
        Discipline::Codel => Box::new(Codel::new(settings)),
        Discipline::Cake => Box::new(Cake::new(settings, seed)),
        Discipline::FqCodel => Box::new(FqCodel::new(settings, seed)),
        Discipline::Pie => Box::new(Pie::new(settings, seed)),
        Discipline::Dualpi2 => Box::new(DualPi2::new(settings, seed)),
    }
}

/// Marks a packet whose sender takes marks, where `marking` is on; false where it has to be dropped instead.
fn mark(packet: &mut Packet, marking: bool) -> bool {
    let marks = marking && packet.ecn != Ecn::NotCapable;
    if marks && packet.ecn != Ecn::Marked {
        packet.ecn = Ecn::Marked;
        packet.marked_in = Some(packet.hop);
    }
    marks
}

/// A number from 0 to less than 1 of a random word.
fn fraction(word: u64) -> f64 {
    (word >> 11) as f64 / (1_u64 << 53) as f64
}
