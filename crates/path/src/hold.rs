//! Holds certain packets back, to see what waits for them. Packets keep their order: those behind a held one wait too.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::{Effect, Element, ElementSettings, Leaving, Outcome, Packet, Schedule};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use crosswind_settings::SettingError;
use crosswind_units::{Duration, Instant, Seed};

/// A held packet is late, not lost: 10 minutes, as the longest delay.
const MAX_HOLD_NS: u64 = 600_000_000_000;

/// Packets held back at the end of their flight.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HoldSettings {
    /// The packets held back by `hold_time`, by their index in the direction, from 0. Later packets wait behind them.
    #[serde(rename = "hold", skip_serializing_if = "Option::is_none")]
    #[schemars(inner(range(min = 0)))]
    pub indexes: Option<Vec<u64>>,
    /// How long `hold` holds each of its packets back.
    #[serde(rename = "hold_time_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(
        with = "Option<u64>",
        range(min = 1, max = MAX_HOLD_NS),
        extend("default_help" = "none", "only_with" = {"key": "hold", "value": null})
    )]
    pub time: Option<Duration>,
}

impl HoldSettings {
    fn time_of(&self, packet: &Packet) -> Option<Duration> {
        self.time.filter(|_| self.indexes.as_ref().is_some_and(|held| held.binary_search(&packet.index).is_ok()))
    }
}

impl ElementSettings for HoldSettings {
    fn element(settings: Schedule<Self>, _seed: Seed) -> Option<Box<dyn Element>> {
        let holds = settings.ever(|settings| settings.indexes.as_ref().is_some_and(|held| !held.is_empty()));
        holds.then(|| Box::new(Hold::new(settings)) as Box<dyn Element>)
    }

    fn longest_delay(&self) -> Duration {
        self.time.unwrap_or_default()
    }

    /// Of certain packets, a mean delay says nothing.
    fn effect(&self) -> Effect {
        Effect { changes: self.indexes.is_some(), ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        false
    }

    fn complete(&mut self) -> Result<(), SettingError> {
        if self.time.is_some() != self.indexes.is_some() {
            let (set, missing) = if self.time.is_some() { ("hold_time_ns", "hold") } else { ("hold", "hold_time") };
            let problem = alloc::format!("is set but {missing} is not");
            return Err(SettingError::new(set, problem, "give both: which packets, and how long"));
        }
        if let Some(held) = &mut self.indexes {
            held.sort_unstable();
        }
        Ok(())
    }
}

/// The packets held, in order of arrival.
pub struct Hold {
    settings: Schedule<HoldSettings>,
    held: VecDeque<Box<Packet>>,
    /// The last departure of a held packet.
    last: Instant,
}

impl Hold {
    /// Holds nothing yet.
    pub fn new(settings: Schedule<HoldSettings>) -> Self {
        Self { settings, held: VecDeque::new(), last: Instant::ZERO }
    }
}

impl Element for Hold {
    fn judge_packet(&mut self, packet: &mut Packet) -> Outcome {
        let is_free = self.held.is_empty() && self.settings.at(packet.at).time_of(packet).is_none();
        if is_free { Outcome::Passes } else { Outcome::Stays }
    }

    fn handle_packet(&mut self, mut packet: Box<Packet>) {
        if let Some(time) = self.settings.at(packet.at).time_of(&packet) {
            packet.hold(time);
        }
        packet.hold_until(self.last);
        self.last = packet.at;
        self.held.push_back(packet);
    }

    fn poll_packet(&mut self, now: Instant) -> Option<Leaving> {
        let is_due = self.held.front().is_some_and(|packet| packet.at <= now);
        is_due.then(|| self.held.pop_front().map(Leaving::Forwarded)).flatten()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.held.front().map(|packet| packet.at)
    }

    fn queued(&self) -> usize {
        self.held.len()
    }
}
