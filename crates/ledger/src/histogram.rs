//! A time distribution in constant memory: 1 ns to 100 s, to three significant digits.
//!
//! The buckets are those of Gil Tene's `HdrHistogram`: up to 2048 ns one for each nanosecond, then 1024 for each
//! further power of two. Memory without counts is never touched: in virtual time each touched page costs as much as
//! three system calls, and most cells count times within a few powers of two.

use schemars::JsonSchema;
use serde::Serialize;

const HIGHEST_NS: u64 = 100_000_000_000;
/// Buckets per power of two: the smallest number for a resolution of a thousandth.
const OF_A_POWER: usize = 1 << BITS;
const BITS: u32 = 10;
const BUCKETS: usize = bucket(HIGHEST_NS) + OF_A_POWER - bucket(HIGHEST_NS) % OF_A_POWER;

/// Counts times: delay errors (actual - due), or times spent in a queue.
#[derive(Clone, Debug)]
pub struct TimeHistogram {
    counts: Vec<u64>,
    n: u64,
    /// The lowest bucket in use.
    lowest: usize,
    max_ns: u64,
}

/// A summary of a [`TimeHistogram`], in nanoseconds. All figures are 0 when `n` is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct TimeReport {
    /// How many times were recorded.
    pub n: u64,
    /// Median, to three digits.
    pub p50: u64,
    /// 99th percentile, to three digits.
    pub p99: u64,
    /// The longest, exactly.
    pub max: u64,
}

impl TimeHistogram {
    /// An empty histogram; all its memory (about 230 kB) is allocated here.
    pub fn new() -> Self {
        Self { counts: vec![0; BUCKETS], n: 0, lowest: BUCKETS, max_ns: 0 }
    }

    /// Counts one time. A time above 100 s counts as 100 s, except in `max`.
    pub fn record(&mut self, ns: u64) {
        let bucket = bucket(ns.min(HIGHEST_NS));
        self.counts[bucket] += 1;
        self.n += 1;
        self.lowest = self.lowest.min(bucket);
        self.max_ns = self.max_ns.max(ns);
    }

    /// The distribution so far.
    pub fn report(&self) -> TimeReport {
        let [p50, p99] = [0.50, 0.99].map(|q| self.quantile(q));
        TimeReport { n: self.n, p50, p99, max: self.max_ns }
    }

    /// The upper edge of the quantile's bucket, unless every recorded time is below.
    fn quantile(&self, q: f64) -> u64 {
        let rank = ((q * self.n as f64).ceil() as u64).max(1);
        let counts = self.counts.iter().enumerate().skip(self.lowest);
        let below = counts.scan(0, |sum, (bucket, count)| {
            *sum += count;
            Some((bucket, *sum))
        });
        let found = below.skip_while(|&(_, sum)| sum < rank).map(|(bucket, _)| bucket).next();
        found.map_or(0, highest_of).min(self.max_ns)
    }
}

const fn bucket(ns: u64) -> usize {
    let shift = (ns | (2 * OF_A_POWER as u64 - 1)).ilog2() - BITS;
    OF_A_POWER * shift as usize + (ns >> shift) as usize
}

const fn highest_of(bucket: usize) -> u64 {
    let shift = (bucket / OF_A_POWER).saturating_sub(1) as u32;
    (((bucket - OF_A_POWER * shift as usize) as u64 + 1) << shift) - 1
}

impl Default for TimeHistogram {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hdrhistogram::Histogram;

    #[test]
    fn one_to_a_thousand_has_its_quantiles() {
        let mut histogram = TimeHistogram::new();
        (1..=1000).for_each(|ns| histogram.record(ns));
        assert_eq!(histogram.report(), TimeReport { n: 1000, p50: 500, p99: 990, max: 1000 });
    }

    #[test]
    fn nothing_recorded_is_all_zeros() {
        assert_eq!(TimeHistogram::new().report(), TimeReport::default());
    }

    #[test]
    fn extremes_are_counted_and_the_longest_is_exact() {
        let mut histogram = TimeHistogram::new();
        histogram.record(0);
        histogram.record(u64::MAX);
        let report = histogram.report();
        assert_eq!((report.n, report.p50, report.max), (2, 0, u64::MAX));
    }

    #[test]
    fn buckets_and_quantiles_are_those_of_hdrhistogram() {
        let mut state = 1_u64;
        for spread in 1..=64 {
            let (mut own, mut other) =
                (TimeHistogram::new(), Histogram::<u64>::new_with_bounds(1, HIGHEST_NS, 3).unwrap());
            for _ in 0..200 {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let ns = state >> (64 - spread);
                own.record(ns);
                other.saturating_record(ns.min(HIGHEST_NS));
                let report = own.report();
                let [p50, p99] = [0.50, 0.99].map(|q| other.value_at_quantile(q).min(own.max_ns));
                assert_eq!((report.n, report.p50, report.p99), (other.len(), p50, p99), "{ns}");
            }
        }
    }
}
