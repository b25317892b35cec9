//! A link: one packet at a time is transmitted at the rate; the others wait in a queue.

use crate::queue::{Fifo, Queue, QueueLimit};
use crate::{Cause, Counting, Departure, Effect, Element, ElementSettings, Packet};
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Instant, Seed};
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
    fn element(&self, _seed: Seed) -> Option<Box<dyn Element>> {
        let queue = Fifo::new(self.queue.unwrap_or_default(), self.counting);
        Some(Box::new(Link::new(self.rate?, self.counting, Box::new(queue))))
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
    rate: BitRate,
    counting: Counting,
    queue: Box<dyn Queue>,
    /// The packet in transmission; its `at` is the end of transmission.
    transmitting: Option<Packet>,
    /// Fraction of a nanosecond that back-to-back transmissions carry on.
    remainder: u64,
    out: VecDeque<Departure>,
}

impl Link {
    /// A link of `rate`, on which a packet counts as `counting` says, fed by `queue`.
    pub fn new(rate: BitRate, counting: Counting, queue: Box<dyn Queue>) -> Self {
        Self { rate, counting, queue, transmitting: None, remainder: 0, out: VecDeque::new() }
    }

    fn transmit(&mut self, start: Instant, packet: Packet) {
        let transmission = self.rate.transmission(self.counting.occupied(packet.size), self.remainder);
        self.remainder = transmission.remainder;
        self.transmitting = Some(packet.after_queueing(start).after_transmission(transmission.duration));
    }

    /// Brings transmissions that end by `now` to their end, and starts those that follow them.
    fn advance(&mut self, now: Instant) {
        while let Some(packet) = self.transmitting.take_if(|packet| packet.at <= now) {
            self.out.push_back(Departure::Forwarded(packet));
            match self.queue.dequeue(packet.at) {
                Some(next) => self.transmit(packet.at, next),
                None => self.remainder = 0,
            }
        }
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
        self.transmitting.map(|packet| packet.at)
    }

    fn queued(&self) -> usize {
        self.out.len() + self.queue.len() + usize::from(self.transmitting.is_some())
    }
}
