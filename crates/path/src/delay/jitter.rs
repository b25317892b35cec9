//! Random delay: a packet's word, or an earlier packet's, is its quantile in the distribution.

use super::shape::Shape;
use crate::Packet;
use alloc::sync::Arc;
use crosswind_units::{Chance, Duration, Probability, Seed};

/// A delay with jitter.
pub struct Jitter {
    /// The minimum for every packet.
    least: Duration,
    /// The jitter per unit of the shape.
    scale: Duration,
    shape: Arc<Shape>,
    correlation: Chance,
    words: Seed,
    /// Decides which packets repeat the previous jitter.
    repeats: Seed,
    /// The latest queried packet, and its word.
    last: Option<(u64, u64)>,
}

impl Jitter {
    /// Args: `delay` the mean, `jitter` per unit of the shape.
    pub fn new(delay: Duration, jitter: Duration, shape: Arc<Shape>, correlation: Probability, seed: Seed) -> Self {
        let below = (-shape.least() * jitter.as_nanos() as f64) as u64;
        let least = Duration::from_nanos(delay.as_nanos().saturating_sub(below));
        Self {
            least,
            scale: jitter,
            shape,
            correlation: correlation.chance(),
            words: seed,
            repeats: seed.child("repeats"),
            last: None,
        }
    }

    /// The longest delay.
    pub fn longest(&self) -> Duration {
        self.least + self.above_least(u64::MAX)
    }

    /// Delays the packet: the minimum is propagation, the rest jitter.
    pub fn delay(&mut self, packet: &mut Packet) {
        let word = self.word(packet);
        packet.propagate(self.least);
        packet.hold(self.above_least(word));
    }

    fn above_least(&self, word: u64) -> Duration {
        Duration::from_nanos(((self.shape.at(word) - self.shape.least()) * self.scale.as_nanos() as f64) as u64)
    }

    fn word(&mut self, packet: &Packet) -> u64 {
        if packet.copy != 0 && !self.correlation.happens(packet.word(self.repeats)) {
            return packet.word(self.words);
        }
        let mut index = packet.index;
        let word = loop {
            if let Some((_, word)) = self.last.filter(|(known, _)| *known == index) {
                break word;
            }
            if index == 0 || !self.correlation.happens(self.repeats.word(index)) {
                break self.words.word(index);
            }
            index -= 1;
        };
        self.last = Some((packet.index, word));
        word
    }
}
