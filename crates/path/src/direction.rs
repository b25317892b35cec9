//! A direction is a chain of elements; a path is two directions.

use crate::{Departure, DirectionConfig, Element, Packet, PathConfig};
use crosswind_units::{Bytes, Instant, Seed};
use std::collections::VecDeque;

/// The direction in which a packet goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// Client to server.
    Forward,
    /// Server to client.
    Reverse,
}

impl Side {
    /// Both directions, forward first.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Reverse];

    /// The name, as stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "forward",
            Self::Reverse => "reverse",
        }
    }
}

/// The network from one host to the other. A packet arrives at an element at the nominal time at which it left the one
/// before.
pub struct Direction {
    elements: Vec<Box<dyn Element>>,
    out: VecDeque<Departure>,
    next_index: u64,
}

impl Direction {
    /// A chain of elements, from first to last. An empty chain is a wire of no length.
    pub fn new(elements: Vec<Box<dyn Element>>) -> Self {
        Self { elements, out: VecDeque::new(), next_index: 0 }
    }

    /// The elements that `config` asks for, in the order of the registry. Each draws from a stream of its own of `seed`.
    pub fn from_config(config: &DirectionConfig, seed: Seed) -> Self {
        Self::new(config.elements(seed))
    }

    /// Takes a packet of `size` that enters at `now`; returns its index in this direction.
    pub fn handle_packet(&mut self, now: Instant, size: Bytes, buffer: u32) -> u64 {
        let index = self.next_index;
        self.next_index += 1;
        self.pump(now);
        let packet = Packet::entering(index, size, now, buffer);
        match self.elements.first_mut() {
            Some(first) => first.handle_packet(now, packet),
            None => self.out.push_back(Departure::Forwarded(packet)),
        }
        self.pump(now);
        index
    }

    /// Hands out the packets that have left the network by `now`, one at each call.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Departure> {
        if self.out.is_empty() {
            self.pump(now);
        }
        self.out.pop_front()
    }

    /// When `poll_packet` will next have something, if nothing arrives before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        if let Some(departure) = self.out.front() {
            return Some(departure.packet().at);
        }
        self.elements.iter().filter_map(|element| element.next_wakeup()).min()
    }

    /// Packets inside.
    pub fn queued(&self) -> usize {
        self.out.len() + self.elements.iter().map(|element| element.queued()).sum::<usize>()
    }

    /// Moves packets down the chain. A single pass is enough, because packets only go forwards.
    fn pump(&mut self, now: Instant) {
        for i in 0..self.elements.len() {
            let (before, after) = self.elements.split_at_mut(i + 1);
            while let Some(departure) = before[i].poll_packet(now) {
                let packet = departure.packet();
                debug_assert_eq!(
                    packet.entered + packet.spent.total(),
                    packet.at,
                    "element {i} does not say what it did with the time"
                );
                match (departure, after.first_mut()) {
                    (Departure::Forwarded(packet), Some(next)) => next.handle_packet(packet.at, packet),
                    _ => self.out.push_back(departure),
                }
            }
        }
    }
}

/// The network between client and server.
pub struct Path {
    /// Client to server.
    pub forward: Direction,
    /// Server to client.
    pub reverse: Direction,
}

impl Path {
    /// The path that `config` describes; each direction draws from its own stream of `seed`.
    pub fn from_config(config: &PathConfig, seed: Seed) -> Self {
        Self {
            forward: Direction::from_config(&config.forward, seed.child("forward")),
            reverse: Direction::from_config(&config.reverse, seed.child("reverse")),
        }
    }

    /// The direction of `side`.
    pub fn side(&mut self, side: Side) -> &mut Direction {
        match side {
            Side::Forward => &mut self.forward,
            Side::Reverse => &mut self.reverse,
        }
    }
}
