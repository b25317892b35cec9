//! A probability, and its exact comparison with a random word.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// A probability in [0, 1].
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "f64", into = "f64"))]
pub struct Probability(f64);

/// A count among the 2^64 random words: a probability without fractions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Chance(u128);

impl Chance {
    /// Whether the event happens, given a uniform random word.
    pub const fn happens(self, word: u64) -> bool {
        (word as u128) < self.0
    }
}

/// A number outside [0, 1].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbabilityError(pub f64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);

    /// `p` in [0, 1].
    pub fn new(p: f64) -> Result<Self, ProbabilityError> {
        if (0.0..=1.0).contains(&p) { Ok(Self(p)) } else { Err(ProbabilityError(p)) }
    }

    /// In [0, 1].
    pub const fn as_fraction(self) -> f64 {
        self.0
    }

    /// The probability of at least one of two independent events.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        Self((self.0 + other.0 - self.0 * other.0).min(1.0))
    }

    /// Whether the event happens, given a uniform random word.
    pub fn happens(self, word: u64) -> bool {
        self.chance().happens(word)
    }

    /// The same as a count, for many decisions.
    pub fn chance(self) -> Chance {
        // 2^64 possible words; p = 1 covers them all, too many for a u64.
        Chance((self.0 * 18_446_744_073_709_551_616.0) as u128)
    }
}

impl TryFrom<f64> for Probability {
    type Error = ProbabilityError;

    fn try_from(p: f64) -> Result<Self, ProbabilityError> {
        Self::new(p)
    }
}

impl From<Probability> for f64 {
    fn from(probability: Probability) -> Self {
        probability.0
    }
}

impl core::fmt::Display for ProbabilityError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{} is not a probability between 0 and 1", self.0)
    }
}

impl core::error::Error for ProbabilityError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_ends_are_exact() {
        assert!(!Probability::ZERO.happens(0));
        assert!(Probability::new(1.0).unwrap().happens(u64::MAX));
    }

    #[test]
    fn half_is_half_of_the_words() {
        let half = Probability::new(0.5).unwrap();
        assert!(half.happens((1 << 63) - 1));
        assert!(!half.happens(1 << 63));
    }

    #[test]
    fn one_of_two_independent_events() {
        let [tenth, half, one] = [0.1, 0.5, 1.0].map(|p| Probability::new(p).unwrap());
        assert_eq!(half.or(half), Probability(0.75));
        assert_eq!((tenth.or(Probability::ZERO), Probability::ZERO.or(tenth)), (tenth, tenth));
        assert_eq!((one.or(tenth), tenth.or(one)), (one, one));
    }

    #[test]
    fn anything_else_is_refused() {
        assert!(Probability::new(1.01).is_err());
        assert!(Probability::new(-0.1).is_err());
        assert!(Probability::new(f64::NAN).is_err());
    }
}
