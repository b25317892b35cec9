//! Peers' run time and wait for a processor, counted during measured exchanges.

use crate::context::Context;
use crate::programs::CellPrograms;
use crosswind_host::ProgramTimes;
use crosswind_path::Side;
use std::time::{Duration, Instant};

/// Looking through all threads takes some milliseconds of processor time.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// Peers' processor time. In virtual time there is none.
pub struct Times<'a> {
    context: &'a Context<'a>,
    counted: Option<ProgramTimes>,
    looked: Instant,
}

/// One end's run time and wait.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EndTimes {
    pub run_ns: u64,
    pub wait_ns: u64,
}

impl<'a> Times<'a> {
    /// Nothing is counted yet.
    pub fn new(context: &'a Context<'a>) -> Self {
        Self { context, counted: None, looked: Instant::now() }
    }

    /// Counts from now on.
    pub fn begin(&mut self, programs: &CellPrograms<'_>) {
        if !self.context.virtual_time {
            self.counted = programs.begin_times();
            self.note();
        }
    }

    /// Takes the news, if it is time.
    pub fn look(&mut self) {
        if self.looked.elapsed() >= LOOK_INTERVAL {
            self.look_now();
        }
    }

    /// Counts no longer.
    pub fn finish(&mut self) {
        self.look_now();
    }

    /// One end's times; none if not counted.
    pub fn of(&self, side: Side) -> Option<EndTimes> {
        let threads = self.counted.as_ref()?.threads();
        let own = threads.into_iter().filter(|(of, _)| *of == side);
        Some(own.fold(EndTimes::default(), |all, (_, thread)| EndTimes {
            run_ns: all.run_ns + thread.run_ns,
            wait_ns: all.wait_ns + thread.wait_ns,
        }))
    }

    fn look_now(&mut self) {
        if self.counted.as_mut().is_some_and(|counted| counted.look().is_err()) {
            self.counted = None;
        }
        self.note();
    }

    fn note(&mut self) {
        self.looked = Instant::now();
        if !self.context.virtual_time {
            self.context.threads().note_programs(self.counted.as_ref().map(ProgramTimes::threads));
        }
    }
}
