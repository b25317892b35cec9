//! Propagation: every packet leaves a fixed time after it arrived. The line has no limit and never drops. Where the delay shrinks,
//! packets keep their order: none leaves before those that arrived earlier.

use crate::{Departure, Effect, Element, ElementSettings, Packet, Schedule};
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
    fn element(settings: Schedule<Self>, _seed: Seed) -> Option<Box<dyn Element>> {
        let delays = settings.ever(|settings| settings.delay > Duration::ZERO);
        delays.then(|| Box::new(Delay::new(settings)) as Box<dyn Element>)
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

/// A line, which a packet takes the delay to pass that there is when it arrives.
pub struct Delay {
    settings: Schedule<DelaySettings>,
    in_flight: VecDeque<Packet>,
}

impl Delay {
    /// An empty line.
    pub fn new(settings: Schedule<DelaySettings>) -> Self {
        Self { settings, in_flight: VecDeque::with_capacity(1024) }
    }
}

impl Element for Delay {
    fn handle_packet(&mut self, _now: Instant, packet: Packet) {
        let packet = packet.after_propagation(self.settings.at(packet.at).delay);
        let before = self.in_flight.back().map_or(packet.at, |before| before.at);
        self.in_flight.push_back(packet.held_until(before));
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
