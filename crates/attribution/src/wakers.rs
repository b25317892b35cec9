//! Senders' wakers, by their kernels: timers, and packets on this or another connection.

use crate::DelayCause;
use crate::critical_path::{self, CriticalPath, Interval};
use crosswind_ledger::{PacketRecord, Place, Waker};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::collections::HashMap;

/// A packet table by place, if kernels name wakers.
#[derive(Default)]
pub struct Wakers<'a> {
    packets: &'a [PacketRecord],
    /// By direction and index: the first copy's position. Empty without wakers.
    positions: [Vec<u32>; 2],
}

/// A wait for another event of the host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Other {
    /// The direction of the waiting data.
    pub data: Side,
    /// A timer, or another connection.
    pub part: DelayCause,
    /// The thread of the longest wait, or its port.
    pub name: String,
}

impl<'a> Wakers<'a> {
    pub fn new(packets: &'a [PacketRecord]) -> Self {
        if packets.iter().all(|it| it.waker.is_none()) {
            return Self::default();
        }
        let mut positions = [Vec::new(), Vec::new()];
        for (packet, position) in packets.iter().zip(0..).filter(|it| it.0.copy == 0) {
            let (of_side, index) = (&mut positions[packet.side as usize], packet.index as usize);
            if of_side.len() <= index {
                of_side.resize(index + 1, u32::MAX);
            }
            of_side[index] = position;
        }
        Self { packets, positions }
    }

    /// The waking packet for `packet`, if any.
    pub fn packet(&self, packet: &PacketRecord) -> Option<&'a PacketRecord> {
        packet.woken_by_packet().and_then(|place| self.at(place))
    }

    fn at(&self, place: Place) -> Option<&'a PacketRecord> {
        self.packets.get(*self.positions[place.0 as usize].get(place.1 as usize)? as usize)
    }

    /// The arrival of the waking packet for `packet`, if it has data and the same connection.
    pub fn arrival(&self, packet: &PacketRecord) -> Option<Instant> {
        let Waker::Packet(place) = packet.waker? else { return None };
        let waker = self.at(place)?;
        waker.left.filter(|_| ports(waker) == ports(packet) && waker.headers.payload_bytes > 0)
    }

    /// Names the sending host's time before `packet`, from `from` to where the path is.
    pub fn name(&self, from: Instant, packet: &PacketRecord, path: &mut CriticalPath) {
        let (side, place) = (packet.side, critical_path::Place::sender(packet.side));
        if let Some(timer) = packet.timer() {
            path.name(timer.since.unwrap_or(from).max(from), DelayCause::timer(side), place, Some(packet), 0);
        }
        let mut part = DelayCause::sender(side);
        if let Some(waker) = self.packet(packet).filter(|it| it.side != side && ports(it) != ports(packet))
            && let Some(came) = waker.left
        {
            path.name(came.max(from), part, place, Some(packet), 0);
            part = DelayCause::other_connection(side);
        }
        path.name(from, part, place, Some(packet), 0);
    }

    /// The longest waits for other events, by direction and kind.
    pub fn others(&self, pieces: &[Interval]) -> Vec<Other> {
        let mut times: HashMap<(Side, DelayCause), HashMap<String, Duration>> = HashMap::new();
        for piece in pieces {
            let Some(name) = self.name_of(piece) else { continue };
            let all = times.entry((piece.data, piece.part)).or_default();
            *all.entry(name).or_default() += piece.to.saturating_since(piece.from);
        }
        let longest = |names: HashMap<String, Duration>| {
            names.into_iter().max_by(|one, two| (one.1, &one.0).cmp(&(two.1, &two.0)))
        };
        times
            .into_iter()
            .filter_map(|((data, part), names)| Some(Other { data, part, name: longest(names)?.0 }))
            .collect()
    }

    fn name_of(&self, piece: &Interval) -> Option<String> {
        let side = piece.packet?.side;
        if piece.part != DelayCause::timer(side) && piece.part != DelayCause::other_connection(side) {
            return None;
        }
        let packet = self.at(Place(side, piece.packet?.index))?;
        if piece.part == DelayCause::timer(side) {
            return packet.timer().map(|it| it.thread.as_str().to_owned()).filter(|it| !it.is_empty());
        }
        let (_, one, two) = ports(self.packet(packet)?);
        Some(format!("port {}", one.min(two)))
    }
}

/// Protocol, and the client's and the server's port.
fn ports(packet: &PacketRecord) -> (u8, u16, u16) {
    let (headers, side) = (&packet.headers, packet.side);
    (headers.protocol, headers.client_port(side), headers.client_port(side.opposite()))
}
