//! Values as bytes, one after the other, without names.

use alloc::vec::Vec;
use crosswind_packet::{Headers, Hold, Place, Sending, TcpOptions, ThreadName, Timer, Trigger, Waker};
use crosswind_path::{Cause, DirectionConfig, Ecn, Packet, Side, TimeSpent};
use crosswind_units::{Bytes, Duration, Instant};

/// A value with a binary form.
pub trait Wire: Sized {
    fn write(&self, to: &mut Vec<u8>);

    /// Takes a value from the beginning of `from`; `None` without one.
    fn read(from: &mut &[u8]) -> Option<Self>;
}

macro_rules! integers {
    ($($type:ty),*) => { $(
        impl Wire for $type {
            fn write(&self, to: &mut Vec<u8>) {
                to.extend_from_slice(&self.to_le_bytes());
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                let (bytes, rest) = from.split_first_chunk()?;
                *from = rest;
                Some(Self::from_le_bytes(*bytes))
            }
        }
    )* };
}

macro_rules! fields {
    ($($type:ident { $($field:ident),* $(,)? })*) => { $(
        impl Wire for $type {
            fn write(&self, to: &mut Vec<u8>) {
                $(self.$field.write(to);)*
            }

            fn read(from: &mut &[u8]) -> Option<Self> {
                Some(Self { $($field: Wire::read(from)?),* })
            }
        }
    )* };
}

integers!(u8, u16, u32, u64);

fields! {
    TimeSpent { propagation, serialisation, queueing, jitter }
    TcpOptions { window_shift, largest_segment, sack_permitted, has_sack }
    Headers {
        version, protocol, source_port, destination_port, payload_bytes, flags, sequence, acknowledgement, window, options, ecn,
    }
    Packet {
        index, size, entered, at, buffer, flow, source, destination, dscp, ecn, marked_in, copy, flipped_bit, hop, pair, told_mtu,
        is_light, is_background, spent,
    }
}

impl Wire for bool {
    fn write(&self, to: &mut Vec<u8>) {
        u8::from(*self).write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some(u8::read(from)? != 0)
    }
}

impl<T: Wire> Wire for Option<T> {
    fn write(&self, to: &mut Vec<u8>) {
        self.is_some().write(to);
        if let Some(value) = self {
            value.write(to);
        }
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::read(from)? { Some(T::read(from)?) } else { None })
    }
}

impl Wire for Instant {
    fn write(&self, to: &mut Vec<u8>) {
        self.as_nanos().write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        u64::read(from).map(Self::from_nanos)
    }
}

impl Wire for Duration {
    fn write(&self, to: &mut Vec<u8>) {
        self.as_nanos().write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        u64::read(from).map(Self::from_nanos)
    }
}

impl Wire for Bytes {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        u64::read(from).map(Self)
    }
}

impl Wire for Side {
    fn write(&self, to: &mut Vec<u8>) {
        (*self == Self::Reverse).write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some(if bool::read(from)? { Self::Reverse } else { Self::Forward })
    }
}

impl Wire for Ecn {
    fn write(&self, to: &mut Vec<u8>) {
        let bits: u8 = match self {
            Self::NotCapable => 0b00,
            Self::Ect1 => 0b01,
            Self::Ect0 => 0b10,
            Self::Marked => 0b11,
        };
        bits.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        u8::read(from).map(Self::from_bits)
    }
}

impl Wire for Sending {
    fn write(&self, to: &mut Vec<u8>) {
        (self.trigger as u8 + 1).write(to);
        self.held_by.map_or(0, |hold| hold as u8 + 1).write(to);
        self.held_since.write(to);
        self.written.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let trigger = Trigger::from_number(u8::read(from)?)?;
        let held_by = Hold::from_number(u8::read(from)?);
        Some(Self { trigger, held_by, held_since: Wire::read(from)?, written: Wire::read(from)? })
    }
}

impl Wire for Place {
    fn write(&self, to: &mut Vec<u8>) {
        (self.0, self.1).write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let (side, index) = Wire::read(from)?;
        Some(Self(side, index))
    }
}

impl Wire for Waker {
    fn write(&self, to: &mut Vec<u8>) {
        match self {
            Self::Packet(place) => {
                false.write(to);
                place.write(to);
            }
            Self::Timer(Timer { thread, since, before }) => {
                true.write(to);
                to.extend_from_slice(&thread.0);
                since.write(to);
                before.write(to);
            }
        }
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        if !bool::read(from)? {
            return Wire::read(from).map(Self::Packet);
        }
        let (thread, rest) = from.split_first_chunk()?;
        *from = rest;
        Some(Self::Timer(Timer { thread: ThreadName(*thread), since: Wire::read(from)?, before: Wire::read(from)? }))
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn write(&self, to: &mut Vec<u8>) {
        self.0.write(to);
        self.1.write(to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        Some((A::read(from)?, B::read(from)?))
    }
}

impl Wire for Cause {
    fn write(&self, to: &mut Vec<u8>) {
        write_bytes(self.name().as_bytes(), to);
    }

    fn read(from: &mut &[u8]) -> Option<Self> {
        let name = read_bytes(from)?;
        DirectionConfig::drop_causes().into_iter().find(|cause| cause.name().as_bytes() == name)
    }
}

pub fn write_bytes(bytes: &[u8], to: &mut Vec<u8>) {
    (bytes.len() as u32).write(to);
    to.extend_from_slice(bytes);
}

pub fn read_bytes<'a>(from: &mut &'a [u8]) -> Option<&'a [u8]> {
    let length = u32::read(from)? as usize;
    let (bytes, rest) = from.split_at_checked(length)?;
    *from = rest;
    Some(bytes)
}
