//! A probability, and the exact comparison of a random word against it.

/// A probability in [0, 1].
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Probability(f64);

/// A number that is no probability.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProbabilityError(pub f64);

impl Probability {
    /// Never.
    pub const ZERO: Self = Self(0.0);

    /// `p` as a fraction of 1.
    pub fn new(p: f64) -> Result<Self, ProbabilityError> {
        if (0.0..=1.0).contains(&p) { Ok(Self(p)) } else { Err(ProbabilityError(p)) }
    }

    /// The fraction of 1.
    pub const fn as_fraction(self) -> f64 {
        self.0
    }

    /// Whether an event of this probability happens, given a uniform random word.
    pub fn happens(self, word: u64) -> bool {
        // 2^64 possible words; p = 1 covers them all, which a u64 threshold could not express.
        u128::from(word) < (self.0 * 18_446_744_073_709_551_616.0) as u128
    }
}

impl std::fmt::Display for ProbabilityError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} is not a probability between 0 and 1", self.0)
    }
}

impl std::error::Error for ProbabilityError {}

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
    fn anything_else_is_refused() {
        assert!(Probability::new(1.01).is_err());
        assert!(Probability::new(-0.1).is_err());
        assert!(Probability::new(f64::NAN).is_err());
    }
}
