//! When a controller computes its probability anew: at regular times.

use crosswind_units::{Duration, Instant};

/// A controller's updates.
pub struct Updates {
    next: Instant,
}

impl Updates {
    /// The first is due after `every`.
    pub fn new(every: Duration) -> Self {
        Self { next: Instant::ZERO + every }
    }

    /// The time of the next update due by `now`. A controller at rest skips them: nothing changes until a packet waits.
    pub fn due(&mut self, now: Instant, every: Duration, is_at_rest: bool) -> Option<Instant> {
        let due = Some(self.next).filter(|next| *next <= now)?;
        let updates = if is_at_rest { (now - due).as_nanos() / every.as_nanos() + 1 } else { 1 };
        self.next += Duration::from_nanos(updates * every.as_nanos());
        (!is_at_rest).then_some(due)
    }
}
