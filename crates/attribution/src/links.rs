//! What the link did while a packet waited for it.

use crate::Part;
use crate::trail::{PacketId, Place, Trail, Wait};
use crosswind_ledger::PacketRecord;
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};

/// The packets that links carried, by when each was on the wire whole.
pub struct Links<'a> {
    forward: Vec<Carried<'a>>,
    reverse: Vec<Carried<'a>>,
}

/// A packet that a link carried, with what is asked of each that others wait for: to look it up in its record would take most of the
/// time.
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

    /// Names the time of a packet in the path, which ends where the trail is; returns the packet at whose entry into the path the trail
    /// then is.
    ///
    /// A packet that waited for the link would not have been received earlier, had it been sent earlier: what counts is what the link
    /// did. Packets of the same connection are what the message's own bytes take; others are a queue. So the way goes back to the
    /// packet at which the link began to be busy with the connection's own.
    ///
    /// Of a packet that something else waited for, the time in flight is that wait's.
    pub fn follow(&self, packet: &'a PacketRecord, wait: Wait, trail: &mut Trail) -> &'a PacketRecord {
        let side = packet.side;
        trail.name(packet.due, Part::Late, Place::Path, Some(packet), 0);
        let landed = earlier(packet.due, packet.spent.propagation);
        trail.name(landed, wait.unwrap_or(Part::propagation(side)), Place::Path, Some(packet), 0);
        trail.name(on_wire(packet), Part::jitter(side), Place::Path, Some(packet), 0);
        trail.name(begun(packet).max(packet.entered), Part::serialisation(side), Place::Path, Some(packet), 0);
        let (mut own, mut began, mut near) = (packet, begun(packet), usize::MAX);
        let flow = flow_of(packet);
        while !trail.is_done() && trail.at() > own.entered {
            let Some((before, position)) = self.on_wire_at(side, began, near) else { break };
            (near, began) = (position, before.begun);
            // An acknowledgement that bytes of a message waited behind is none of them.
            let is_alike = before.has_payload || packet.headers.payload_bytes == 0;
            let is_own = is_alike && before.flow == flow && before.entered >= trail.beginning();
            if is_own {
                let from = before.begun.max(before.entered);
                trail.name(from, Part::serialisation(side), Place::Path, Some(before.packet), 0);
                own = before.packet;
            } else {
                trail.name_of(before.begun.max(own.entered), Part::queueing(side), Place::Path, Some(before.id), 0);
            }
        }
        // What the link was doing is not known where there are several, or another discipline than a queue's.
        let most = earlier(begun(own), own.spent.queueing);
        trail.name(most.max(own.entered), Part::queueing(side), Place::Path, Some(own), 0);
        trail.name(own.entered, Part::Unknown, Place::Path, Some(own), 0);
        own
    }

    /// The packet that was on the wire whole at a time, and its position, which is a little before `near` if that is one.
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
