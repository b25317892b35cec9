//! Undelayed packets, which overtake others, as netem's `reorder` with its `gap`: after one, the next `gap - 1` are
//! delayed; then each overtakes with the probability, until one has.
//!
//! The count restarts every few thousand packets, so a packet's fate needs only a bounded look back.

use crate::Packet;
use crosswind_units::{Probability, Seed};

const COUNTED: u64 = 4096;

/// Chooses the overtaking packets.
pub struct Overtaking {
    share: Probability,
    gap: u64,
    seed: Seed,
    /// The latest queried packet, and the delayed packets directly before it.
    last: Option<(u64, u64)>,
}

impl Overtaking {
    /// Args: `share` the probability of an eligible packet, `gap` 1 if all are eligible.
    pub const fn new(share: Probability, gap: u64, seed: Seed) -> Self {
        Self { share, gap, seed, last: None }
    }

    /// The mean share of overtaking packets.
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
        // A multiple of the gap: with a share of 1 exactly every `gap`-th packet overtakes.
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
