//! When a controller computes its probability anew: at regular times.

use crosswind_units::{Duration, Instant};

/// The updates of a controller.
pub struct Updates {
    next: Instant,
}

impl Updates {
    /// The first is due after `every`.
    pub fn new(every: Duration) -> Self {
        Self { next: Instant::ZERO + every }
    }

    /// The time of the next update that is due by `now`. Those of a controller at rest are skipped: nothing changes until a packet waits.
    pub fn due(&mut self, now: Instant, every: Duration, is_at_rest: bool) -> Option<Instant> {
        let due = Some(self.next).filter(|next| *next <= now)?;
        let updates = if is_at_rest { (now - due).as_nanos() / every.as_nanos() + 1 } else { 1 };
        self.next += Duration::from_nanos(updates * every.as_nanos());
        (!is_at_rest).then_some(due)
    }
}
