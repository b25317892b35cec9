//! The kernel timers' phase at the start of a cell in virtual time.

use crosswind_settings::Layered;
use crosswind_units::{Duration, Seed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel rounds a TCP timer up to a step that grows with its length: 64 ms from 0.5 s on, 512 ms from 4 s on, 4096
/// ms from 32 s on. A time within the longest step has its own place within each.
const LONGEST_STEP_NS: u64 = 4_096_000_000;

/// The timer phase at the start of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum TickPhase {
    /// At the same time in every repetition.
    #[default]
    Fixed,
    /// At a time that follows from the repetition's seed.
    Seed,
}

impl Layered for TickPhase {
    fn is_left_out(&self) -> bool {
        *self == Self::Fixed
    }
}

impl TickPhase {
    /// How long to wait before the cell begins.
    pub fn wait(self, seed: Seed) -> Duration {
        match self {
            Self::Fixed => Duration::from_nanos(0),
            Self::Seed => Duration::from_nanos(seed.child("tick_phase").word(0) % LONGEST_STEP_NS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_by_the_seed_spreads_over_every_step() {
        assert_eq!(TickPhase::Fixed.wait(Seed(7)), Duration::from_nanos(0));
        assert_eq!(TickPhase::Seed.wait(Seed(7)), TickPhase::Seed.wait(Seed(7)));
        let mut waits: Vec<u64> = (0..1000).map(|seed| TickPhase::Seed.wait(Seed(seed)).as_nanos()).collect();
        waits.sort_unstable();
        assert!(waits.windows(2).all(|pair| pair[0] < pair[1]) && waits[999] < LONGEST_STEP_NS);
        // The waits are uniform: 125 of 1000 expected per eighth.
        for eighth in 0..8 {
            let within = waits.iter().filter(|wait| *wait / (LONGEST_STEP_NS / 8) == eighth).count();
            assert!((90..=160).contains(&within), "{eighth}: {within}");
        }
    }
}
