//! The traits of queue disciplines.

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

/// Decides which packets wait, go next, or are dropped or marked. Calls come in order of nominal time; nothing happens
/// to the queue between two calls.
pub trait Queue: Send {
    /// Takes a packet arriving at a busy link; may drop it or others.
    fn enqueue(&mut self, moment: &mut Moment<'_>, packet: Box<Packet>);

    /// The packet to transmit next. Others may be dropped.
    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Box<Packet>>;

    /// Takes a packet arriving at an idle link with an empty queue, and returns the one to transmit at once.
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
    /// Drops at `now` are appended to `out`.
    pub const fn new(now: Instant, out: &'a mut VecDeque<Leaving>) -> Self {
        Self { now, out }
    }

    /// Drops a waiting or arriving packet.
    pub fn drop(&mut self, mut packet: Box<Packet>, cause: Cause) {
        packet.queue_until(self.now);
        self.out.push_back(Leaving::Dropped(packet, cause));
    }
}

/// The link's properties a queue needs, and the keys shared by disciplines.
pub struct LinkFacts<'a> {
    pub rate: Option<LinkRate>,
    pub limit: Limit,
    pub counting: Counting,
    pub signals: &'a Signals,
    pub controller: &'a Controller,
}

/// A discipline: its settings, and how its queue is made and changed.
pub trait Managed: Queue + Sized + 'static {
    /// Its own keys.
    type Own;

    /// Whether it drops or marks packets before the queue is full.
    const IS_ACTIVE: bool = true;

    /// Whether it draws random numbers.
    const IS_RANDOM: bool = true;

    /// Its shared keys with their defaults; `interval` as given.
    fn signals(_interval: Option<Duration>) -> Signals {
        Signals::default()
    }

    /// The same for a controller's.
    fn controller() -> Controller {
        Controller::default()
    }

    /// Linux's limit.
    fn limit(_rate: Option<BitRate>, _interval: Duration) -> QueueLimit {
        QueueLimit::default()
    }

    /// An empty queue; `seed` decides everything random.
    fn new(link: &LinkFacts<'_>, own: &Self::Own, seed: Seed) -> Self;

    /// Changes the settings from `now` on. Packets beyond a new limit stay.
    fn change(&mut self, now: Instant, link: &LinkFacts<'_>, own: &Self::Own);
}

/// Marks an ECN-capable packet if `marking` is on; false if it has to be dropped instead.
pub fn mark(packet: &mut Packet, marking: bool) -> bool {
    let marks = marking && packet.ecn != Ecn::NotCapable;
    if marks && packet.ecn != Ecn::Marked {
        packet.ecn = Ecn::Marked;
        packet.marked_in = Some(packet.hop);
    }
    marks
}

/// A number from 0 to less than 1 for a random word.
pub fn fraction(word: u64) -> f64 {
    (word >> 11) as f64 / (1_u64 << 53) as f64
}
