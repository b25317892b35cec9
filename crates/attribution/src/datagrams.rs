//! Datagrams known only by size and time: plain UDP, and third-party QUIC.

use crate::critical_path::Place;
use crate::links::Links;
use crate::{CriticalPath, DelayCause, Hosts, MessageTransit};
use crosswind_ledger::PacketRecord;
use crosswind_path::Side;
use crosswind_units::Instant;

/// One client port's datagrams.
pub struct Datagrams<'a> {
    hosts: Hosts,
    /// In order of arrival.
    forward: Vec<(Instant, &'a PacketRecord)>,
    reverse: Vec<(Instant, &'a PacketRecord)>,
}

impl<'a> Datagrams<'a> {
    pub fn new(packets: &[&'a PacketRecord], hosts: Hosts) -> Self {
        let [forward, reverse] = Side::BOTH.map(|side| {
            let came = packets.iter().copied().filter(|it| it.side == side && it.flipped_bit.is_none());
            let mut arrived: Vec<_> = came.filter_map(|it| Some((it.left?, it))).collect();
            arrived.sort_by_key(|&(at, packet)| (at, packet.index));
            arrived
        });
        Self { hosts, forward, reverse }
    }

    /// Names a transit's time: of the last-arriving datagram, and of its trigger if it was sent at once.
    pub fn walk(&self, transit: MessageTransit, links: &Links<'a>, trail: &mut CriticalPath) {
        let arrived = if transit.side == Side::Forward { &self.forward } else { &self.reverse };
        let until = arrived.partition_point(|&(at, _)| at <= transit.received);
        let Some(&(at, packet)) = arrived[..until].last().filter(|(at, _)| *at >= transit.written) else { return };
        trail.name(at, DelayCause::receiver(transit.side), Place::receiver(transit.side), None, 0);
        let sent = links.follow(packet, None, trail);
        if sent.entered.saturating_since(transit.written) <= self.hosts.promptness {
            trail.name(transit.written, DelayCause::sender(transit.side), Place::sender(transit.side), Some(sent), 0);
        }
    }
}
