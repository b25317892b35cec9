//! A direction is a chain of elements; a path is two directions.

use crate::{Arrival, Cause, CompiledStage, Departure, DirectionConfig, Element, Leaving, Outcome, Packet};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::ops::Range;
use crosswind_units::{Duration, Instant, Seed};

/// A packet's direction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Side {
    /// Client to server.
    Forward,
    /// Server to client.
    Reverse,
}

impl Side {
    /// Both directions, forward first.
    pub const BOTH: [Self; 2] = [Self::Forward, Self::Reverse];

    /// The other one.
    #[must_use]
    pub fn opposite(self) -> Self {
        self.pick(Self::Reverse, Self::Forward)
    }

    /// The one for this direction.
    #[must_use]
    pub fn pick<T>(self, forward: T, reverse: T) -> T {
        match self {
            Self::Forward => forward,
            Self::Reverse => reverse,
        }
    }

    /// The name, as stored.
    pub fn name(self) -> &'static str {
        self.pick("forward", "reverse")
    }
}

/// The network from one host to the other. A packet arrives at an element at its nominal departure from the previous
/// one.
///
/// Elements count time from the direction's origin: the first packet in it, unless the path sets another.
pub struct Direction {
    stages: Vec<Stage>,
    /// The stages of access links, each for one pair of hosts.
    access: Range<usize>,
    /// The minimum over the stages' `due`.
    due: Instant,
    out: VecDeque<Out>,
    #[allow(clippy::vec_box)] // the boxes are reused
    spare: Vec<Box<Packet>>,
    next_index: u64,
    /// Whether a stage sends background traffic. Paths without any need not count it.
    has_background: bool,
    /// Background packets out of the stages.
    background_left: u64,
    /// When packets were last moved.
    pumped: Instant,
    origin: Option<Instant>,
}

struct Stage {
    hop: u8,
    /// The one pair of hosts served; 0: all.
    pair: u8,
    /// When it next has something to hand out; `NEVER` where it has nothing.
    due: Instant,
    element: Box<dyn Element>,
}

/// A packet out of the stages, or the notice of a copy.
struct Out {
    packet: Box<Packet>,
    how: How,
}

enum How {
    Forwarded,
    Dropped(Cause),
    Duplicated,
}

/// How late background traffic is moved where nothing waits for it: so much of it is moved at once.
const IDLE: Duration = Duration::from_millis(10);

