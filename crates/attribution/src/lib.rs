//! Why a message took as long as it did: every nanosecond gets a cause.
//!
//! Critical-path analysis (Barford and Crovella, "Critical path analysis of TCP transactions", SIGCOMM 2000) over the
//! packet table. It goes backwards from the packet that completed a message: the packet's time in the path, element by
//! element; why it was sent when it was; and so on to the moment the message was handed over. It has no I/O and reads
//! no clock.

mod bytes;
mod conversations;
mod critical_path;
mod cuts;
mod delay_cause;
mod exchanges;
mod flow;
mod flows;
mod handshake;
mod http;
mod links;
mod message_transit;
mod quic;
mod quic_direction;
mod quic_message;
mod quic_sender;
mod quic_walk;
mod round_trips;
mod socket_counts;
mod tcp;
mod tcp_message;
mod tcp_reason;
mod tcp_sender;
mod tcp_walk;
mod udp;
mod unanswered;
mod wakers;
mod walk;
mod what_if;

pub use conversations::ProgramFacts;
pub use critical_path::{Interval, PacketId, Place};
pub use delay_cause::{DelayCause, PartGroup};
pub use flow::{Beginning, Ending, Flow, Quic, Sent};
pub use flows::flows;
pub use message_transit::{Growth, Hosts, MessageTransit};
pub use socket_counts::{SocketCounts, SocketTable};
pub use walk::Window;
pub use what_if::{Change, Changed};

use critical_path::CriticalPath;
use crosswind_ledger::{HttpEnd, PacketRecord, QuicLog, TCP, UDP};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use exchanges::Exchanges;
use links::Links;
use quic::FrameIndex;
use quic_walk::QuicConversation;
use std::collections::HashMap;
use tcp::{Connection, by_opening};
use udp::Datagrams;

/// A packet table's connections.
pub struct Attribution<'a> {
    links: Links<'a>,
    /// By client port, in the order of their beginnings.
    tcp: HashMap<u16, Vec<Connection<'a>>>,
    quic: HashMap<u16, Vec<QuicConversation<'a>>>,
    udp: HashMap<u16, Datagrams<'a>>,
    /// Third-party programs' exchanges.
    exchanges: Option<Exchanges<'a>>,
}

impl<'a> Attribution<'a> {
    /// Sorts `packets`, in any order, by connection. `quic` has the client's and the server's known QUIC packets,
    /// `http` their known HTTP writes.
    pub fn new(packets: &'a [PacketRecord], quic: &'a [QuicLog; 2], http: &'a [Vec<HttpEnd>; 2], hosts: Hosts) -> Self {
        let mut segments: HashMap<u16, Vec<&PacketRecord>> = HashMap::new();
        let mut datagrams: HashMap<u16, Vec<&PacketRecord>> = HashMap::new();
        for packet in packets {
            let headers = &packet.headers;
            let port = headers.client_port(packet.side);
            match headers.protocol {
                TCP => segments.entry(port).or_default().push(packet),
                UDP if headers.payload_bytes > 0 => datagrams.entry(port).or_default().push(packet),
                _ => {}
            }
        }
        let mut tcp: HashMap<u16, Vec<Connection<'a>>> =
            segments.into_iter().map(|(port, packets)| (port, connections(packets, hosts))).collect();
        add_http(&mut tcp, http);
        let known = quic.each_ref().map(FrameIndex::new);
        let (mut quic, mut udp) = (HashMap::new(), HashMap::new());
        for (port, packets) in datagrams {
            let connections = quic::connections(packets.clone(), &known, hosts);
            if connections.is_empty() {
                udp.insert(port, Datagrams::new(packets, hosts));
            } else {
                quic.insert(port, connections.into_iter().map(QuicConversation::new).collect());
            }
        }
        Self { links: Links::new(packets, hosts.background), tcp, quic, udp, exchanges: None }
    }

    /// The same, ready for [`Self::exchange`]. A client's timestamp may be up to `early` before the moment.
    #[must_use]
    pub fn with_exchanges(
        mut self,
        packets: &'a [PacketRecord],
        facts: &'a ProgramFacts,
        hosts: Hosts,
        early: Duration,
    ) -> Self {
        self.exchanges = Some(Exchanges::new(packets, facts, hosts, early));
        self
    }

    /// The intervals of an exchange known only by its beginning and end at the client, as far as the wire tells.
    pub fn exchange(&self, client_port: Option<u16>, from: Instant, to: Instant) -> Vec<Interval> {
        match &self.exchanges {
            Some(exchanges) => exchanges.pieces(client_port, from, to, &self.links),
            None => CriticalPath::new(from, to, Side::Forward).finish(),
        }
    }

