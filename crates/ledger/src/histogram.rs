//! A distribution of times in constant memory: 1 ns to 100 s, to three significant digits (Gil Tene's `HdrHistogram`).

use hdrhistogram::Histogram;
use schemars::JsonSchema;
use serde::Serialize;

const HIGHEST_NS: u64 = 100_000_000_000;
const SIGNIFICANT_DIGITS: u8 = 3;

/// Counts times: delay errors (actual - due), or times spent in a queue.
#[derive(Clone, Debug)]
pub struct TimeHistogram {
    counts: Histogram<u64>,
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
    /// An empty histogram; all its memory (about 250 kB) is allocated here.
    pub fn new() -> Self {
        let counts = Histogram::new_with_bounds(1, HIGHEST_NS, SIGNIFICANT_DIGITS)
            .unwrap_or_else(|error| unreachable!("the bounds are constants within the library's: {error}"));
        Self { counts, max_ns: 0 }
    }

    /// Counts one time. A time above 100 s counts as 100 s, except in `max`.
    pub fn record(&mut self, ns: u64) {
        self.counts.saturating_record(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// The distribution so far.
    pub fn report(&self) -> TimeReport {
        // The library returns the upper edge of a bucket, which may be above every time that was recorded.
        let quantile = |q| self.counts.value_at_quantile(q).min(self.max_ns);
        TimeReport { n: self.counts.len(), p50: quantile(0.50), p99: quantile(0.99), max: self.max_ns }
    }
}

impl Default for TimeHistogram {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
