//! Common applications kept enhanced, CAKE (Høiland-Jørgensen, Täht and Morton, "Piece of CAKE", LANMAN 2018): packets are sorted into tins
//! by their DSCP, each flow waits in a queue of its own, the queues of a tin take turns so that hosts get equal shares, and COBALT drops
//! or marks packets of each. CAKE's shaper is the link. Where the paper leaves a choice this is as in Linux.

mod cobalt;
mod flows;

use super::{AQM, Backlog, Limit, Moment, QUEUE_FULL, Queue};
use crate::Packet;
use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::link::{LinkRate, LinkSettings};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use cobalt::Rules;
use crosswind_units::{BitRate, Duration, Instant, Seed};
use flows::{Flows, Set};

/// An IP packet of 1500 bytes with Ethernet's header, as Linux sees the largest one.
const LARGEST: u64 = 1514;

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
    /// What packets of one queue have in common.
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

    /// Whether the queues of one source, and of one destination, share.
    const fn shares(self) -> [bool; 2] {
        let triple = matches!(self, Self::TripleIsolate);
        [triple || matches!(self, Self::DualSrchost), triple || matches!(self, Self::DualDsthost)]
    }
}

/// Into which tins packets are sorted, by their DSCP. Those of no other tin are best effort.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Tins {
    /// One for all.
    Besteffort,
    /// Three: bulk, best effort, and voice.
    #[default]
    Diffserv3,
    /// Four: bulk, best effort, video, and voice.
    Diffserv4,
    /// Eight: background, high throughput, best effort, video, transactions, shells, least latency, and control of the network.
    Diffserv8,
}

impl Tins {
    /// The codepoints of each tin but best effort's (RFC 2474, 2597, 3246, 5865, 8622; 2 and 4 were types of service). Of tins that keep to
    /// their rates the last goes first.
    const fn codepoints(self) -> &'static [&'static [u8]] {
        // LE and CS1; CS2 to AF43 but CS4; CS4, CS5, VA, EF, CS6 and CS7.
        match self {
            Self::Besteffort => &[&[]],
            Self::Diffserv3 => &[&[], &[1, 8], &[4, 44, 46, 48, 56]],
            Self::Diffserv4 => {
                &[&[], &[1, 8], &[4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38], &[32, 40, 44, 46, 48, 56]]
            }
            Self::Diffserv8 => &[
                &[1],
                &[2, 8, 10, 12, 14],
                &[],
                &[24, 26, 28, 30, 34, 36, 38],
                &[4, 18, 20, 22],
                &[16],
                &[32, 40, 44, 46],
                &[48, 56],
            ],
        }
    }

    /// The tin of each codepoint.
    fn by_codepoint(self) -> [u8; 64] {
        let tins = || (0..).zip(self.codepoints());
        let best_effort = tins().find(|(_, codepoints)| codepoints.is_empty()).map_or(0, |(tin, _)| tin);
        let mut table = [best_effort; 64];
        for (tin, codepoint) in tins().flat_map(|(tin, of)| of.iter().map(move |codepoint| (tin, *codepoint))) {
            table[usize::from(codepoint)] = tin;
        }
        table
    }

    /// The rate of a tin where that of the link is `rate`.
    fn rate(self, rate: u64, tin: usize) -> u64 {
        match self {
            Self::Besteffort => rate,
            Self::Diffserv3 => rate >> [0, 4, 2][tin],
            Self::Diffserv4 => rate >> [0, 4, 1, 2][tin],
            Self::Diffserv8 => (0..tin).fold(rate, |rate, _| rate * 7 / 8),
        }
    }
}

/// Tins of queues.
pub struct Cake {
    tins: Vec<Tin>,
    sorts: Tins,
    tin_of: [u8; 64],
    limit: Limit,
    blue: Seed,
}

