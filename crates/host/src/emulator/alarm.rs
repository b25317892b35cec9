//! How long before a packet is due the loop stops sleeping and watches the clock instead.
//!
//! A sleeper wakes late: by a few microseconds on bare metal, by tens in a virtual machine. The margin follows the lateness
//! that was seen, as a retransmission timer follows the round-trip time (RFC 6298): its mean and four times its deviation.
//!
//! Watching is rationed. The kernel takes the processor away from a real-time thread that never sleeps, for 50 ms of every
//! second (`sched_rt_runtime_us`); a packet that a sleeper hands out late by tens of microseconds is better than that.

use crosswind_units::{Duration, Instant};

/// More than this is not the timer's lateness but somebody else on the processor.
const MOST_NS: i64 = 100_000;
/// What a timer is taken to be late by before any was seen.
const FIRST_NS: i64 = 30_000;
/// Share of time that may be spent watching by who has the processor alone. With the work itself it has to stay below the
/// kernel's 95 %.
pub const WHOLE_SHARE: f64 = 0.7;
/// What can be saved up with the whole share, so that bursts are watched whole; with less of a share, so much less.
const SAVINGS_NS: i64 = 50_000_000;
/// Calls further apart than this had other work, or sleep, between them.
const PAUSE_NS: i64 = 20_000;

/// The margin before a due time.
#[derive(Debug)]
pub struct Alarm {
    mean_ns: i64,
    deviation_ns: i64,
    /// What a second of sleep earns, in seconds of watching.
    share: f64,
    savings_ns: i64,
    credit_ns: i64,
    counted: Instant,
}

impl Alarm {
    /// An alarm that may watch the clock for `share` of the time; with 0 it only sleeps.
    pub fn new(share: f64) -> Self {
        let savings_ns = (SAVINGS_NS as f64 * share / WHOLE_SHARE) as i64;
        Self {
            mean_ns: FIRST_NS,
            deviation_ns: FIRST_NS / 4,
            share,
            savings_ns,
            credit_ns: savings_ns,
            counted: Instant::ZERO,
        }
    }

    /// When to wake up for something due at `due`, if it is `now`. A time that has come means: watch the clock.
    pub fn before(&mut self, due: Instant, now: Instant) -> Instant {
        let margin = if self.credit_ns > 0 { self.margin() } else { Duration::ZERO };
        let alarm = Instant::from_nanos(due.as_nanos().saturating_sub(margin.as_nanos()));
        self.count(now, alarm <= now);
        alarm
    }

    /// A timer fired late by `late`.
    pub fn handle_wakeup(&mut self, late: Duration) {
        let late = (late.as_nanos() as i64).min(MOST_NS);
        let error = late - self.mean_ns;
        self.mean_ns += error / 8;
        self.deviation_ns += (error.abs() - self.deviation_ns) / 4;
    }

    fn margin(&self) -> Duration {
        let margin = if self.share > 0.0 { (self.mean_ns + 4 * self.deviation_ns).clamp(0, MOST_NS) } else { 0 };
        Duration::from_nanos(margin as u64)
    }

    /// Earns the ration of the time since the last call, and spends that time when it was watched.
    fn count(&mut self, now: Instant, watching: bool) {
        let elapsed = now.saturating_since(self.counted).as_nanos().min(SAVINGS_NS as u64) as i64;
        self.counted = now;
        self.credit_ns += (elapsed as f64 * self.share) as i64;
        if watching && elapsed < PAUSE_NS {
            self.credit_ns -= elapsed;
        }
        self.credit_ns = self.credit_ns.min(self.savings_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: Instant = Instant::from_nanos(1_000_000);

    fn margin_ns(alarm: &mut Alarm) -> u64 {
        DUE.as_nanos() - alarm.before(DUE, Instant::ZERO).as_nanos()
    }

    /// Something is always due in 10 us: one look a microsecond, for 2 s.
    fn watched_us(alarm: &mut Alarm) -> usize {
        (0..2_000_000)
            .filter(|us| {
                let now = Instant::from_nanos(us * 1_000);
                alarm.before(now + Duration::from_micros(10), now) <= now
            })
            .count()
    }

    #[test]
    fn watching_is_rationed() {
        let watched = watched_us(&mut Alarm::new(WHOLE_SHARE));
        // 70 % of the time, and the savings of 50 ms that it starts with.
        assert!((1_400_000..1_460_000).contains(&watched), "{watched}");
    }

    #[test]
    fn the_margin_settles_on_a_steady_lateness() {
        let mut alarm = Alarm::new(WHOLE_SHARE);
        for _ in 0..200 {
            alarm.handle_wakeup(Duration::from_micros(8));
        }
        assert!((7_900..9_000).contains(&margin_ns(&mut alarm)), "{}", margin_ns(&mut alarm));
    }

    #[test]
    fn a_small_share_is_kept_to() {
        let watched = watched_us(&mut Alarm::new(0.01));
        // 1 % of 2 s, and savings of 0.7 ms.
        assert!((20_000..22_000).contains(&watched), "{watched}");
    }

    #[test]
    fn one_long_sleep_does_not_make_it_watch_for_long() {
        let mut alarm = Alarm::new(WHOLE_SHARE);
        alarm.handle_wakeup(Duration::from_secs(1));
        assert_eq!(margin_ns(&mut alarm), MOST_NS as u64);
    }

    #[test]
    fn without_a_processor_of_its_own_it_only_sleeps() {
        assert_eq!(margin_ns(&mut Alarm::new(0.0)), 0);
    }
}
