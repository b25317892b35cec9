//! What every kind of element says about itself.

use crate::{Cause, Element};
use crosswind_settings::SettingError;
use crosswind_units::{BitRate, Bytes, Duration, Probability, Seed};
use schemars::JsonSchema;
use serde::Serialize;

/// The settings of one kind of element: how it is made from them, and what can be known of it beforehand.
///
/// They are a struct that can be read from JSON and described (`crosswind_settings`). Left at their defaults, they make no
/// element.
pub trait ElementSettings {
    /// The element, whose random decisions come from `seed`; none where the settings ask for nothing.
    fn element(&self, seed: Seed) -> Option<Box<dyn Element>>;

    /// The causes for which the element drops packets.
    fn drop_causes(&self) -> &'static [Cause] {
        &[]
    }

    /// The longest that the element holds a packet by itself: without the time on the wire, or behind other packets.
    fn longest_delay(&self) -> Duration {
        Duration::ZERO
    }

    /// What the element does to traffic on average.
    fn effect(&self) -> Effect {
        Effect::default()
    }

    /// Whether the element does something else with another seed.
    fn is_random(&self) -> bool;

    /// Fills in what one setting leaves to another, and refuses settings that exclude each other.
    fn complete(&mut self) -> Result<(), SettingError> {
        Ok(())
    }
}

/// What a direction, or one of its elements, does to traffic: enough to forecast what traffic will take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Effect {
    /// Delay of a packet, without the time on the wire or behind other packets.
    #[serde(rename = "delay_ns")]
    #[schemars(with = "u64")]
    pub delay: Duration,
    /// Share of packets that is lost.
    #[schemars(with = "f64")]
    pub loss: Probability,
    /// Rate that is not exceeded; none where it is unlimited.
    #[serde(rename = "rate_bps")]
    #[schemars(with = "Option<u64>")]
    pub rate: Option<BitRate>,
    /// What a packet occupies on the wire beside its IP bytes.
    #[serde(rename = "frame_bytes")]
    #[schemars(with = "u64")]
    pub frame: Bytes,
}

impl Effect {
    /// This effect, and then the `next` one.
    #[must_use]
    pub fn then(self, next: Self) -> Self {
        let rate = match (self.rate, next.rate) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        Self {
            delay: self.delay + next.delay,
            loss: self.loss.or(next.loss),
            rate,
            frame: Bytes(self.frame.0.max(next.frame.0)),
        }
    }
}
