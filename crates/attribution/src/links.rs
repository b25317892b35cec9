//! The link's activity while a packet waited for it.

use crate::DelayCause;
use crate::critical_path::{CriticalPath, Interval, PacketId, Place, Wait};
use crate::wakers::Wakers;
use crosswind_ledger::PacketRecord;
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::collections::HashMap;

/// Packets carried by links, by the end of their transmission. Several links count as one, the slowest.
pub struct Links<'a> {
    /// Whether they carry unrecorded packets: background traffic.
    is_shared: bool,
    forward: Vec<Carried<'a>>,
    reverse: Vec<Carried<'a>>,
    /// By direction.
    busy: [Busy; 2],
    pub wakers: Wakers<'a>,
}

/// By protocol and client's port: when links carried data.
type Busy = HashMap<(u8, u16), Vec<(Instant, Instant)>>;

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

fn busy_times(carried: &[Carried<'_>]) -> Busy {
    let mut busy = Busy::new();
    for Carried { begun, whole, packet, has_payload, .. } in carried {
        if !has_payload || begun == whole {
            continue;
        }
        let times = busy.entry((packet.headers.protocol, packet.headers.client_port(packet.side))).or_default();
        match times.last_mut() {
            Some(last) if *begun <= last.1 => last.1 = *whole,
            _ => times.push((*begun, *whole)),
        }
    }
    busy
}

impl<'a> Links<'a> {
    pub fn new(packets: &'a [PacketRecord], is_shared: bool) -> Self {
        let of = |side| {
            let is_carried = |it: &&PacketRecord| {
                it.spent.serialisation > Duration::ZERO || it.spent.queueing > Duration::ZERO && it.left.is_some()
            };
            let carried = packets.iter().filter(|it| it.side == side).filter(is_carried);
            let mut carried: Vec<_> = carried.map(Carried::new).collect();
            carried.sort_unstable_by_key(|it| (it.whole, it.id.index, it.packet.copy));
            carried
        };
        let (forward, reverse) = (of(Side::Forward), of(Side::Reverse));
        let busy = [&forward, &reverse].map(|carried| busy_times(carried));
        Self { is_shared, forward, reverse, busy, wakers: Wakers::new(packets) }
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
        // Without a recorded packet ahead, it waited for the link itself, as for tokens, or for background traffic.
        let alone = if self.is_shared { DelayCause::queueing(side) } else { DelayCause::serialisation(side) };
        let (mut own, mut next) = (packet, self.position_of(packet));
        let flow = flow_of(packet);
        while let Some(before) = next.and_then(|it| self.before(side, it)).filter(|_| !path.is_done()) {
            let Carried { whole, begun, .. } = *before.1;
            if whole <= queued(own) {
                break;
            }
            next = Some(before.0);
            let before = before.1;
            path.name(whole.max(own.entered), alone, Place::Path, Some(own), 0);
            // An acknowledgement ahead of a message's bytes is not among them.
            let is_alike = before.has_payload || packet.headers.payload_bytes == 0;
            if is_alike && before.flow == flow && before.entered >= path.beginning() {
                path.name(
                    begun.max(before.entered),
                    DelayCause::serialisation(side),
                    Place::Path,
                    Some(before.packet),
                    0,
                );
                own = before.packet;
            } else {
                path.name_of(begun.max(own.entered), DelayCause::queueing(side), Place::Path, Some(before.id), 0);
            }
        }
        path.name(queued(own).max(own.entered), alone, Place::Path, Some(own), 0);
        path.name(own.entered, DelayCause::Unknown, Place::Path, Some(own), 0);
        own
    }

    /// Splits waits for a window: while a link was busy with the connection's own data, a larger window would have saved
    /// nothing, and the time is the link's.
    pub fn without_busy_times(&self, pieces: Vec<Interval>, protocol: u8, client_port: u16) -> Vec<Interval> {
        if pieces.iter().all(|it| !is_for_window(it.part)) {
            return pieces;
        }
        let busy = Side::BOTH.map(|side| self.busy(side, protocol, client_port));
        let mut all = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let busy = if is_for_window(piece.part) { busy[piece.data as usize] } else { &[] };
            let first = busy.partition_point(|it| it.1 <= piece.from);
            let times = busy[first..].iter().take_while(|it| it.0 < piece.to);
            let part = DelayCause::serialisation(piece.data);
            piece.cut(times.map(|&(from, to)| Interval { from, to, part, place: Place::Path, ..piece }), &mut all);
        }
        all
    }

    /// When links carried a connection's data, in order.
    fn busy(&self, side: Side, protocol: u8, client_port: u16) -> &[(Instant, Instant)] {
        self.busy[side as usize].get(&(protocol, client_port)).map_or(&[], Vec::as_slice)
    }

    /// A packet's place among its direction's carried packets.
    fn position_of(&self, packet: &PacketRecord) -> Option<usize> {
        let key = (on_wire(packet), packet.index, packet.copy);
        self.of(packet.side).binary_search_by_key(&key, |it| (it.whole, it.id.index, it.packet.copy)).ok()
    }

    /// The packet before the one at a position, and its own position.
    fn before(&self, side: Side, position: usize) -> Option<(usize, &Carried<'a>)> {
        let before = position.checked_sub(1)?;
        Some((before, &self.of(side)[before]))
    }

    const fn of(&self, side: Side) -> &Vec<Carried<'a>> {
        match side {
            Side::Forward => &self.forward,
            Side::Reverse => &self.reverse,
        }
    }
}

const fn is_for_window(part: DelayCause) -> bool {
    use DelayCause::{
        CongestionWindow, ConnectionWindow, ReceiveWindow, ReducedWindow, Reordering, SendBuffer, SlowStartAfterIdle,
        StreamWindow,
    };
    matches!(
        part,
        CongestionWindow
            | SlowStartAfterIdle
            | ReducedWindow
            | Reordering
            | ReceiveWindow
            | SendBuffer
            | StreamWindow
            | ConnectionWindow
    )
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

/// Since when it was in the links' queues, or in transmission.
fn queued(packet: &PacketRecord) -> Instant {
    earlier(begun(packet), packet.spent.queueing)
}

fn earlier(at: Instant, by: Duration) -> Instant {
    Instant::from_nanos(at.as_nanos().saturating_sub(by.as_nanos()))
}

const fn flow_of(packet: &PacketRecord) -> FlowId {
    let headers = &packet.headers;
    (headers.protocol, headers.source_port, headers.destination_port)
}
