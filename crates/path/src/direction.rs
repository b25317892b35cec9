//! A direction is a chain of elements; a path is two directions.

use crate::{Arrival, CompiledStage, Departure, DirectionConfig, Element, Packet};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use crosswind_units::{Instant, Seed};

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
///
/// Elements count time from the origin of the direction, the first packet in it unless the path has another.
pub struct Direction {
    stages: Vec<Stage>,
    out: VecDeque<Departure>,
    next_index: u64,
    origin: Option<Instant>,
}

/// An element, and which hop it is part of.
struct Stage {
    hop: u8,
    element: Box<dyn Element>,
}

impl Direction {
    /// A chain of elements, from first to last. An empty chain is a wire of no length.
    pub fn new(elements: Vec<Box<dyn Element>>) -> Self {
        Self::of_stages(elements.into_iter().map(|element| Stage { hop: 0, element }).collect())
    }

    /// The elements that `config` asks for, in the order of the registry. Each draws from a stream of its own of `seed`.
    pub fn from_config(config: &DirectionConfig, seed: Seed) -> Self {
        Self::new(config.elements(seed))
    }

    /// The elements of `stages`, in their order.
    pub fn of_compiled(stages: Vec<CompiledStage>) -> Self {
        let made =
            |CompiledStage { hop, element, seed }: CompiledStage| Some(Stage { hop, element: element.make(seed)? });
        Self::of_stages(stages.into_iter().filter_map(made).collect())
    }

    const fn of_stages(stages: Vec<Stage>) -> Self {
        Self { stages, out: VecDeque::new(), next_index: 0, origin: None }
    }

    /// Lets time begin at `origin`, unless it has begun.
    fn begin(&mut self, origin: Instant) {
        self.origin.get_or_insert(origin);
    }

    /// Takes a packet that enters at `now`; returns its index in this direction.
    pub fn handle_packet(&mut self, now: Instant, arrival: Arrival) -> u64 {
        self.begin(now);
        let now = self.own(now);
        let index = self.next_index;
        self.next_index += 1;
        self.pump(now);
        let packet = Packet::entering(index, now, arrival);
        match self.stages.first_mut() {
            Some(first) => first.handle_packet(packet),
            None => self.out.push_back(Departure::Forwarded(packet)),
        }
        self.pump(now);
        index
    }

    /// Hands out the packets that have left the network by `now`, one at each call.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Departure> {
        let origin = self.origin?;
        if self.out.is_empty() {
            self.pump(self.own(now));
        }
        self.out.pop_front().map(|departure| departure.since(origin))
    }

    /// When `poll_packet` will next have something, if nothing arrives before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        let origin = self.origin?;
        let next = match self.out.front() {
            Some(departure) => Some(departure.packet().at),
            None => self.stages.iter().filter_map(|stage| stage.element.next_wakeup()).min(),
        };
        next.map(|next| origin + (next - Instant::ZERO))
    }

    /// Packets inside.
    pub fn queued(&self) -> usize {
        let out = self.out.iter().filter(|departure| !matches!(departure, Departure::Duplicated(_))).count();
        out + self.stages.iter().map(|stage| stage.element.queued()).sum::<usize>()
    }

    /// `now` on the clock of the elements.
    fn own(&self, now: Instant) -> Instant {
        Instant::ZERO + now.saturating_since(self.origin.unwrap_or(now))
    }

    /// Moves packets down the chain. A single pass is enough, because packets only go forwards.
    fn pump(&mut self, now: Instant) {
        for i in 0..self.stages.len() {
            let (before, after) = self.stages.split_at_mut(i + 1);
            while let Some(departure) = before[i].element.poll_packet(now) {
                let packet = departure.packet();
                debug_assert_eq!(
                    packet.entered + packet.spent.total(),
                    packet.at,
                    "element {i} does not say what it did with the time"
                );
                match (departure, after.first_mut()) {
                    (Departure::Dropped(..), _) | (Departure::Forwarded(_), None) => self.out.push_back(departure),
                    (Departure::Forwarded(packet), Some(next)) => next.handle_packet(packet),
                    (Departure::Duplicated(packet), next) => {
                        let copy = packet.copied();
                        self.out.push_back(Departure::Duplicated(copy));
                        match next {
                            Some(next) => [packet, copy].into_iter().for_each(|packet| next.handle_packet(packet)),
                            None => self.out.extend([packet, copy].map(Departure::Forwarded)),
                        }
                    }
                }
            }
        }
    }
}

impl Stage {
    fn handle_packet(&mut self, packet: Packet) {
        self.element.handle_packet(packet.at, Packet { hop: self.hop, ..packet });
    }
}

/// The network between client and server. Its time begins with the first packet that enters it.
pub struct Path {
    forward: Direction,
    reverse: Direction,
}

impl Path {
    /// A path of two directions.
    pub const fn new(forward: Direction, reverse: Direction) -> Self {
        Self { forward, reverse }
    }

    /// Takes a packet that enters at `now` on its way in the direction of `side`; returns its index in this direction.
    pub fn handle_packet(&mut self, side: Side, now: Instant, arrival: Arrival) -> u64 {
        self.forward.begin(now);
        self.reverse.begin(now);
        self.side_mut(side).handle_packet(now, arrival)
    }

    /// Hands out the packets of one direction that have left the network by `now`, one at each call.
    pub fn poll_packet(&mut self, side: Side, now: Instant) -> Option<Departure> {
        self.side_mut(side).poll_packet(now)
    }

    /// When `poll_packet` will next have something, if nothing arrives before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.forward.next_wakeup().into_iter().chain(self.reverse.next_wakeup()).min()
    }

    /// Packets inside: forward, reverse.
    pub fn queued(&self) -> [u64; 2] {
        [&self.forward, &self.reverse].map(|direction| direction.queued() as u64)
    }

    const fn side_mut(&mut self, side: Side) -> &mut Direction {
        match side {
            Side::Forward => &mut self.forward,
            Side::Reverse => &mut self.reverse,
        }
    }
}
