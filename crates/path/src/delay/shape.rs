//! A distribution's shape as a list of quantiles: mean 0, standard deviation 1 (uniform: ends -1 and 1).
//!
//! Interpolation between quantiles is linear. So measured values and formulas have one form, a value takes one
//! multiplication, and a largest value exists, after which a path has run empty.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use alloc::collections::BTreeMap;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;
use core::f64::consts::{PI, SQRT_2};

/// Quantiles for a distribution with a formula.
const INTERVALS: usize = 2048;
/// The share cut off on either side; values beyond the first and the last quantile go to these.
const CUT: f64 = 1.0 / 8192.0;
/// The normal distribution is cut at so many standard deviations.
const NORMAL_CUT: f64 = 4.0;

/// The distribution of jitter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Distribution {
    /// All times between the two ends alike.
    #[default]
    Uniform,
    /// The normal distribution, cut on both sides where the delay would be below zero, and at four standard deviations.
    Normal,
    /// The Pareto distribution with the exponent 3.
    Pareto,
    /// The lognormal distribution whose logarithms have the standard deviation 1.
    Lognormal,
    /// The exponential distribution.
    Exponential,
}

/// A shape's key. Equal settings share one shape.
#[derive(Clone, Copy)]
pub enum ShapeSettings<'a> {
    Values(&'a [f64]),
    /// With where the normal distribution is cut, in standard deviations.
    Distribution(Distribution, f64),
}

impl ShapeSettings<'_> {
    /// Args: `below` how many standard deviations there are below the mean.
    pub fn of(distribution: Distribution, below: f64) -> Self {
        let cut = if distribution == Distribution::Normal { below.min(NORMAL_CUT) } else { NORMAL_CUT };
        Self::Distribution(distribution, cut)
    }

    /// The smallest value, without the others where there is a formula.
    pub fn least(self) -> f64 {
        match self {
            Self::Values(_) => self.shape().least(),
            Self::Distribution(Distribution::Uniform | Distribution::Exponential, _) => -1.0,
            Self::Distribution(Distribution::Normal, cut) => -cut,
            Self::Distribution(Distribution::Pareto, _) => LEAST_PARETO,
            Self::Distribution(Distribution::Lognormal, _) => LEAST_LOGNORMAL,
        }
    }

    fn shape(self) -> Shape {
        match self {
            Self::Values(values) => Shape::of_values(values),
            Self::Distribution(distribution, cut) => Shape::of(distribution, cut),
        }
    }

    fn key(self) -> (Option<Distribution>, Vec<u64>) {
        match self {
            Self::Values(values) => (None, values.iter().map(|value| value.to_bits()).collect()),
            Self::Distribution(distribution, cut) => (Some(distribution), vec![cut.to_bits()]),
        }
    }
}

// The smallest values of two tables, checked by a test.
const LEAST_PARETO: f64 = -0.616_629_401_981_321_1;
const LEAST_LOGNORMAL: f64 = -0.763_660_485_720_083_4;

/// Shapes, each made once.
#[derive(Default)]
pub struct Shapes(BTreeMap<(Option<Distribution>, Vec<u64>), Arc<Shape>>);

impl Shapes {
    pub fn get(&mut self, of: ShapeSettings<'_>) -> Arc<Shape> {
        Arc::clone(self.0.entry(of.key()).or_insert_with(|| Arc::new(of.shape())))
    }
}

/// Quantiles at equal distances in probability.
#[derive(Clone, Debug, PartialEq)]
pub struct Shape {
    quantiles: Vec<f64>,
}

impl Shape {
    /// Args: `below` the lower cut of the normal distribution, in standard deviations below the mean.
    fn of(distribution: Distribution, below: f64) -> Self {
        let ends = |i: usize| (i as f64 / INTERVALS as f64).clamp(CUT, 1.0 - CUT);
        let table = |quantile: &dyn Fn(f64) -> f64| (0..=INTERVALS).map(ends).map(quantile).collect();
        match distribution {
            Distribution::Uniform => Self { quantiles: vec![-1.0, 1.0] },
            Distribution::Normal => Self { quantiles: cut_normal(below) },
            Distribution::Pareto => Self::standardised(table(&|u| libm::pow(1.0 - u, -1.0 / 3.0))),
            Distribution::Lognormal => Self::standardised(table(&|u| libm::exp(normal_quantile(u)))),
            // The cut makes the deviation 0.4 % smaller than the mean: a jitter as long as the delay stays possible.
            Distribution::Exponential => {
                let Self { quantiles } = Self::standardised(table(&|u| -libm::log1p(-u)));
                let least = -quantiles[0];
                Self { quantiles: quantiles.into_iter().map(|value| value / least).collect() }
            }
        }
    }

    /// Whether values have a shape: they differ.
    pub fn is_of_values(values: &[f64]) -> bool {
        let least = values.iter().copied().fold(f64::INFINITY, f64::min);
        let range = values.iter().copied().fold(f64::NEG_INFINITY, f64::max) - least;
        range > 0.0 && range.is_finite()
    }

    /// For values that differ.
    fn of_values(values: &[f64]) -> Self {
        let mut quantiles = values.to_vec();
        quantiles.sort_by(f64::total_cmp);
        Self::standardised(quantiles)
    }

