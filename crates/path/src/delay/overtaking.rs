//! Packets that take no time and so overtake others, as netem's `reorder` with its `gap`: behind one that overtook, the next `gap - 1` do
//! not; then each does with the probability, until one has.
//!
//! How many have not overtaken is counted anew every few thousand packets, so that it is known of any packet without all before it.

use crate::Packet;
use crosswind_units::{Probability, Seed};

const COUNTED: u64 = 4096;

/// Which packets overtake.
pub struct Overtaking {
    share: Probability,
    gap: u64,
    seed: Seed,
    /// The last packet that was asked for, and how many before it have not overtaken.
    last: Option<(u64, u64)>,
}

impl Overtaking {
    /// Args: `share` the probability of those that can, `gap` 1 where all can.
    pub const fn new(share: Probability, gap: u64, seed: Seed) -> Self {
        Self { share, gap, seed, last: None }
    }

    /// The share of all packets that overtakes, in the mean.
    pub fn share(&self) -> f64 {
        1.0 / ((self.gap - 1) as f64 + 1.0 / self.share.as_fraction())
    }

    /// Whether this packet does.
    pub fn overtakes(&mut self, packet: &Packet) -> bool {
        self.gap <= self.count(packet.index) + 1 && self.share.happens(packet.word(self.seed))
    }

    /// How many packets before this one have not overtaken since one did; no more than the gap.
    fn count(&mut self, index: u64) -> u64 {
        if self.gap == 1 {
            return 0;
        }
        // A multiple of the gap, so that with a share of 1 every packet of its number overtakes.
        let first = index - index % (COUNTED.div_ceil(self.gap) * self.gap);
        let (mut at, mut count) = self.last.filter(|(known, _)| (first..=index).contains(known)).unwrap_or((first, 0));
        while at < index {
            let overtakes = self.gap <= count + 1 && self.share.happens(self.seed.word(at));
            count = if overtakes { 0 } else { (count + 1).min(self.gap) };
            at += 1;
        }
        self.last = Some((index, count));
        count
    }
}
