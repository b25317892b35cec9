//! Propagation: every packet leaves a fixed time after it arrived. The line has no limit and never drops.

use crate::{Departure, Effect, Element, ElementSettings, Packet};
use crosswind_units::{Duration, Instant, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The longest delay that makes sense: 10 minutes one way. Beyond it, a mistake in units is likelier.
const MAX_DELAY_NS: u64 = 600_000_000_000;

/// Propagation delay: the same for every packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct DelaySettings {
    /// One-way propagation delay.
    #[serde(rename = "delay_ns")]
    #[schemars(with = "u64", range(max = MAX_DELAY_NS))]
    pub delay: Duration,
}

impl ElementSettings for DelaySettings {
    fn element(&self, _seed: Seed) -> Option<Box<dyn Element>> {
        (self.delay > Duration::ZERO).then(|| Box::new(Delay::new(self.delay)) as Box<dyn Element>)
    }

    fn longest_delay(&self) -> Duration {
        self.delay
    }

    fn effect(&self) -> Effect {
        Effect { delay: self.delay, ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        false
    }
}

/// A line of fixed length.
pub struct Delay {
    delay: Duration,
    in_flight: VecDeque<Packet>,
}

impl Delay {
    /// A line that a packet takes `delay` to pass.
    pub fn new(delay: Duration) -> Self {
        Self { delay, in_flight: VecDeque::with_capacity(1024) }
    }
}

impl Element for Delay {
    fn handle_packet(&mut self, _now: Instant, packet: Packet) {
        self.in_flight.push_back(packet.after_propagation(self.delay));
    }

    fn poll_packet(&mut self, now: Instant) -> Option<Departure> {
        if self.in_flight.front()?.at > now {
            return None;
        }
        self.in_flight.pop_front().map(Departure::Forwarded)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.in_flight.front().map(|packet| packet.at)
    }

    fn queued(&self) -> usize {
        self.in_flight.len()
    }
}