    /// A transit's intervals in order of time, without gaps.
    pub fn transit(&self, transit: MessageTransit) -> Vec<Interval> {
        if let Some(connection) = self.connection(transit.client_port, transit.received) {
            let pieces = connection.transit(transit, &self.links);
            return self.links.without_busy_times(pieces, TCP, transit.client_port);
        }
        let pieces = if let Some(conversation) = self.conversation(transit.client_port, transit.received) {
            let is_known = conversation.connection.knows(transit.side);
            // A third-party end is explained by the wire.
            if let Some(exchanges) = self.exchanges.as_ref().filter(|_| !is_known) {
                return exchanges.pieces(Some(transit.client_port), transit.written, transit.received, &self.links);
            }
            conversation.transit(transit, &self.links)
        } else {
            let mut path = CriticalPath::new(transit.written, transit.received, transit.side);
            if let Some(datagrams) = self.udp.get(&transit.client_port) {
                datagrams.transit(transit, &self.links, &mut path);
            }
            path.finish()
        };
        self.links.without_busy_times(pieces, UDP, transit.client_port)
    }

    /// When the server had all of a request: a QUIC or HTTP/2 stream, or an HTTP/1.1 exchange, by `before`.
    pub fn request_arrival(&self, client_port: u16, stream: u64, before: Instant) -> Option<Instant> {
        if let Some(connection) = self.connection(client_port, before) {
            return connection.arrival(Side::Forward, stream, before);
        }
        self.conversation(client_port, before)?.connection.arrival(Side::Forward, stream, before)
    }

    /// How long each change would let take what took `whole` and was sent on a TCP connection from `from` to `to`, by a
    /// model; none where it is far from the packets.
    pub fn changed(&self, client_port: u16, whole: Duration, [from, to]: [Instant; 2]) -> Option<Changed> {
        Some(Changed::new(whole, self.connection(client_port, to)?.saved(from, to)?))
    }

    /// Splits the pieces of a connection's handshakes: waits for retransmissions are loss recovery.
    pub fn with_recoveries(&self, client_port: u16, pieces: Vec<Interval>) -> Vec<Interval> {
        let (Some(first), Some(last)) = (pieces.first(), pieces.last()) else { return pieces };
        let (from, to) = (first.from, last.to);
        let mut waits = if let Some(connection) = self.connection(client_port, to) {
            connection.recoveries(from, to)
        } else {
            let conversation = self.conversation(client_port, to);
            conversation.map(|it| it.connection.recoveries(from, to)).unwrap_or_default()
        };
        waits.sort_by_key(|it| (it.from, it.to));
        let mut all = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let is_handshake = matches!(piece.part, DelayCause::SecurityHandshake | DelayCause::UpgradeHandshake);
            piece.cut(waits.iter().filter(|_| is_handshake).copied(), &mut all);
        }
        all
    }

    /// How long, and how often, TCP's connect waited for its timer, on the connection set up from `from` to `to`.
    pub fn syn_timer(&self, client_port: u16, from: Instant, to: Instant) -> (Duration, u32) {
        let handshake = self.connection(client_port, to).and_then(|it| it.handshake.as_ref());
        let own = handshake.filter(|it| it.first().is_some_and(|first| first.entered >= from));
        own.map_or((Duration::ZERO, 0), |it| it.waited(to))
    }

    /// The QUIC connection on a client port that had begun by `at`.
    fn conversation(&self, client_port: u16, at: Instant) -> Option<&QuicConversation<'a>> {
        let all = self.quic.get(&client_port)?;
        all[..all.partition_point(|it| it.connection.began <= at)].last()
    }

    fn connection(&self, port: u16, before: Instant) -> Option<&Connection<'a>> {
        let all = self.tcp.get(&port)?;
        all[..all.partition_point(|connection| connection.began <= before)].last()
    }
}

/// Adds the HTTP writes of connections' ends.
fn add_http<'a>(tcp: &mut HashMap<u16, Vec<Connection<'a>>>, http: &'a [Vec<HttpEnd>; 2]) {
    let mut ends: HashMap<(u16, usize), [Option<&HttpEnd>; 2]> = HashMap::new();
    for (end, side) in http.iter().zip(0..).flat_map(|(ends, side)| ends.iter().map(move |end| (end, side))) {
        let began = tcp.get(&end.client_port).map_or(0, |all| all.partition_point(|it| it.began <= end.began));
        ends.entry((end.client_port, began)).or_default()[side] = Some(end);
    }
    for ((port, began), ends) in ends {
        let connection = tcp.get_mut(&port).and_then(|all| all.get_mut(began.checked_sub(1)?));
        if let Some(connection) = connection {
            connection.add_http(ends);
        }
    }
}

fn connections(packets: Vec<&PacketRecord>, hosts: Hosts) -> Vec<Connection<'_>> {
    by_opening(packets).into_iter().map(|packets| Connection::new(packets, hosts)).collect()
}
