//! Programs' conversations in a packet table.

use crate::Hosts;
use crate::critical_path::Interval;
use crate::flow::Quic;
use crate::links::Links;
use crate::quic::{FrameIndex, connections_of_programs};
use crate::quic_walk::QuicConversation;
use crate::socket_counts::SocketTable;
use crate::tcp::{Connection, by_opening};
use crate::udp::Datagrams;
use crate::walk::{Walked, of_sealed, span};
use crate::what_if::Changed;
use crosswind_ledger::{Http2Connection, PacketRecord, QuicLog, TCP, UDP};
use crosswind_path::Side;
use crosswind_units::Instant;
use std::collections::{BTreeMap, HashMap};

/// A conversation between two programs.
pub enum Conversation<'a> {
    Tcp(Box<Connection<'a>>),
    Quic(Box<QuicConversation<'a>>),
    Udp(Datagrams<'a>),
    /// QUIC without keys.
    Sealed(Datagrams<'a>),
}

/// What is known of programs' connections beside their packets.
#[derive(Debug, Default)]
pub struct ProgramFacts {
    /// The client host's QUIC packets, and the server host's.
    pub quic: [QuicLog; 2],
    /// HTTP/2 connections over TCP, as far as they could be read.
    pub http2: Vec<Http2Connection>,
    /// The kernel's counts for TCP sockets.
    pub sockets: SocketTable,
}

/// A protocol, and the client's and the server's port.
pub type Ports = (u8, u16, u16);

/// Calls `each` with one conversation after another.
pub fn each_conversation<'a>(
    packets: &'a [PacketRecord],
    facts: &'a ProgramFacts,
    hosts: Hosts,
    mut each: impl FnMut(Ports, Conversation<'a>),
) {
    let known = facts.quic.each_ref().map(FrameIndex::new);
    let http2: HashMap<_, _> =
        facts.http2.iter().map(|it| ((it.client_port, it.server_port, it.opening), it)).collect();
    for (ports, packets) in by_ports(packets) {
        let all = by_opening(packets);
        let begun: Vec<Instant> = all.iter().filter_map(|packets| packets.first().map(|it| it.entered)).collect();
        for (packets, number) in all.into_iter().zip(0..) {
            if ports.0 == TCP {
                let opening = packets.first().map_or(0, |it| it.headers.sequence);
                let http2 = http2.get(&(ports.1, ports.2, opening)).copied();
                let counts = facts.sockets.ends((ports.1, ports.2), begun[number], begun.get(number + 1).copied());
                let mut connection = Connection::new(packets, hosts).with_counts(counts);
                if let Some(http2) = http2 {
                    connection.add_http(http2.ends.each_ref().map(Some));
                }
                each(ports, Conversation::Tcp(Box::new(connection)));
                continue;
            }
            let connections = connections_of_programs(&packets, &known, hosts);
            if connections.is_empty() {
                each(ports, Conversation::Udp(Datagrams::new(packets, hosts)));
            }
            for connection in connections {
                let conversation = if connection.is_read() {
                    Conversation::Quic(Box::new(QuicConversation::new(connection)))
                } else {
                    Conversation::Sealed(Datagrams::new(connection.packets, hosts))
                };
                each(ports, conversation);
            }
        }
    }
}

/// The packets between each two ports.
fn by_ports(packets: &[PacketRecord]) -> BTreeMap<Ports, Vec<&PacketRecord>> {
    let mut by_ports: BTreeMap<_, Vec<&PacketRecord>> = BTreeMap::new();
    for packet in packets.iter().filter(|it| matches!(it.headers.protocol, TCP | UDP)) {
        let (headers, side) = (&packet.headers, packet.side);
        let ports = (headers.client_port(side), headers.client_port(side.opposite()));
        by_ports.entry((headers.protocol, ports.0, ports.1)).or_default().push(packet);
    }
    // A packet's later fragments have no ports.
    by_ports.retain(|&(_, client_port, server_port), _| (client_port, server_port) != (0, 0));
    by_ports
}

impl<'a> Conversation<'a> {
    /// Attributes all of it.
    pub fn walk(&self, links: &Links<'a>) -> Walked {
        let walked = match self {
            Self::Tcp(it) => it.walk(links),
            Self::Quic(it) => it.walk(links),
            Self::Udp(it) => it.walk(links),
            Self::Sealed(it) => Walked { pieces: of_sealed(it.walk(links).pieces), turns: 0, windows: Vec::new() },
        };
        let pieces = self.without_busy_times(walked.pieces, links);
        let pieces = if let Self::Tcp(it) = self { it.bounded(pieces) } else { pieces };
        Walked { pieces, ..walked }
    }

    /// Attributes `[from, to]` backwards, for a client with its answer, come by `answered`, at `to`.
    pub fn exchange(&self, from: Instant, to: Instant, answered: Instant, links: &Links<'a>) -> Vec<Interval> {
        let pieces = match self {
            Self::Tcp(it) => it.exchange(from, to, answered, links),
            Self::Quic(it) => it.exchange(from, to, answered, links),
            Self::Udp(it) => it.exchange(from, to, answered, links),
            Self::Sealed(it) => of_sealed(it.exchange(from, to, answered, links)),
        };
        self.without_busy_times(pieces, links)
    }

    /// When the client's latest data at `at` came.
    pub fn last_answer(&self, at: Instant) -> Option<Instant> {
        match self {
            Self::Tcp(it) => it.last_answer(at),
            Self::Quic(it) => it.last_answer(at),
            Self::Udp(it) | Self::Sealed(it) => it.last_answer(at),
        }
    }

    /// Knowledge about its QUIC packets.
    pub const fn quic(&self) -> Quic {
        match self {
            Self::Tcp(_) | Self::Udp(_) => Quic::None,
            Self::Quic(_) => Quic::Opened,
            Self::Sealed(_) => Quic::Sealed,
        }
    }

    /// For each host, the number of decrypted datagrams with old bytes.
    pub fn again(&self) -> Option<[u64; 2]> {
        let Self::Quic(it) = self else { return None };
        Some(Side::BOTH.map(|side| it.again(side)))
    }

    /// Its time with each change, as far as TCP's model goes.
    pub fn changed(&self) -> Option<Changed> {
        let Self::Tcp(it) = self else { return None };
        let (from, to) = span(&it.packets);
        Some(Changed::new(to.saturating_since(from), it.saved(from, to)?))
    }

    fn without_busy_times(&self, pieces: Vec<Interval>, links: &Links<'a>) -> Vec<Interval> {
        let Some(first) = self.packets().first() else { return pieces };
        links.without_busy_times(pieces, first.headers.protocol, first.headers.client_port(first.side))
    }

    fn packets(&self) -> &[&'a PacketRecord] {
        match self {
            Self::Tcp(it) => &it.packets,
            Self::Quic(it) => &it.connection.packets,
            Self::Udp(it) | Self::Sealed(it) => &it.packets,
        }
    }

    pub fn into_packets(self) -> Vec<&'a PacketRecord> {
        match self {
            Self::Tcp(it) => it.packets,
            Self::Quic(it) => it.connection.packets,
            Self::Udp(it) | Self::Sealed(it) => it.packets,
        }
    }
}
