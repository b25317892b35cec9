//! Settings over time.

use crate::derive::{Deserialize, Serialize};
use alloc::collections::BTreeMap;
use alloc::collections::btree_map::Entry;
use alloc::vec;
use alloc::vec::Vec;
use crosswind_units::{Duration, Instant};

/// When a change holds, counted from the path's first packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Period {
    /// From when on.
    pub start: Instant,
    /// For how long; none for good.
    pub lasting: Option<Duration>,
    /// How long after its start it holds again; none where it holds once.
    pub every: Option<Duration>,
}

impl Period {
    /// The start of its present period, if any, and the next change.
    fn state(&self, now: Instant) -> (Option<Instant>, Option<Instant>) {
        if now < self.start {
            return (None, Some(self.start));
        }
        let Some(lasting) = self.lasting else { return (Some(self.start), None) };
        let since = (now - self.start).as_nanos();
        let begun = self.every.map_or(0, |every| since / every.as_nanos() * every.as_nanos());
        let start = self.start + Duration::from_nanos(begun);
        if now < start + lasting {
            return (Some(start), Some(start + lasting));
        }
        (None, self.every.map(|every| start + every))
    }
}

/// A change's period, and its rows, one after the other.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Course {
    /// When it holds.
    pub period: Period,
    /// When each row but the first begins, counted from the first, in order. Earlier the first row's settings hold.
    pub rows: Vec<Duration>,
    /// After how long the rows begin again; none where the last holds until the end.
    pub length: Option<Duration>,
}

impl Course {
    /// The present row, if any, and the next change.
    pub(crate) fn state(&self, now: Instant) -> (Option<usize>, Option<Instant>) {
        let (Some(since), end) = self.period.state(now) else { return (None, self.period.state(now).1) };
        let passed = (now - since).as_nanos();
        let turn = self.length.map_or(0, |length| passed / length.as_nanos() * length.as_nanos());
        let start = since + Duration::from_nanos(turn);
        let row = self.rows.partition_point(|row| row.as_nanos() <= passed - turn);
        let next = self.rows.get(row).copied().or(self.length).map(|time| start + time);
        (Some(row), next.into_iter().chain(end).min())
    }
}

/// The settings of one element over time. Asked for times in their order, it answers in constant time until a change.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Schedule<T> {
    courses: Vec<Course>,
    phases: Vec<T>,
    /// Phases by their present rows.
    #[cfg_attr(feature = "serde", serde(with = "pairs"))]
    known: BTreeMap<Vec<Option<usize>>, usize>,
    current: usize,
    until: Option<Instant>,
}

impl<T> Schedule<T> {
    /// Constant settings.
    pub fn constant(settings: T) -> Self {
        Self { courses: Vec::new(), phases: vec![settings], known: BTreeMap::new(), current: 0, until: None }
    }

    /// Settings changed by `courses`; `settings` makes those for the present rows, none for an inactive course.
    ///
    /// # Errors
    /// The first error from `settings`.
    pub fn new<E>(courses: Vec<Course>, mut settings: impl FnMut(&[Option<usize>]) -> Result<T, E>) -> Result<Self, E> {
        let (mut phases, mut known) = (Vec::new(), BTreeMap::new());
        let mut next = Some(Instant::ZERO);
        let rows = courses.iter().map(|course| course.rows.len()).sum::<usize>();
        for _ in 0..MOST_CHANGES + 2 * rows {
            let Some(now) = next else { break };
            let holding;
            (holding, next) = phase(&courses, now);
            if let Entry::Vacant(new) = known.entry(holding) {
                phases.push(settings(new.key())?);
                new.insert(phases.len() - 1);
            }
        }
        let mut schedule = Self { courses, phases, known, current: 0, until: None };
        schedule.enter(Instant::ZERO);
        Ok(schedule)
    }

    /// The settings at `now`, at or after the latest query.
    pub fn at(&mut self, now: Instant) -> &T {
        self.at_mut(now)
    }

    /// The same, for settings with state.
    pub fn at_mut(&mut self, now: Instant) -> &mut T {
        if self.until.is_some_and(|until| until <= now) {
            self.enter(now);
        }
        &mut self.phases[self.current]
    }

    /// `of` applied to the settings, at the same times.
    pub fn map<U>(self, of: impl FnMut(T) -> U) -> Schedule<U> {
        let Self { courses, phases, known, current, until } = self;
        Schedule { courses, phases: phases.into_iter().map(of).collect(), known, current, until }
    }

    /// The next change after the latest query.
    pub const fn next_change(&self) -> Option<Instant> {
        self.until
    }

    /// Whether the settings ever are as `is` says.
    pub fn ever(&self, is: impl Fn(&T) -> bool) -> bool {
        self.phases.iter().any(is)
    }

    /// All settings that ever hold, the initial ones first.
    pub fn phases(&self) -> impl Iterator<Item = &T> {
        self.phases.iter()
    }

    fn enter(&mut self, now: Instant) {
        let (holding, until) = phase(&self.courses, now);
        self.until = until;
        if let Some(phase) = self.known.get(&holding) {
            self.current = *phase;
        }
    }
}

/// A map without text keys, as a list of pairs.
#[cfg(feature = "serde")]
mod pairs {
    use super::{BTreeMap, Vec};
    use serde::{Deserialize, Deserializer, Serializer};

    type Known = BTreeMap<Vec<Option<usize>>, usize>;

    pub fn serialize<S: Serializer>(known: &Known, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(known)
    }

    pub fn deserialize<'a, D: Deserializer<'a>>(deserializer: D) -> Result<Known, D::Error> {
        Ok(Vec::deserialize(deserializer)?.into_iter().collect())
    }
}

/// Changes computed beforehand. Periods with different intervals meet in ever new ways; later ones change nothing new.
const MOST_CHANGES: usize = 10_000;

/// The present rows at `now`, and the next change.
fn phase(courses: &[Course], now: Instant) -> (Vec<Option<usize>>, Option<Instant>) {
    let states: Vec<_> = courses.iter().map(|course| course.state(now)).collect();
    (states.iter().map(|(row, _)| *row).collect(), states.iter().filter_map(|(_, change)| *change).min())
}
