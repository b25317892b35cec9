//! Exchanges known only by beginning and end, as third-party programs': the wire's events between the two.

use crate::Hosts;
use crate::critical_path::{CriticalPath, Interval};
use crate::flows::by_ports;
use crate::links::Links;
use crate::quic::{FrameIndex, connections_of_programs};
use crate::quic_walk::QuicConversation;
use crate::tcp::by_opening;
use crate::udp::Datagrams;
use crate::walk::{Conversation, of_sealed};
use crosswind_ledger::{PacketRecord, QuicLog, TCP};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};

/// A packet table's connections, each with its client's port.
pub struct Exchanges<'a> {
    hosts: Hosts,
    /// How early a client's timestamp may be, at most.
    early: Duration,
    all: Vec<(u16, Kind<'a>)>,
}

enum Kind<'a> {
    Tcp(Box<Conversation<'a>>),
    Quic(Box<QuicConversation<'a>>),
    Udp(Datagrams<'a>),
    /// QUIC without keys.
    Sealed(Datagrams<'a>),
}

impl<'a> Exchanges<'a> {
    pub fn new(packets: &'a [PacketRecord], quic: &'a [QuicLog; 2], hosts: Hosts, early: Duration) -> Self {
        let known = quic.each_ref().map(FrameIndex::new);
        let mut all = Vec::new();
        for ((protocol, port, _), packets) in by_ports(packets) {
            for packets in by_opening(packets) {
                if protocol == TCP {
                    all.push((port, Kind::Tcp(Box::new(Conversation::new(packets, hosts)))));
                    continue;
                }
                let connections = connections_of_programs(&packets, &known, hosts);
                if connections.is_empty() {
                    all.push((port, Kind::Udp(Datagrams::new(packets, hosts))));
                }
                all.extend(connections.into_iter().map(|(packets, connection)| {
                    let kind = if connection.is_read() {
                        Kind::Quic(Box::new(QuicConversation::new(packets, connection, hosts)))
                    } else {
                        Kind::Sealed(Datagrams::new(packets, hosts))
                    };
                    (port, kind)
                }));
            }
        }
        Self { hosts, early, all }
    }

    /// An exchange's intervals, for a client with its answer at `to`, on the connection from a port, if known. Unknown
    /// if several connections may have brought it.
    pub fn pieces(&self, port: Option<u16>, from: Instant, to: Instant, links: &Links<'a>) -> Vec<Interval> {
        // A clock with steps may show an answer before it came.
        let by = to + self.early;
        let of_port = self.all.iter().filter(|it| port.is_none_or(|port| port == it.0));
        let mut answers: Vec<_> =
            of_port.filter_map(|(_, kind)| Some((kind.last_answer(by).filter(|&at| at >= from)?, kind))).collect();
        answers.sort_by_key(|it| it.0);
        let is_prompt = |at: Instant| to.saturating_since(at) <= self.hosts.promptness;
        match answers.as_slice() {
            [(at, only)] => only.exchange(from, to, *at, links),
            [.., (before, _), (last, kind)] if is_prompt(*last) && !is_prompt(*before) => {
                kind.exchange(from, to, *last, links)
            }
            _ => CriticalPath::new(from, to, Side::Forward).finish(),
        }
    }
}

impl<'a> Kind<'a> {
    fn exchange(&self, from: Instant, to: Instant, answered: Instant, links: &Links<'a>) -> Vec<Interval> {
        match self {
            Self::Tcp(kind) => kind.exchange(from, to, answered, links),
            Self::Quic(kind) => kind.exchange(from, to, answered, links),
            Self::Udp(kind) => kind.exchange(from, to, answered, links),
            Self::Sealed(kind) => of_sealed(kind.exchange(from, to, answered, links)),
        }
    }

    fn last_answer(&self, at: Instant) -> Option<Instant> {
        match self {
            Self::Tcp(kind) => kind.last_answer(at),
            Self::Quic(kind) => kind.last_answer(at),
            Self::Udp(kind) | Self::Sealed(kind) => kind.last_answer(at),
        }
    }
}
