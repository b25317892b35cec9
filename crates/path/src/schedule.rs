//! Settings that change over time.

use crosswind_units::{Duration, Instant};

/// When a change holds, counted from the first packet that enters the path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Period {
    /// From when on.
    pub start: Instant,
    /// For how long; none for good.
    pub lasting: Option<Duration>,
    /// How long after its start it holds again; none where it holds once.
    pub every: Option<Duration>,
}

impl Period {
    /// Whether it holds at `now`, and when that changes next.
    pub fn state(&self, now: Instant) -> (bool, Option<Instant>) {
        if now < self.start {
            return (false, Some(self.start));
        }
        let Some(lasting) = self.lasting else { return (true, None) };
        let since = now - self.start;
        let begun = self.every.map_or(Duration::ZERO, |every| {
            Duration::from_nanos(since.as_nanos() / every.as_nanos() * every.as_nanos())
        });
        let start = self.start + begun;
        if now < start + lasting {
            return (true, Some(start + lasting));
        }
        (false, self.every.map(|every| start + every))
    }
}

/// The settings of one element over time. Asked for times in their order, it answers in constant time until a change.
#[derive(Clone, Debug)]
pub struct Schedule<T> {
    periods: Vec<Period>,
    /// What the settings are while these periods hold, one flag each.
    phases: Vec<(Vec<bool>, T)>,
    current: usize,
    until: Option<Instant>,
}

impl<T> Schedule<T> {
    /// Settings that never change.
    pub fn constant(settings: T) -> Self {
        Self { periods: Vec::new(), phases: vec![(Vec::new(), settings)], current: 0, until: None }
    }

    /// Settings that `periods` change; `settings` says what they are while those hold that are flagged.
    ///
    /// # Errors
    /// The first that `settings` has.
    pub fn new<E>(periods: Vec<Period>, mut settings: impl FnMut(&[bool]) -> Result<T, E>) -> Result<Self, E> {
        let mut phases: Vec<(Vec<bool>, T)> = Vec::new();
        let mut next = Some(Instant::ZERO);
        for _ in 0..MOST_CHANGES {
            let Some(now) = next else { break };
            let flags;
            (flags, next) = phase(&periods, now);
            if phases.iter().all(|(known, _)| *known != flags) {
                let settings = settings(&flags)?;
                phases.push((flags, settings));
            }
        }
        let mut schedule = Self { periods, phases, current: 0, until: None };
        schedule.enter(Instant::ZERO);
        Ok(schedule)
    }

    /// The settings at `now`, which is not before the last time that was asked for.
    pub fn at(&mut self, now: Instant) -> &T {
        if self.until.is_some_and(|until| until <= now) {
            self.enter(now);
        }
        &self.phases[self.current].1
    }

    /// When the settings change next, after the last time that was asked for.
    pub const fn next_change(&self) -> Option<Instant> {
        self.until
    }

    /// Whether the settings ever are as `is` says.
    pub fn ever(&self, is: impl Fn(&T) -> bool) -> bool {
        self.phases.iter().any(|(_, settings)| is(settings))
    }

    /// All settings that there ever are; first those at the beginning.
    pub fn phases(&self) -> impl Iterator<Item = &T> {
        self.phases.iter().map(|(_, settings)| settings)
    }

    fn enter(&mut self, now: Instant) {
        let (flags, until) = phase(&self.periods, now);
        self.until = until;
        if let Some(phase) = self.phases.iter().position(|(known, _)| *known == flags) {
            self.current = phase;
        }
    }
}

/// Changes that are looked at beforehand. Periods with different intervals meet in another way ever again; what they have not met in
/// by then leaves the settings as they are.
const MOST_CHANGES: usize = 10_000;

/// Which periods hold at `now`, and when that changes.
fn phase(periods: &[Period], now: Instant) -> (Vec<bool>, Option<Instant>) {
    let states: Vec<_> = periods.iter().map(|period| period.state(now)).collect();
    (states.iter().map(|(holds, _)| *holds).collect(), states.iter().filter_map(|(_, change)| *change).min())
}