/// Queues that share a rate.
struct Tin {
    flows: Flows,
    rules: Rules,
    /// In bytes a second.
    rate: u64,
    quantum: u64,
    /// From when on it keeps to its rate with another packet.
    next: Instant,
    new: VecDeque<usize>,
    old: VecDeque<usize>,
    /// Empty queues that are not forgotten yet.
    decaying: VecDeque<usize>,
    len: usize,
    bytes: u64,
}

impl Cake {
    /// Empty queues; `seed` decides which flows share one, and which packets BLUE drops.
    pub fn new(settings: &LinkSettings, seed: Seed) -> Self {
        let sorts = settings.queueing.tins.unwrap_or_default();
        let isolation = settings.queueing.isolation.unwrap_or_default();
        let tin = |_| Tin {
            flows: Flows::new(|| Backlog::new(settings.counting), isolation, seed.child("flows")),
            rules: Rules::default(),
            rate: 1,
            quantum: 0,
            next: Instant::ZERO,
            new: VecDeque::new(),
            old: VecDeque::new(),
            decaying: VecDeque::new(),
            len: 0,
            bytes: 0,
        };
        let tins = sorts.codepoints().iter().map(tin).collect();
        let (tin_of, limit, blue) = (sorts.by_codepoint(), Limit::of(settings), seed.child("blue"));
        let mut cake = Self { tins, sorts, tin_of, limit, blue };
        cake.set_rates(settings);
        cake
    }

    /// Where the link stands still, the tins' rates stay as they were.
    fn set_rates(&mut self, settings: &LinkSettings) {
        let Some(rate) = settings.rate.and_then(LinkRate::moving) else { return };
        let (target, interval) = (settings.queueing.target, settings.queueing.interval);
        for (number, tin) in self.tins.iter_mut().enumerate() {
            tin.rate = self.sorts.rate(rate.as_bps() / 8, number).max(1);
            tin.quantum = (tin.rate >> 12).clamp(300, LARGEST);
            tin.rules = Rules::new(target.unwrap_or_default(), interval.unwrap_or_default(), tin.takes(LARGEST));
        }
    }

    fn bytes(&self) -> u64 {
        self.tins.iter().map(|tin| tin.bytes).sum()
    }

    /// The tin that goes next: the last one that keeps to its rate, else the one that does so first.
    fn next_tin(&self, now: Instant) -> Option<usize> {
        let waiting = || self.tins.iter().enumerate().filter(|(_, tin)| tin.flows.active() > 0);
        let in_time = waiting().rfind(|(_, tin)| tin.next <= now);
        in_time.or_else(|| waiting().rev().min_by_key(|(_, tin)| tin.next)).map(|(number, _)| number)
    }

    /// Makes room: the queue with the most bytes loses its first packet.
    fn drop_from_fattest(&mut self, moment: &mut Moment<'_>) {
        let queues = self.tins.iter().enumerate().flat_map(|(number, tin)| {
            let places = tin.new.iter().chain(&tin.old);
            places.map(move |place| (number, *place, tin.flows.queues[*place].backlog.bytes()))
        });
        let Some((number, place, _)) = queues.max_by_key(|(_, _, bytes)| *bytes) else { return };
        let tin = &mut self.tins[number];
        let Some(packet) = tin.pop(place) else { return };
        tin.flows.queues[place].aqm.handle_full(&tin.rules, moment.now);
        moment.drop(packet, QUEUE_FULL);
    }
}

/// The memory that Linux gives it: what is sent in four intervals, but at least 4 MiB, and at most 10,240 packets of the largest size.
pub fn default_memory(rate: Option<BitRate>, interval: Duration) -> u64 {
    let bytes =
        rate.map_or(0, |rate| u128::from(rate.as_bps() / 8) * u128::from(interval.as_nanos()) * 4 / 1_000_000_000);
    (bytes as u64).clamp(4 << 20, 10_240 * LARGEST)
}

impl Tin {
    /// How long so many bytes take at its rate.
    const fn takes(&self, bytes: u64) -> Duration {
        Duration::from_nanos(bytes * 1_000_000_000 / self.rate)
    }

