//! The masks of a client's frames (RFC 6455, section 5.3). A profile of processor time knows masking by this file.

use crate::TransportError;
use crate::error::Outcome;
use ring::rand::{SecureRandom, SystemRandom};
use std::array;

/// A processor masks so many bytes in few steps.
const WIDE: usize = 32;
/// Masks drawn at a time: each draw is a call of the kernel.
const DRAWN: usize = 64;

/// What is laid over a client's payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mask(pub(super) [u8; 4]);

impl Mask {
    /// Masks or unmasks `bytes`, which follow `done` others.
    pub(super) fn apply(self, bytes: &mut [u8], done: usize) {
        let wide: [u8; WIDE] = array::from_fn(|place| self.0[(done + place) % 4]);
        let mut whole = bytes.chunks_exact_mut(WIDE);
        for part in &mut whole {
            part.iter_mut().zip(&wide).for_each(|(byte, mask)| *byte ^= mask);
        }
        whole.into_remainder().iter_mut().zip(&wide).for_each(|(byte, mask)| *byte ^= mask);
    }
}

/// Masks that nobody can guess.
pub(super) struct Masks {
    random: SystemRandom,
    drawn: [[u8; 4]; DRAWN],
    used: usize,
}

impl Masks {
    pub(super) fn new() -> Self {
        Self { random: SystemRandom::new(), drawn: [[0; 4]; DRAWN], used: DRAWN }
    }

    pub(super) fn draw(&mut self) -> Result<Mask, TransportError> {
        if self.used == DRAWN {
            self.random
                .fill(self.drawn.as_flattened_mut())
                .map_err(|_| TransportError::with("cannot send", Outcome::Error, "no randomness"))?;
            self.used = 0;
        }
        self.used += 1;
        Ok(Mask(self.drawn[self.used - 1]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_goes_on_where_it_ended() {
        let mask = Mask([1, 2, 4, 8]);
        for length in [0, 3, 31, 32, 33, 100] {
            for cut in 0..=length {
                let mut bytes = vec![0; length];
                mask.apply(&mut bytes[..cut], 0);
                mask.apply(&mut bytes[cut..], cut);
                assert!(bytes.iter().enumerate().all(|(place, byte)| *byte == [1, 2, 4, 8][place % 4]));
            }
        }
    }

    #[test]
    fn masks_differ() {
        let mut masks = Masks::new();
        let drawn: Vec<_> = (0..3 * DRAWN).map(|_| masks.draw().unwrap().0).collect();
        // Two alike among so few of 2^32: a chance of less than one in 100,000.
        assert!(drawn.iter().enumerate().all(|(place, mask)| !drawn[..place].contains(mask)));
    }
}
