//! A tin's queues: a packet's queue, and its hosts' shares. Both are found in sets of eight, so two flows share a queue
//! only if eight others in their set are active (Høiland-Jørgensen, Täht and Morton, LANMAN 2018, section III-B).

use super::cobalt::Cobalt;
use crate::Packet;
use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::queue::backlog::Backlog;
use alloc::vec::Vec;
use core::ops::Range;
use crosswind_units::Seed;

/// Queues per tin.
const QUEUES: usize = 1024;

/// Queues per set.
const WAYS: usize = 8;

/// Who gets an equal share of a tin.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Isolation {
    /// Nobody: all packets wait in one queue.
    Flowblind,
    /// Each source address.
    Srchost,
    /// Each destination address.
    Dsthost,
    /// Each pair of a source and a destination address.
    Hosts,
    /// Each flow.
    Flows,
    /// Each source address, and within it each flow.
    DualSrchost,
    /// Each destination address, and within it each flow.
    DualDsthost,
    /// Each flow, and no address more than another one of its end.
    #[default]
    TripleIsolate,
}

impl Isolation {
    /// The common tag of a queue's packets.
    fn tag(self, packet: &Packet) -> u64 {
        let (source, destination) = (u64::from(packet.source), u64::from(packet.destination));
        match self {
            Self::Flowblind => 0,
            Self::Srchost => source,
            Self::Dsthost => destination,
            Self::Hosts => (source << 32) | destination,
            // Ports differ from address to address.
            _ => (Seed((source << 32) | destination).word(0) << 32) ^ u64::from(packet.flow),
        }
    }

    /// Whether queues with the same source, and with the same destination, share.
    const fn shares(self) -> [bool; 2] {
        let triple = matches!(self, Self::TripleIsolate);
        [triple || matches!(self, Self::DualSrchost), triple || matches!(self, Self::DualDsthost)]
    }
}

/// A queue's class.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub enum Set {
    /// In no list.
    #[default]
    None,
    /// It has had no more than its turn since it began.
    Sparse,
    /// The same, but now empty, behind the bulk queues.
    SparseWaiting,
    /// It fills the link.
    Bulk,
    /// Empty, but not forgotten yet.
    Decaying,
}

impl Set {
    const fn is_active(self) -> bool {
        matches!(self, Self::Sparse | Self::SparseWaiting | Self::Bulk)
    }
}

/// One queue.
#[derive(Default)]
pub struct Flow {
    pub backlog: Backlog,
    pub aqm: Cobalt,
    /// Remaining credit in its turn, in 65,536ths of a byte.
    pub deficit: i64,
    pub set: Set,
    /// The tag of its present or latest packets.
    tag: Option<u64>,
    /// Where its hosts are counted: the source, and the destination.
    hosts: [usize; 2],
}

/// Hosts at one end, each with its number of bulk queues.
struct Hosts {
    tags: Vec<Option<u32>>,
    bulk: Vec<u64>,
    seed: Seed,
}

impl Hosts {
    fn new(seed: Seed) -> Self {
        Self { tags: alloc::vec![None; QUEUES], bulk: alloc::vec![0; QUEUES], seed }
    }

    /// A host's place: its own, else one without bulk queues, else a shared one.
    fn place(&mut self, host: u32) -> usize {
        let (set, first) = set_of(self.seed.word(host.into()));
        let mut places = ways(&set, first);
        let place = places.clone().find(|place| self.tags[*place] == Some(host));
        place.unwrap_or_else(|| {
            let free = places.find(|place| self.bulk[*place] == 0).unwrap_or(first);
            self.tags[free] = Some(host);
            free
        })
    }
}

/// All queues of a tin.
pub struct Flows {
    pub queues: Vec<Flow>,
    hosts: [Hosts; 2],
    isolation: Isolation,
    seed: Seed,
    active: usize,
}

