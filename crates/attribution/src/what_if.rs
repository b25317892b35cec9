//! A transfer's time without one of its limits, from a model: rounds of a congestion window.
//!
//! A cause's time is rarely what its absence saves: behind a receive window is slow start, behind a lost packet the
//! receive window. The model sends a burst's bytes again, round by round, over the losses, windows and rate of its
//! packets; the difference between its times with and without a limit is the saving. Rounds and slow start as in
//! Cardwell, Savage and Anderson, "Modeling TCP latency" (INFOCOM 2000); CUBIC as in RFC 9438.

use crate::tcp_sender::{INITIAL_WINDOW, SHORTEST_IDLE, Sender, Told};
use crate::{DelayCause, Growth, Hosts};
use crosswind_ledger::{DropCause, PacketRecord, Verdict};
use crosswind_units::{Duration, Instant};

/// A change to a path or its hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// Nothing is lost.
    NoLoss,
    /// The receiver's window is never the limit.
    NoReceiveWindow,
    /// The send buffer is never the limit.
    NoSendBuffer,
    /// The slowest link is twice as fast.
    TwiceTheRate,
}

impl Change {
    const ALL: [Self; 4] = [Self::NoLoss, Self::NoReceiveWindow, Self::NoSendBuffer, Self::TwiceTheRate];
}

/// A time with each change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Changed([Duration; Change::ALL.len()]);

impl Changed {
    pub(crate) fn new(whole: Duration, saved: Saved) -> Self {
        Self(saved.map(|saved| Duration::from_nanos(whole.as_nanos().saturating_sub((saved * 1e9) as u64))))
    }

    /// It with one of them.
    pub const fn with(self, change: Change) -> Duration {
        self.0[change as usize]
    }
}

/// How far the model's time may be from the packets', as a share of it, for its savings to count.
const CLOSE: f64 = 0.25;
/// The share of one window from which another one may be the same.
const ALIKE: f64 = 0.9;
/// Rounds of a burst: more than any transfer's.
const MOST_ROUNDS: usize = 1 << 20;
/// Full segments from which CUBIC leaves slow start by the length of a round (HyStart).
const HYSTART_SEGMENTS: f64 = 16.0;

/// Seconds saved by each change.
pub type Saved = [f64; Change::ALL.len()];

/// Bytes sent without a pause of the program. Times in seconds.
struct Burst {
    first: Instant,
    done: Instant,
    start: u64,
    end: u64,
    /// From the first segment to the last byte's arrival, without propagation.
    took: f64,
    /// By chance, not by a full queue.
    lost: Vec<Lost>,
}

/// A lost segment.
struct Lost {
    start: u64,
    end: u64,
    /// Until its first arriving transmission.
    waited: f64,
    by_timer: bool,
    /// Whether it is the first of a recovery.
    cuts: bool,
}

/// A direction's bursts.
pub struct Savings {
    bursts: Vec<Saving>,
    /// How much later than its first packet a program may say that it sent.
    promptness: Duration,
}

struct Saving {
    first: Instant,
    /// When the receiver had all of it.
    done: Instant,
    saved: Saved,
    /// How far the model is from the packets. Few bytes have none: their time is their program's.
    error: Option<f64>,
}

