//! The walk back through a conversation between two programs, from its last packet to its first.
//!
//! At a host, the last event before a transmission is taken as its cause.

use crate::critical_path::{CriticalPath, Interval, Place, Wait};
use crate::links::Links;
use crate::{DelayCause, Hosts};
use crosswind_ledger::PacketRecord;
use crosswind_path::Side;
use crosswind_units::{Duration, Instant};

/// A conversation after its walk.
pub struct Walked {
    /// In order of time.
    pub pieces: Vec<Interval>,
    /// How often a host waited for the other's data.
    pub turns: u32,
    /// Limiting windows, with counts.
    pub windows: Vec<Window>,
}

/// The intervals valid for QUIC packets without keys: acknowledgements look like answers, and waits for a window or for
/// a timer like an idle program.
pub fn of_sealed(mut pieces: Vec<Interval>) -> Vec<Interval> {
    for piece in &mut pieces {
        if matches!(piece.part, DelayCause::ClientHost | DelayCause::ServerHost | DelayCause::DatagramLoss) {
            piece.part = DelayCause::Unknown;
        }
    }
    pieces
}

/// A limiting window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The direction of the waiting data.
    pub data: Side,
    /// The window's kind: a cause. A window of a program's own shows as round trips: its kind is propagation.
    pub part: DelayCause,
    /// How often.
    pub times: u32,
    /// The most in flight, or allowed, while it was the limit: bytes.
    pub bytes: u64,
}

/// When the first of some packets entered the path, and when the last one ended.
pub fn span(packets: &[&PacketRecord]) -> (Instant, Instant) {
    let from = packets.first().map_or(Instant::from_nanos(0), |it| it.entered);
    (from, packets.iter().map(|it| ended(it)).max().unwrap_or(from))
}

fn ended(packet: &PacketRecord) -> Instant {
    packet.left.unwrap_or(packet.entered)
}

/// Where the walk is: the path says when.
#[derive(Clone, Copy)]
pub enum Step {
    /// A host acted on its own; the time since its last event has a cause.
    Did(Side, DelayCause),
    /// A host sent data; `passing`: not the awaited one, but one that kept the path busy until then.
    Sent { side: Side, send: usize, passing: bool },
    /// Something for the program arrived in the direction of a side.
    Arrived(Side, Instant),
}

impl Step {
    /// A host sent the awaited data.
    pub const fn sent(side: Side, send: usize) -> Self {
        Self::Sent { side, send, passing: false }
    }
}

/// A walk's state.
pub struct State<'w, 'a> {
    pub packets: &'w [&'a PacketRecord],
    pub links: &'w Links<'a>,
    pub hosts: Hosts,
    pub path: CriticalPath,
    turns: u32,
    /// The direction of the walk's last arrival.
    data: Option<Side>,
    windows: Vec<Window>,
}

impl<'w, 'a> State<'w, 'a> {
    pub const fn new(packets: &'w [&'a PacketRecord], links: &'w Links<'a>, hosts: Hosts, path: CriticalPath) -> Self {
        Self { packets, links, hosts, path, turns: 0, data: None, windows: Vec::new() }
    }

    pub fn is_prompt(&self, earlier: Instant, later: Instant) -> bool {
        later.saturating_since(earlier) <= self.hosts.promptness
    }

    pub fn at_sender(&mut self, from: Instant, part: DelayCause, side: Side, packet: Option<&PacketRecord>) {
        self.path.name(from, part, Place::sender(side), packet, 0);
    }

    /// Names the sending host's time before `packet`.
    pub fn at_host(&mut self, from: Instant, packet: &PacketRecord) {
        self.links.wakers.name(from, packet, &mut self.path);
    }

    /// As [`Links::follow`].
    pub fn follow(&mut self, packet: &'a PacketRecord, wait: Wait) -> &'a PacketRecord {
        self.links.follow(packet, wait, &mut self.path)
    }

    /// Counts an arrival in direction `side`, if the one before had the other.
    pub fn count_turn(&mut self, side: Side) {
        self.turns += u32::from(self.data.replace(side).is_some_and(|before| before != side));
    }

    /// Counts a wait for a window.
    pub fn count_window(&mut self, data: Side, part: DelayCause, bytes: u64) {
        match self.windows.iter_mut().find(|it| it.data == data && it.part == part) {
            Some(window) => (window.times, window.bytes) = (window.times + 1, window.bytes.max(bytes)),
            None => self.windows.push(Window { data, part, times: 1, bytes }),
        }
    }
}

