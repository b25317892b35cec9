//! One packet-processing stage, and its packets.

use alloc::boxed::Box;
use crosswind_units::{Bytes, Duration, Instant, Seed};

/// The IP header's congestion bits (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The sender does not take marks: 00.
    #[default]
    NotCapable,
    /// The sender takes L4S marks (RFC 9331): 01.
    Ect1,
    /// The sender takes marks: 10.
    Ect0,
    /// Marked: congestion experienced, 11.
    Marked,
}

impl Ecn {
    /// From the two lowest bits: IPv4's type of service, or IPv6's traffic class.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            0b11 => Self::Marked,
            _ => Self::NotCapable,
        }
    }
}

/// A packet's own description when it enters the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Size on the IP layer.
    pub size: Bytes,
    /// A hash over protocol and ports, equal for all packets of a flow.
    pub flow: u32,
    /// Identifies the source address.
    pub source: u32,
    /// Identifies the destination address.
    pub destination: u32,
    /// Differentiated services codepoint (RFC 2474), 6 bits.
    pub dscp: u8,
    /// Whether it may be marked.
    pub ecn: Ecn,
    /// The owner's token for the bytes.
    pub buffer: u32,
    /// Its pair of hosts; 0: the first.
    pub pair: u8,
}

/// A packet on its way. Copied freely: the bytes stay with whoever owns `buffer`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Position in its direction, from 0: the key for all its random decisions.
    pub index: u64,
    /// Size on the IP layer.
    pub size: Bytes,
    /// When it entered the path.
    pub entered: Instant,
    /// Departure from the latest stage: nominal, not the time of the poll, so late polling in one stage delays no
    /// other.
    pub at: Instant,
    /// The owner's token for the bytes.
    pub buffer: u32,
    /// A hash over protocol and ports, equal for all packets of a flow.
    pub flow: u32,
    /// Identifies the source address.
    pub source: u32,
    /// Identifies the destination address.
    pub destination: u32,
    /// Differentiated services codepoint (RFC 2474), 6 bits.
    pub dscp: u8,
    /// The congestion bits, marks by elements included.
    pub ecn: Ecn,
    /// The hop that marked it, if any.
    pub marked_in: Option<u8>,
    /// 0 for an original; each copy has its own number.
    pub copy: u16,
    /// The bit to flip when it leaves, counted from the first.
    pub flipped_bit: Option<u32>,
    /// Its present or latest hop, counted from the client's.
    pub hop: u8,
    /// Its pair of hosts; 0: the first.
    pub pair: u8,
    /// If dropped for its size: the MTU in the ICMP message to its sender.
    pub told_mtu: Option<u32>,
    /// Whether a light delivery carried it past a link with a trace and an empty queue.
    pub is_light: bool,
    /// Whether it is background traffic, without a host at either end. Its index is its position there.
    pub is_background: bool,
    /// The time from `entered` to `at`, by cause.
    pub spent: TimeSpent,
}

/// A packet's time in the path, by cause. Each element adds its own part; together the parts are `at - entered`.
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

/// Above any copy's number.
const BACKGROUND: u64 = 1 << 16;

impl Packet {
    /// A packet entering the path at `now`.
    pub fn entering(index: u64, now: Instant, arrival: Arrival) -> Self {
        let Arrival { size, flow, source, destination, dscp, ecn, buffer, pair } = arrival;
        let spent = TimeSpent::default();
        Self {
            index,
            size,
            entered: now,
            at: now,
            buffer,
            flow,
            source,
            destination,
            dscp,
            ecn,
            marked_in: None,
            copy: 0,
            flipped_bit: None,
            hop: 0,
            pair,
            told_mtu: None,
            is_light: false,
            is_background: false,
            spent,
        }
    }

    /// Its copy made in the present hop.
    #[must_use]
    pub(crate) const fn copied(self) -> Self {
        // A hop makes at most one copy of a packet, so copies' numbers differ.
        Self { copy: self.copy | 1 << self.hop, ..self }
    }

    /// Its word from `seed`: the one at its index; a copy or a background packet has its own.
    pub const fn word(&self, seed: Seed) -> u64 {
        let word = seed.word(self.index);
        if self.is_background {
            return Seed(word).word(BACKGROUND);
        }
        if self.copy == 0 { word } else { Seed(word).word(self.copy as u64) }
    }

