//! Flow queue `CoDel` (RFC 8290): each flow waits in a queue of its own with `CoDel`, the queues take turns by bytes, and flows that have
//! just begun go first. When too much waits, the queue with the most bytes loses packets at its head.

use super::codel::{Control, Rules};
use super::{Backlog, Limit, Moment, QUEUE_FULL, Queue};
use crate::Packet;
use crate::link::LinkSettings;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use crosswind_units::{Instant, Seed};

/// Packets that are dropped at most when too much waits, as in Linux, where half of a queue goes at once.
const DROP_BATCH: usize = 64;

/// Queues with `CoDel` that take turns.
pub struct FqCodel {
    flows: Vec<Flow>,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    limit: Limit,
    rules: Rules,
    quantum: i64,
    len: usize,
    bytes: u64,
    seed: Seed,
}

#[derive(Default)]
struct Flow {
    backlog: Backlog,
    control: Control,
    /// Bytes that it may still send in its turn.
    deficit: i64,
    listed: bool,
}

impl FqCodel {
    /// Empty queues; `seed` decides which flows share one.
    pub fn new(settings: &LinkSettings, seed: Seed) -> Self {
        let flows = settings.queueing.flows.unwrap_or(1);
        let flow = || Flow { backlog: Backlog::new(settings.counting), ..Flow::default() };
        Self {
            flows: (0..flows).map(|_| flow()).collect(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            limit: Limit::of(settings),
            rules: Rules::of(settings),
            quantum: quantum_of(settings),
            len: 0,
            bytes: 0,
            seed,
        }
    }

    fn flow_of(&self, packet: &Packet) -> usize {
        let word = u128::from(self.seed.word(packet.flow.into()));
        ((word * self.flows.len() as u128) >> 64) as usize
    }

    /// Makes room: half of what waits in the queue with the most bytes is dropped.
    fn drop_from_fattest(&mut self, moment: &mut Moment<'_>) {
        // Of several, the first.
        let fattest = self.flows.iter_mut().rev().max_by_key(|flow| flow.backlog.bytes());
        let Some(flow) = fattest else { return };
        let before = flow.backlog.bytes();
        for _ in 0..DROP_BATCH {
            let Some(packet) = flow.backlog.pop() else { break };
            moment.drop(packet, QUEUE_FULL);
            flow.control.add_drops(1);
            self.len -= 1;
            if before - flow.backlog.bytes() >= before / 2 {
                break;
            }
        }
        self.bytes -= before - flow.backlog.bytes();
    }
}

fn quantum_of(settings: &LinkSettings) -> i64 {
    settings.queueing.quantum.map_or(1, |quantum| quantum.0 as i64)
}

impl Queue for FqCodel {
    fn enqueue(&mut self, moment: &mut Moment<'_>, packet: Box<Packet>) {
        let number = self.flow_of(&packet);
        let flow = &mut self.flows[number];
        self.bytes += flow.backlog.size(&packet);
        self.len += 1;
        flow.backlog.push(packet);
        if !flow.listed {
            flow.listed = true;
            flow.deficit = self.quantum;
            self.new.push_back(number);
        }
        if self.limit.is_exceeded(self.len, self.bytes) {
            self.drop_from_fattest(moment);
        }
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Box<Packet>> {
        loop {
            let is_new = !self.new.is_empty();
            let number = if is_new { self.new.pop_front() } else { self.old.pop_front() }?;
            let flow = &mut self.flows[number];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                self.old.push_back(number);
                continue;
            }
            let (backlog, len, bytes) = (&mut flow.backlog, &mut self.len, &mut self.bytes);
            let packet = flow.control.dequeue(&self.rules, moment, || {
                let packet = backlog.pop()?;
                *len -= 1;
                *bytes -= backlog.size(&packet);
                Some((packet, *bytes))
            });
            if let Some(packet) = packet {
                flow.deficit -= flow.backlog.size(&packet) as i64;
                if is_new {
                    self.new.push_front(number);
                } else {
                    self.old.push_front(number);
                }
                return Some(packet);
            }
            // A new flow that runs empty goes through the old ones once, so that it starves nobody by beginning anew.
            if is_new && !self.old.is_empty() {
                self.old.push_back(number);
            } else {
                flow.listed = false;
            }
        }
    }

    fn change(&mut self, _now: Instant, settings: &LinkSettings) {
        self.limit = Limit::of(settings);
        self.rules = Rules::of(settings);
        self.quantum = quantum_of(settings);
    }

    fn len(&self) -> usize {
        self.len
    }
}
