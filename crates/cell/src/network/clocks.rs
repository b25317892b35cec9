//! The offset between two machines' clocks, from readings in both directions (RFC 5905, section 8).

use crosswind_host::wall_clock_error_ns;
use crosswind_units::Instant;
use nix::time::{ClockId, clock_gettime};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// One message there and back: when it left and came back by the client's clock, when it came and left again by the server's;
/// nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug)]
pub struct Reading {
    pub left: u64,
    pub came: u64,
    pub left_again: u64,
    pub came_back: u64,
    /// The client's and the server's wall clock.
    pub walls: [WallClock; 2],
}

/// A machine's wall clock.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallClock {
    /// Its lead over `CLOCK_MONOTONIC`, nanoseconds.
    pub ahead_ns: i64,
    /// By how much it may be wrong, nanoseconds; none where nobody sets it.
    pub error_ns: Option<u64>,
}

impl Reading {
    /// How long the message was on its way, both ways together.
    pub const fn round_trip_ns(&self) -> u64 {
        (self.came_back - self.left).saturating_sub(self.left_again.saturating_sub(self.came))
    }

    /// The server's clock less the client's, if both wall clocks are true, and the maximum error.
    fn by_wall_clocks(&self) -> Option<(i64, u64)> {
        let [client, server] = self.walls;
        let error = client.error_ns?.saturating_add(server.error_ns?);
        Some((client.ahead_ns.saturating_sub(server.ahead_ns), error))
    }

    /// The server's clock less the client's, if both ways took equally long. It is off by half the round trip at most.
    fn offset_ns(&self) -> i64 {
        let there = i128::from(self.came) - i128::from(self.left);
        let back = i128::from(self.left_again) - i128::from(self.came_back);
        i64::try_from(i128::midpoint(there, back)).unwrap_or(0)
    }
}

/// How the clocks were compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Method {
    /// Both machines are one: they have one clock.
    #[serde(rename = "same kernel")]
    SameKernel,
    /// By messages there and back: the offset is uncertain by half of the shortest round trip.
    #[serde(rename = "both ways")]
    BothWays,
    /// Both machines' wall clocks are set (by NTP or PTP), and their kernels know how well.
    #[serde(rename = "synchronised")]
    Synchronised,
}

/// How far the clocks are apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ClockComparison {
    /// The server's clock less the client's, as it was before the cell, nanoseconds.
    pub offset_ns: i64,
    /// By how much that may be wrong, nanoseconds.
    pub uncertainty_ns: u64,
    /// How much the offset grew until after the cell, nanoseconds.
    pub drift_ns: i64,
    /// How it was found out.
    pub method: Method,
    /// Whether it is known well enough for one-way delays: to a quarter of the shortest round trip.
    pub one_way: bool,
}

/// The clocks before and after a cell.
#[derive(Clone, Copy, Debug)]
pub struct Comparison {
    before: Reading,
    after: Reading,
    same_kernel: bool,
}

impl Comparison {
    /// From the shortest readings before and after. `same_kernel`: the two machines claim to be one.
    pub const fn new(before: Reading, after: Reading, same_kernel: bool) -> Self {
        Self { before, after, same_kernel }
    }

    /// The shortest round trip.
    pub fn round_trip_ns(self) -> u64 {
        self.before.round_trip_ns().min(self.after.round_trip_ns())
    }

    /// As the result has it.
    pub fn report(self) -> ClockComparison {
        if self.has_one_clock() {
            return ClockComparison {
                offset_ns: 0,
                uncertainty_ns: 0,
                drift_ns: 0,
                method: Method::SameKernel,
                one_way: true,
            };
        }
        let half = self.before.round_trip_ns().max(self.after.round_trip_ns()).div_ceil(2);
        let [before, after] = [self.before.by_wall_clocks(), self.after.by_wall_clocks()];
        let (method, offset_ns, later_ns, uncertainty_ns) = match before.zip(after) {
            Some(((offset, error), (later, later_error))) if error.max(later_error) < half => {
                (Method::Synchronised, offset, later, error.max(later_error))
            }
            _ => (Method::BothWays, self.before.offset_ns(), self.after.offset_ns(), half),
        };
        ClockComparison {
            offset_ns,
            uncertainty_ns,
            drift_ns: later_ns - offset_ns,
            method,
            one_way: uncertainty_ns.saturating_mul(4) <= self.round_trip_ns(),
        }
    }

