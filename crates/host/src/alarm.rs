//! How long before a packet is due the loop stops sleeping and watches the clock instead.
//!
//! A sleeper wakes late: by a few microseconds on bare metal, by tens in a virtual machine. The margin follows the lateness
//! that was seen, as a retransmission timer follows the round-trip time (RFC 6298): its mean and four times its deviation.

use crosswind_units::{Duration, Instant};

/// More than this is not the timer's lateness but somebody else on the processor.
const MOST_NS: i64 = 100_000;
/// What a timer is taken to be late by before any was seen.
const FIRST_NS: i64 = 30_000;

/// The margin before a due time.
#[derive(Debug)]
pub struct Alarm {
    mean_ns: i64,
    deviation_ns: i64,
    /// Watching the clock needs a processor of its own.
    watches: bool,
}

impl Alarm {
    /// An alarm that `watches` the clock at the end, or one that only sleeps.
    pub const fn new(watches: bool) -> Self {
        Self { mean_ns: FIRST_NS, deviation_ns: FIRST_NS / 4, watches }
    }

    /// When to wake up for something due at `due`.
    pub fn before(&self, due: Instant) -> Instant {
        Instant::from_nanos(due.as_nanos().saturating_sub(self.margin().as_nanos()))
    }

    /// A timer fired late by `late`.
    pub fn handle_wakeup(&mut self, late: Duration) {
        let late = (late.as_nanos() as i64).min(MOST_NS);
        let error = late - self.mean_ns;
        self.mean_ns += error / 8;
        self.deviation_ns += (error.abs() - self.deviation_ns) / 4;
    }

    fn margin(&self) -> Duration {
        let margin = if self.watches { (self.mean_ns + 4 * self.deviation_ns).clamp(0, MOST_NS) } else { 0 };
        Duration::from_nanos(margin as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: Instant = Instant::from_nanos(1_000_000);

    fn margin_ns(alarm: &Alarm) -> u64 {
        DUE.as_nanos() - alarm.before(DUE).as_nanos()
    }

    #[test]
    fn the_margin_settles_on_a_steady_lateness() {
        let mut alarm = Alarm::new(true);
        for _ in 0..200 {
            alarm.handle_wakeup(Duration::from_micros(8));
        }
        assert!((7_900..9_000).contains(&margin_ns(&alarm)), "{}", margin_ns(&alarm));
    }

    #[test]
    fn one_long_sleep_does_not_make_it_watch_for_long() {
        let mut alarm = Alarm::new(true);
        alarm.handle_wakeup(Duration::from_secs(1));
        assert_eq!(margin_ns(&alarm), MOST_NS as u64);
    }

    #[test]
    fn without_a_processor_of_its_own_it_only_sleeps() {
        assert_eq!(margin_ns(&Alarm::new(false)), 0);
    }
}