/// A word's set, and the place in it.
fn set_of(word: u64) -> (Range<usize>, usize) {
    let place = ((u128::from(word) * QUEUES as u128) >> 64) as usize;
    let begin = place - place % WAYS;
    (begin..begin + WAYS, place)
}

/// A set's places, from `first` on.
fn ways(set: &Range<usize>, first: usize) -> impl Iterator<Item = usize> + Clone {
    (first..set.end).chain(set.start..first)
}

impl Flows {
    /// Empty queues; `seed` decides where flows and hosts go.
    pub fn new(backlog: impl Fn() -> Backlog, isolation: Isolation, seed: Seed) -> Self {
        let flow = || Flow { backlog: backlog(), ..Flow::default() };
        let hosts = ["source", "destination"].map(|end| Hosts::new(seed.child(end)));
        Self { queues: (0..QUEUES).map(|_| flow()).collect(), hosts, isolation, seed, active: 0 }
    }

    /// A packet's queue.
    pub fn place(&mut self, packet: &Packet) -> usize {
        let tag = self.isolation.tag(packet);
        let (set, first) = set_of(self.seed.word(tag));
        let mut places = ways(&set, first);
        let own = places.clone().find(|place| self.queues[*place].tag == Some(tag));
        if let Some(place) = own.filter(|place| self.queues[*place].set != Set::None) {
            return place;
        }
        let place = own.or_else(|| places.find(|place| self.queues[*place].set == Set::None)).unwrap_or(first);
        // With all eight taken, this flow joins another one, and its hosts replace that one's.
        let is_bulk = self.queues[place].set == Set::Bulk;
        if is_bulk {
            self.count(place, |bulk| bulk - 1);
        }
        self.queues[place].tag = Some(tag);
        for (end, host) in [packet.source, packet.destination].into_iter().enumerate() {
            self.queues[place].hosts[end] = self.hosts[end].place(host);
        }
        if is_bulk {
            self.count(place, |bulk| bulk + 1);
        }
        place
    }

    /// Queues in the rotation, not only remembered.
    pub const fn active(&self) -> usize {
        self.active
    }

    /// Starts a queue with a turn of `quantum` bytes.
    pub fn begin(&mut self, place: usize, quantum: u64) {
        self.set(place, Set::Sparse);
        self.queues[place].deficit = 0;
        self.credit(place, quantum);
    }

    /// Lets a queue wait for its next turn of `quantum` bytes.
    pub fn end_turn(&mut self, place: usize, quantum: u64) {
        let flow = &self.queues[place];
        if flow.set == Set::Sparse {
            self.set(place, if flow.backlog.len() > 0 { Set::Bulk } else { Set::SparseWaiting });
        }
        self.credit(place, quantum);
    }

    /// Lets a queue count as another kind than before.
    pub fn set(&mut self, place: usize, set: Set) {
        let before = core::mem::replace(&mut self.queues[place].set, set);
        self.active += usize::from(set.is_active());
        self.active -= usize::from(before.is_active());
        match (before == Set::Bulk, set == Set::Bulk) {
            (false, true) => self.count(place, |bulk| bulk + 1),
            (true, false) => self.count(place, |bulk| bulk - 1),
            _ => {}
        }
    }

    fn count(&mut self, place: usize, change: impl Fn(u64) -> u64) {
        for (end, host) in self.queues[place].hosts.into_iter().enumerate() {
            self.hosts[end].bulk[host] = change(self.hosts[end].bulk[host]);
        }
    }

    /// Adds a queue's credit: `quantum` bytes over the bulk queues of its host with more of them.
    fn credit(&mut self, place: usize, quantum: u64) {
        let flow = &mut self.queues[place];
        let bulk = self.hosts.iter().zip(flow.hosts).map(|(hosts, host)| hosts.bulk[host]);
        let shared = bulk.zip(self.isolation.shares()).filter(|(_, shares)| *shares).map(|(bulk, _)| bulk);
        flow.deficit += ((quantum << 16) / shared.max().unwrap_or_default().max(1)) as i64;
    }
}
