//! Propagation: every packet leaves a fixed time after it came. The line has no limit and never drops.

use crate::{Departure, Element, Packet};
use crosswind_units::{Duration, Instant};
use std::collections::VecDeque;

/// A fixed delay.
pub struct Delay {
    delay: Duration,
    line: VecDeque<Packet>,
}

impl Delay {
    /// A line of length `delay`.
    pub fn new(delay: Duration) -> Self {
        Self { delay, line: VecDeque::with_capacity(1024) }
    }
}

impl Element for Delay {
    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        self.line.push_back(Packet { at: now + self.delay, ..packet });
    }

    fn poll_packet(&mut self, now: Instant) -> Option<Departure> {
        if self.line.front()?.at > now {
            return None;
        }
        self.line.pop_front().map(Departure::Forwarded)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.line.front().map(|packet| packet.at)
    }

    fn queued(&self) -> usize {
        self.line.len()
    }
}
