//! What every discipline of a queue is.

use super::backlog::{Limit, QueueLimit};
use super::shared::{Controller, Signals};
use crate::rate::LinkRate;
use crate::{Cause, Counting, Ecn, Leaving, Packet};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use crosswind_units::{BitRate, Duration, Instant, Seed};

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

    /// Packets waiting.
    fn len(&self) -> usize;
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

/// What a queue has to know of the link that it feeds, and of the keys that disciplines share.
pub struct LinkFacts<'a> {
    pub rate: Option<LinkRate>,
    pub limit: Limit,
    pub counting: Counting,
    pub signals: &'a Signals,
    pub controller: &'a Controller,
}

/// A discipline: how its queue is made and changed, and what its settings are.
pub trait Managed: Queue + Sized + 'static {
    /// The keys that it has alone.
    type Own;

    /// Whether it drops or marks packets before the queue is full.
    const IS_ACTIVE: bool = true;

    /// Whether it draws random numbers.
    const IS_RANDOM: bool = true;

    /// Which of the shared keys it has, with their defaults; `interval` is the one that was given.
    fn signals(_interval: Option<Duration>) -> Signals {
        Signals::default()
    }

    /// The same of a controller's.
    fn controller() -> Controller {
        Controller::default()
    }

    /// The limit that it has in Linux.
    fn limit(_rate: Option<BitRate>, _interval: Duration) -> QueueLimit {
        QueueLimit::default()
    }

    /// An empty queue; `seed` decides about all that is random.
    fn new(link: &LinkFacts<'_>, own: &Self::Own, seed: Seed) -> Self;

    /// Sets other settings from `now` on. What waits beyond a limit stays.
    fn change(&mut self, now: Instant, link: &LinkFacts<'_>, own: &Self::Own);
}

/// Marks a packet whose sender takes marks, where `marking` is on; false where it has to be dropped instead.
pub fn mark(packet: &mut Packet, marking: bool) -> bool {
    let marks = marking && packet.ecn != Ecn::NotCapable;
    if marks && packet.ecn != Ecn::Marked {
        packet.ecn = Ecn::Marked;
        packet.marked_in = Some(packet.hop);
    }
    marks
}

/// A number from 0 to less than 1 of a random word.
pub fn fraction(word: u64) -> f64 {
    (word >> 11) as f64 / (1_u64 << 53) as f64
}
