//! One packet-processing stage, and what passes through it.

use alloc::boxed::Box;
use crosswind_units::{Bytes, Duration, Instant, Seed};

/// The two bits of the IP header about congestion (RFC 3168).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The sender does not take marks: 00.
    #[default]
    NotCapable,
    /// The sender takes marks in the way of L4S (RFC 9331): 01.
    Ect1,
    /// The sender takes marks: 10.
    Ect0,
    /// Marked: congestion experienced, 11.
    Marked,
}

impl Ecn {
    /// Of the two lowest bits of `bits`: of IPv4's type of service, or IPv6's traffic class.
    pub const fn from_bits(bits: u8) -> Self {
        match bits & 0b11 {
            0b01 => Self::Ect1,
            0b10 => Self::Ect0,
            0b11 => Self::Marked,
            _ => Self::NotCapable,
        }
    }
}

/// What a packet says of itself when it enters the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Arrival {
    /// Size on the IP layer.
    pub size: Bytes,
    /// A hash of its protocol and ports: packets of one flow have the same.
    pub flow: u32,
    /// Tells the address that sent it from others.
    pub source: u32,
    /// Tells the address that it goes to from others.
    pub destination: u32,
    /// The codepoint of its differentiated service (RFC 2474), of 6 bits.
    pub dscp: u8,
    /// Whether it may be marked.
    pub ecn: Ecn,
    /// The owner's token for the bytes.
    pub buffer: u32,
    /// The pair of hosts between which it goes; 0: the first.
    pub pair: u8,
}

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
    /// A hash of its protocol and ports: packets of one flow have the same.
    pub flow: u32,
    /// Tells the address that sent it from others.
    pub source: u32,
    /// Tells the address that it goes to from others.
    pub destination: u32,
    /// The codepoint of its differentiated service (RFC 2474), of 6 bits.
    pub dscp: u8,
    /// The bits about congestion, with the mark of an element that marked it.
    pub ecn: Ecn,
    /// The hop that has marked it, if one has.
    pub marked_in: Option<u8>,
    /// 0 of a packet that entered the path; of a copy that an element made of it, another number for each copy.
    pub copy: u16,
    /// The bit that is flipped when it leaves, counted from its first one.
    pub flipped_bit: Option<u32>,
    /// Which hop it is in or was last in, counted from the client's.
    pub hop: u8,
    /// The pair of hosts between which it goes; 0: the first.
    pub pair: u8,
    /// Where it was dropped for its size: the largest size that its sender is told by ICMP.
    pub told_mtu: Option<u32>,
    /// Whether it left by a light delivery, so that it passes a link with a trace on which nothing waits.
    pub is_light: bool,
    /// Whether it is of background traffic, which no host has sent or gets. Its index is its position there.
    pub is_background: bool,
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

/// Above the number of any copy.
const BACKGROUND: u64 = 1 << 16;

impl Packet {
    /// A packet that enters the path at `now`.
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

    /// A copy of it that is made in the hop where it is.
    #[must_use]
    pub(crate) const fn copied(self) -> Self {
        // A hop makes one copy of a packet at most, so that no two copies have one number.
        Self { copy: self.copy | 1 << self.hop, ..self }
    }

    /// The word of `seed` that decides about it: that of its index; of a copy or a packet of background traffic, one of its own.
    pub const fn word(&self, seed: Seed) -> u64 {
        let word = seed.word(self.index);
        if self.is_background {
            return Seed(word).word(BACKGROUND);
        }
        if self.copy == 0 { word } else { Seed(word).word(self.copy as u64) }
    }

    /// The packet on a clock that shows `origin` where this one shows zero.
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

    /// Holds it back until `end`, unless that is over.
    pub fn hold_until(&mut self, end: Instant) {
        self.hold(end.saturating_since(self.at));
    }

    /// Holds it back for `time`.
    pub fn hold(&mut self, time: Duration) {
        self.at += time;
        self.spent.jitter += time;
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

/// How a packet leaves the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// On to the next stage, at `packet.at`.
    Forwarded(Packet),
    /// Of a direction: this copy was made. It leaves by itself, after this, and shares the buffer.
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

/// How a packet leaves a stage in which it has been. It is boxed on its way, so that a stage moves a pointer in the place of a packet.
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

/// What a stage does with a packet that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It goes on at once.
    Passes,
    /// It goes on at once, and a copy of it right behind.
    Duplicates,
    /// It leaves the network at once.
    Drops(Cause),
    /// The stage has taken it: it comes out of `poll_packet`.
    Stays,
}

/// One packet-processing stage (the word is Click's).
///
/// Calls come in the order of time. A packet that arrives is judged: it goes on at once, or it stays. A packet that stays is given to
/// `handle_packet` and comes out of `poll_packet` exactly once. It says in `spent` what the stage did with its time. A stage in which no
/// packet stays has `judge_packet` alone, one in which every packet stays has the other three.
pub trait Element: Send {
    /// Judges a packet that arrives at `packet.at`, and changes it where it goes on at once.
    fn judge_packet(&mut self, _packet: &mut Packet) -> Outcome {
        Outcome::Stays
    }

    /// Takes a packet that stays, as `judge_packet` said last.
    #[allow(clippy::boxed_local)] // whoever takes packets keeps the box
    fn handle_packet(&mut self, _packet: Box<Packet>) {}

    /// Hands out what has left this stage by `now`, one packet a call, in the order of leaving.
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

    /// Packets of background traffic that it has sent so far; none where it never sends any.
    fn background(&self) -> Option<u64> {
        None
    }

    /// Sends no packet of its own any more.
    fn end_background(&mut self) {}

    /// Whether packets of background traffic go through it, and not only up to it.
    fn carries_background(&self) -> bool {
        true
    }
}
