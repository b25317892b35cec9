//! Round trips as a QUIC sender measures them (RFC 9002, section 5); they set its loss timers.

use crosswind_ledger::{QuicFrame, QuicSpace};
use crosswind_units::{Duration, Instant};

/// Timer granularity (RFC 9002, section 6.1.2).
const GRANULARITY: Duration = Duration::from_millis(1);
/// A receiver's default maximum acknowledgement delay (RFC 9000, section 18.2).
const MAX_ACK_DELAY: Duration = Duration::from_millis(25);

/// One packet number space's arrived packets, in the order of their numbers.
#[derive(Default)]
struct Space {
    sent: Vec<Sent>,
    largest: Option<u64>,
    /// Their count up to that number, and the positions of ack-eliciting ones still unacknowledged.
    covered: usize,
    open: Vec<usize>,
}

/// An arrived packet.
#[derive(Clone, Copy)]
pub struct Sent {
    pub number: u64,
    pub at: Instant,
    pub arrived: Instant,
    pub asks_for_ack: bool,
}

/// Measured so far.
pub struct RoundTrips {
    spaces: [Space; 3],
    latest: Duration,
    smoothed: Option<Duration>,
    least: Duration,
}

impl RoundTrips {
    /// From the arrived packets.
    pub fn new(arrived: impl Iterator<Item = (QuicSpace, Sent)>) -> Self {
        let mut spaces: [Space; 3] = Default::default();
        for (space, sent) in arrived {
            spaces[space as usize].sent.push(sent);
        }
        for space in &mut spaces {
            space.sent.sort_by_key(|it| it.number);
        }
        Self { spaces, latest: Duration::ZERO, smoothed: None, least: Duration::ZERO }
    }

    /// Adds a frame sent in a packet of `space` at `sent`, arrived at `at`.
    pub fn add(&mut self, frame: &QuicFrame, space: QuicSpace, sent: Instant, at: Instant) {
        let QuicFrame::Ack { largest, .. } = *frame else { return };
        let counted = &mut self.spaces[space as usize];
        let is_largest = counted.largest.is_none_or(|before| before < largest);
        while let Some(next) = counted.sent.get(counted.covered).filter(|it| it.number <= largest) {
            counted.open.extend(next.asks_for_ack.then_some(counted.covered));
            counted.covered += 1;
        }
        counted.largest = counted.largest.max(Some(largest));
        let before = counted.open.len();
        counted.open.retain(|&it| counted.sent[it].arrived > sent);
        let is_news = counted.open.len() < before;
        let newest = counted.sent.binary_search_by_key(&largest, |it| it.number).map(|it| counted.sent[it]);
        if let Some(newest) = newest.ok().filter(|_| is_news && is_largest) {
            let delay = if space == QuicSpace::Data { sent.saturating_since(newest.arrived) } else { Duration::ZERO };
            self.update(at.saturating_since(newest.at), delay.min(MAX_ACK_DELAY));
        }
    }

    fn update(&mut self, latest: Duration, delay: Duration) {
        self.latest = latest;
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.least) = (Some(latest), latest);
            return;
        };
        self.least = self.least.min(latest);
        let nanos = latest.as_nanos() - if self.least + delay <= latest { delay.as_nanos() } else { 0 };
        self.smoothed = Some(Duration::from_nanos((7 * smoothed.as_nanos() + nanos) / 8));
    }

    /// How long a packet may be unacknowledged, `time_threshold` round trips, while later ones are.
    pub fn patience(&self, time_threshold: f64) -> Duration {
        let conservative = self.smoothed.unwrap_or(self.latest).max(self.latest);
        Duration::from_nanos((conservative.as_nanos() as f64 * time_threshold) as u64).max(GRANULARITY)
    }
}
