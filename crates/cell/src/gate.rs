//! Holds a cell's workload and flows until all programs beside the workload are ready: earlier measurements would lack
//! their company.

use crosswind_units::Instant;
use std::sync::{Condvar, Mutex, PoisonError};

/// Opens once, or never.
#[derive(Debug)]
pub struct Gate {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// So many programs are not ready yet.
    Closed(usize),
    Open(Instant),
    Shut,
}

impl Gate {
    /// For so many programs. Without any it is open, since `now`.
    pub fn new(programs: usize, now: Instant) -> Self {
        let state = if programs == 0 { State::Open(now) } else { State::Closed(programs) };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// One is ready.
    pub fn arrive(&self, now: Instant) {
        self.change(|state| match state {
            State::Closed(1) => State::Open(now),
            State::Closed(programs) => State::Closed(programs - 1),
            other => other,
        });
    }

    /// One never will be.
    pub fn shut(&self) {
        self.change(|state| if matches!(state, State::Closed(_)) { State::Shut } else { state });
    }

    /// When it opened, once it has; none if it never does.
    pub fn wait(&self) -> Option<Instant> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            match *state {
                State::Open(since) => return Some(since),
                State::Shut => return None,
                State::Closed(_) => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    fn change(&self, change: impl FnOnce(State) -> State) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = change(*state);
        drop(state);
        self.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_with_the_last_program_and_not_at_all_without_one() {
        let at = Instant::from_nanos;
        assert_eq!(Gate::new(0, at(5)).wait(), Some(at(5)));
        let gate = Gate::new(2, at(5));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| gate.wait());
            gate.arrive(at(7));
            gate.arrive(at(9));
            gate.shut();
            assert_eq!(waiting.join().unwrap(), Some(at(9)));
        });
        let gate = Gate::new(2, at(5));
        gate.arrive(at(7));
        gate.shut();
        gate.arrive(at(9));
        assert_eq!(gate.wait(), None);
    }
}
