//! How long a workload's threads waited for a processor because of others: while they run, and afterwards.
//!
//! What a thread waits for its own cell is part of what is measured: on a small machine both hosts share a processor. So
//! from the wait of each thread is taken what the other threads of the cell ran.

use crate::realtime::{run_and_wait_ns, run_and_wait_ns_of};
use crate::sampler::{SampledThread, Sampler};
use crosswind_ledger::Starvation;
use crosswind_path::Side;
use std::sync::Mutex;
use std::time::Instant;

/// The threads of a workload. The kernel's scheduler counts for each what it ran and what it waited.
#[derive(Debug, Default)]
pub struct Threads {
    state: Mutex<State>,
    sampler: Option<Sampler>,
}

#[derive(Debug, Default)]
struct State {
    running: Vec<(Side, i32)>,
    /// Of each host, the thread that waited most, of those that have ended.
    worst: [Starvation; 2],
    /// What all that have ended ran.
    run_ns: u64,
}

impl Threads {
    /// Threads that `sampler` samples, if there is one.
    pub fn sampled_by(sampler: Option<Sampler>) -> Self {
        Self { sampler, ..Self::default() }
    }

    /// What samples them.
    pub const fn sampler(&self) -> Option<&Sampler> {
        self.sampler.as_ref()
    }

    /// Counts the calling thread to the host that sends in the direction of `side`, until the guard is dropped.
    pub fn enter(&self, side: Side) -> Entered<'_> {
        let id = nix::unistd::gettid().as_raw();
        if let Ok(mut state) = self.state.lock() {
            state.running.push((side, id));
        }
        let started = Instant::now();
        // What it waited before, to be started at all, delayed nothing that is measured.
        let before = run_and_wait_ns().unwrap_or_default();
        // A thread that can have no timer is not sampled; the workload does not depend on it.
        let sampled = self.sampler.as_ref().and_then(|sampler| sampler.enter(side).ok());
        Entered { threads: self, side, id, before, started, _sampled: sampled }
    }

    /// The longest that one thread has waited for others than its own cell so far, nanoseconds.
    pub fn longest_wait_ns(&self) -> u64 {
        let Ok(state) = self.state.lock() else { return 0 };
        let running: Vec<_> = state.running.iter().filter_map(|(_, id)| run_and_wait_ns_of(*id).ok()).collect();
        let run_ns = state.run_ns + running.iter().map(|(run, _)| run).sum::<u64>();
        let ended = state.worst.iter().map(|one| (one.run_ns, one.wait_ns));
        ended.chain(running).map(|(run, wait)| for_others(run, wait, run_ns)).max().unwrap_or(0)
    }

    /// Of each host, the thread that waited most, once all have ended: client, server.
    pub fn worst(&self) -> [Starvation; 2] {
        let Ok(state) = self.state.lock() else { return Default::default() };
        state.worst.map(|one| Starvation { wait_ns: for_others(one.run_ns, one.wait_ns, state.run_ns), ..one })
    }
}

/// What a thread that `run` and waited did not wait for the rest of `all_ran`.
const fn for_others(run_ns: u64, wait_ns: u64, all_ran_ns: u64) -> u64 {
    wait_ns.saturating_sub(all_ran_ns.saturating_sub(run_ns))
}

/// A thread that is counted.
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
        if let Ok(mut state) = self.threads.state.lock() {
            state.running.retain(|(_, id)| *id != self.id);
            state.run_ns += run_ns;
            let worst = &mut state.worst[self.side as usize];
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
        assert_eq!(threads.state.lock().unwrap().running.len(), 1);
        assert!(run_and_wait_ns_of(entered.id).is_ok());
        drop(entered);
        assert!(threads.state.lock().unwrap().running.is_empty());
        let [client, server] = threads.worst();
        assert_eq!(client, Starvation::default());
        assert!(server.elapsed_ns > 0);
    }

    #[test]
    fn the_thread_that_waited_most_stands_for_its_host() {
        let threads = Threads::default();
        let most = 1 << 60;
        threads.state.lock().unwrap().worst[0] = Starvation { run_ns: 0, wait_ns: most, elapsed_ns: most };
        drop(threads.enter(Side::Forward));
        assert_eq!(threads.worst()[0].elapsed_ns, most);
    }

    #[test]
    fn waiting_for_the_own_cell_does_not_count() {
        let threads = Threads::default();
        {
            let mut state = threads.state.lock().unwrap();
            state.worst[0] = Starvation { run_ns: 300, wait_ns: 250, elapsed_ns: 1000 };
            state.run_ns = 300 + 200;
        }
        assert_eq!(threads.worst()[0], Starvation { run_ns: 300, wait_ns: 50, elapsed_ns: 1000 });
        assert_eq!(threads.longest_wait_ns(), 50);
    }
}
