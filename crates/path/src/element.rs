//! One packet-processing stage, and what passes through it.

use crosswind_units::{Bytes, Duration, Instant};

/// A packet on its way. Copied freely: the bytes stay with whoever owns `buffer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Position in its direction, from 0: the key of every random decision about it.
    pub index: u64,
    /// Size on the IP layer.
    pub size: Bytes,
    /// When it entered the path.
    pub entered: Instant,
    /// When it left the stage it was last in. This is the nominal time, not the time at which the stage was polled,
    /// so that late polling of one stage delays no other.
    pub at: Instant,
    /// The owner's token for the bytes.
    pub buffer: u32,
    /// What the time from `entered` to `at` was spent on.
    pub spent: TimeSpent,
}

/// What a packet's time in the path was spent on. Each element adds its own part; together the parts are `at - entered`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeSpent {
    /// In flight: the same for every packet.
    pub propagation: Duration,
    /// Being put on the wire, bit by bit.
    pub serialisation: Duration,
    /// Waiting behind other packets.
    pub queueing: Duration,
    /// Held back for some other reason, for some packets longer than for others.
    pub jitter: Duration,
}

impl TimeSpent {
    /// All parts together.
    pub fn total(self) -> Duration {
        self.propagation + self.serialisation + self.queueing + self.jitter
    }
}

impl Packet {
    /// A packet that enters the path at `now`.
    pub fn entering(index: u64, size: Bytes, now: Instant, buffer: u32) -> Self {
        Self { index, size, entered: now, at: now, buffer, spent: TimeSpent::default() }
    }

    /// The packet once it has been in flight for `time`.
    #[must_use]
    pub fn after_propagation(self, time: Duration) -> Self {
        let propagation = self.spent.propagation + time;
        Self { at: self.at + time, spent: TimeSpent { propagation, ..self.spent }, ..self }
    }

    /// The packet once it has been transmitted for `time`.
    #[must_use]
    pub fn after_transmission(self, time: Duration) -> Self {
        let serialisation = self.spent.serialisation + time;
        Self { at: self.at + time, spent: TimeSpent { serialisation, ..self.spent }, ..self }
    }

    /// The packet once it has waited behind others until `end`.
    #[must_use]
    pub fn after_queueing(self, end: Instant) -> Self {
        let queueing = self.spent.queueing + end.saturating_since(self.at);
        Self { at: end, spent: TimeSpent { queueing, ..self.spent }, ..self }
    }

    /// The packet once it has been held back for `time`.
    #[must_use]
    pub fn after_jitter(self, time: Duration) -> Self {
        let jitter = self.spent.jitter + time;
        Self { at: self.at + time, spent: TimeSpent { jitter, ..self.spent }, ..self }
    }
}

/// Why a packet was dropped. Each element that drops packets names its own causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cause(&'static str);

impl Cause {
    /// A cause with the field's word for it.
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The word, as stored.
    pub const fn name(self) -> &'static str {
        self.0
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

impl Departure {
    /// The packet, whether it was forwarded or dropped.
    pub const fn packet(&self) -> &Packet {
        match self {
            Self::Forwarded(packet) | Self::Dropped(packet, _) => packet,
        }
    }
}

/// One packet-processing stage (the word is Click's).
///
/// Calls come in the order of time. A packet given to `handle_packet` comes out of `poll_packet` exactly once, and says in
/// `spent` what the stage did with its time.
pub trait Element: Send {
    /// Takes a packet that arrives at `now`, which is its `at`.
    fn handle_packet(&mut self, now: Instant, packet: Packet);

    /// Hands out what has left this stage by `now`, one packet a call, in the order of leaving.
    fn poll_packet(&mut self, now: Instant) -> Option<Departure>;

    /// When `poll_packet` will next have something, if nothing arrives before.
    fn next_wakeup(&self) -> Option<Instant>;

    /// Packets inside.
    fn queued(&self) -> usize;
}
