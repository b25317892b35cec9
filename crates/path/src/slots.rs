//! A medium with grants: at regular times, for so many bytes each. Between grants packets wait.
//!
//! An LTE base station lets a terminal send like this (grants in every subframe of 1 ms or in fewer; 3GPP TS 36.321,
//! section 5.4), and a cable modem is granted minislots (DOCSIS 3.1, CM-SP-MULPIv3.1, section 7.2). As there, a packet
//! may be cut across grants (RLC segmentation, 3GPP TS 36.322, section 4.2) and leaves with its last byte, and a
//! grant's unused rest is lost. Without a size, a grant takes all waiting packets: one aggregate of frames, as in Wi-Fi
//! (A-MPDU, IEEE 802.11-2020, section 9.7).

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::queue::{Limit, QueueLimit};
use crate::{Cause, Effect, Element, ElementSettings, Leaving, Packet, Schedule};
use alloc::boxed::Box;
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Bytes, Duration, Instant, Seed};

use alloc::collections::VecDeque;

/// Too many packets waited for grants.
pub const GRANT_QUEUE: Cause = Cause::new("grant_queue");

/// The longest time between grants: 100 s.
const MAX_PERIOD_NS: u64 = 100_000_000_000;

/// The shortest: 10 us.
const MIN_PERIOD_NS: u64 = 10_000;

/// 1 GB, as a queue.
const MAX_GRANT_BYTES: u64 = 1_000_000_000;

/// A medium that is used in grants: packets leave at regular times, several at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct SlotSettings {
    /// Time from one grant to the next; the first comes at a random time within it.
    #[serde(rename = "grant_period_ns", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = MIN_PERIOD_NS, max = MAX_PERIOD_NS), extend(
        "default_help" = "none: packets need no grant"
    ))]
    pub period: Option<Duration>,
    /// What leaves in one grant.
    #[serde(rename = "grant_bytes", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_GRANT_BYTES), extend(
        "default_help" = "all that waits",
        "only_with" = {"key": "grant_period_ns", "value": null}
    ))]
    pub bytes: Option<Bytes>,
    /// Size of the queue that waits for grants.
    #[serde(rename = "grant_queue", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "kind" = "queue",
        "default_help" = "1000 packets",
        "only_with" = {"key": "grant_period_ns", "value": null}
    ))]
    pub queue: Option<QueueLimit>,
}

impl SlotSettings {
    /// The grants' mean rate.
    fn rate(&self) -> Option<BitRate> {
        let (period, bytes) = (self.period?, self.bytes?);
        let bits = u128::from(bytes.0) * 8 * 1_000_000_000 / u128::from(period.as_nanos());
        BitRate::new(u64::try_from(bits).unwrap_or(u64::MAX))
    }
}

impl ElementSettings for SlotSettings {
    fn element(settings: Schedule<Self>, seed: Seed) -> Option<Box<dyn Element>> {
        let slotted = settings.ever(|settings| settings.period.is_some());
        slotted.then(|| Box::new(Slots::new(settings, seed)) as Box<dyn Element>)
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[GRANT_QUEUE]
    }

    fn longest_delay(&self) -> Duration {
        self.period.unwrap_or_default()
    }

    fn effect(&self) -> Effect {
        let period = self.period.unwrap_or_default();
        let rate = self.rate();
        Effect {
            delay: Duration::from_nanos(period.as_nanos() / 2),
            rate,
            queue: self.queue.filter(|_| rate.is_some()).map(|queue| queue.at_rate(rate)),
            random_delay: self.period.is_some(),
            bursts: self.period.is_some(),
            ..Effect::default()
        }
    }

    fn is_random(&self) -> bool {
        self.period.is_some()
    }

    fn complete(&mut self) -> Result<(), SettingError> {
        for (key, given) in [("grant_bytes", self.bytes.is_some()), ("grant_queue", self.queue.is_some())] {
            if given && self.period.is_none() {
                let problem = "is set but grant_period is not: packets need no grant";
                return Err(SettingError::new(key, problem, "set grant_period, or leave it out"));
            }
        }
        if matches!(self.queue, Some(QueueLimit::Time(_))) && self.bytes.is_none() {
            let problem = "is a time but grant is not set: grants of any size have no rate";
            return Err(SettingError::new("grant_queue", problem, "give packets or bytes, or set grant"));
        }
        self.queue.map_or(Ok(()), |queue| queue.check("grant_queue"))?;
        self.queue = self.period.map(|_| self.queue.unwrap_or_default());
        Ok(())
    }
}

