//! The critical path, backwards from the end of a transit to its beginning, interval by interval.

use crate::DelayCause;
use crosswind_ledger::PacketRecord;
use crosswind_path::Side;
use crosswind_units::{Instant, named};

/// An interval with a cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// When it began.
    pub from: Instant,
    /// When it ended, and the next one began.
    pub to: Instant,
    /// Its cause.
    pub part: DelayCause,
    /// Where.
    pub place: Place,
    /// Its packet: in the path, retransmitted, or waiting.
    pub packet: Option<PacketId>,
    /// For a timer, its expiries in a row; else 0.
    pub count: u32,
    /// The direction of the waiting data.
    pub data: Side,
}

impl Interval {
    /// A lost packet's sender's wait, until it sent the same again.
    pub fn of_recovery(lost: &PacketRecord, to: Instant, part: DelayCause) -> Self {
        let is_timer = matches!(part, DelayCause::RetransmissionTimer | DelayCause::ProbeTimer);
        Self {
            from: lost.entered,
            to,
            part,
            place: Place::sender(lost.side),
            packet: Some(lost.into()),
            count: is_timer.into(),
            data: lost.side,
        }
    }

    /// Adds it to `all`, with `others` in their places of it: in order of time.
    pub fn cut(self, others: impl Iterator<Item = Self>, all: &mut Vec<Self>) {
        let mut at = self.from;
        for other in others {
            let (from, to) = (other.from.max(at), other.to.min(self.to));
            if from >= to {
                continue;
            }
            if at < from {
                all.push(Self { from: at, to: from, ..self });
            }
            all.push(Self { from, to, ..other });
            at = to;
        }
        if at < self.to {
            all.push(Self { from: at, ..self });
        }
    }

    fn is_like(&self, other: &Self) -> bool {
        let of = |it: &Self| (it.part, it.place, it.data, it.packet.map(|packet| packet.side));
        self.count == 0 && other.count == 0 && of(self) == of(other)
    }
}

named! {
/// Where time passes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the client.
    Client = "client",
    /// At the server.
    Server = "server",
    /// In the path, where the piece's packet was.
    Path = "path",
}
}

impl Place {
    /// The sending host of direction `side`.
    pub fn sender(side: Side) -> Self {
        side.pick(Self::Client, Self::Server)
    }

    /// The receiving host of direction `side`.
    pub fn receiver(side: Side) -> Self {
        side.pick(Self::Server, Self::Client)
    }
}

/// A packet in the packet table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketId {
    /// Its direction.
    pub side: Side,
    /// Its position in that direction.
    pub index: u64,
}

impl From<&PacketRecord> for PacketId {
    fn from(packet: &PacketRecord) -> Self {
        Self { side: packet.side, index: packet.index }
    }
}

/// A wait's cause, to which packets' time in the path belongs while it lasts.
pub type Wait = Option<DelayCause>;

/// Intervals from the end of a transit back to its beginning, without gaps: their sum is always the transit.
pub struct CriticalPath {
    beginning: Instant,
    /// The direction of the followed data.
    data: Side,
    /// Whether successive intervals with the same cause are one, with the first packet's data.
    merges: bool,
    /// Up to where time has its names.
    at: Instant,
    pieces: Vec<Interval>,
}

impl CriticalPath {
    pub fn new(beginning: Instant, end: Instant, data: Side) -> Self {
        Self { beginning, data, merges: false, at: end, pieces: Vec::new() }
    }

    /// Merges successive intervals with the same cause.
    #[must_use]
    pub const fn merging(mut self) -> Self {
        self.merges = true;
        self
    }

    /// Follows data in the direction of `data` from here on.
    pub const fn turn(&mut self, data: Side) {
        self.data = data;
    }

    /// Whether time has its names down to the beginning.
    pub fn is_done(&self) -> bool {
        self.at <= self.beginning
    }

    /// Where the path is.
    pub const fn at(&self) -> Instant {
        self.at
    }

    pub const fn beginning(&self) -> Instant {
        self.beginning
    }

    /// Names the time from `from` to where the path is.
    pub fn name(&mut self, from: Instant, part: DelayCause, place: Place, packet: Option<&PacketRecord>, count: u32) {
        self.name_of(from, part, place, packet.map(PacketId::from), count);
    }

    /// The same, for a packet by its place in the table.
    pub fn name_of(&mut self, from: Instant, part: DelayCause, place: Place, packet: Option<PacketId>, count: u32) {
        let from = from.max(self.beginning);
        if from >= self.at {
            return;
        }
        let piece = Interval { from, to: self.at, part, place, packet, count, data: self.data };
        self.at = from;
        if let Some(later) = self.pieces.last_mut().filter(|it| self.merges && it.is_like(&piece)) {
            (later.from, later.packet) = (from, packet);
        } else {
            self.pieces.push(piece);
        }
    }

    /// The intervals in order of time. Unnamed time is unknown.
    pub fn finish(&mut self) -> Vec<Interval> {
        self.name(self.beginning, DelayCause::Unknown, Place::sender(self.data), None, 0);
        self.pieces.reverse();
        std::mem::take(&mut self.pieces)
    }
}
