//! Queueing disciplines with their settings, as rtnetlink carries them (`linux/pkt_sched.h`).

mod attributes;
mod cake;
mod netem;
mod queues;
mod shapers;

pub use attributes::attribute;
pub use cake::Cake;
pub use netem::{Jitter, Loss, Netem, parts};
pub use queues::{Codel, Fifo, FqCodel, Pie, Red, micros};
pub use shapers::{Htb, Tbf};

use schemars::JsonSchema;
use serde::Serialize;

/// A queueing discipline and its settings.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Discipline {
    /// Loss, duplication, corruption, then the time on the wire, then delay.
    Netem(Netem),
    /// A token bucket, which asks the queue inside for a packet and keeps it until there are tokens for it.
    Tbf(Tbf),
    /// A hierarchical token bucket with one class, which takes a packet from the queue inside when the one before it is over.
    Htb(Htb),
    /// A queue that is limited in packets.
    Pfifo(Fifo),
    /// A queue that is limited in bytes.
    Bfifo(Fifo),
    /// A queue that is limited in packets and drops those that have waited longest.
    PfifoHeadDrop(Fifo),
    /// Random early detection, before the queue inside.
    Red(Red),
    /// Controlled delay.
    Codel(Codel),
    /// A queue with controlled delay for each flow.
    FqCodel(FqCodel),
    /// Proportional integral controller enhanced.
    Pie(Pie),
    /// A shaper with tins, queues for each flow and shares for each host.
    Cake(Cake),
}

/// The kernel's report of a discipline, with its counts beside packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extra {
    /// Packets dropped because the queue was full.
    pub overlimit: u64,
    /// Packets marked (ECN).
    pub marked: u64,
}

impl Discipline {
    /// Its name.
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Netem(_) => "netem",
            Self::Tbf(_) => "tbf",
            Self::Htb(_) => "htb",
            Self::Pfifo(_) => "pfifo",
            Self::Bfifo(_) => "bfifo",
            Self::PfifoHeadDrop(_) => "pfifo_head_drop",
            Self::Red(_) => "red",
            Self::Codel(_) => "codel",
            Self::FqCodel(_) => "fq_codel",
            Self::Pie(_) => "pie",
            Self::Cake(_) => "cake",
        }
    }

    /// As a request's `TCA_OPTIONS`.
    pub fn encode(&self) -> Vec<u8> {
        match self {
            Self::Netem(netem) => netem.encode(),
            Self::Tbf(tbf) => tbf.encode(),
            Self::Htb(_) => Htb::encode_root(),
            Self::Pfifo(fifo) | Self::Bfifo(fifo) | Self::PfifoHeadDrop(fifo) => fifo.encode(),
            Self::Red(red) => red.encode(),
            Self::Codel(codel) => codel.encode(),
            Self::FqCodel(fq_codel) => fq_codel.encode(),
            Self::Pie(pie) => pie.encode(),
            Self::Cake(cake) => cake.encode(),
        }
    }

    /// As `TCA_OPTIONS` in the request for its class; none without one.
    pub fn encode_class(&self) -> Option<Vec<u8>> {
        if let Self::Htb(htb) = self { Some(htb.encode_class()) } else { None }
    }

    /// From an answer's `TCA_OPTIONS`, and its class's; none for other kinds, and for truncated options.
    pub fn decode(kind: &str, options: &[u8], class: Option<&[u8]>) -> Option<Self> {
        Some(match kind {
            "netem" => Self::Netem(Netem::decode(options)?),
            "tbf" => Self::Tbf(Tbf::decode(options)?),
            "htb" => Self::Htb(Htb::decode(options, class?)?),
            "pfifo" => Self::Pfifo(Fifo::decode(options)?),
            "bfifo" => Self::Bfifo(Fifo::decode(options)?),
            "pfifo_head_drop" => Self::PfifoHeadDrop(Fifo::decode(options)?),
            "red" => Self::Red(Red::decode(options)?),
            "codel" => Self::Codel(Codel::decode(options)?),
            "fq_codel" => Self::FqCodel(FqCodel::decode(options)?),
            "pie" => Self::Pie(Pie::decode(options)?),
            "cake" => Self::Cake(Cake::decode(options)?),
            _ => return None,
        })
    }

    /// Whether the kernel's version matches `asked`, as far as it reports it and its own units allow.
    pub fn is_as_asked(&self, asked: &Self) -> bool {
        match (self, asked) {
            (Self::Netem(found), Self::Netem(asked)) => found.is_as_asked(asked),
            (Self::Tbf(found), Self::Tbf(asked)) => found.is_as_asked(asked),
            (Self::Htb(found), Self::Htb(asked)) => found == asked,
            (Self::Red(found), Self::Red(asked)) => found.is_as_asked(asked),
            (Self::Codel(found), Self::Codel(asked)) => found.is_as_asked(asked),
            (Self::FqCodel(found), Self::FqCodel(asked)) => found.is_as_asked(asked),
            (Self::Pie(found), Self::Pie(asked)) => found.is_as_asked(asked),
            _ => self == asked,
        }
    }

    /// Whether it is `other`, wherever their randomness comes from.
    pub fn does_the_same_as(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Netem(one), Self::Netem(other)) => *one == Netem { seed: one.seed, ..other.clone() },
            _ => self == other,
        }
    }

    /// Its own counts: `statistics` is an answer's `TCA_STATS_APP`.
    pub fn extra(&self, statistics: &[u8]) -> Extra {
        let at = |offset: usize| u64::from(attributes::u32_at(statistics, offset).unwrap_or_default());
        match self {
            // struct tc_red_xstats: early, pdrop, other, marked.
            Self::Red(_) => Extra { overlimit: 0, marked: at(12) },
            // struct tc_codel_xstats: maxpacket, count, lastcount, ldelay, drop_next, drop_overlimit, ecn_mark.
            Self::Codel(_) => Extra { overlimit: at(20), marked: at(24) },
            // struct tc_fq_codel_xstats: type, then maxpacket, drop_overlimit, ecn_mark.
            Self::FqCodel(_) => Extra { overlimit: at(8), marked: at(12) },
            // struct tc_pie_xstats: prob (64 bits), delay, avg_dq_rate, dq_rate_estimating, packets_in, dropped, overlimit, maxq,
            // ecn_mark.
            Self::Pie(_) => Extra { overlimit: at(28), marked: at(36) },
            Self::Cake(_) => Extra { overlimit: 0, marked: Cake::marked(statistics) },
            _ => Extra::default(),
        }
    }
}