    fn standardised(mut quantiles: Vec<f64>) -> Self {
        let intervals = (quantiles.len() - 1) as f64;
        let over_intervals = |of: &dyn Fn(f64, f64) -> f64, at: &[f64]| {
            at.windows(2).map(|ends| of(ends[0], ends[1])).sum::<f64>() / intervals
        };
        let mean = over_intervals(&|a, b| f64::midpoint(a, b), &quantiles);
        for value in &mut quantiles {
            *value -= mean;
        }
        let variance = over_intervals(&|a, b| (a * a + a * b + b * b) / 3.0, &quantiles);
        for value in &mut quantiles {
            *value /= libm::sqrt(variance);
        }
        Self { quantiles }
    }

    /// The smallest value.
    pub fn least(&self) -> f64 {
        self.quantiles[0]
    }

    /// The value for a uniform random word.
    pub fn at(&self, word: u64) -> f64 {
        let place = u128::from(word) * (self.quantiles.len() as u128 - 1);
        let (number, within) = ((place >> 64) as usize, place as u64 as f64 / 18_446_744_073_709_551_616.0);
        let [low, high] = [self.quantiles[number], self.quantiles[number + 1]];
        low + (high - low) * within
    }
}

/// The normal distribution between so many standard deviations below and above the mean.
fn cut_normal(deviations: f64) -> Vec<f64> {
    let below = normal_share(-deviations);
    let place = |i: usize| below + (1.0 - 2.0 * below) * i as f64 / INTERVALS as f64;
    (0..=INTERVALS)
        .map(|i| match i {
            0 => -deviations,
            INTERVALS => deviations,
            _ => normal_quantile(place(i)).clamp(-deviations, deviations),
        })
        .collect()
}

/// The standard normal distribution function, for |x| up to 6: its series at 0, with terms of one sign.
fn normal_share(x: f64) -> f64 {
    let (mut term, mut sum, mut n) = (x, x, 1.0);
    while term.abs() > 1e-18 * sum.abs() {
        n += 2.0;
        term *= x * x / n;
        sum += term;
    }
    0.5 + sum * density(x)
}

fn density(x: f64) -> f64 {
    libm::exp(-x * x / 2.0) / (libm::sqrt(PI) * SQRT_2)
}

/// The standard normal quantile of `u`, by Newton's method from 0, from where it converges on one side.
fn normal_quantile(u: f64) -> f64 {
    let mut x = 0.0;
    for _ in 0..100 {
        let step = (normal_share(x) - u) / density(x);
        x -= step.clamp(-1.0, 1.0);
        if step.abs() < 1e-13 {
            break;
        }
    }
    x
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_tables() {
        // NIST/SEMATECH e-Handbook, 1.3.6.7.1, and further digits by scipy.stats.norm.ppf.
        for (share, quantile) in [(0.5, 0.0), (0.975, 1.959_963_984_540_054), (1.0 / 8192.0, -3.668_329_285_121_323)] {
            assert!((normal_quantile(share) - quantile).abs() < 1e-9, "{}", normal_quantile(share));
        }
    }

    #[test]
    fn the_least_value_is_known_without_the_table() {
        use Distribution::{Exponential, Lognormal, Normal, Pareto, Uniform};
        for distribution in [Uniform, Normal, Pareto, Lognormal, Exponential] {
            for below in [0.5, 2.0, 9.0] {
                let settings = ShapeSettings::of(distribution, below);
                let least = settings.shape().least();
                assert_eq!(settings.least().to_bits(), least.to_bits(), "{distribution:?} {least:?}");
            }
        }
    }

    #[test]
    fn shapes_have_mean_0_and_standard_deviation_1_and_no_delay_is_negative() {
        let all = [Distribution::Normal, Distribution::Pareto, Distribution::Lognormal, Distribution::Exponential];
        for distribution in all {
            let shape = Shape::of(distribution, 4.0);
            let values: Vec<f64> = (0..1 << 16).map(|i| shape.at((2 * i + 1) << 47)).collect();
            let n = values.len() as f64;
            let mean = values.iter().sum::<f64>() / n;
            let deviation = (values.iter().map(|value| value * value).sum::<f64>() / n).sqrt();
            assert!(mean.abs() < 1e-4, "{distribution:?} {mean}");
            // A normal distribution cut at 4 has 0.9995 of its deviation, an exponential one cut at 1/8192 0.996.
            let smaller = if distribution == Distribution::Exponential { 5e-3 } else { 1e-3 };
            assert!((1.0 - smaller..1.0 + 1e-4).contains(&deviation), "{distribution:?} {deviation}");
            assert!(distribution == Distribution::Normal || shape.least() >= -1.0);
            assert!(Shape::of(distribution, 1.0).least() >= -1.0);
        }
        assert!(!Shape::is_of_values(&[3.0, 3.0]) && !Shape::is_of_values(&[]) && Shape::is_of_values(&[3.0, 4.0]));
        let two = Shape::of_values(&[7.0, 1.0]);
        assert!((two.at(0) + 3.0_f64.sqrt()).abs() < 1e-12 && two.at(1 << 63).abs() < 1e-12);
    }
}
