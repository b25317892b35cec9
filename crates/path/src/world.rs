//! A direction on virtual time, for tests and simulations: a script of sends, and each packet's exact fate.

use crate::{Arrival, Cause, Departure, Direction, Packet};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use crosswind_units::{Bytes, Instant};

/// A packet's fate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Delivered at this time.
    Delivered(Instant),
    /// Dropped at this time, for this cause.
    Dropped(Instant, Cause),
}

/// A direction, and the packets still to be sent.
pub struct World {
    direction: Direction,
    unsent: BTreeMap<(Instant, u64), Arrival>,
    sent: u64,
    duplicated: u64,
    background: Vec<(Packet, Fate)>,
    now: Instant,
}

impl World {
    /// A world at time zero, around `direction`.
    pub fn new(direction: Direction) -> Self {
        Self { direction, unsent: BTreeMap::new(), sent: 0, duplicated: 0, background: Vec::new(), now: Instant::ZERO }
    }

    /// Lets a packet of `size` bytes enter at `time`. Packets at the same time enter in call order.
    ///
    /// # Panics
    /// When `time` is in the past.
    pub fn send_at(&mut self, time: Instant, size: u64) {
        self.arrive_at(time, Arrival { size: Bytes(size), ..Arrival::default() });
    }

    /// Lets a described packet enter at `time`.
    ///
    /// # Panics
    /// When `time` is in the past.
    pub fn arrive_at(&mut self, time: Instant, arrival: Arrival) {
        assert!(time >= self.now, "the script goes back in time");
        self.unsent.insert((time, self.sent), arrival);
        self.sent += 1;
    }

    /// Runs until the next packet leaves, delivered or dropped; `None` when nothing is left but background traffic.
    pub fn next_fate(&mut self) -> Option<(Packet, Fate)> {
        loop {
            if let Some(departure) = self.direction.poll_packet(self.now) {
                let (packet, fate) = match departure {
                    Departure::Forwarded(packet) => (packet, Fate::Delivered(packet.at)),
                    Departure::Dropped(packet, cause) => (packet, Fate::Dropped(packet.at, cause)),
                    Departure::Duplicated(_) => {
                        self.duplicated += 1;
                        continue;
                    }
                };
                if !packet.is_background {
                    return Some((packet, fate));
                }
                self.background.push((packet, fate));
                continue;
            }
            if self.unsent.is_empty() && self.direction.queued() == 0 {
                return None;
            }
            let arrival = self.unsent.first_key_value().map(|((time, _), _)| *time);
            let wakeup = self.direction.next_wakeup();
            // At equal times a departure comes before an arrival, which then finds the place free.
            match (wakeup, arrival) {
                (Some(wakeup), arrival) if arrival.is_none_or(|arrival| wakeup <= arrival) => self.now = wakeup,
                (_, Some(time)) => {
                    self.now = time;
                    if let Some((_, arrival)) = self.unsent.pop_first() {
                        self.direction.handle_packet(time, arrival);
                    }
                }
                _ => return None,
            }
        }
    }

    /// Runs until the next delivery, passing over drops.
    pub fn next_delivery(&mut self) -> Option<Instant> {
        loop {
            if let (_, Fate::Delivered(time)) = self.next_fate()? {
                return Some(time);
            }
        }
    }

    /// Runs to the end: every packet's index and fate, in the order of leaving.
    pub fn run(&mut self) -> Vec<(u64, Fate)> {
        core::iter::from_fn(|| self.next_fate()).map(|(packet, fate)| (packet.index, fate)).collect()
    }

    /// Copies made so far.
    pub const fn duplicated(&self) -> u64 {
        self.duplicated
    }

    /// Background packets so far, in the order of leaving.
    pub fn background(&self) -> &[(Packet, Fate)] {
        &self.background
    }

    /// Packets inside now.
    pub fn queued(&self) -> usize {
        self.direction.queued()
    }
}
