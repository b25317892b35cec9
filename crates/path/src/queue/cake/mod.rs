//! Common applications kept enhanced, CAKE (Høiland-Jørgensen, Täht and Morton, "Piece of CAKE", LANMAN 2018): packets
//! are sorted into tins by their DSCP, each flow has its own queue, the queues of a tin take turns so that hosts get
//! equal shares, and COBALT drops or marks packets in each. CAKE's shaper is the link. Choices the paper leaves open
//! are Linux's.

mod cobalt;
mod flows;

use super::backlog::{Backlog, Limit, QueueLimit};
use super::discipline::{AQM, LinkFacts, Managed, Moment, QUEUE_FULL, Queue};
use super::shared::{Signals, fill};
use crate::Packet;
use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::rate::LinkRate;
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use cobalt::Rules;
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Duration, Instant, Seed};
pub use flows::Isolation;
use flows::{Flows, Set};

/// An IP packet of 1500 bytes with Ethernet's header: the largest in Linux's eyes.
const LARGEST: u64 = 1514;

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
    /// Each tin's codepoints, without best effort's (RFC 2474, 2597, 3246, 5865, 8622; 2 and 4 were types of service).
    /// Among tins within their rates the last goes first.
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

    fn by_codepoint(self) -> [u8; 64] {
        let tins = || (0..).zip(self.codepoints());
        let best_effort = tins().find(|(_, codepoints)| codepoints.is_empty()).map_or(0, |(tin, _)| tin);
        let mut table = [best_effort; 64];
        for (tin, codepoint) in tins().flat_map(|(tin, of)| of.iter().map(move |codepoint| (tin, *codepoint))) {
            table[usize::from(codepoint)] = tin;
        }
        table
    }

    /// A tin's rate for a link of `rate`.
    fn rate(self, rate: u64, tin: usize) -> u64 {
        match self {
            Self::Besteffort => rate,
            Self::Diffserv3 => rate >> [0, 4, 2][tin],
            Self::Diffserv4 => rate >> [0, 4, 1, 2][tin],
            Self::Diffserv8 => (0..tin).fold(rate, |rate, _| rate * 7 / 8),
        }
    }
}

/// The keys of CAKE.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CakeSettings {
    /// Into which tins packets are sorted by their DSCP, each with a rate of its own up to which it goes before the others.
    #[serde(rename = "cake_tins", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default_help" = "diffserv3",
        "only_with" = {"key": "discipline", "value": ["cake"]}
    ))]
    pub tins: Option<Tins>,
    /// Who gets an equal share of the link: flows, hosts, or both.
    #[serde(rename = "cake_isolation", skip_serializing_if = "Option::is_none")]
    #[schemars(extend(
        "default_help" = "triple_isolate",
        "only_with" = {"key": "discipline", "value": ["cake"]}
    ))]
    pub isolation: Option<Isolation>,
}

impl CakeSettings {
    /// Fills in defaults if the discipline `is` chosen, else refuses its keys.
    pub fn complete(&mut self, is: bool) -> Result<(), SettingError> {
        fill(&mut self.tins, is.then(Tins::default), "cake_tins", "cake")?;
        fill(&mut self.isolation, is.then(Isolation::default), "cake_isolation", "cake")
    }
}

/// Tins with their queues.
pub struct Cake {
    tins: Vec<Tin>,
    sorts: Tins,
    tin_of: [u8; 64],
    limit: Limit,
    blue: Seed,
}

/// Queues sharing a rate.
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
    /// Empty queues not forgotten yet.
    decaying: VecDeque<usize>,
    len: usize,
    bytes: u64,
}

impl Cake {
    /// Where the link stands still, the tins' rates stay as they were.
    fn set_rates(&mut self, link: &LinkFacts<'_>) {
        let Some(rate) = link.rate.and_then(LinkRate::moving) else { return };
        let Signals { target, interval, .. } = *link.signals;
        for (number, tin) in self.tins.iter_mut().enumerate() {
            tin.rate = self.sorts.rate(rate.as_bps() / 8, number).max(1);
            tin.quantum = (tin.rate >> 12).clamp(300, LARGEST);
            tin.rules = Rules::new(target.unwrap_or_default(), interval.unwrap_or_default(), tin.takes(LARGEST));
        }
    }

    fn bytes(&self) -> u64 {
        self.tins.iter().map(|tin| tin.bytes).sum()
    }

    /// The next tin: the last one within its rate, else the first to become so.
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

    /// The list with the next queue. After each departure one decaying queue goes before all others.
    fn list(&mut self, looks_at_decaying: bool) -> &mut VecDeque<usize> {
        if looks_at_decaying && !self.decaying.is_empty() || self.new.is_empty() && self.old.is_empty() {
            &mut self.decaying
        } else if self.new.is_empty() {
            &mut self.old
        } else {
            &mut self.new
        }
    }

    /// A packet from the queue whose turn it is; none if empty, then it leaves the rotation.
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
            // A queue's last packet is never dropped.
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

    fn len(&self) -> usize {
        self.tins.iter().map(|tin| tin.len).sum()
    }
}

impl Managed for Cake {
    type Own = CakeSettings;

    fn signals(interval: Option<Duration>) -> Signals {
        let interval = interval.unwrap_or(Duration::from_millis(100));
        // Linux takes a twentieth of the round-trip time.
        let target = Duration::from_nanos((interval.as_nanos() / 20).max(1));
        Signals { marking: None, target: Some(target), interval: Some(interval) }
    }

    /// Linux's memory limit: the bytes of four intervals, between 4 MiB and 10,240 packets of the largest size.
    fn limit(rate: Option<BitRate>, interval: Duration) -> QueueLimit {
        let bytes =
            rate.map_or(0, |rate| u128::from(rate.as_bps() / 8) * u128::from(interval.as_nanos()) * 4 / 1_000_000_000);
        QueueLimit::Bytes((bytes as u64).clamp(4 << 20, 10_240 * LARGEST))
    }

    fn new(link: &LinkFacts<'_>, own: &Self::Own, seed: Seed) -> Self {
        let sorts = own.tins.unwrap_or_default();
        let isolation = own.isolation.unwrap_or_default();
        let tin = |_| Tin {
            flows: Flows::new(|| Backlog::new(link.counting), isolation, seed.child("flows")),
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
        let (tin_of, limit, blue) = (sorts.by_codepoint(), link.limit, seed.child("blue"));
        let mut cake = Self { tins, sorts, tin_of, limit, blue };
        cake.set_rates(link);
        cake
    }

    fn change(&mut self, _now: Instant, link: &LinkFacts<'_>, _own: &Self::Own) {
        self.limit = link.limit;
        self.set_rates(link);
    }
}
