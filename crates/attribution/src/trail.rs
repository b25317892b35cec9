//! The way back from the end of a leg to its beginning, piece by piece.

use crate::Part;
use crosswind_ledger::PacketRecord;
use crosswind_path::Side;
use crosswind_units::Instant;

/// A piece of time that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// When it began.
    pub from: Instant,
    /// When it ended, and the next one began.
    pub to: Instant,
    /// What it was spent on.
    pub part: Part,
    /// The packet that it is about: which was in the path, was sent again, or had to wait.
    pub packet: Option<PacketId>,
    /// Of a timer, how often it had expired in a row; else 0.
    pub count: u32,
}

/// A packet of the packet table.
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

/// What a wait is for, and where the time of packets in the path is to go while it lasts.
pub type Wait = Option<Part>;

/// Pieces from the end of a leg back to its beginning. Each begins where the one before it ended, so that together they are
/// the leg, whatever they are.
pub struct Trail {
    beginning: Instant,
    /// Up to where time has its names.
    at: Instant,
    pieces: Vec<Piece>,
}

impl Trail {
    pub fn new(beginning: Instant, end: Instant) -> Self {
        Self { beginning, at: end, pieces: Vec::new() }
    }

    /// Whether time has its names down to the beginning.
    pub fn is_done(&self) -> bool {
        self.at <= self.beginning
    }

    /// Where the trail is.
    pub const fn at(&self) -> Instant {
        self.at
    }

    pub const fn beginning(&self) -> Instant {
        self.beginning
    }

    /// Names the time from `from` to where the trail is.
    pub fn name(&mut self, from: Instant, part: Part, packet: Option<&PacketRecord>, count: u32) {
        let from = from.max(self.beginning);
        if from >= self.at {
            return;
        }
        self.pieces.push(Piece { from, to: self.at, part, packet: packet.map(PacketId::from), count });
        self.at = from;
    }

    /// The pieces in the order of time. What has no name yet is unknown.
    pub fn finish(mut self) -> Vec<Piece> {
        self.name(self.beginning, Part::Unknown, None, 0);
        self.pieces.reverse();
        self.pieces
    }
}
