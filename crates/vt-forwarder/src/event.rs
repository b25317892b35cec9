//! The kernel's events about packets.

use crate::wire::{Wire, read_bytes, write_bytes};
use alloc::vec::Vec;
use crosswind_packet::{Headers, Sending, Waker};
use crosswind_path::{Cause, Packet, Side};
use crosswind_units::{Bytes, Instant};

/// An event. A packet leaves with the token it entered with, [`Packet::buffer`].
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)] // the types name the fields
pub enum Event<'a> {
    /// A host sent a packet into the path, acting upon `waker`; `sending` for TCP, `dropped` if the path dropped it on entry, `bytes` if wanted.
    Entered {
        side: Side,
        at: Instant,
        token: u32,
        size: Bytes,
        headers: Headers,
        sending: Option<Sending>,
        waker: Option<Waker>,
        dropped: Option<Cause>,
        bytes: &'a [u8],
    },
    /// A packet was offered to the receiver's device, `taken` or not.
    Left { side: Side, packet: Packet, at: Instant, taken: bool },
    /// The path dropped a packet.
    Dropped { side: Side, packet: Packet, cause: Cause },
    /// The path copied a packet.
    Duplicated { side: Side },
    /// A background packet has left the path, or was dropped for a cause.
    Background { side: Side, packet: Packet, cause: Option<Cause> },
    /// The path sent an ICMP message to the host sending in direction `side`.
    Icmp { side: Side, at: Instant, taken: bool, bytes: &'a [u8] },
    /// A packet was still in the path at the end.
    Rest { side: Side, packet: Packet },
    /// The last event: host packets still inside, background packets entered; forward, reverse.
    Ended { queued: [u64; 2], background: [u64; 2] },
}

/// Writes values one after the other.
macro_rules! put {
    ($to:ident: $($value:expr),*) => { $($value.write($to);)* };
}

impl Event<'_> {
    pub(crate) fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::Entered { side, at, token, size, headers, sending, waker, dropped, bytes } => {
                put!(to: 0_u8, side, at, token, size, headers, sending, waker);
                dropped.write(to);
                write_bytes(bytes, to);
            }
            Self::Left { side, packet, at, taken } => {
                put!(to: 1_u8, side, packet, at, taken);
            }
            Self::Dropped { side, packet, cause } => {
                put!(to: 2_u8, side, packet, cause);
            }
            Self::Duplicated { side } => {
                put!(to: 3_u8, side);
            }
            Self::Background { side, packet, cause } => {
                put!(to: 4_u8, side, packet, cause);
            }
            Self::Icmp { side, at, taken, bytes } => {
                put!(to: 5_u8, side, at, taken);
                write_bytes(bytes, to);
            }
            Self::Rest { side, packet } => {
                put!(to: 6_u8, side, packet);
            }
            Self::Ended { queued, background } => {
                7_u8.write(to);
                queued.iter().chain(background).for_each(|count| count.write(to));
            }
        }
    }
}

/// A log chunk's events, in order.
#[derive(Clone, Debug)]
pub struct Events<'a>(&'a [u8]);

impl<'a> Events<'a> {
    /// Reads the kernel's bytes.
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The unread rest; not empty at the end if it is no event.
    pub const fn rest(&self) -> &'a [u8] {
        self.0
    }

    fn read(from: &mut &'a [u8]) -> Option<Event<'a>> {
        let kind = u8::read(from)?;
        if kind == 7 {
            let mut pair = || Some([u64::read(from)?, u64::read(from)?]);
            return Some(Event::Ended { queued: pair()?, background: pair()? });
        }
        let side = Side::read(from)?;
        Some(match kind {
            0 => Event::Entered {
                side,
                at: Wire::read(from)?,
                token: Wire::read(from)?,
                size: Wire::read(from)?,
                headers: Wire::read(from)?,
                sending: Wire::read(from)?,
                waker: Wire::read(from)?,
                dropped: Wire::read(from)?,
                bytes: read_bytes(from)?,
            },
            1 => Event::Left { side, packet: Wire::read(from)?, at: Wire::read(from)?, taken: Wire::read(from)? },
            2 => Event::Dropped { side, packet: Wire::read(from)?, cause: Wire::read(from)? },
            3 => Event::Duplicated { side },
            4 => Event::Background { side, packet: Wire::read(from)?, cause: Wire::read(from)? },
            5 => Event::Icmp { side, at: Wire::read(from)?, taken: Wire::read(from)?, bytes: read_bytes(from)? },
            6 => Event::Rest { side, packet: Wire::read(from)? },
            _ => return None,
        })
    }
}

impl<'a> Iterator for Events<'a> {
    type Item = Event<'a>;

    fn next(&mut self) -> Option<Event<'a>> {
        let mut rest = self.0;
        let event = Self::read(&mut rest)?;
        self.0 = rest;
        Some(event)
    }
}
