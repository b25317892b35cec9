//! A good and a bad state, alternating in time, each exponentially distributed.
//!
//! Equivalently, events at random times each set the state to good or bad whatever it was. Time is cut into windows,
//! with events chosen by a word; so the state at any time is found in its window or in one shortly before.

use crosswind_units::{Duration, Instant, Probability, Seed};

/// More events never come in a window, where one is the mean.
const MOST_EVENTS: u64 = 64;

/// The process.
#[derive(Clone, Debug, PartialEq)]
pub struct Outages {
    window_ns: u64,
    /// Mean number of events per window.
    events: f64,
    /// How often the state is the bad one.
    bad: Probability,
    /// Loss in the good and in the bad state.
    loss: [Probability; 2],
}

impl Outages {
    /// Args: mean times in the good and in the bad state, and the loss in each.
    pub fn new(good_ns: f64, bad_ns: f64, loss: [Probability; 2]) -> Self {
        let between_events = good_ns * bad_ns / (good_ns + bad_ns);
        let window_ns = between_events.max(1.0) as u64;
        let bad = Probability::new(bad_ns / (good_ns + bad_ns)).unwrap_or_default();
        Self { window_ns, events: window_ns as f64 / between_events, bad, loss }
    }

    /// The loss probability at this time.
    pub fn loss(&self, seed: Seed, at: Instant) -> Probability {
        self.loss[usize::from(self.is_bad(seed, at.as_nanos()))]
    }

    /// The share of lost packets, and that share right behind a lost one.
    pub fn shares(&self) -> [f64; 2] {
        let [good, bad] = self.loss.map(Probability::as_fraction);
        let share = self.bad.as_fraction();
        let loss = (1.0 - share) * good + share * bad;
        let twice = (1.0 - share) * good * good + share * bad * bad;
        [loss, if loss > 0.0 { twice / loss } else { 0.0 }]
    }

    /// Autocorrelation time: the state's correlation falls to 1/e.
    pub fn memory(&self) -> Duration {
        Duration::from_nanos((self.window_ns as f64 / self.events) as u64)
    }

    fn is_bad(&self, seed: Seed, at_ns: u64) -> bool {
        let (mut window, mut until) = (at_ns / self.window_ns, at_ns % self.window_ns);
        loop {
            let words = Seed(seed.word(window));
            let place = |event: u64| (u128::from(words.word(2 * event + 1)) * u128::from(self.window_ns)) >> 64;
            let before = (0..self.count(words.word(0))).filter(|event| place(*event) <= u128::from(until));
            if let Some(last) = before.max_by_key(|event| place(*event)) {
                return self.bad.happens(words.word(2 * last + 2));
            }
            // Before time began there were windows too.
            (window, until) = (window.wrapping_sub(1), self.window_ns - 1);
        }
    }

    /// How many events a window has: a Poisson variable, by inversion.
    fn count(&self, word: u64) -> u64 {
        let uniform = word as f64 / 18_446_744_073_709_551_616.0;
        let (mut count, mut share) = (0, libm::exp(-self.events));
        let mut below = share;
        while uniform >= below && count < MOST_EVENTS {
            count += 1;
            share *= self.events / count as f64;
            below += share;
        }
        count
    }
}
