//! How long a workload's threads waited for processors used by other cells' threads: while they run, and afterwards.
//!
//! Waiting for threads of the same cell is part of the measurement: on a small machine both hosts share a processor. So
//! the run time of the cell's other threads is subtracted from each thread's wait.

use crate::realtime::{run_and_wait_ns, run_and_wait_ns_of};
use crate::sampler::{SampledThread, Sampler};
use crosswind_ledger::Starvation;
use crosswind_path::Side;
use std::sync::Mutex;
use std::time::Instant;

/// The threads of a workload. The kernel's scheduler counts for each how long it ran and how long it waited.
#[derive(Debug, Default)]
pub struct Threads {
    times: Mutex<Times>,
    sampler: Option<Sampler>,
}

#[derive(Debug, Default)]
struct Times {
    running: Vec<(Side, i32)>,
    /// Third-party programs' threads, as last seen.
    programs: Vec<(Side, Starvation)>,
    /// Those could not be seen.
    programs_hidden: bool,
    /// Each host's longest-waiting thread among the ended ones.
    worst: [Starvation; 2],
    /// The ended threads' total run time, and wait.
    run_ns: u64,
    wait_ns: u64,
}

impl Threads {
    /// Threads sampled by `sampler`, if given.
    pub fn sampled_by(sampler: Option<Sampler>) -> Self {
        Self { sampler, ..Self::default() }
    }

    /// These threads' sampler.
    pub const fn sampler(&self) -> Option<&Sampler> {
        self.sampler.as_ref()
    }

    /// Counts the calling thread to the sending host of direction `side`, until the guard is dropped.
    pub fn enter(&self, side: Side) -> Entered<'_> {
        let id = nix::unistd::gettid().as_raw();
        if let Ok(mut times) = self.times.lock() {
            times.running.push((side, id));
        }
        let started = Instant::now();
        // The wait before the thread's start delayed nothing in the measurement.
        let before = run_and_wait_ns().unwrap_or_default();
        // A thread without a sampling timer is not sampled; the workload does not depend on it.
        let sampled = self.sampler.as_ref().and_then(|sampler| sampler.enter(side).ok());
        Entered { threads: self, side, id, before, started, _sampled: sampled }
    }

    /// A thread's longest wait for other cells' threads so far, nanoseconds.
    pub fn longest_wait_ns(&self) -> u64 {
        let Ok(times) = self.times.lock() else { return 0 };
        let mut running: Vec<_> = times.running.iter().filter_map(|(_, id)| run_and_wait_ns_of(*id).ok()).collect();
        running.extend(times.programs.iter().map(|(_, thread)| (thread.run_ns, thread.wait_ns)));
        let run_ns = times.run_ns + running.iter().map(|(run, _)| run).sum::<u64>();
        let ended = times.worst.iter().map(|thread| (thread.run_ns, thread.wait_ns));
        ended.chain(running).map(|(run, wait)| for_others(run, wait, run_ns)).max().unwrap_or(0)
    }

    /// How long all threads together have waited for a processor so far, whoever used it, nanoseconds.
    pub fn waited_ns(&self) -> u64 {
        let Ok(times) = self.times.lock() else { return 0 };
        let running = times.running.iter().filter_map(|(_, id)| run_and_wait_ns_of(*id).ok());
        let programs = times.programs.iter().map(|(_, thread)| thread.wait_ns).sum::<u64>();
        times.wait_ns + programs + running.map(|(_, wait)| wait).sum::<u64>()
    }

    /// Replaces the observations of third-party programs' threads; `None` if nothing can be seen of them.
    pub fn note_programs(&self, threads: Option<Vec<(Side, Starvation)>>) {
        if let Ok(mut times) = self.times.lock() {
            times.programs_hidden = threads.is_none();
            times.programs = threads.unwrap_or_default();
        }
    }

    /// Whether some threads' waits are unknown.
    pub fn are_hidden(&self) -> bool {
        self.times.lock().is_ok_and(|times| times.programs_hidden)
    }

    /// Each host's longest-waiting thread, once all have ended: client, server.
    pub fn worst(&self) -> [Starvation; 2] {
        let Ok(times) = self.times.lock() else { return Default::default() };
        let run_ns = times.run_ns + times.programs.iter().map(|(_, thread)| thread.run_ns).sum::<u64>();
        let adjusted =
            |thread: Starvation| Starvation { wait_ns: for_others(thread.run_ns, thread.wait_ns, run_ns), ..thread };
        [Side::Forward, Side::Reverse].map(|side| {
            let programs = times.programs.iter().filter(|(of, _)| *of == side).map(|(_, thread)| adjusted(*thread));
            let own = adjusted(times.worst[side as usize]);
            programs.fold(own, |worst, thread| if thread.wait_ns > worst.wait_ns { thread } else { worst })
        })
    }
}

