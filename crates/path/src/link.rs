//! A link: one packet at a time is transmitted at the rate; the others wait in a queue. Where the rate changes, what is left of a packet
//! is transmitted at the new one; where the queue shrinks, what waits in it stays.

use crate::queue::{Fifo, Queue, QueueLimit};
use crate::{Cause, Counting, Departure, Effect, Element, ElementSettings, Packet, Schedule};
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Duration, Instant, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// 1 Tbit/s: far above what one machine forwards.
const MAX_RATE_BPS: u64 = 1_000_000_000_000;

/// Packets or bytes of a queue: more never wait on one machine.
const MAX_QUEUE: u64 = 1_000_000_000;

/// The queue before the link was full.
pub const QUEUE_FULL: Cause = Cause::new("queue");

/// The link, which transmits one packet at a time, and the queue before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct LinkSettings {
    /// Rate of the link; without one it is unlimited and has no queue.
    #[serde(rename = "rate_bps")]
    #[schemars(with = "Option<u64>", range(min = 1, max = MAX_RATE_BPS))]
    pub rate: Option<BitRate>,
    /// Size of the queue before the link, without the packet in transmission.
    #[schemars(extend(
        "kind" = "queue",
        "default_help" = "1000 packets where there is a rate",
        "only_with" = {"key": "rate_bps", "value": null}
    ))]
    pub queue: Option<QueueLimit>,
    /// What occupies the link and a queue in bytes: the IP packet, or the Ethernet frame with all that surrounds it.
    #[serde(rename = "count")]
    pub counting: Counting,
}

impl ElementSettings for LinkSettings {
    fn element(mut settings: Schedule<Self>, _seed: Seed) -> Option<Box<dyn Element>> {
        let limited = settings.ever(|settings| settings.rate.is_some());
        let first = *settings.at(Instant::ZERO);
        let queue = Fifo::new(first.queue.unwrap_or_default(), first.counting);
        limited.then(|| Box::new(Link::new(settings, Box::new(queue))) as Box<dyn Element>)
    }

    fn drop_causes(&self) -> &'static [Cause] {
        &[QUEUE_FULL]
    }

    fn effect(&self) -> Effect {
        Effect { rate: self.rate, queue: self.queue, frame: self.counting.overhead(), ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        false
    }

    fn complete(&mut self) -> Result<(), SettingError> {
        match self.queue {
            Some(QueueLimit::Packets(0) | QueueLimit::Bytes(0)) => Err(SettingError::new(
                "queue",
                "of 0 would drop every packet that has to wait",
                "give at least 1 packet or 1 byte",
            )),
            Some(QueueLimit::Packets(limit) | QueueLimit::Bytes(limit)) if limit > MAX_QUEUE => Err(SettingError::new(
                "queue",
                format!("of {limit} is more than {MAX_QUEUE} packets or bytes"),
                "give a smaller limit",
            )),
            Some(_) if self.rate.is_none() => Err(SettingError::new(
                "queue",
                "is set but rate_bps is not: an unlimited link has no queue",
                "set rate_bps, or leave queue out",
            )),
            limit => {
                self.queue = self.rate.map(|_| limit.unwrap_or_default());
                Ok(())
            }
        }
    }
}

/// A transmitter with a queue before it. The packet in transmission occupies the link, not the queue.
pub struct Link {
    settings: Schedule<LinkSettings>,
    now: LinkSettings,
    queue: Box<dyn Queue>,
    transmitting: Option<Transmitting>,
    /// Fraction of a nanosecond that back-to-back transmissions carry on, in bit/s times ns.
    remainder: u64,
    out: VecDeque<Departure>,
}

/// A packet on the wire.
struct Transmitting {
    packet: Packet,
    /// When what is left began.
    since: Instant,
    /// What is left of it, in bit/s times ns.
    left: u128,
    /// When it ends, if the rate stays.
    end: Instant,
}

impl Link {
    /// A link that is fed by `queue`.
    pub fn new(mut settings: Schedule<LinkSettings>, queue: Box<dyn Queue>) -> Self {
        let now = *settings.at(Instant::ZERO);
        Self { settings, now, queue, transmitting: None, remainder: 0, out: VecDeque::new() }
    }

    fn transmit(&mut self, start: Instant, packet: Packet) {
        let bits = u128::from(self.now.counting.occupied(packet.size).0) * 8;
        let left = bits * 1_000_000_000 + u128::from(self.remainder);
        let packet = packet.after_queueing(start);
        self.transmitting = Some(Transmitting { packet, since: start, left, end: self.end(start, left) });
    }

    /// When a transmission with so much left ends, at the rate of now.
    fn end(&self, since: Instant, left: u128) -> Instant {
        let took = self.now.rate.map_or(0, |rate| left / u128::from(rate.as_bps()));
        since + Duration::from_nanos(u64::try_from(took).unwrap_or(u64::MAX))
    }

    /// Brings transmissions that end by `now` to their end, starts those that follow them, and changes the settings in time.
    fn advance(&mut self, now: Instant) {
        loop {
            // Of a link that is idle, what changed in the meantime does not matter: only what holds now.
            let next = self
                .settings
                .next_change()
                .map(|change| if self.transmitting.is_some() { change } else { change.max(now) });
            let change = next.filter(|change| *change <= now);
            let end = self.transmitting.as_ref().map(|transmitting| transmitting.end).filter(|end| *end <= now);
            match (end, change) {
                (Some(end), change) if change.is_none_or(|change| end <= change) => self.finish(),
                (_, Some(change)) => self.change(change),
                _ => return,
            }
        }
    }

    fn finish(&mut self) {
        let Some(Transmitting { packet, since, left, end }) = self.transmitting.take() else { return };
        let used = self.now.rate.map_or(left, |rate| u128::from(rate.as_bps()) * u128::from((end - since).as_nanos()));
        self.remainder = (left - used) as u64;
        self.out.push_back(Departure::Forwarded(packet.after_transmission(end - packet.at)));
        match self.queue.dequeue(end) {
            Some(next) => self.transmit(end, next),
            None => self.remainder = 0,
        }
    }

    fn change(&mut self, time: Instant) {
        let before = std::mem::replace(&mut self.now, *self.settings.at(time));
        self.queue.set_limit(self.now.queue.unwrap_or_default());
        let Some(mut transmitting) = self.transmitting.take() else { return };
        let sent = before
            .rate
            .map_or(u128::MAX, |rate| u128::from(rate.as_bps()) * u128::from((time - transmitting.since).as_nanos()));
        transmitting.left = transmitting.left.saturating_sub(sent);
        transmitting.since = time;
        transmitting.end = self.end(time, transmitting.left);
        self.transmitting = Some(transmitting);
    }
}

impl Element for Link {
    fn handle_packet(&mut self, now: Instant, packet: Packet) {
        self.advance(now);
        if self.transmitting.is_none() {
            self.transmit(now, packet);
        } else if let Err(packet) = self.queue.enqueue(now, packet) {
            self.out.push_back(Departure::Dropped(packet, QUEUE_FULL));
        }
    }

    fn poll_packet(&mut self, now: Instant) -> Option<Departure> {
        self.advance(now);
        self.out.pop_front()
    }

    fn next_wakeup(&self) -> Option<Instant> {
        let end = self.transmitting.as_ref()?.end;
        Some(self.settings.next_change().map_or(end, |change| change.min(end)))
    }

    fn queued(&self) -> usize {
        self.out.len() + self.queue.len() + usize::from(self.transmitting.is_some())
    }
}
