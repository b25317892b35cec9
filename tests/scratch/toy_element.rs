//! A toy: the first packets of a direction are dropped.

use crate::{Cause, Departure, Element, ElementSettings, Packet};
use crosswind_units::{Instant, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// A packet was one of the first.
pub const TOO_EARLY: Cause = Cause::new("too_early");

/// Drops the first packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct ToySettings {
    /// How many packets are dropped before the first one passes.
    #[schemars(range(min = 0, max = 1000), extend("unit" = "packets"))]
    pub drop_first: u64,
}

impl ElementSettings for ToySettings {
    fn element(&self, _seed: Seed) -> Option<Box<dyn Element>> {
        (self.drop_first > 0)
            .then(|| Box::new(Toy { drop_first: self.drop_first, out: VecDeque::new() }) as Box<dyn Element>)
    }

    fn is_random(&self) -> bool {
        false
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[TOO_EARLY]
    }
}

struct Toy {
    drop_first: u64,
    out: VecDeque<Departure>,
}

impl Element for Toy {
    fn handle_packet(&mut self, _now: Instant, packet: Packet) {
        self.out.push_back(if packet.index < self.drop_first {
            Departure::Dropped(packet, TOO_EARLY)
        } else {
            Departure::Forwarded(packet)
        });
    }

    fn poll_packet(&mut self, _now: Instant) -> Option<Departure> {
        self.out.pop_front()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    fn queued(&self) -> usize {
        self.out.len()
    }
}