const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl Direction {
    /// A chain of elements, from first to last. An empty chain is a wire without length.
    pub fn new(elements: Vec<Box<dyn Element>>) -> Self {
        Self::of_stages(elements.into_iter().map(|element| Stage { hop: 0, pair: 0, due: NEVER, element }).collect())
    }

    /// The elements for `config`, in the order of the registry. Each draws from its own stream of `seed`.
    pub fn from_config(config: &DirectionConfig, seed: Seed) -> Self {
        Self::new(config.elements(seed))
    }

    /// The elements for `stages`, in order.
    pub fn of_compiled(stages: Vec<CompiledStage>) -> Self {
        let made = |CompiledStage { hop, pair, element, seed }: CompiledStage| {
            Some(Stage { hop, pair, due: NEVER, element: element.make(seed)? })
        };
        Self::of_stages(stages.into_iter().filter_map(made).collect())
    }

    fn of_stages(mut stages: Vec<Stage>) -> Self {
        for stage in &mut stages {
            stage.due = stage.element.next_wakeup().unwrap_or(NEVER);
        }
        let due = stages.iter().map(|stage| stage.due).min().unwrap_or(NEVER);
        let is_access = |stage: &Stage| stage.pair > 0;
        let first = stages.iter().position(is_access).unwrap_or(0);
        let access = first..first + stages.iter().filter(|stage| is_access(stage)).count();
        let has_background = stages.iter().any(|stage| stage.element.background().is_some());
        let (out, spare, pumped) = (VecDeque::new(), Vec::new(), Instant::ZERO);
        Self {
            stages,
            access,
            due,
            out,
            spare,
            next_index: 0,
            has_background,
            background_left: 0,
            pumped,
            origin: None,
        }
    }

    /// Lets time begin at `origin`, unless it has begun.
    fn begin(&mut self, origin: Instant) {
        self.origin.get_or_insert(origin);
    }

    /// Takes a packet entering at `now`; returns its index in this direction.
    pub fn handle_packet(&mut self, now: Instant, arrival: Arrival) -> u64 {
        self.begin(now);
        let now = self.own(now);
        let index = self.next_index;
        self.next_index += 1;
        self.pump(now);
        let packet = self.boxed(Packet::entering(index, now, arrival));
        self.pass(0, packet);
        self.pump(now);
        index
    }

    /// The next packet to leave the network by `now`, if any.
    pub fn poll_packet(&mut self, now: Instant) -> Option<Departure> {
        let origin = self.origin?;
        if self.out.is_empty() {
            self.pump(self.own(now));
        }
        let Out { packet, how } = self.out.pop_front()?;
        let left = packet.shifted(origin);
        // Background sources allocate their own boxes, and would never use these.
        if !left.is_background {
            self.spare.push(packet);
        }
        Some(match how {
            How::Forwarded => Departure::Forwarded(left),
            How::Dropped(cause) => Departure::Dropped(left, cause),
            How::Duplicated => Departure::Duplicated(left),
        })
    }

    /// When `poll_packet` will next have something, if nothing arrives before. While only background traffic is inside, this is up to `IDLE`
    /// later.
    pub fn next_wakeup(&self) -> Option<Instant> {
        let origin = self.origin?;
        let mut next = self.out.front().map_or(self.due, |out| out.packet.at);
        if next < NEVER && self.background() > 0 && self.queued() == 0 {
            next = next.max(self.pumped + IDLE);
        }
        (next < NEVER).then(|| origin + (next - Instant::ZERO))
    }

    /// Host packets inside.
    pub fn queued(&self) -> usize {
        let is_of_host = |out: &&Out| !out.packet.is_background && !matches!(out.how, How::Duplicated);
        let all = self.stages.iter().map(|stage| stage.element.queued()).sum::<usize>();
        let of_background = (self.background() - self.background_left) as usize;
        self.out.iter().filter(is_of_host).count() + all - of_background
    }

    /// Background packets sent so far.
    pub fn background(&self) -> u64 {
        if !self.has_background {
            return 0;
        }
        self.stages.iter().filter_map(|stage| stage.element.background()).sum()
    }

    /// Ends all background traffic, but for the packets inside.
    pub fn end_background(&mut self) {
        for stage in &mut self.stages {
            stage.element.end_background();
            stage.due = stage.element.next_wakeup().unwrap_or(NEVER);
        }
        self.due = self.stages.iter().map(|stage| stage.due).min().unwrap_or(NEVER);
    }

    /// `now` on the elements' clock.
    fn own(&self, now: Instant) -> Instant {
        Instant::ZERO + now.saturating_since(self.origin.unwrap_or(now))
    }

    /// Moves packets down the chain, out of the stages due by `now`. A single pass is enough: packets only go forwards.
    /// Packets from several access links are merged by time.
    fn pump(&mut self, now: Instant) {
        self.pumped = now;
        if self.due > now {
            return;
        }
        let access = self.access.clone();
        for number in 0..self.stages.len() {
            if number == access.start {
                while let Some(first) = access.clone().min_by_key(|number| self.stages[*number].due)
                    && self.stages[first].due <= now
                {
                    self.pump_stage(first, self.stages[first].due);
                }
            }
            if self.stages[number].due <= now {
                self.pump_stage(number, now);
            }
        }
        self.due = self.stages.iter().map(|stage| stage.due).min().unwrap_or(NEVER);
    }

    /// Moves the packets due by `now` out of one stage.
    fn pump_stage(&mut self, number: usize, now: Instant) {
        while let Some(leaving) = self.stages[number].element.poll_packet(now) {
            let packet = leaving.packet();
            debug_assert_eq!(
                packet.entered + packet.spent.total(),
                packet.at,
                "element {number} does not say what it did with the time"
            );
            match leaving {
                Leaving::Forwarded(mut packet) => {
                    // Background packets begin in the element.
                    packet.hop = self.stages[number].hop;
                    self.pass(number + 1, packet);
                }
                Leaving::Dropped(packet, cause) => self.leave(packet, How::Dropped(cause)),
            }
        }
        let stage = &mut self.stages[number];
        stage.due = stage.element.next_wakeup().unwrap_or(NEVER);
    }

    /// Gives a packet to the stage of this number, and to those behind it, until it stays in one.
    fn pass(&mut self, number: usize, mut packet: Box<Packet>) {
        for number in number..self.stages.len() {
            let stage = &mut self.stages[number];
            if stage.pair != 0 && stage.pair != packet.pair {
                continue;
            }
            if packet.is_background && (packet.hop != stage.hop || !stage.element.carries_background()) {
                break;
            }
            packet.hop = stage.hop;
            match stage.element.judge_packet(&mut packet) {
                Outcome::Passes => {}
                Outcome::Duplicates => {
                    let copy = packet.copied();
                    let [notice, copy] = [self.boxed(copy), self.boxed(copy)];
                    self.leave(notice, How::Duplicated);
                    self.pass(number + 1, packet);
                    return self.pass(number + 1, copy);
                }
                Outcome::Drops(cause) => return self.leave(packet, How::Dropped(cause)),
                Outcome::Stays => {
                    stage.element.handle_packet(packet);
                    stage.due = stage.element.next_wakeup().unwrap_or(NEVER);
                    self.due = self.due.min(stage.due);
                    return;
                }
            }
        }
        self.leave(packet, How::Forwarded);
    }

    fn leave(&mut self, packet: Box<Packet>, how: How) {
        self.background_left += u64::from(packet.is_background);
        self.out.push_back(Out { packet, how });
    }

    fn boxed(&mut self, packet: Packet) -> Box<Packet> {
        match self.spare.pop() {
            Some(mut spare) => {
                *spare = packet;
                spare
            }
            None => Box::new(packet),
        }
    }
}

