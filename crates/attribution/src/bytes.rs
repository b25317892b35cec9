//! A stream of bytes on its way: which transmissions carried which of its bytes, and how far the receiver had all of them.

use crosswind_units::Instant;
use std::collections::BTreeMap;
use std::ops::Range;

/// Bytes that one host sent to the other. Transmissions are numbers of the caller's, which grow in the order of sending.
#[derive(Default)]
pub struct ByteStream {
    /// Transmissions with bytes that were not sent before, and those bytes.
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
    /// The byte that was missing until then.
    pub missing: u64,
    /// What brought it.
    pub send: usize,
}

/// What a receiver waited for.
pub enum Awaited {
    /// A byte that came later, and what brought it.
    Came { byte: u64, send: usize },
    /// A byte that never came: its first transmission, and its last by then.
    Lost { byte: u64, first: usize, last: usize },
    /// More than had been sent by then: what was sent next, if anything was.
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

    /// Follows what the receiver had, of arrivals in their order. All transmissions have been added.
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

    /// Whenever the receiver had more, in the order of time.
    pub fn advances(&self) -> &[Advance] {
        &self.advances
    }

    /// What made the receiver have all that it had at `at`.
    pub fn completion(&self, at: Instant) -> Option<&Advance> {
        self.advances[..self.advances.partition_point(|it| it.at <= at)].last()
    }

    /// What the receiver waited for at `at`; `was_sent` tells of each transmission whether it was one by then.
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

    /// What made the receiver have all bytes up to `end`.
    pub fn completion_of(&self, end: u64) -> Option<&Advance> {
        if end > self.received {
            return None;
        }
        self.advances[..self.advances.partition_point(|it| it.missing < end)].last()
    }

    /// The transmission that sent a byte for the first time.
    pub fn first_with(&self, byte: u64) -> Option<usize> {
        let first = &self.firsts[self.firsts.partition_point(|it| it.end <= byte)..].first()?;
        (first.start <= byte).then_some(first.send as usize)
    }

    /// Later transmissions with bytes of a first one.
    pub fn again(&self, first: usize) -> impl Iterator<Item = usize> {
        let from = self.again.partition_point(|it| (it.0 as usize) < first);
        let of_first = self.again[from..].iter().take_while(move |it| it.0 as usize == first);
        of_first.map(|it| it.1 as usize)
    }

    /// Whether nothing was sent twice.
    pub const fn is_sent_once(&self) -> bool {
        self.again.is_empty()
    }

    /// The first byte that was sent for the first time by `from` or later, as `from` is told for each transmission.
    pub fn first_byte(&self, is_before: impl Fn(usize) -> bool) -> Option<u64> {
        let from = self.firsts.partition_point(|it| is_before(it.send as usize));
        self.firsts.get(from).map(|it| it.start)
    }

    /// Which of some bytes was there last, when, and what brought it, as `arrived` tells for each transmission.
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
