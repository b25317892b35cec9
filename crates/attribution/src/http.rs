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
    window: FlowWindow,
    /// How much it had taken before; for all streams' initial windows of each one.
    before: u64,
    /// How much more it takes.
    more: u64,
    /// How much it takes at a time, at least.
    pub size: u64,
}

/// How long before a write an update may have come.
#[derive(Clone, Copy)]
pub struct Within {
    /// For a window used up to its last byte: nothing could be written before.
    pub full: Duration,
    /// For any other one.
    pub any: Duration,
}

/// A window for flow control.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum FlowWindow {
    /// All streams together.
    Connection,
    Stream(u64),
    /// Each stream's initial one, of SETTINGS.
    Initial,
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

    /// The flow control limit on a program's segment with the bytes `range`, as [`Self::held`].
    /// `sent`: when a byte was sent first.
    pub fn held_segment(
        &self,
        range: Range<u64>,
        at: Instant,
        within: Within,
        sent: impl Fn(u64) -> Option<Instant>,
    ) -> Option<(DelayCause, Opened)> {
        let first = self.writes.partition_point(|it| it.end <= range.start);
        let mut writes = first..self.writes.partition_point(|it| it.start < range.end);
        let written = |it: &HttpWrite| sent(it.end.saturating_sub(1));
        writes.find_map(|write| self.held(write, at, within, written))
    }

    /// The flow control limit on a write at `at`, if the other end updated its window `within` a time before. `written`:
    /// when another write was.
    pub fn held(
        &self,
        write: usize,
        at: Instant,
        within: Within,
        written: impl Fn(&HttpWrite) -> Option<Instant>,
    ) -> Option<(DelayCause, Opened)> {
        let stream = self.writes[write].stream;
        let until = self.opened.partition_point(|it| it.at <= at);
        let passed = |it: usize| at.saturating_since(self.opened[it].at);
        let mut recent = (0..until).rev().take_while(|&it| passed(it) <= within.full.max(within.any));
        recent.find_map(|position| {
            let opened = self.opened[position];
            let (limit, before, counts) = match opened.window {
                FlowWindow::Connection => (DelayCause::ConnectionWindow, opened.before, 1),
                FlowWindow::Stream(of) if of == stream => (DelayCause::StreamWindow, opened.before, 0),
                FlowWindow::Stream(_) => return None,
                FlowWindow::Initial => {
                    let given = |it: &&Opened| it.window == FlowWindow::Stream(stream);
                    let given: u64 = self.opened[..position].iter().filter(given).map(|it| it.more).sum();
                    (DelayCause::StreamWindow, opened.before + given, 0)
                }
            };
            // Where what was allowed before had not been written, the program came later than the window.
            let is_beyond = self.counted[write][counts] > before;
            let last = self.last_within(counts, stream, before);
            let was_written =
                || last.map_or(before == 0, |last| written(&self.writes[last]).is_some_and(|it| it < opened.at));
            let was_full = last.is_some_and(|last| self.counted[last][counts] == before);
            let is_recent = passed(position) <= if was_full { within.full } else { within.any };
            (is_beyond && is_recent && was_written()).then_some((limit, opened))
        })
    }

    /// The last write with flow-controlled bytes within `limit`, of a stream (0) or of all (1).
    fn last_within(&self, counts: usize, stream: u64, limit: u64) -> Option<usize> {
        let is_within = |write: usize| self.counted[write][counts] <= limit;
        let last = if counts == 0 {
            let own = self.by_stream.get(&stream)?;
            own[..own.partition_point(|&it| is_within(it as usize))].last().map(|&it| it as usize)
        } else {
            self.counted.partition_point(|it| it[1] <= limit).checked_sub(1)
        };
        last.filter(|&it| self.counted[it][counts] > 0)
    }
}

/// An end's window updates, as they arrived at the other.
fn opened(writes: &[HttpWrite], arrived: &ByteStream) -> Vec<Opened> {
    let (mut first, mut given) = (FIRST_WINDOW, HashMap::<FlowWindow, u64>::new());
    let mut sizes = HashMap::<FlowWindow, u64>::new();
    let mut all = Vec::new();
    for write in writes {
        let before = first;
        if let HttpFrame::InitialWindow(bytes) = write.frame {
            first = bytes.into();
        }
        let (window, more) = match (write.frame, write.stream) {
            (HttpFrame::WindowUpdate(bytes), 0) => (FlowWindow::Connection, u64::from(bytes)),
            (HttpFrame::WindowUpdate(bytes), stream) => (FlowWindow::Stream(stream), u64::from(bytes)),
            (HttpFrame::InitialWindow(_), _) => (FlowWindow::Initial, first.saturating_sub(before)),
            (HttpFrame::Data(_) | HttpFrame::Other, _) => continue,
        };
        let Some(known) = arrived.completion_of(write.end) else { break };
        if more == 0 {
            continue;
        }
        let given = given.entry(window).or_default();
        let (initial, given_before) = match window {
            FlowWindow::Connection => (FIRST_WINDOW, *given),
            FlowWindow::Stream(_) => (first, *given),
            FlowWindow::Initial => (before, 0),
        };
        let before = initial + given_before;
        let size = sizes.entry(window).or_insert(initial);
        let size_before = *size;
        // An update returns no more than the window: the rest enlarges it.
        if more > *size {
            *size = if *given == 0 { *size + more } else { more };
        }
        *given += more;
        let (at, send, missing) = (known.at, known.send, known.missing);
        all.push(Opened { at, send, missing, window, before, more, size: size_before });
    }
    all
}