    fn push(&mut self, now: Instant, packet: Box<Packet>) {
        if self.bytes == 0 {
            self.next = self.next.max(now);
        }
        let place = self.flows.place(&packet);
        let flow = &mut self.flows.queues[place];
        self.len += 1;
        self.bytes += flow.backlog.size(&packet);
        flow.backlog.push(packet);
        match flow.set {
            Set::None | Set::Decaying => {
                if flow.set == Set::Decaying {
                    self.old.retain(|other| *other != place);
                    self.decaying.retain(|other| *other != place);
                }
                self.new.push_back(place);
                self.flows.begin(place, self.quantum);
            }
            Set::SparseWaiting => self.flows.set(place, Set::Bulk),
            Set::Sparse | Set::Bulk => {}
        }
    }

    fn pop(&mut self, place: usize) -> Option<Box<Packet>> {
        let backlog = &mut self.flows.queues[place].backlog;
        let packet = backlog.pop()?;
        self.len -= 1;
        self.bytes -= backlog.size(&packet);
        Some(packet)
    }

    /// The list whose first queue is looked at next. Each packet that leaves lets one that is decaying go before all others.
    fn list(&mut self, looks_at_decaying: bool) -> &mut VecDeque<usize> {
        if looks_at_decaying && !self.decaying.is_empty() || self.new.is_empty() && self.old.is_empty() {
            &mut self.decaying
        } else if self.new.is_empty() {
            &mut self.old
        } else {
            &mut self.new
        }
    }

    /// A packet of the queue whose turn it is; none where that was empty, which is then out of the rotation.
    fn serve(&mut self, moment: &mut Moment<'_>, blue: Seed, looks_at_decaying: &mut bool) -> Option<Box<Packet>> {
        let place = loop {
            let place = self.list(core::mem::take(looks_at_decaying)).pop_front()?;
            if self.flows.queues[place].deficit > 0 {
                break place;
            }
            self.old.push_back(place);
            self.flows.end_turn(place, self.quantum);
        };
        while let Some(mut packet) = self.pop(place) {
            let flow = &mut self.flows.queues[place];
            let drops = flow.aqm.drops(&self.rules, moment.now, &mut packet, blue);
            // The last packet of a queue is never dropped.
            if drops && flow.backlog.len() > 0 {
                moment.drop(packet, AQM);
                continue;
            }
            let size = flow.backlog.size(&packet);
            flow.deficit -= (size << 16) as i64;
            let list = if flow.set == Set::Sparse { &mut self.new } else { &mut self.old };
            list.push_front(place);
            let takes = self.takes(size);
            self.next = if self.next < moment.now { self.next + takes } else { self.next.max(moment.now + takes) };
            return Some(packet);
        }
        let remembers = self.flows.queues[place].aqm.handle_empty(&self.rules, moment.now);
        if remembers {
            self.decaying.push_back(place);
        }
        self.flows.set(place, if remembers { Set::Decaying } else { Set::None });
        None
    }
}

impl Queue for Cake {
    fn enqueue(&mut self, moment: &mut Moment<'_>, packet: Box<Packet>) {
        let tin = self.tin_of[usize::from(packet.dscp & 63)];
        self.tins[usize::from(tin)].push(moment.now, packet);
        while self.limit.is_exceeded(self.len(), self.bytes()) {
            self.drop_from_fattest(moment);
        }
    }

    fn dequeue(&mut self, moment: &mut Moment<'_>) -> Option<Box<Packet>> {
        let mut looks_at_decaying = true;
        while self.len() > 0 {
            let tin = self.next_tin(moment.now)?;
            if let Some(packet) = self.tins[tin].serve(moment, self.blue, &mut looks_at_decaying) {
                return Some(packet);
            }
        }
        None
    }

    fn change(&mut self, _now: Instant, settings: &LinkSettings) {
        self.limit = Limit::of(settings);
        self.set_rates(settings);
    }

    fn len(&self) -> usize {
        self.tins.iter().map(|tin| tin.len).sum()
    }
}
