//! Paces the emulator's intake, so that packets leave in time.
//!
//! A packet costs the loop time twice: when it is read, and a delay later when it is written. A loop reading as fast as
//! it can takes in more than it can write later, and everything behind that leaves late. So a packet is charged with
//! both when it is read, unless the path's link lets packets out more slowly than the loop can write them. With the
//! credit used up, packets stay in the hosts' devices for a while: the device's queue fills, and senders wait as for a
//! slow device. That time is counted, because packets waiting there are not in the path yet.

use crosswind_path::Side;
use crosswind_units::{Duration, Instant};

/// Nanoseconds of work per 100 ns: together with watching the clock, less than a real-time thread's 95 %.
const PERCENT: i64 = 85;
/// The largest saved credit: so much work may come at once without being held.
const MAX_CREDIT_NS: i64 = 400_000;
/// The credit at which reading resumes. With less, the loop would sleep for times shorter than a wake-up.
const ENOUGH_NS: i64 = 200_000;
/// A longer read or write was interrupted.
const LONGEST_NS: u64 = 50_000;

/// The assumed time for a read or a write before any measurement: the first one may have been interrupted.
const USUAL_NS: u64 = 2_000;

/// Whether packets may be read.
#[derive(Debug)]
pub struct Intake {
    /// Whether handling packets takes time. In virtual time it takes none, and a measurement shows others' time.
    holds: bool,
    /// How long the path's link takes for a full packet, forward and reverse: 0 without a link.
    link_ns: [u64; 2],
    read_ns: u64,
    write_ns: u64,
    credit_ns: i64,
    counted: Instant,
    held_since: Option<Instant>,
    held: Duration,
}

impl Intake {
    /// For a path whose links need these times for a full packet, forward and reverse; none without a link.
    pub fn new(links: [Option<Duration>; 2], virtual_time: bool) -> Self {
        Self {
            holds: !virtual_time,
            link_ns: links.map(|time| time.map_or(0, Duration::as_nanos)),
            read_ns: USUAL_NS,
            write_ns: USUAL_NS,
            credit_ns: MAX_CREDIT_NS,
            counted: Instant::default(),
            held_since: None,
            held: Duration::ZERO,
        }
    }

    /// Whether a packet may be read at `now`. To be asked only where one may wait.
    pub fn admits(&mut self, now: Instant) -> bool {
        if !self.holds {
            return true;
        }
        let passed = now.saturating_since(self.counted).as_nanos().min(MAX_CREDIT_NS as u64 * 2) as i64;
        self.counted = now;
        self.credit_ns = (self.credit_ns + passed * PERCENT / 100).min(MAX_CREDIT_NS);
        let needed = if self.held_since.is_some() { ENOUGH_NS } else { 0 };
        if self.credit_ns < needed {
            self.held_since.get_or_insert(now);
            return false;
        }
        if let Some(since) = self.held_since.take() {
            self.held += now.saturating_since(since);
        }
        true
    }

    /// When reading goes on, if packets are held at `now`.
    pub fn resumes(&self, now: Instant) -> Option<Instant> {
        self.held_since?;
        Some(now + Duration::from_nanos(((ENOUGH_NS - self.credit_ns).max(0) * 100 / PERCENT) as u64))
    }

    /// A packet of `side` was read in `time`. It has to be written, too.
    pub fn handle_read(&mut self, side: Side, time: Duration) {
        self.read_ns = mean(self.read_ns, time);
        let both = (self.read_ns + self.write_ns) as i64;
        let is_spaced = self.link_ns[side as usize] as i64 * PERCENT / 100 > both;
        self.credit_ns -= if is_spaced { self.read_ns as i64 } else { both };
    }

    /// A packet was written in `time`.
    pub fn handle_write(&mut self, time: Duration) {
        self.write_ns = mean(self.write_ns, time);
    }

    /// For how long packets were held so far.
    pub const fn held(&self) -> Duration {
        self.held
    }
}

fn mean(before: u64, time: Duration) -> u64 {
    (before * 15 + time.as_nanos().min(LONGEST_NS)) / 16
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets are always there, with 2 us to read and 3 us to write each: reads in 100 ms, and time held.
    fn saturated(step: Duration) -> (u64, Duration) {
        let mut intake = Intake::new([None, None], false);
        let (mut now, mut read) = (Instant::from_nanos(1_000_000), 0);
        let end = now + Duration::from_millis(100);
        while now < end {
            if intake.admits(now) {
                intake.handle_read(Side::Forward, Duration::from_micros(2));
                intake.handle_write(Duration::from_micros(3));
                read += 1;
                now += Duration::from_micros(2);
            } else {
                assert!(intake.resumes(now).is_some_and(|resumes| resumes >= now));
                now += step;
            }
        }
        (read, intake.held())
    }

    #[test]
    fn no_more_is_read_than_can_be_read_and_written() {
        let (read, held) = saturated(Duration::from_micros(1));
        // 85 % of 100 ms is 17,000 packets of 5 us, and the credit 80 more; the first writes are estimated below their
        // cost.
        assert!((16_900..=17_150).contains(&read), "{read}");
        // Reading takes 34 ms; packets leave in the other 66.
        assert!((65..=67).contains(&(held.as_nanos() / 1_000_000)), "{held:?}");
    }

    #[test]
    fn packets_that_come_slower_than_they_are_handled_are_never_held() {
        let mut intake = Intake::new([None, None], false);
        for number in 0..10_000 {
            assert!(intake.admits(Instant::from_nanos(1_000_000 + number * 6_000)));
            intake.handle_read(Side::Forward, Duration::from_micros(2));
            intake.handle_write(Duration::from_micros(3));
        }
        assert_eq!((intake.held(), intake.resumes(Instant::from_nanos(0))), (Duration::ZERO, None));
    }

    #[test]
    fn in_virtual_time_no_packet_is_held() {
        let mut intake = Intake::new([None, None], true);
        for _ in 0..10_000 {
            assert!(intake.admits(Instant::from_nanos(1_000_000)));
            intake.handle_read(Side::Forward, Duration::from_micros(50));
            intake.handle_write(Duration::from_micros(50));
        }
        assert_eq!(intake.held(), Duration::ZERO);
    }

    #[test]
    fn a_burst_before_a_slow_link_is_taken_in_at_once() {
        let packets = |link: Option<Duration>| {
            let mut intake = Intake::new([link, None], false);
            let taken = (0..300).take_while(|number| {
                let admitted = intake.admits(Instant::from_nanos(1_000_000 + number * 2_000));
                intake.handle_read(Side::Forward, Duration::from_micros(2));
                intake.handle_write(Duration::from_micros(3));
                admitted
            });
            taken.count()
        };
        // 1500 bytes take 120 us at 100 Mbit/s, and 3 us at 4 Gbit/s.
        assert_eq!(packets(Some(Duration::from_micros(120))), 300);
        // The credit lasts for 400 / (5 - 1.7) packets, as 2 us earn 1.7, and some more while a write is
        // underestimated.
        assert_eq!([Some(Duration::from_micros(3)), None].map(packets), [127; 2]);
    }
}