impl Savings {
    /// `is_timer` tells whether a timer sent a segment again. None for congestion control without a model, and for a
    /// connection without its beginning.
    pub fn of(
        [sender, other]: [&Sender<'_>; 2],
        round_trip: Option<Duration>,
        is_timer: impl Fn(usize) -> bool,
        hosts: Hosts,
    ) -> Option<Self> {
        let growth = hosts.growth.filter(|_| sender.begun)?;
        let round_trip = seconds(round_trip.into_iter().chain(sender.shortest_round_trip).min()?);
        let model = Model::of(sender, round_trip, growth, hosts);
        let mut windows = [(); 1 + Change::ALL.len()].map(|()| Window::new(&model));
        let saving = |burst: Burst| {
            let [usual, changed @ ..] = &mut windows;
            let usual = model.run(&burst, None, usual);
            let bytes = (burst.end - burst.start) as f64;
            let is_small = bytes <= model.initial && burst.lost.is_empty() && usual <= bytes / model.rate;
            let took = if is_small { usual } else { burst.took };
            let saved = Change::ALL.map(|change| {
                let changed = model.run(&burst, Some(change), &mut changed[change as usize]);
                // Without losses the model is nearest to packets.
                let scale = if change == Change::NoLoss { 1.0 } else { took / usual.max(f64::MIN_POSITIVE) };
                if changed < usual { (took - changed * scale).max(0.0) } else { 0.0 }
            });
            let error = (!is_small).then(|| (usual - took).abs());
            Saving { first: burst.first, done: burst.done, saved, error }
        };
        let promptness = hosts.promptness;
        let bursts = bursts([sender, other], round_trip, is_timer, promptness).into_iter().map(saving).collect();
        Some(Self { bursts, promptness })
    }

    /// The savings of the bursts in `[from, to]`; none where one goes beyond, or where the model is far from the packets.
    pub fn between(&self, from: Instant, to: Instant) -> Option<Saved> {
        let first = self.bursts.partition_point(|it| it.done <= from);
        let own = self.bursts.get(first..self.bursts.partition_point(|it| it.first < to)).unwrap_or_default();
        let (mut all, mut far) = (Saved::default(), 0.0);
        for saving in own {
            let late = from.saturating_since(saving.first).max(saving.done.saturating_since(to));
            let is_within = late <= self.promptness;
            if let Some(error) = saving.error {
                far += if is_within { error } else { f64::INFINITY };
            }
            if is_within {
                all.iter_mut().zip(saving.saved).for_each(|(sum, saved)| *sum += saved);
            }
        }
        (far <= CLOSE * seconds(to.saturating_since(from))).then_some(all)
    }
}

fn seconds(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1e9
}

fn is_overflow(packet: &PacketRecord) -> bool {
    matches!(packet.verdict, Verdict::Dropped(DropCause::Path(cause)) if cause.name() == "queue")
}

fn bursts(
    [sender, other]: [&Sender<'_>; 2],
    round_trip: f64,
    is_timer: impl Fn(usize) -> bool,
    promptness: Duration,
) -> Vec<Burst> {
    let mut all: Vec<Burst> = Vec::new();
    let mut before = Instant::from_nanos(0);
    let mut acks = sender.acks.iter().peekable();
    let (mut acknowledged, mut heard, mut recovered) = (0, Instant::from_nanos(0), 0);
    for (send, sent) in sender.sends.iter().enumerate().filter(|(_, it)| it.start >= it.after) {
        let at = sent.packet.entered;
        while let Some(ack) = acks.next_if(|ack| ack.arrived <= at && ack.acknowledged <= sent.start) {
            (acknowledged, heard) = (ack.acknowledged, ack.arrived);
        }
        let is_written = || match sent.packet.sending {
            Some(told) => {
                matches!(sender.told(send), Some(Told::Written)) && told.written.is_some_and(|it| it.0 >= heard)
            }
            None => other.last_arrival(at).is_some_and(|it| it.0 >= heard),
        };
        // A protocol's first words may still be in flight, and change nothing.
        let is_free = acknowledged >= sent.start
            || sent.start - acknowledged <= sender.largest_segment && at.saturating_since(before) > promptness;
        before = at;
        if all.is_empty() || is_free && is_written() {
            all.push(Burst { first: at, done: at, start: sent.start, end: sent.end, took: 0.0, lost: Vec::new() });
        }
        let Some(burst) = all.last_mut() else { continue };
        burst.end = sent.end;
        let again = || sender.bytes.again(send).find(|&it| sender.sends[it].arrived().is_some());
        if sent.arrived().is_none()
            && !is_overflow(sent.packet)
            && let Some(again) = again()
        {
            let waited = seconds(sender.sends[again].packet.entered.saturating_since(at));
            let cuts = sent.start >= recovered;
            if cuts {
                recovered = sender.sends[again].after;
            }
            burst.lost.push(Lost { start: sent.start, end: sent.end, waited, by_timer: is_timer(again), cuts });
        }
    }
    for burst in &mut all {
        burst.done = sender.bytes.completion_of(burst.end).map_or(burst.first, |it| it.at);
        burst.took = (seconds(burst.done.saturating_since(burst.first)) - round_trip / 2.0).max(0.0);
    }
    all
}

/// A direction's constants: bytes and seconds.
struct Model {
    growth: Growth,
    round_trip: f64,
    /// Bytes a second on the slowest link.
    rate: f64,
    /// Its queue.
    queue: f64,
    segment: f64,
    initial: f64,
    /// The receiver's window from each position on.
    receive_window: Vec<(u64, f64)>,
    /// The bytes in flight with a full send buffer, likewise.
    send_buffer: Vec<(u64, f64)>,
    largest_in_flight: f64,
    idle_restarts: bool,
}

/// A congestion window, in bytes.
struct Window {
    size: f64,
    threshold: f64,
    /// During a recovery: its round's bytes.
    recovery: Option<f64>,
    /// CUBIC: its size before the last cut, and the time since.
    largest: f64,
    since: f64,
    /// When the burst before was done.
    done: Option<Instant>,
}

impl Window {
    const fn new(model: &Model) -> Self {
        Self { size: model.initial, threshold: f64::INFINITY, recovery: None, largest: 0.0, since: 0.0, done: None }
    }
}

/// The limit at a position.
fn at_position(limits: &[(u64, f64)], position: u64) -> f64 {
    let known = limits.partition_point(|it| it.0 <= position);
    known.checked_sub(1).map_or(f64::INFINITY, |it| limits[it].1)
}

impl Model {
    fn of(sender: &Sender<'_>, round_trip: f64, growth: Growth, hosts: Hosts) -> Self {
        let (mut bytes, mut time, mut longest) = (0.0, 0.0, 0.0_f64);
        for packet in sender.sends.iter().map(|it| it.packet) {
            bytes += packet.size.0 as f64;
            time += seconds(packet.spent.serialisation);
            longest = longest.max(seconds(packet.spent.queueing));
        }
        let rate = if time > 0.0 { bytes / time } else { f64::INFINITY };
        let was_full = sender.sends.iter().any(|it| is_overflow(it.packet));
        let known_queue = sender.sends.first().and_then(|it| hosts.queues[it.packet.side as usize]);
        let mut receive_window: Vec<(u64, f64)> = Vec::new();
        // What has come behind a gap takes room from a buffer.
        for ack in sender.acks.iter().filter(|it| !it.has_sack()) {
            let window = ack.edge.saturating_sub(ack.acknowledged) as f64;
            match receive_window.last_mut() {
                Some(last) if last.0 == ack.acknowledged => last.1 = window.max(last.1),
                _ => receive_window.push((ack.acknowledged, window)),
            }
        }
        let full = |send: usize| {
            let is_full = matches!(sender.told(send), Some(Told::Released(DelayCause::SendBuffer)));
            let since = sender.sends[send].packet.sending.filter(|_| is_full)?.held_since?;
            let until = sender.sends.partition_point(|it| it.packet.entered <= since);
            let before = &sender.sends[until.checked_sub(1)?];
            let in_flight = sender.in_flight(before);
            let from = before.end - in_flight;
            // Behind a receive window of that size it does not tell its own.
            let is_own = (in_flight as f64) < ALIKE * at_position(&receive_window, from);
            is_own.then_some((from, in_flight as f64))
        };
        let mut send_buffer: Vec<_> = (0..sender.sends.len()).filter_map(full).collect();
        send_buffer.dedup();
        let segment = sender.largest_segment as f64;
        Self {
            growth,
            round_trip,
            rate,
            queue: if was_full { longest * rate } else { known_queue.map_or(f64::INFINITY, |it| it as f64) },
            segment,
            initial: hosts.initial_window.unwrap_or(INITIAL_WINDOW) as f64 * segment,
            receive_window,
            largest_in_flight: send_buffer.iter().map(|it| it.1).reduce(f64::max).unwrap_or(f64::INFINITY),
            send_buffer,
            idle_restarts: hosts.slow_start_after_idle,
        }
    }

    /// How long a burst takes, without propagation. The next one goes on with its window.
    fn run(&self, burst: &Burst, change: Option<Change>, window: &mut Window) -> f64 {
        self.rest(burst, window);
        let mut lost = burst.lost.iter().filter(|_| change != Some(Change::NoLoss)).peekable();
        let rate = if change == Some(Change::TwiceTheRate) { 2.0 * self.rate } else { self.rate };
        let queue = if change == Some(Change::NoLoss) { f64::INFINITY } else { self.queue };
        let (mut at, mut sent, mut done) = (0.0, burst.start, 0.0_f64);
        for _ in 0..MOST_ROUNDS {
            let recovery = window.recovery.take();
            let mut allowed = recovery.unwrap_or(window.size);
            if change != Some(Change::NoReceiveWindow) {
                allowed = allowed.min(at_position(&self.receive_window, sent));
            }
            allowed = match change {
                Some(Change::NoSendBuffer) => allowed,
                // What waits for a retransmission takes room from the buffer.
                Some(Change::NoLoss) => allowed.min(self.largest_in_flight),
                _ => allowed.min(at_position(&self.send_buffer, sent)),
            };
            let bytes = allowed.max(self.segment).min((burst.end - sent) as f64);
            let until = sent + bytes as u64;
            let busy = bytes / rate;
            let (mut cut, mut next) = (None, at + busy.max(self.round_trip));
            while let Some(lost) = lost.next_if(|it| it.start < until) {
                let into = lost.start.saturating_sub(sent) as f64;
                let (sent_at, again) = (at + into / rate, (lost.end - lost.start) as f64 / rate);
                done = done.max(sent_at + lost.waited.max(self.round_trip) + again);
                if lost.by_timer {
                    next = next.max(sent_at + lost.waited);
                }
                if lost.cuts || lost.by_timer {
                    cut = cut.or(Some((into, lost.by_timer)));
                }
            }
            // In slow start every acknowledgement releases two segments: half of them have to queue.
            let burdens = if window.size < window.threshold { bytes / 2.0 } else { 0.0 };
            let over = burdens.max(bytes - rate * self.round_trip) - queue;
            if over > 0.0 && rate.is_finite() {
                cut = cut.or(Some((bytes - over, false)));
                done = done.max(at + busy + self.round_trip + over / rate);
                next += over / rate;
            }
            done = done.max(at + busy);
            match cut {
                Some((into, by_timer)) => self.cut(window, bytes, into, by_timer),
                None if recovery.is_some() => {}
                None => self.grow(window, bytes, busy, next - at),
            }
            if until >= burst.end {
                break;
            }
            (at, sent) = (next, until);
        }
        window.done = Some(burst.done);
        done
    }

    /// Shrinks a window that was idle (RFC 2861).
    fn rest(&self, burst: &Burst, window: &mut Window) {
        let idle =
            window.done.filter(|_| self.idle_restarts).map_or(0.0, |it| seconds(burst.first.saturating_since(it)));
        let timeout = seconds(SHORTEST_IDLE) + self.round_trip;
        let halvings = (idle / timeout) as i32;
        if halvings > 0 && window.size > self.initial {
            window.threshold = window.threshold.max(0.75 * window.size);
            window.size = (window.size * 0.5_f64.powi(halvings)).max(self.initial);
        }
    }

    /// After a loss behind the first `into` of `sent` bytes.
    fn cut(&self, window: &mut Window, sent: f64, into: f64, by_timer: bool) {
        let released = if window.size < window.threshold { 2.0 * into } else { into };
        let before = sent - into + released;
        let (factor, largest) = match self.growth {
            Growth::Reno => (0.5, before),
            // It leaves room for others (RFC 9438, 4.7).
            Growth::Cubic if before < window.largest => (0.7, 0.85 * before),
            Growth::Cubic => (0.7, before),
        };
        window.threshold = (factor * before).max(2.0 * self.segment);
        window.size = if by_timer { self.segment } else { window.threshold };
        window.recovery = (!by_timer).then_some(released + factor * (sent - into));
        (window.largest, window.since) = (largest, 0.0);
    }

    /// After a round without a loss.
    fn grow(&self, window: &mut Window, sent: f64, busy: f64, passed: f64) {
        if window.size < window.threshold {
            // An application or another window that limits it keeps it at twice what was in flight.
            window.size = window.size.max((window.size + sent).min(2.0 * sent)).min(window.threshold);
            let is_long = sent >= HYSTART_SEGMENTS * self.segment && busy >= self.round_trip / 2.0;
            if self.growth == Growth::Cubic && is_long {
                (window.threshold, window.largest, window.since) = (window.size, window.size, 0.0);
            }
            return;
        }
        if sent < window.size - self.segment {
            return;
        }
        window.since += passed;
        match self.growth {
            Growth::Reno => window.size += self.segment,
            Growth::Cubic => {
                let largest = window.largest / self.segment;
                let plateau = (0.3 * largest / 0.4).cbrt();
                let target = 0.4 * (window.since - plateau).powi(3) + largest;
                let like_reno = 0.7 * largest + 0.53 * window.since / self.round_trip;
                window.size = (target.max(like_reno) * self.segment).clamp(window.size, 1.5 * window.size);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 1000 bytes a segment, 100 ms a round trip.
    fn model(growth: Growth) -> Model {
        Model {
            growth,
            round_trip: 0.1,
            rate: f64::INFINITY,
            queue: f64::INFINITY,
            segment: 1000.0,
            initial: 10_000.0,
            receive_window: vec![],
            send_buffer: vec![],
            largest_in_flight: f64::INFINITY,
            idle_restarts: true,
        }
    }

    fn burst(bytes: u64) -> Burst {
        Burst {
            first: Instant::from_nanos(0),
            done: Instant::from_nanos(0),
            start: 0,
            end: bytes,
            took: 0.0,
            lost: vec![],
        }
    }

    fn milliseconds(seconds: f64) -> u64 {
        (seconds * 1000.0).round() as u64
    }

    fn takes(model: &Model, burst: &Burst, change: Option<Change>) -> u64 {
        milliseconds(model.run(burst, change, &mut Window::new(model)))
    }

    #[test]
    fn slow_start_doubles_behind_a_receive_window() {
        let mut model = model(Growth::Cubic);
        // 10 + 20 + 40 + 30.
        assert_eq!(takes(&model, &burst(100_000), None), 300);
        model.receive_window = vec![(0, 20_000.0)];
        // 10 + 20 + 20 + 20 + 20 + 10.
        assert_eq!(takes(&model, &burst(100_000), None), 500);
        assert_eq!(takes(&model, &burst(100_000), Some(Change::NoReceiveWindow)), 300);
        model.send_buffer = vec![(30_000, 10_000.0)];
        // 10 + 20, then 7 of 10: the buffer lies behind the window.
        assert_eq!(takes(&model, &burst(100_000), Some(Change::NoReceiveWindow)), 800);
        assert_eq!(takes(&model, &burst(100_000), Some(Change::NoSendBuffer)), 500);
    }

    #[test]
    fn a_link_hides_the_windows_behind_it() {
        let mut model = model(Growth::Reno);
        model.rate = 200_000.0;
        // 10 and 20 in a round trip each, and 70 at the link's rate.
        assert_eq!(takes(&model, &burst(100_000), None), 550);
        // 10, 20, 40, and 30 at twice the rate.
        assert_eq!(takes(&model, &burst(100_000), Some(Change::TwiceTheRate)), 375);
    }

    #[test]
    fn a_loss_costs_its_recovery_and_what_it_cuts() {
        let model = model(Growth::Reno);
        let mut burst = burst(100_000);
        burst.lost = vec![Lost { start: 10_000, end: 11_000, waited: 0.1, by_timer: false, cuts: true }];
        // 10, 20 with the loss, half of them in its recovery, 10, 11, 12, 13, and 14.
        assert_eq!(takes(&model, &burst, None), 700);
        assert_eq!(takes(&model, &burst, Some(Change::NoLoss)), 300);
        burst.lost[0] = Lost { start: 99_000, end: 100_000, waited: 0.25, by_timer: true, cuts: true };
        assert_eq!(takes(&model, &burst, None), 550);
    }

    #[test]
    fn an_idle_window_shrinks_to_its_initial_size() {
        let model = model(Growth::Reno);
        let mut window = Window::new(&model);
        model.run(&Burst { done: Instant::from_nanos(300_000_000), ..burst(100_000) }, None, &mut window);
        let next = |at: u64| Burst { first: Instant::from_nanos(at), done: Instant::from_nanos(at), ..burst(60_000) };
        let at_once = model.run(&next(400_000_000), None, &mut window);
        let later = model.run(&next(60_000_000_000), None, &mut window);
        // 60 fit; after a minute, 10 + 20 + 30.
        assert_eq!([at_once, later].map(milliseconds), [0, 200]);
    }
}
