//! Corruption: one bit of a packet is flipped, unnoticed by links and queues. The receiving host drops the packet if a
//! checksum shows it. The IP version stays intact: without it no host would take the packet at all.

use crate::derive::{Deserialize, JsonSchema, Serialize};
use crate::{Effect, Element, ElementSettings, Outcome, Schedule, filter};
use alloc::boxed::Box;
use crosswind_units::{Probability, Seed};

/// The IP version's bits, at the start of a packet.
const VERSION_BITS: u64 = 4;

/// Corruption of packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct CorruptSettings {
    /// Probability that one bit of a packet, at random, is flipped. Checksums make the receiving host drop it.
    #[schemars(with = "f64", range(min = 0, max = 1), extend("unit" = "probability"))]
    pub corrupt: Probability,
}

impl ElementSettings for CorruptSettings {
    fn element(settings: Schedule<Self>, seed: Seed) -> Option<Box<dyn Element>> {
        settings.ever(Self::is_random).then(|| corruption(settings, seed))
    }

    /// To whom a packet is sent, it is lost: the host takes it and drops it.
    fn effect(&self) -> Effect {
        Effect { loss: self.corrupt, loss_after_loss: self.corrupt, ..Effect::default() }
    }

    fn is_random(&self) -> bool {
        self.corrupt > Probability::ZERO
    }
}

/// Flips one bit in random packets.
pub fn corruption(settings: Schedule<CorruptSettings>, seed: Seed) -> Box<dyn Element> {
    let places = seed.child("bit");
    let mut chances = settings.map(|settings| settings.corrupt.chance());
    filter(move |packet| {
        let bits = packet.size.0 * 8;
        if packet.flipped_bit.is_none() && bits > VERSION_BITS && chances.at(packet.at).happens(packet.word(seed)) {
            let place = (u128::from(packet.word(places)) * u128::from(bits - VERSION_BITS)) >> 64;
            packet.flipped_bit = Some(VERSION_BITS as u32 + place as u32);
        }
        Outcome::Passes
    })
}
