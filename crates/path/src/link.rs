//! A link: one packet at a time is transmitted at the rate; the others wait in a queue.

use crate::queue::Queue;
use crate::{Cause, Counting, Departure, Element, Packet};
use crosswind_units::{BitRate, Instant};
use std::collections::VecDeque;

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
        self.transmitting = Some(Packet { at: start + transmission.duration, ..packet });
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
            self.out.push_back(Departure::Dropped(Packet { at: now, ..packet }, Cause::Queue));
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
