//! Seeds, and counter-based randomness: the word for index `i` needs no word before it.

#[cfg(feature = "serde")]
use serde::{Deserialize, Serialize};

/// A source of randomness. Children of one seed under different labels are independent streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(Serialize, Deserialize))]
pub struct Seed(pub u64);

const GOLDEN: u64 = 0x9e37_79b9_7f4a_7c15;

impl Seed {
    /// The child seed called `label`.
    #[must_use]
    pub fn child(self, label: &str) -> Self {
        label.bytes().fold(Self(mix(self.0 ^ GOLDEN)), |seed, byte| Self(mix(seed.0 ^ u64::from(byte))))
    }

    /// The `index`-th word: the SplitMix64 sequence (Steele, Lea & Flood 2014), with random access.
    pub const fn word(self, index: u64) -> u64 {
        mix(self.0.wrapping_add(GOLDEN.wrapping_mul(index.wrapping_add(1))))
    }
}

const fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec::Vec;

    #[test]
    fn words_are_those_of_splitmix64() {
        // The reference generator's first words for state 1234567.
        let words: Vec<u64> = (0..3).map(|i| Seed(1_234_567).word(i)).collect();
        assert_eq!(words, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn labels_give_different_streams() {
        assert_ne!(Seed(1).child("forward").word(0), Seed(1).child("reverse").word(0));
        assert_eq!(Seed(1).child("forward"), Seed(1).child("forward"));
    }
}