/// A thread's wait for other cells' threads: it ran `run_ns`, its cell's threads `all_ran_ns` in total.
const fn for_others(run_ns: u64, wait_ns: u64, all_ran_ns: u64) -> u64 {
    wait_ns.saturating_sub(all_ran_ns.saturating_sub(run_ns))
}

/// A thread counted until this is dropped.
#[derive(Debug)]
pub struct Entered<'a> {
    threads: &'a Threads,
    side: Side,
    id: i32,
    before: (u64, u64),
    started: Instant,
    _sampled: Option<SampledThread<'a>>,
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let now = run_and_wait_ns().unwrap_or_default();
        let (run_ns, wait_ns) = (now.0.saturating_sub(self.before.0), now.1.saturating_sub(self.before.1));
        let elapsed_ns = self.started.elapsed().as_nanos() as u64;
        if let Ok(mut times) = self.threads.times.lock() {
            times.running.retain(|(_, id)| *id != self.id);
            times.run_ns += run_ns;
            times.wait_ns += wait_ns;
            let worst = &mut times.worst[self.side as usize];
            if wait_ns >= worst.wait_ns {
                *worst = Starvation { run_ns, wait_ns, elapsed_ns };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_counted_while_it_runs_and_afterwards() {
        let threads = Threads::default();
        let entered = threads.enter(Side::Reverse);
        assert_eq!(threads.times.lock().unwrap().running.len(), 1);
        assert!(run_and_wait_ns_of(entered.id).is_ok());
        drop(entered);
        assert!(threads.times.lock().unwrap().running.is_empty());
        let [client, server] = threads.worst();
        assert_eq!(client, Starvation::default());
        assert!(server.elapsed_ns > 0);
    }

    #[test]
    fn the_thread_that_waited_longest_represents_its_host() {
        let threads = Threads::default();
        let very_long = 1 << 60;
        threads.times.lock().unwrap().worst[0] = Starvation { run_ns: 0, wait_ns: very_long, elapsed_ns: very_long };
        drop(threads.enter(Side::Forward));
        assert_eq!(threads.worst()[0].elapsed_ns, very_long);
    }

    #[test]
    fn all_waits_are_added_up_whoever_had_the_processor() {
        let threads = Threads::default();
        threads.times.lock().unwrap().wait_ns = 250;
        let entered = threads.enter(Side::Forward);
        assert!(threads.waited_ns() >= 250);
        drop(entered);
        assert!(threads.waited_ns() >= 250);
    }

    #[test]
    fn threads_of_programs_count_as_those_of_the_cell() {
        let threads = Threads::default();
        let seen = |run_ns, wait_ns| Starvation { run_ns, wait_ns, elapsed_ns: 1000 };
        threads.note_programs(Some(vec![(Side::Forward, seen(300, 250)), (Side::Reverse, seen(200, 90))]));
        assert_eq!(threads.worst().map(|thread| thread.wait_ns), [50, 0]);
        assert_eq!((threads.longest_wait_ns(), threads.waited_ns(), threads.are_hidden()), (50, 340, false));
        threads.note_programs(None);
        assert!(threads.are_hidden() && threads.waited_ns() == 0);
    }

    #[test]
    fn waiting_for_threads_of_the_same_cell_does_not_count() {
        let threads = Threads::default();
        {
            let mut times = threads.times.lock().unwrap();
            times.worst[0] = Starvation { run_ns: 300, wait_ns: 250, elapsed_ns: 1000 };
            times.run_ns = 300 + 200;
        }
        assert_eq!(threads.worst()[0], Starvation { run_ns: 300, wait_ns: 50, elapsed_ns: 1000 });
        assert_eq!(threads.longest_wait_ns(), 50);
    }
}
