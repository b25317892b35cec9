//! One packet-processing stage, and what passes through it.

use crosswind_units::{Bytes, Instant};

/// A packet on its way. Copied freely: the bytes stay with whoever owns `buffer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Position in its direction, from 0: the key of every random decision about it.
    pub index: u64,
    /// Size on the IP layer.
    pub size: Bytes,
    /// When it entered the path.
    pub entered: Instant,
    /// When it left the stage it was last in. This is the nominal time, not the time at which somebody asked, so that
    /// late polling of one stage delays no other.
    pub at: Instant,
    /// The owner's token for the bytes.
    pub buffer: u32,
}

/// Why a packet was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Cause {
    /// Random loss.
    Loss,
    /// A full queue.
    Queue,
}

impl Cause {
    /// The field's word for it, as stored.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Queue => "queue",
        }
    }
}

/// How a packet leaves a stage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// On to the next stage, at `packet.at`.
    Forwarded(Packet),
    /// Out of the network, at `packet.at`.
    Dropped(Packet, Cause),
}

/// One packet-processing stage (the word is Click's).
///
/// Calls come in the order of time. A packet given to `handle_packet` comes out of `poll_packet` exactly once.
pub trait Element: Send {
    /// Takes a packet that arrives at `now`.
    fn handle_packet(&mut self, now: Instant, packet: Packet);

    /// Hands out what has left this stage by `now`, one packet a call, in the order of leaving.
    fn poll_packet(&mut self, now: Instant) -> Option<Departure>;

    /// When `poll_packet` will next have something, if nothing arrives before.
    fn next_wakeup(&self) -> Option<Instant>;

    /// Packets inside.
    fn queued(&self) -> usize;
}
