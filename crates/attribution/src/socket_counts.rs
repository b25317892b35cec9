//! The kernel's counts for programs' TCP sockets: they bound what is inferred from packets.
//!
//! A kernel tells how long the receiver's window held a sender back, not when. So a wait has this name only if its
//! kernel counted any, and all waits together as much as it counted. For a full send buffer it counts too little (Linux:
//! none where a write is one segment to the kernel); there its size and the congestion window around the wait decide.

use crate::critical_path::Interval;
use crate::{DelayCause, Hosts};
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

/// The kernel's counts for one end of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SocketCounts {
    /// Port at the client's host.
    pub client_port: u16,
    /// Port at the server's host.
    pub server_port: u16,
    /// The direction in which it sends.
    pub side: Side,
    /// When the kernel first told about it.
    pub seen: Instant,
    /// Up to when it is counted; none if its end is.
    pub until: Option<Instant>,
    /// Whether it sends at a pace, if known.
    pub paces: Option<bool>,
    /// The size of its send buffer in the kernel, twice `SO_SNDBUF`, if known.
    pub send_buffer: Option<u64>,
    /// How long the receiver's window held it back; none if it lived too short for the kernel's count.
    pub receive_window_limited: Option<Duration>,
    /// How long a full send buffer did, as far as counted.
    pub send_buffer_limited: Duration,
    /// The congestion window in bytes, in order of time.
    pub congestion_windows: Arc<[(Instant, u64)]>,
    /// How much longer one wait may look: a round trip, and a step in the kernel's count.
    pub tolerance: Duration,
}

impl SocketCounts {
    fn covers(&self, at: Instant) -> bool {
        self.until.is_none_or(|until| at <= until)
    }

    /// Whether bytes in flight were clearly within the congestion window, or clearly not; none if neither. Linux may
    /// leave a third unused, to send more at once (`tcp_tso_win_divisor`).
    fn is_within_window(&self, at: Instant, in_flight: u64) -> Option<bool> {
        let next = self.congestion_windows.partition_point(|it| it.0 < at);
        let before = self.congestion_windows.get(next.checked_sub(1)?)?.1;
        let after = self.congestion_windows.get(next)?.1;
        let (least, most) = (before.min(after), before.max(after));
        match 3 * in_flight {
            triple if triple < 2 * least => Some(true),
            triple if triple >= 2 * most => Some(false),
            _ => None,
        }
    }
}

/// All known counts, by ports.
#[derive(Debug, Default)]
pub struct SocketTable {
    all: HashMap<(u16, u16), Vec<SocketCounts>>,
}

impl FromIterator<SocketCounts> for SocketTable {
    fn from_iter<I: IntoIterator<Item = SocketCounts>>(counts: I) -> Self {
        let mut table = Self::default();
        for counts in counts {
            table.all.entry((counts.client_port, counts.server_port)).or_default().push(counts);
        }
        table
    }
}

impl SocketTable {
    /// Both ends' counts for a connection between two ports, begun at `from`, with another one after it from `next`.
    pub(crate) fn ends(&self, ports: (u16, u16), from: Instant, next: Option<Instant>) -> [Option<SocketCounts>; 2] {
        let all = self.all.get(&ports).map(Vec::as_slice).unwrap_or_default();
        let own = all.iter().filter(|it| it.seen >= from && next.is_none_or(|next| it.seen < next));
        Side::BOTH.map(|side| own.clone().filter(|it| it.side == side).min_by_key(|it| it.seen).cloned())
    }
}

/// What may hold a sender back.
#[derive(Default)]
pub struct Limits {
    pacing: bool,
    /// As it was asked for.
    send_buffer: Option<u64>,
    counts: Option<SocketCounts>,
}

impl Limits {
    pub const fn new(hosts: Hosts) -> Self {
        Self { pacing: hosts.pacing, send_buffer: hosts.send_buffer, counts: None }
    }

