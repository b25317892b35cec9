//! The link's activity while a packet waited for it.

use crate::DelayCause;
use crate::critical_path::{CriticalPath, PacketId, Place, Wait};
use crosswind_ledger::PacketRecord;
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};

/// Packets carried by links, by the end of their transmission.
pub struct Links<'a> {
    forward: Vec<Carried<'a>>,
    reverse: Vec<Carried<'a>>,
}

/// A carried packet, with the facts asked about most often: looking them up in its record would dominate the time.
struct Carried<'a> {
    /// When it was on the wire whole.
    whole: Instant,
    /// When the link began with it.
    begun: Instant,
    entered: Instant,
    flow: FlowId,
    has_payload: bool,
    id: PacketId,
    packet: &'a PacketRecord,
}

/// Protocol and ports.
type FlowId = (u8, u16, u16);

impl<'a> Links<'a> {
    pub fn new(packets: &'a [PacketRecord]) -> Self {
        let of = |side| {
            let carried = packets.iter().filter(|it| it.side == side && it.spent.serialisation > Duration::ZERO);
            let mut carried: Vec<_> = carried.map(Carried::new).collect();
            carried.sort_unstable_by_key(|it| (it.whole, it.id.index));
            carried
        };
        Self { forward: of(Side::Forward), reverse: of(Side::Reverse) }
    }

    /// Names a packet's time in the path, backwards; returns the packet at whose entry the critical path then is.
    ///
    /// A packet that waited for the link would not have been received earlier if sent earlier: the link's activity
    /// counts. Packets of the same connection are the message's own transmission; others are a queue. So the walk goes
    /// back to the packet at which the link became busy with the connection's own.
    ///
    /// If something else waited for a packet, the packet's time in flight is that wait's.
    pub fn follow(&self, packet: &'a PacketRecord, wait: Wait, path: &mut CriticalPath) -> &'a PacketRecord {
        let side = packet.side;
        path.name(packet.due, DelayCause::Late, Place::Path, Some(packet), 0);
        let landed = earlier(packet.due, packet.spent.propagation);
        path.name(landed, wait.unwrap_or(DelayCause::propagation(side)), Place::Path, Some(packet), 0);
        path.name(on_wire(packet), DelayCause::jitter(side), Place::Path, Some(packet), 0);
        path.name(begun(packet).max(packet.entered), DelayCause::serialisation(side), Place::Path, Some(packet), 0);
        let (mut own, mut began, mut near) = (packet, begun(packet), usize::MAX);
        let flow = flow_of(packet);
        while !path.is_done() && path.at() > own.entered {
            let Some((before, position)) = self.on_wire_at(side, began, near) else { break };
            (near, began) = (position, before.begun);
            // An acknowledgement ahead of a message's bytes is not among them.
            let is_alike = before.has_payload || packet.headers.payload_bytes == 0;
            let is_own = is_alike && before.flow == flow && before.entered >= path.beginning();
            if is_own {
                let from = before.begun.max(before.entered);
                path.name(from, DelayCause::serialisation(side), Place::Path, Some(before.packet), 0);
                own = before.packet;
            } else {
                path.name_of(
                    before.begun.max(own.entered),
                    DelayCause::queueing(side),
                    Place::Path,
                    Some(before.id),
                    0,
                );
            }
        }
        // The link's activity is unknown with several links, or a discipline other than a queue's.
        let most = earlier(begun(own), own.spent.queueing);
        path.name(most.max(own.entered), DelayCause::queueing(side), Place::Path, Some(own), 0);
        path.name(own.entered, DelayCause::Unknown, Place::Path, Some(own), 0);
        own
    }

    /// The packet fully transmitted at a time, and its position, a little before `near` if that is one.
    fn on_wire_at(&self, side: Side, at: Instant, near: usize) -> Option<(&Carried<'a>, usize)> {
        let all = if side == Side::Forward { &self.forward } else { &self.reverse };
        let position = if near < all.len() {
            let later = all[..near].iter().rev().take_while(|it| it.whole >= at).count();
            near - later
        } else {
            all.partition_point(|it| it.whole < at)
        };
        let found = all.get(position)?;
        (found.whole == at).then_some((found, position))
    }
}

impl<'a> Carried<'a> {
    fn new(packet: &'a PacketRecord) -> Self {
        Self {
            whole: on_wire(packet),
            begun: begun(packet),
            entered: packet.entered,
            flow: flow_of(packet),
            has_payload: packet.headers.payload_bytes > 0,
            id: packet.into(),
            packet,
        }
    }
}

/// When a packet was on the wire whole.
fn on_wire(packet: &PacketRecord) -> Instant {
    earlier(earlier(packet.due, packet.spent.propagation), packet.spent.jitter)
}

/// When the link began with a packet.
fn begun(packet: &PacketRecord) -> Instant {
    earlier(on_wire(packet), packet.spent.serialisation)
}

fn earlier(at: Instant, by: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(by.as_nanos()))
}

const fn flow_of(packet: &PacketRecord) -> FlowId {
    let headers = &packet.headers;
    (headers.protocol, headers.source_port, headers.destination_port)
}
