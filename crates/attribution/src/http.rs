//! HTTP over TCP: messages' bytes, their socket writes, and HTTP/2 flow control's delays (RFC 9113, section 5.2).

use crate::DelayCause;
use crate::bytes::ByteStream;
use crosswind_ledger::{HttpEnd, HttpFrame, HttpWrite};
use crosswind_units::{Duration, Instant};
use std::collections::HashMap;
use std::ops::Range;

/// An end's initial window for a stream, and for all together (RFC 9113, section 6.9.2).
const FIRST_WINDOW: u64 = 65_535;

/// One connection end's writes.
pub struct Http<'a> {
    writes: &'a [HttpWrite],
    /// Positions in `writes`.
    by_stream: HashMap<u64, Vec<u32>>,
    /// For each write, the flow-controlled bytes so far, of its stream and of all streams.
    counted: Vec<[u64; 2]>,
    /// The other end's window updates, in order of time.
    opened: Vec<Opened>,
}

/// The other end took more.
#[derive(Clone, Copy)]
pub struct Opened {
    /// When this end knew.
    pub at: Instant,
    /// The other end's transmission that brought it, and the byte missing until then.
    pub send: usize,
    pub missing: u64,
    /// The stream; 0: all together.
    stream: u64,
    /// How much it had taken before.
    before: u64,
}

impl<'a> Http<'a> {
    /// `other` has the other end's writes, as they arrived.
    pub fn new(end: &'a HttpEnd, other: Option<(&HttpEnd, &ByteStream)>) -> Self {
        let mut by_stream: HashMap<u64, Vec<u32>> = HashMap::new();
        let (mut counted, mut all, mut of_stream) = (Vec::new(), 0, HashMap::new());
        for (write, at) in end.writes.iter().zip(0..) {
            by_stream.entry(write.stream).or_default().push(at);
            let own: &mut u64 = of_stream.entry(write.stream).or_default();
            if let HttpFrame::Data(bytes) = write.frame {
                *own += u64::from(bytes);
                all += u64::from(bytes);
            }
            counted.push([*own, all]);
        }
        let opened = other.map(|(other, arrived)| opened(&other.writes, arrived)).unwrap_or_default();
        Self { writes: &end.writes, by_stream, counted, opened }
    }

    /// A stream's bytes in order of writing, as far as gapless (`had`). A message's end frame may come after it.
    pub fn bytes_of(&self, stream: u64, had: impl Fn(u64) -> bool) -> Vec<Range<u64>> {
        let mut ranges: Vec<Range<u64>> = Vec::new();
        let all = self.by_stream.get(&stream).map(Vec::as_slice).unwrap_or_default();
        let until = all.partition_point(|&write| had(self.writes[write as usize].end));
        for &write in &all[..until] {
            let HttpWrite { start, end, .. } = self.writes[write as usize];
            match ranges.last_mut() {
                Some(last) if start <= last.end => last.end = end.max(last.end),
                _ => ranges.push(start..end),
            }
        }
        ranges
    }

    /// The write with the byte before `end`.
    pub fn write_up_to(&self, end: u64) -> Option<usize> {
        let write = self.writes.partition_point(|it| it.end < end);
        self.writes.get(write).filter(|it| it.start < end).map(|_| write)
    }

    pub fn at(&self, write: usize) -> Instant {
        self.writes[write].at
    }

    /// Whether a write is its stream's first.
    pub fn begins(&self, write: usize, stream: u64) -> bool {
        self.by_stream.get(&stream).and_then(|all| all.first()).is_some_and(|&first| first as usize == write)
    }

    /// The flow control limit on a write, if the other end updated its window right before.
    pub fn held(&self, write: usize, promptness: Duration) -> Option<(DelayCause, Opened)> {
        let HttpWrite { at, stream, .. } = self.writes[write];
        let [own, all] = self.counted[write];
        let until = self.opened.partition_point(|it| it.at <= at);
        let mut recent = self.opened[..until].iter().rev().take_while(|it| at.saturating_since(it.at) <= promptness);
        recent.find_map(|opened| match opened.stream {
            0 if all > opened.before => Some((DelayCause::ConnectionWindow, *opened)),
            of if of == stream && own > opened.before => Some((DelayCause::StreamWindow, *opened)),
            _ => None,
        })
    }
}

/// An end's window updates, as they arrived at the other.
fn opened(writes: &[HttpWrite], arrived: &ByteStream) -> Vec<Opened> {
    let (mut first, mut more) = (FIRST_WINDOW, HashMap::<u64, u64>::new());
    let mut all = Vec::new();
    for write in writes {
        match write.frame {
            HttpFrame::InitialWindow(bytes) => first = bytes.into(),
            HttpFrame::WindowUpdate(bytes) => {
                let Some(known) = arrived.completion_of(write.end) else { break };
                let given = more.entry(write.stream).or_default();
                let before = *given + if write.stream == 0 { FIRST_WINDOW } else { first };
                *given += u64::from(bytes);
                all.push(Opened {
                    at: known.at,
                    send: known.send,
                    missing: known.missing,
                    stream: write.stream,
                    before,
                });
            }
            HttpFrame::Data(_) | HttpFrame::Other => {}
        }
    }
    all
}