/// Packets waiting for grants. One arriving at the time of a grant waits for the next.
pub struct Slots {
    settings: Schedule<SlotSettings>,
    now: SlotSettings,
    /// A random word: where in a period the grants come.
    phase: u64,
    waiting: VecDeque<Waiting>,
    bytes: u64,
    /// The time of the last handled grant or change.
    after: Instant,
    out: VecDeque<Leaving>,
}

struct Waiting {
    packet: Box<Packet>,
    /// Bytes not granted yet.
    left: u64,
    /// The first grant since it arrived: until then it would have waited alone, too.
    first: Option<Instant>,
}

impl Slots {
    /// An idle medium; `seed` decides the time of the first grant.
    pub fn new(mut settings: Schedule<SlotSettings>, seed: Seed) -> Self {
        let now = *settings.at(Instant::ZERO);
        let (waiting, out) = (VecDeque::new(), VecDeque::new());
        Self { settings, now, phase: seed.word(0), waiting, bytes: 0, after: Instant::ZERO, out }
    }

    /// The next grant usable for the queue's first packet; if none is needed, the packet's arrival or the end of the
    /// need.
    fn next_grant(&self) -> Option<Instant> {
        let from = self.waiting.front()?.packet.at.max(self.after);
        let Some(period) = self.now.period.map(Duration::as_nanos) else { return Some(from) };
        let phase = ((u128::from(self.phase) * u128::from(period)) >> 64) as u64;
        let passed = (from.as_nanos() + 1).saturating_sub(phase).div_ceil(period);
        Some(Instant::from_nanos(phase + passed * period))
    }

    /// Lets packets leave in the grants up to `now`.
    fn advance(&mut self, now: Instant) {
        while let Some(grant) = self.next_grant() {
            match self.settings.next_change().filter(|change| *change <= grant.min(now)) {
                Some(change) => {
                    self.now = *self.settings.at(change);
                    self.after = change;
                }
                None if grant <= now => self.grant(grant),
                None => return,
            }
        }
    }

    fn grant(&mut self, at: Instant) {
        self.after = at;
        for waiting in self.waiting.iter_mut().rev().take_while(|waiting| waiting.first.is_none()) {
            waiting.first = Some(at.max(waiting.packet.at));
        }
        let mut granted = self.now.period.and(self.now.bytes).map_or(u64::MAX, |bytes| bytes.0);
        while let Some(first) = self.waiting.front_mut() {
            let used = granted.min(first.left);
            (first.left, granted) = (first.left - used, granted - used);
            self.bytes -= used;
            if first.left > 0 {
                return;
            }
            let (alone, end) = (first.first.unwrap_or(at), at.max(first.packet.at));
            first.packet.hold_until(alone);
            first.packet.queue_until(end);
            self.out.extend(self.waiting.pop_front().map(|first| Leaving::Forwarded(first.packet)));
        }
    }

    fn has_room(&self, packet: &Packet) -> bool {
        Limit::at_rate(self.now.queue, self.now.rate()).takes(self.waiting.len(), self.bytes, packet.size.0)
    }
}

impl Element for Slots {
    fn handle_packet(&mut self, packet: Box<Packet>) {
        self.advance(packet.at);
        self.now = *self.settings.at(packet.at);
        if self.now.period.is_none() && self.waiting.is_empty() {
            self.out.push_back(Leaving::Forwarded(packet));
        } else if self.has_room(&packet) {
            self.bytes += packet.size.0;
            let left = packet.size.0;
            self.waiting.push_back(Waiting { packet, left, first: None });
        } else {
            self.out.push_back(Leaving::Dropped(packet, GRANT_QUEUE));
        }
    }

    fn poll_packet(&mut self, now: Instant) -> Option<Leaving> {
        if self.out.is_empty() {
            self.advance(now);
        }
        self.out.pop_front()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        if let Some(departure) = self.out.front() {
            return Some(departure.packet().at);
        }
        let grant = self.next_grant()?;
        Some(self.settings.next_change().map_or(grant, |change| change.min(grant)))
    }

    fn queued(&self) -> usize {
        self.out.len() + self.waiting.len()
    }
}
