//! A byte stream on its way: transmissions with their bytes, and the receiver's gapless progress.

use crosswind_units::Instant;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes from one host to the other. Transmissions are the caller's numbers, growing in sending order.
#[derive(Default)]
pub struct ByteStream {
    /// Transmissions with new bytes, and those bytes.
    firsts: Vec<First>,
    /// First transmissions, and later ones with bytes of theirs.
    again: Vec<(u32, u32)>,
    advances: Vec<Advance>,
    /// Up to where bytes were sent, and were received without a gap.
    sent: u64,
    received: u64,
}

struct First {
    start: u64,
    end: u64,
    send: u32,
}

/// The receiver had more bytes without a gap.
pub struct Advance {
    pub at: Instant,
    /// The byte missing until then.
    pub missing: u64,
    /// The transmission that brought it.
    pub send: usize,
}

/// A receiver's missing byte.
pub enum Awaited {
    /// A byte that came later, and its transmission.
    Came { byte: u64, send: usize },
    /// A byte that never came: its first transmission, and its last by then.
    Lost { byte: u64, first: usize, last: usize },
    /// Bytes unsent by then: the next transmission, if any.
    Unsent(Option<usize>),
}

impl ByteStream {
    /// Bytes begin at `start`.
    pub fn begin(&mut self, start: u64) {
        (self.sent, self.received) = (start, start);
    }

    /// Up to where bytes were sent.
    pub const fn sent(&self) -> u64 {
        self.sent
    }

    /// Adds a transmission.
    pub fn add(&mut self, send: usize, bytes: Range<u64>) {
        if bytes.start < self.sent {
            let from = self.firsts.partition_point(|it| it.end <= bytes.start);
            for first in self.firsts[from..].iter().take_while(|it| it.start < bytes.end) {
                self.again.push((first.send, send as u32));
            }
        }
        if bytes.end > self.sent {
            let start = bytes.start.max(self.sent);
            self.firsts.push(First { start, end: bytes.end, send: send as u32 });
            self.sent = bytes.end;
        }
    }

    /// Follows the receiver's progress over arrivals in order. All transmissions have been added.
    pub fn follow_receiver(&mut self, arrivals: impl IntoIterator<Item = (Instant, usize, Range<u64>)>) {
        self.again.sort_unstable();
        self.again.dedup();
        let mut ahead: BTreeMap<u64, u64> = BTreeMap::new();
        for (at, send, bytes) in arrivals {
            if bytes.start > self.received {
                let known = ahead.entry(bytes.start).or_insert(bytes.end);
                *known = bytes.end.max(*known);
            } else if bytes.end > self.received {
                self.advances.push(Advance { at, missing: self.received, send });
                self.received = bytes.end;
                while let Some(entry) = ahead.first_entry().filter(|it| *it.key() <= self.received) {
                    self.received = entry.remove().max(self.received);
                }
            }
        }
    }

    /// The receiver's advances, in order of time.
    pub fn advances(&self) -> &[Advance] {
        &self.advances
    }

    /// The advance that completed the receiver's bytes at `at`.
    pub fn completion(&self, at: Instant) -> Option<&Advance> {
        self.advances[..self.advances.partition_point(|it| it.at <= at)].last()
    }

    /// The receiver's missing byte at `at`; `was_sent` tells whether a transmission was sent by then.
    pub fn awaited(&self, at: Instant, was_sent: impl Fn(usize) -> bool) -> Awaited {
        let next = self.advances.get(self.advances.partition_point(|it| it.at <= at));
        let byte = next.map_or(self.received, |it| it.missing);
        match (self.first_with(byte), next) {
            (Some(first), Some(next)) if was_sent(first) => Awaited::Came { byte, send: next.send },
            (Some(first), None) if was_sent(first) => Awaited::Lost {
                byte,
                first,
                last: self.again(first).filter(|&it| was_sent(it)).last().unwrap_or(first),
            },
            (first, _) => Awaited::Unsent(first),
        }
    }

    /// The advance to all bytes up to `end`.
    pub fn completion_of(&self, end: u64) -> Option<&Advance> {
        if end > self.received {
            return None;
        }
        self.advances[..self.advances.partition_point(|it| it.missing < end)].last()
    }

    /// A byte's first transmission.
    pub fn first_with(&self, byte: u64) -> Option<usize> {
        let first = &self.firsts[self.firsts.partition_point(|it| it.end <= byte)..].first()?;
        (first.start <= byte).then_some(first.send as usize)
    }

    /// Retransmissions of a first transmission's bytes.
    pub fn again(&self, first: usize) -> impl Iterator<Item = usize> {
        let from = self.again.partition_point(|it| (it.0 as usize) < first);
        let of_first = self.again[from..].iter().take_while(move |it| it.0 as usize == first);
        of_first.map(|it| it.1 as usize)
    }

    /// Whether nothing was sent twice.
    pub const fn is_sent_once(&self) -> bool {
        self.again.is_empty()
    }

    /// The first new byte in the transmissions that are not `is_before`.
    pub fn first_byte(&self, is_before: impl Fn(usize) -> bool) -> Option<u64> {
        let from = self.firsts.partition_point(|it| is_before(it.send as usize));
        self.firsts.get(from).map(|it| it.start)
    }

    /// The latest-arriving among some bytes, with time and transmission; `arrived` tells each transmission's arrival.
    pub fn last_of(
        &self,
        bytes: &Range<u64>,
        arrived: impl Fn(usize) -> Option<Instant>,
    ) -> Option<(Instant, usize, u64)> {
        let from = self.firsts.partition_point(|it| it.end <= bytes.start);
        let firsts = self.firsts[from..].iter().take_while(|it| it.start < bytes.end);
        let brought = firsts.map(|it| {
            let first = it.send as usize;
            let sends = std::iter::once(first).chain(self.again(first));
            let (at, send) = sends.filter_map(|send| Some((arrived(send)?, send))).min()?;
            Some((at, send, it.start.max(bytes.start)))
        });
        brought.collect::<Option<Vec<_>>>()?.into_iter().max_by_key(|it| it.0)
    }
}