    /// The server's time `server_ns` on the client's clock with zero at `origin_ns`. The offset changes evenly from the
    /// first reading to the second.
    pub fn to_client(self, server_ns: u64, origin_ns: u64) -> Instant {
        let report = self.report();
        let (from, to) = (self.before.came, self.after.came);
        let share = if to > from { (server_ns.saturating_sub(from) as f64 / (to - from) as f64).min(1.0) } else { 0.0 };
        let offset = i128::from(report.offset_ns) + (report.drift_ns as f64 * share) as i128;
        let ns = i128::from(server_ns) - offset - i128::from(origin_ns);
        Instant::from_nanos(u64::try_from(ns).unwrap_or(0))
    }

    /// Two machines claiming to be one must also share the time: containers may have own clocks (`time_namespaces(7)`).
    fn has_one_clock(self) -> bool {
        let fits = |reading: &Reading| reading.left <= reading.came && reading.left_again <= reading.came_back;
        self.same_kernel && fits(&self.before) && fits(&self.after)
    }
}

/// `CLOCK_MONOTONIC`, nanoseconds.
pub fn own_clock() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// This machine's wall clock.
pub fn own_wall_clock() -> WallClock {
    let wall = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |t| t.tv_sec() * 1_000_000_000 + t.tv_nsec());
    WallClock { ahead_ns: wall - own_clock() as i64, error_ns: wall_clock_error_ns() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    /// A message with delays `there` and `back`, at a server whose clock is `ahead`.
    fn reading(left: u64, there: u64, back: u64, ahead: u64) -> Reading {
        let came = left + there + ahead;
        let walls = [WallClock::default(); 2];
        Reading { left, came, left_again: came + MS, came_back: left + there + MS + back, walls }
    }

    #[test]
    fn the_offset_is_exact_where_both_ways_take_equally_long() {
        let comparison =
            Comparison::new(reading(0, 5 * MS, 5 * MS, 100 * MS), reading(MS, 5 * MS, 5 * MS, 100 * MS), false);
        let report = comparison.report();
        assert_eq!((report.offset_ns, report.uncertainty_ns, report.drift_ns), (100_000_000, 5_000_000, 0));
        assert_eq!((report.method, report.one_way), (Method::BothWays, false));
        assert_eq!(comparison.to_client(107 * MS, 2 * MS), Instant::from_nanos(5 * MS));
    }

    #[test]
    fn the_truth_is_within_the_uncertainty_however_the_round_trip_divides() {
        for there in 0..=10 {
            let one = reading(0, there * MS, (10 - there) * MS, 40 * MS);
            let report = Comparison::new(one, one, false).report();
            assert!(report.offset_ns.abs_diff(40_000_000) <= report.uncertainty_ns);
        }
    }

    #[test]
    fn a_clock_that_runs_faster_is_followed() {
        let comparison = Comparison::new(reading(0, MS, MS, 0), reading(1000 * MS, MS, MS, 10 * MS), false);
        assert_eq!(comparison.report().drift_ns, 10_000_000);
        let middle = comparison.to_client(MS + 505 * MS, 0).as_nanos();
        assert!(middle.abs_diff(501 * MS) <= 10, "{middle}");
    }

    #[test]
    fn wall_clocks_that_are_set_well_enough_make_one_way_delays_known() {
        let with = |errors: [Option<u64>; 2]| {
            let [client, server] = errors.map(|error_ns| WallClock { ahead_ns: 0, error_ns });
            let server = WallClock { ahead_ns: -40_000_000, ..server };
            let one = Reading { walls: [client, server], ..reading(0, 8 * MS, 2 * MS, 40 * MS) };
            Comparison::new(one, one, false).report()
        };
        let well = with([Some(MS), Some(MS)]);
        assert_eq!((well.method, well.offset_ns, well.uncertainty_ns), (Method::Synchronised, 40_000_000, 2 * MS));
        assert!(well.one_way);
        let fairly = with([Some(2 * MS), Some(2 * MS)]);
        assert_eq!((fairly.method, fairly.one_way), (Method::Synchronised, false));
        // Messages there and back are more exact than these, or only one clock is set.
        for errors in [[Some(5 * MS), Some(MS)], [Some(0), None], [None, None]] {
            let report = with(errors);
            assert_eq!(
                (report.method, report.offset_ns, report.uncertainty_ns),
                (Method::BothWays, 43_000_000, 5 * MS)
            );
        }
    }

    #[test]
    fn one_kernel_is_one_clock_unless_its_times_say_otherwise() {
        let same = reading(0, MS, MS, 0);
        assert_eq!(Comparison::new(same, same, true).report().method, Method::SameKernel);
        let apart = reading(0, MS, MS, 3 * MS);
        assert_eq!(Comparison::new(apart, apart, true).report().method, Method::BothWays);
    }
}
