//! A packet's record: what it was, when it entered, when it was due, when it left, and what became of it.

use crate::Headers;
use crosswind_path::{Cause, Side};
use crosswind_units::{Bytes, Instant};

/// A packet, from its entry to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketRecord {
    /// Its direction.
    pub side: Side,
    /// Its position in that direction, from 0.
    pub index: u64,
    /// Its size on the IP layer.
    pub size: Bytes,
    /// What its headers say.
    pub headers: Headers,
    /// When it entered the path.
    pub entered: Instant,
    /// When it was due to leave, or was dropped: the path's nominal time.
    pub due: Instant,
    /// When it was written to the receiver's device; `None` if it never was.
    pub left: Option<Instant>,
    /// What became of it.
    pub verdict: Verdict,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The receiver's device took it.
    Delivered,
    /// It was dropped.
    Dropped(DropCause),
    /// It was still in the path when the cell ended.
    Queued,
}

impl Verdict {
    /// As stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Delivered => "delivered",
            Self::Dropped(_) => "dropped",
            Self::Queued => "queued",
        }
    }

    /// Why it was dropped, if it was.
    pub const fn cause(self) -> Option<DropCause> {
        match self {
            Self::Dropped(cause) => Some(cause),
            Self::Delivered | Self::Queued => None,
        }
    }
}

/// What dropped a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DropCause {
    /// The emulated network, as configured.
    Path(Cause),
    /// A host's device, which was not meant to.
    Device,
}

impl DropCause {
    /// As stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Path(cause) => cause.name(),
            Self::Device => "device",
        }
    }
}
