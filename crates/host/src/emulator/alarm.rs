//! Decides how long before a packet is due the emulator stops sleeping and watches the clock instead.
//!
//! A sleeping thread wakes late: by a few microseconds on bare metal, by tens in a virtual machine. The margin follows
//! the measured lateness, as a retransmission timer follows the round-trip time (RFC 6298): it is the mean and four
//! times the deviation.
//!
//! Watching is rationed. The kernel takes the processor away from a never-sleeping real-time thread for 50 ms in every
//! second (`sched_rt_runtime_us`), which is worse than packets tens of microseconds late.

use crosswind_units::{Duration, Instant};

/// A greater lateness comes from another thread on the processor and not from the timer.
const MAX_LATENESS_NS: i64 = 100_000;
const INITIAL_LATENESS_NS: i64 = 30_000;
/// Share of time for watching the clock with its own processor; together with the work, below the kernel's 95 %.
pub const SHARE_WHEN_ALONE: f64 = 0.7;
/// The largest saved credit with that share, enough for a whole burst. A smaller share has proportionally less.
const MAX_CREDIT_NS: i64 = 50_000_000;
/// Between calls further apart than this, the thread worked or slept and did not watch.
const MAX_WATCHING_GAP_NS: i64 = 20_000;

/// The margin before a due time.
#[derive(Debug)]
pub struct Alarm {
    mean_ns: i64,
    deviation_ns: i64,
    /// Seconds of watching earned per second.
    share: f64,
    max_credit_ns: i64,
    credit_ns: i64,
    last_call: Instant,
}

impl Alarm {
    /// An alarm watching the clock for `share` of the time; with 0 it only sleeps.
    pub fn new(share: f64) -> Self {
        let max_credit_ns = (MAX_CREDIT_NS as f64 * share / SHARE_WHEN_ALONE) as i64;
        Self {
            mean_ns: INITIAL_LATENESS_NS,
            deviation_ns: INITIAL_LATENESS_NS / 4,
            share,
            max_credit_ns,
            credit_ns: max_credit_ns,
            last_call: Instant::ZERO,
        }
    }

    /// When to wake up at `now` for a packet at `due`. A time not after `now` means: watch the clock.
    pub fn before(&mut self, due: Instant, now: Instant) -> Instant {
        let margin = if self.credit_ns > 0 { self.margin() } else { Duration::ZERO };
        let alarm = Instant::from_nanos(due.as_nanos().saturating_sub(margin.as_nanos()));
        self.account(now, alarm <= now);
        alarm
    }

    /// A timer has fired late by `late`.
    pub fn handle_wakeup(&mut self, late: Duration) {
        let late = (late.as_nanos() as i64).min(MAX_LATENESS_NS);
        let error = late - self.mean_ns;
        self.mean_ns += error / 8;
        self.deviation_ns += (error.abs() - self.deviation_ns) / 4;
    }

    fn margin(&self) -> Duration {
        let margin =
            if self.share > 0.0 { (self.mean_ns + 4 * self.deviation_ns).clamp(0, MAX_LATENESS_NS) } else { 0 };
        Duration::from_nanos(margin as u64)
    }

    /// Adds the credit earned since the last call, and subtracts that time if spent watching.
    fn account(&mut self, now: Instant, watching: bool) {
        let elapsed = now.saturating_since(self.last_call).as_nanos().min(MAX_CREDIT_NS as u64) as i64;
        self.last_call = now;
        self.credit_ns += (elapsed as f64 * self.share) as i64;
        if watching && elapsed < MAX_WATCHING_GAP_NS {
            self.credit_ns -= elapsed;
        }
        self.credit_ns = self.credit_ns.min(self.max_credit_ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE: Instant = Instant::from_nanos(1_000_000);

    fn margin_ns(alarm: &mut Alarm) -> u64 {
        DUE.as_nanos() - alarm.before(DUE, Instant::ZERO).as_nanos()
    }

    /// How many of 2,000,000 microseconds are spent watching when a packet is always due in 10 us.
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
        let watched = watched_us(&mut Alarm::new(SHARE_WHEN_ALONE));
        // 70 % of the time, and the initial credit of 50 ms.
        assert!((1_400_000..1_460_000).contains(&watched), "{watched}");
    }

    #[test]
    fn the_margin_approaches_a_steady_lateness() {
        let mut alarm = Alarm::new(SHARE_WHEN_ALONE);
        for _ in 0..200 {
            alarm.handle_wakeup(Duration::from_micros(8));
        }
        assert!((7_900..9_000).contains(&margin_ns(&mut alarm)), "{}", margin_ns(&mut alarm));
    }

    #[test]
    fn a_small_share_is_not_exceeded() {
        let watched = watched_us(&mut Alarm::new(0.01));
        // 1 % of 2 s, and a credit of 0.7 ms.
        assert!((20_000..22_000).contains(&watched), "{watched}");
    }

    #[test]
    fn a_single_long_delay_does_not_make_the_margin_long() {
        let mut alarm = Alarm::new(SHARE_WHEN_ALONE);
        alarm.handle_wakeup(Duration::from_secs(1));
        assert_eq!(margin_ns(&mut alarm), MAX_LATENESS_NS as u64);
    }

    #[test]
    fn without_a_share_the_emulator_only_sleeps() {
        assert_eq!(margin_ns(&mut Alarm::new(0.0)), 0);
    }
}