    /// The same where the kernel counts this sender's waits.
    pub fn set_counts(&mut self, counts: Option<SocketCounts>) {
        self.pacing = counts.as_ref().and_then(|it| it.paces).unwrap_or(self.pacing);
        self.counts = counts;
    }

    pub const fn paces(&self) -> bool {
        self.pacing
    }

    /// Whether the receiver's window may have held something back until `at`.
    pub fn may_be_receive_window(&self, at: Instant) -> bool {
        self.counted(at).is_none_or(|it| it.receive_window_limited != Some(Duration::ZERO))
    }

    /// Whether it was a full send buffer until `at`. `flight`: bytes in flight when the wait began, and whether they
    /// were all that was written as far as packets tell; `left`: those still in flight when it ended; `ran_out`: whether
    /// acknowledgements released nothing.
    pub fn is_send_buffer(
        &self,
        at: Instant,
        flight: Option<(u64, bool)>,
        left: u64,
        ran_out: impl FnOnce() -> bool,
    ) -> bool {
        let Some((in_flight, is_whole)) = flight else { return false };
        let Some(counts) = self.with_send_buffer(at) else {
            return match self.send_buffer {
                Some(bytes) => is_whole && in_flight >= bytes,
                None => !self.pacing && ran_out(),
            };
        };
        let is_full = counts.send_buffer.is_some_and(|bytes| 2 * in_flight >= bytes);
        let has_counted = counts.send_buffer_limited > Duration::ZERO;
        match counts.is_within_window(at, left) {
            // A paced sender's segments wait as well.
            Some(is_within) => is_within && (is_full || (has_counted || !self.pacing) && ran_out()),
            None => has_counted && (is_full && is_whole || ran_out()),
        }
    }

    /// Whether the send buffer is known for a wait until `at`.
    pub fn knows_send_buffer(&self, at: Instant) -> bool {
        self.with_send_buffer(at).is_some()
    }

    /// None for sockets that lived too short to be listed.
    fn with_send_buffer(&self, at: Instant) -> Option<&SocketCounts> {
        self.counted(at).filter(|it| it.send_buffer.is_some())
    }

    fn counted(&self, at: Instant) -> Option<&SocketCounts> {
        self.counts.as_ref().filter(|it| it.covers(at))
    }

    /// Leaves as much of a connection's time to the receiver's window as the kernel counted. The rest, in its longest
    /// waits, is unknown.
    pub fn bound(&self, pieces: Vec<Interval>) -> Vec<Interval> {
        let Some(counts) = &self.counts else { return pieces };
        let Some(limited) = counts.receive_window_limited else { return pieces };
        let length = |it: &Interval| it.to.saturating_since(it.from).as_nanos();
        let is_window = |it: &Interval| matches!(it.part, DelayCause::ReceiveWindow | DelayCause::ZeroWindow);
        let is_counted = |it: &Interval| is_window(it) && it.data == counts.side && counts.covers(it.to);
        let mut longest: Vec<usize> = (0..pieces.len()).filter(|&it| is_counted(&pieces[it])).collect();
        longest.sort_by_key(|&it| Reverse(length(&pieces[it])));
        let told: u64 = longest.iter().map(|&it| length(&pieces[it])).sum();
        let (counted, tolerance) = (limited.as_nanos(), counts.tolerance.as_nanos());
        let mut excess = told.saturating_sub(counted + tolerance * longest.len() as u64);
        if excess == 0 {
            return pieces;
        }
        let mut unknown: HashMap<usize, Duration> = HashMap::new();
        for it in longest {
            let cut = length(&pieces[it]).saturating_sub(tolerance).min(excess);
            excess -= cut;
            unknown.insert(it, Duration::from_nanos(cut));
        }
        let mut bounded = Vec::with_capacity(pieces.len() + unknown.len());
        for (number, piece) in pieces.into_iter().enumerate() {
            let cut = unknown.get(&number).map(|&cut| piece.from + cut);
            let other = cut.map(|to| Interval { to, part: DelayCause::Unknown, ..piece });
            piece.cut(other.into_iter(), &mut bounded);
        }
        bounded
    }
}
