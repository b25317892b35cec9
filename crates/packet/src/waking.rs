//! A packet's cause at its sender, by its kernel (`kernel/files/include/linux/cause.h`).

use crosswind_path::Side;
use crosswind_units::Instant;

/// The sending thread's last waker, or its last read packet: directly, or through other threads on its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waker {
    /// A delivered packet.
    Packet(Place),
    /// A timer.
    Timer(Timer),
}

/// A packet's place in the packet table: direction and index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place(pub Side, pub u64);

/// A timer and its thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Timer {
    /// The thread's name; empty once it has ended.
    pub thread: ThreadName,
    /// The beginning of its sleep, or of several in a row.
    pub since: Option<Instant>,
    /// The packet it had acted upon before.
    pub before: Option<Place>,
}

/// A thread's name in Linux.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(transparent)]
pub struct ThreadName(pub [u8; 16]);

impl ThreadName {
    /// As text; empty for an ended thread.
    pub fn as_str(&self) -> &str {
        let length = self.0.iter().position(|&byte| byte == 0).unwrap_or(self.0.len());
        core::str::from_utf8(&self.0[..length]).unwrap_or("?")
    }
}

const PACKET: u64 = 1 << 63;
const REVERSE: u64 = 1 << 62;
const TIMER: u64 = 1 << 61;

impl Place {
    /// As the kernel numbers it.
    pub const fn number(self) -> u64 {
        PACKET | self.1 | if matches!(self.0, Side::Reverse) { REVERSE } else { 0 }
    }

    /// From the kernel's number; none for a timer's.
    pub fn from_number(number: u64) -> Option<Self> {
        let side = if number & REVERSE > 0 { Side::Reverse } else { Side::Forward };
        (number & PACKET > 0).then_some(Self(side, number & !(PACKET | REVERSE)))
    }
}

impl Waker {
    /// From the kernel's number, and facts about a timer; none for 0, and for a timer without a thread.
    pub fn from_number(number: u64, timer: Timer) -> Option<Self> {
        let packet = Place::from_number(number).map(Self::Packet);
        packet.or_else(|| (number > TIMER).then_some(Self::Timer(timer)))
    }
}
