//! The connections of programs.

use crate::conversations::{Conversation, Ports, ProgramFacts, each_conversation};
use crate::flow::{Beginning, Ending, Flow, Sent, Waits};
use crate::links::Links;
use crate::unanswered;
use crate::walk::{Walked, span};
use crate::{DelayCause, Hosts};
use crosswind_ledger::{PacketRecord, TCP, TCP_ACK, TCP_FIN, TCP_RST, TCP_SYN, Verdict};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::BTreeSet;

/// All TCP and UDP flows in order of their beginnings, with a total limit on intervals. `packets` may be unordered;
/// After `end` programs wait for nothing.
pub fn flows(
    packets: &[PacketRecord],
    facts: &ProgramFacts,
    hosts: Hosts,
    most_pieces: usize,
    end: Instant,
) -> Vec<Flow> {
    let links = Links::new(packets, hosts.background);
    let mut all: Vec<Flow> = Vec::new();
    let mut kept = Kept::default();
    each_conversation(packets, facts, hosts, |ports, conversation| {
        all.push(Flow::new(ports, conversation, &links));
        kept.add(&mut all, most_pieces);
    });
    all.sort_by_key(|it| (it.from, it.client_port, it.server_port));
    unanswered::extend(&mut all, packets, end);
    all
}

impl Flow {
    fn new<'a>((protocol, client_port, server_port): Ports, conversation: Conversation<'a>, links: &Links<'a>) -> Self {
        let Walked { pieces, turns, windows } = conversation.walk(links);
        let (quic, again, changed) = (conversation.quic(), conversation.again(), conversation.changed());
        let packets = conversation.into_packets();
        let (from, to) = span(&packets);
        let opened = packets.first().map_or(Side::Forward, |it| it.side);
        let flags = |it: &&PacketRecord| it.headers.flags;
        let any = |which: u8| packets.iter().map(flags).any(|it| it & which != 0);
        let answers =
            |it: &&PacketRecord| it.side != opened && it.headers.flags & (TCP_SYN | TCP_ACK) == TCP_SYN | TCP_ACK;
        let answered = packets.iter().filter(|it| it.left.is_some()).any(answers);
        let begins = packets.first().map_or(0, flags) & (TCP_SYN | TCP_ACK);
        let beginning = match begins {
            _ if protocol != TCP => Beginning::Datagram,
            TCP_SYN if answered => Beginning::Handshake,
            TCP_SYN if any(TCP_RST) => Beginning::Refused,
            TCP_SYN => Beginning::Unanswered,
            _ => Beginning::Before,
        };
        let ending = match () {
            () if protocol != TCP => Ending::Open,
            () if any(TCP_RST) => Ending::Reset,
            () if any(TCP_FIN) => Ending::Closed,
            () => Ending::Open,
        };
        let sent = Side::BOTH.map(|side| Sent::new(packets.iter().copied().filter(|it| it.side == side), protocol));
        let mut spent = [[Duration::ZERO; DelayCause::ALL.len()]; 2];
        for piece in &pieces {
            spent[piece.data as usize][piece.part as usize] += piece.to.saturating_since(piece.from);
        }
        let flow = Self {
            protocol,
            quic,
            client_port,
            server_port,
            opened,
            from,
            to,
            beginning,
            ending,
            sent,
            turns,
            spent,
            others: links.wakers.others(&pieces),
            pieces,
            windows,
            changed,
            waits: Waits::of(protocol, beginning, &packets),
        };
        match again {
            Some(again) => flow.opened(again),
            None => flow,
        }
    }

    /// With its packets' frames. `again`: for each host, datagrams with old bytes.
    fn opened(mut self, again: [u64; 2]) -> Self {
        for (sent, again) in self.sent.iter_mut().zip(again) {
            sent.again = again;
        }
        if self.sent.iter().all(|sent| sent.packets > 0) {
            self.beginning = Beginning::Handshake;
        }
        self
    }
}

/// The flows with pieces: how long they are, and their positions.
#[derive(Default)]
struct Kept {
    flows: BTreeSet<(Duration, Reverse<usize>)>,
    pieces: usize,
}

impl Kept {
    /// Adds the last flow; removes the shortest flows' intervals, and the longest's excess.
    fn add(&mut self, all: &mut [Flow], most: usize) {
        let Some(last) = all.last() else { return };
        self.pieces += last.pieces.len();
        self.flows.insert((last.to.saturating_since(last.from), Reverse(all.len() - 1)));
        while self.pieces > most
            && let Some(shortest) = self.flows.pop_first()
        {
            let keeps = if self.flows.is_empty() { most } else { 0 };
            let pieces = &mut all[shortest.1.0].pieces;
            self.pieces -= pieces.len().saturating_sub(keeps);
            pieces.truncate(keeps);
            pieces.shrink_to_fit();
            if keeps > 0 {
                self.flows.insert(shortest);
            }
        }
    }
}

impl Sent {
    fn new<'a>(packets: impl Iterator<Item = &'a PacketRecord>, protocol: u8) -> Self {
        let mut sent = Self::default();
        let mut next: Option<u32> = None;
        for packet in packets.filter(|it| it.copy == 0) {
            let headers = &packet.headers;
            let is_lost = matches!(packet.verdict, Verdict::Dropped(_)) || packet.flipped_bit.is_some();
            sent.packets += 1;
            sent.bytes += u64::from(headers.payload_bytes);
            sent.lost += u64::from(is_lost);
            let marks = u32::from(headers.flags & TCP_SYN != 0) + u32::from(headers.flags & TCP_FIN != 0);
            let length = headers.payload_bytes + marks;
            if protocol != TCP || length == 0 {
                continue;
            }
            let end = headers.sequence.wrapping_add(length);
            if next.is_some_and(|next| end.wrapping_sub(next).cast_signed() <= 0) {
                sent.again += 1;
            } else {
                next = Some(end);
            }
        }
        sent
    }
}