/// The network between client and server. Its time begins with its first packet.
pub struct Path {
    forward: Direction,
    reverse: Direction,
}

impl Path {
    /// A path from two directions.
    pub const fn new(forward: Direction, reverse: Direction) -> Self {
        Self { forward, reverse }
    }

    /// Takes a packet entering at `now` in direction `side`; returns its index in this direction.
    pub fn handle_packet(&mut self, side: Side, now: Instant, arrival: Arrival) -> u64 {
        self.forward.begin(now);
        self.reverse.begin(now);
        self.side_mut(side).handle_packet(now, arrival)
    }

    /// The next packet to leave the network in one direction by `now`, if any.
    pub fn poll_packet(&mut self, side: Side, now: Instant) -> Option<Departure> {
        self.side_mut(side).poll_packet(now)
    }

    /// When `poll_packet` will next have something, if nothing arrives before.
    pub fn next_wakeup(&self) -> Option<Instant> {
        self.forward.next_wakeup().into_iter().chain(self.reverse.next_wakeup()).min()
    }

    /// Host packets inside: forward, reverse.
    pub fn queued(&self) -> [u64; 2] {
        [&self.forward, &self.reverse].map(|direction| direction.queued() as u64)
    }

    /// Background packets sent so far: forward, reverse.
    pub fn background(&self) -> [u64; 2] {
        [&self.forward, &self.reverse].map(Direction::background)
    }

    /// Ends all background traffic, but for the packets inside.
    pub fn end_background(&mut self) {
        self.forward.end_background();
        self.reverse.end_background();
    }

    fn side_mut(&mut self, side: Side) -> &mut Direction {
        side.pick(&mut self.forward, &mut self.reverse)
    }
}
