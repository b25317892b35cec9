//! A cellular link's deliveries to a burst of packets after a pause, before its base station has scheduled anything:
//! the light deliveries of `CellReplay` (Sentosa and others, "`CellReplay`: Towards accurate record-and-replay for
//! cellular networks", NSDI 2025). The first packet after a pause begins a burst; each time is an opportunity for 1500
//! bytes, counted from its arrival. A packet too large for the remainder of one takes the next. Packets beyond the last
//! opportunity use the busy link's trace (`delivery_trace`), and so do packets that find others waiting there. A burst
//! ends when its packets have left; one without opportunities left, after a pause as long as they last.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::{Effect, Element, ElementSettings, Leaving, Packet, Schedule};
use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;
use crosswind_settings::SettingError;
use crosswind_units::{Duration, Instant, Seed};

/// Bytes per delivery.
const DELIVERED: u64 = 1500;

/// The longest time from the first packet to a delivery: 10 minutes.
const MAX_TIME_MS: u64 = 600_000;

/// Deliveries to a burst of packets, before those of a busy link count.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LightDeliverySettings {
    /// Times in ms after the first packet behind a pause, at each of which up to 1500 bytes leave; packets beyond the last wait for `delivery_trace`.
    #[serde(rename = "light_deliveries", skip_serializing_if = "Option::is_none")]
    #[schemars(inner(range(max = MAX_TIME_MS)), extend("default_help" = "none"))]
    pub times: Option<Vec<u64>>,
}

impl ElementSettings for LightDeliverySettings {
    fn element(settings: Schedule<Self>, _seed: Seed) -> Option<Box<dyn Element>> {
        settings.ever(|settings| settings.times.is_some()).then(|| Box::new(LightDeliveries::new(settings)) as _)
    }

    fn effect(&self) -> Effect {
        Effect { changes: self.times.is_some(), ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        false
    }

    fn complete(&mut self) -> Result<(), SettingError> {
        let Some(times) = &self.times else { return Ok(()) };
        let unsorted = times.windows(2).map(|pair| (pair[0], pair[1])).find(|(before, after)| after < before);
        let problem = match unsorted {
            Some((before, after)) => format!("has {after} behind {before}, which is later"),
            None if times.is_empty() => "is empty".to_owned(),
            None => return Ok(()),
        };
        Err(SettingError::new("light_deliveries", problem, "times in ms, none before the last"))
    }
}

/// A burst: its beginning, the present opportunity and its remainder.
#[derive(Clone, Debug, Default)]
struct Burst {
    start: Instant,
    times: Vec<u64>,
    next: usize,
    left: u64,
}

impl Burst {
    /// The departure of a packet of `size` arriving at `now`; none without opportunities left.
    fn take(&mut self, now: Instant, size: u64) -> Option<Instant> {
        while self.time(self.next).is_some_and(|time| time < now) {
            self.skip();
        }
        if self.left < size.min(DELIVERED) {
            self.skip();
        }
        // A larger packet takes several.
        for _ in 0..size.saturating_sub(1) / DELIVERED {
            self.skip();
        }
        let time = self.time(self.next)?;
        self.left -= size.min(DELIVERED).min(self.left);
        Some(time)
    }

    fn skip(&mut self) {
        self.next += 1;
        self.left = DELIVERED;
    }

    fn time(&self, number: usize) -> Option<Instant> {
        self.times.get(number).map(|time| self.start + Duration::from_millis(*time))
    }
}

/// The burst's packets awaiting their opportunities.
pub struct LightDeliveries {
    settings: Schedule<LightDeliverySettings>,
    burst: Burst,
    /// When the last packet leaves, and after when a packet begins another burst.
    last: Option<Instant>,
    over: Option<Instant>,
    waiting: VecDeque<Box<Packet>>,
}

impl LightDeliveries {
    /// A link in a pause.
    pub fn new(settings: Schedule<LightDeliverySettings>) -> Self {
        Self { settings, burst: Burst::default(), last: None, over: None, waiting: VecDeque::new() }
    }
}

impl Element for LightDeliveries {
    fn handle_packet(&mut self, mut packet: Box<Packet>) {
        let now = packet.at;
        if self.over.is_none_or(|over| over < now) {
            let times = self.settings.at(now).times.clone().unwrap_or_default();
            self.burst = Burst { start: now, times, next: 0, left: DELIVERED };
        }
        let time = self.burst.take(now, packet.size.0);
        // None overtakes another.
        let leaves = time.unwrap_or(now).max(self.last.unwrap_or(now)).max(now);
        self.last = Some(leaves);
        let rest = self.burst.times.last().filter(|_| time.is_none());
        self.over = Some(leaves + Duration::from_millis(rest.copied().unwrap_or_default()));
        packet.is_light = time.is_some();
        packet.queue_until(leaves);
        self.waiting.push_back(packet);
    }

    fn poll_packet(&mut self, now: Instant) -> Option<Leaving> {
        self.waiting.front().filter(|packet| packet.at <= now)?;
        self.waiting.pop_front().map(Leaving::Forwarded)
    }

    fn next_wakeup(&self) -> Option<Instant> {
        self.waiting.front().map(|packet| packet.at)
    }

    fn queued(&self) -> usize {
        self.waiting.len()
    }
}