    /// The packet on a clock showing `origin` at this one's zero.
    #[must_use]
    pub(crate) fn shifted(&self, origin: Instant) -> Self {
        let shifted = |time: Instant| origin + (time - Instant::ZERO);
        Self { entered: shifted(self.entered), at: shifted(self.at), ..*self }
    }

    /// Lets it be in flight for `time`.
    pub fn propagate(&mut self, time: Duration) {
        self.at += time;
        self.spent.propagation += time;
    }

    /// Lets it be transmitted for `time`.
    pub fn transmit(&mut self, time: Duration) {
        self.at += time;
        self.spent.serialisation += time;
    }

    /// Lets it wait behind others until `end`.
    pub fn queue_until(&mut self, end: Instant) {
        self.spent.queueing += end.saturating_since(self.at);
        self.at = end;
    }

    /// Holds it back until `end`, unless past.
    pub fn hold_until(&mut self, end: Instant) {
        self.hold(end.saturating_since(self.at));
    }

    /// Holds it back for `time`.
    pub fn hold(&mut self, time: Duration) {
        self.at += time;
        self.spent.jitter += time;
    }
}

/// Why a packet was dropped. Each element names its own causes.
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

/// How a packet leaves the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// On to the next stage, at `packet.at`.
    Forwarded(Packet),
    /// From a direction: this copy was made. It leaves by itself, later, and shares the buffer.
    Duplicated(Packet),
    /// Out of the network, at `packet.at`.
    Dropped(Packet, Cause),
}

impl Departure {
    /// The packet, whether it was forwarded or dropped.
    pub const fn packet(&self) -> &Packet {
        match self {
            Self::Forwarded(packet) | Self::Duplicated(packet) | Self::Dropped(packet, _) => packet,
        }
    }
}

/// A packet's departure from a stage where it stayed. Boxed, so a stage moves a pointer instead of a packet.
#[derive(Debug)]
pub enum Leaving {
    /// On to the next stage, at `packet.at`.
    Forwarded(Box<Packet>),
    /// Out of the network, at `packet.at`.
    Dropped(Box<Packet>, Cause),
}

impl Leaving {
    /// The packet, whether it was forwarded or dropped.
    pub const fn packet(&self) -> &Packet {
        match self {
            Self::Forwarded(packet) | Self::Dropped(packet, _) => packet,
        }
    }
}

/// A stage's decision about an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on at once.
    Passes,
    /// It goes on at once, and a copy right behind it.
    Duplicates,
    /// It leaves the network at once.
    Drops(Cause),
    /// The stage has taken it: it comes out of `poll_packet`.
    Stays,
}

/// One packet-processing stage (the word is Click's).
///
/// Calls come in order of time. An arriving packet is judged: it goes on at once, or it stays. A staying packet is
/// given to `handle_packet` and comes out of `poll_packet` exactly once, with the stage's time in `spent`. A stage
/// without staying packets has `judge_packet` alone; one where every packet stays has the other three.
pub trait Element: Send {
    /// Judges a packet arriving at `packet.at`, and changes it if it goes on at once.
    fn judge_packet(&mut self, _packet: &mut Packet) -> Outcome {
        Outcome::Stays
    }

    /// Takes a packet just judged to stay.
    #[allow(clippy::boxed_local)] // whoever takes packets keeps the box
    fn handle_packet(&mut self, _packet: Box<Packet>) {}

    /// The next packet to leave this stage by `now`, in the order of leaving.
    fn poll_packet(&mut self, _now: Instant) -> Option<Leaving> {
        None
    }

    /// When `poll_packet` will next have something, if nothing arrives before. It has nothing earlier.
    fn next_wakeup(&self) -> Option<Instant> {
        None
    }

    /// Packets inside.
    fn queued(&self) -> usize {
        0
    }

    /// Background packets sent so far; none if it never sends any.
    fn background(&self) -> Option<u64> {
        None
    }

    /// Sends no more background packets.
    fn end_background(&mut self) {}

    /// Whether background packets go through it, and not only up to it.
    fn carries_background(&self) -> bool {
        true
    }
}