/// A protocol's walk.
pub trait Walk<'w, 'a: 'w>: Sized {
    /// The longest delay of an acknowledgement.
    const LONGEST_DELAY: Duration;

    fn state(&mut self) -> &mut State<'w, 'a>;

    /// When data for the program last arrived in direction `side`, by `at`.
    fn last_delivery(&self, side: Side, at: Instant) -> Option<Instant>;

    /// The same, as a possible cause of a sending at `at`.
    fn last_cause(&self, side: Side, at: Instant) -> Option<Instant> {
        self.last_delivery(side, at)
    }

    /// The last sending of data in direction `side`, by `at`.
    fn last_sending(&self, side: Side, at: Instant) -> Option<(Instant, usize)>;

    /// The first closing packet, if any.
    fn close(&self, has_data: bool) -> Option<&'a PacketRecord>;

    /// Whether nothing shows that the receiver's program in direction `side` ever read.
    fn is_unread(&self, _side: Side) -> bool {
        false
    }

    /// Back from a last packet without a delivery after it.
    fn last(&mut self, last: &'a PacketRecord) -> Option<Step>;

    /// Back from an arrival to its sending.
    fn arrived(&mut self, side: Side, at: Instant) -> Option<Step>;

    /// Why data were sent when they were.
    fn sent(&mut self, side: Side, send: usize, passing: bool) -> Option<Step>;

    /// Back from a host's first event to the beginning.
    fn open(&mut self, _side: Side) -> Option<Step> {
        None
    }

    /// Attributes the whole conversation.
    fn whole(mut self) -> Walked {
        let first = self.begin();
        self.go(first)
    }

    /// Attributes time backwards, for a client whose answer came at `answered`.
    fn exchange(mut self, answered: Option<Instant>) -> Vec<Interval> {
        let first = answered.map(|at| {
            self.state().at_sender(at, DelayCause::ClientHost, Side::Forward, None);
            Step::Arrived(Side::Reverse, at)
        });
        self.go(first).pieces
    }

    /// Goes from `next` back to where the path begins.
    fn go(mut self, mut next: Option<Step>) -> Walked {
        // Without path delay, packets might be each other's cause.
        for _ in 0..4 * self.state().packets.len() + 8 {
            let Some(step) = next.filter(|_| !self.state().path.is_done()) else { break };
            next = match step {
                Step::Did(side, why) => self.did(side, why),
                Step::Sent { side, send, passing } => self.sent(side, send, passing),
                Step::Arrived(side, at) => self.arrived(side, at),
            };
        }
        let State { path, turns, windows, .. } = self.state();
        Walked { pieces: path.finish(), turns: *turns, windows: std::mem::take(windows) }
    }

    /// From the end back to the last delivery, or to the close.
    fn begin(&mut self) -> Option<Step> {
        let at = self.state().path.at();
        let last_data = Side::BOTH.map(|side| self.last_delivery(side, at).map(|at| (at, side)));
        let last_data = last_data.into_iter().flatten().max_by_key(|it| it.0);
        if let Some(close) = self.close(last_data.is_some()) {
            let from = last_data.map_or(close.entered, |(at, _)| at.max(close.entered));
            self.state().at_sender(from, DelayCause::Closing, close.side, Some(close));
            return match last_data {
                Some((at, side)) if at >= close.entered => Some(Step::Arrived(side, at)),
                Some((at, side)) if side == close.side && self.is_unread(side) => {
                    self.state().at_sender(at, DelayCause::receiver(side), side.opposite(), None);
                    Some(Step::Arrived(side, at))
                }
                _ => Some(Step::Did(close.side, DelayCause::sender(close.side))),
            };
        }
        let last = self.state().packets.iter().copied().max_by_key(|it| (ended(it), it.entered))?;
        if let Some((at, side)) = last_data.filter(|it| it.0 >= last.entered) {
            // Later packets were sent for it.
            self.state().path.name(at, DelayCause::propagation(last.side), Place::Path, Some(last), 0);
            return Some(Step::Arrived(side, at));
        }
        self.last(last)
    }

    /// Back to a host's last event.
    fn did(&mut self, side: Side, why: DelayCause) -> Option<Step> {
        let at = self.state().path.at();
        let (sent, arrived) = (self.last_sending(side, at), self.last_cause(side.opposite(), at));
        match (sent, arrived) {
            (Some((entered, send)), arrived) if arrived.is_none_or(|at| entered >= at) => {
                self.state().at_sender(entered, DelayCause::sender(side), side, None);
                Some(Step::sent(side, send))
            }
            (_, Some(arrived)) => {
                let is_delay =
                    at.saturating_since(arrived) <= Self::LONGEST_DELAY && !self.state().is_prompt(arrived, at);
                let part = if is_delay { why } else { DelayCause::sender(side) };
                self.state().at_sender(arrived, part, side, None);
                Some(Step::Arrived(side.opposite(), arrived))
            }
            _ => self.open(side),
        }
    }
}
