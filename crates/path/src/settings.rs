//! The interface of every kind of element.

use crate::{Cause, Effect, Element, Schedule};
use alloc::boxed::Box;
use crosswind_settings::SettingError;
use crosswind_units::{Duration, Seed};

/// One kind of element's settings: how to make it, and its properties known beforehand.
///
/// A struct, read from JSON and described (`crosswind_settings`). At its defaults it makes no element.
pub trait ElementSettings {
    /// The element, with random decisions from `seed`; none if the settings never have an effect.
    fn element(settings: Schedule<Self>, seed: Seed) -> Option<Box<dyn Element>>
    where
        Self: Sized;

    /// Constant keys.
    fn fixed_keys() -> &'static [&'static str]
    where
        Self: Sized,
    {
        &[]
    }

    /// The element's drop causes.
    fn drop_causes(&self) -> &'static [Cause] {
        &[]
    }

    /// The element's longest own delay: without time on the wire, or behind other packets.
    fn longest_delay(&self) -> Duration {
        Duration::ZERO
    }

    /// The element's effect on traffic: all that models, designs and forecasts see.
    fn effect(&self) -> Effect {
        Effect::default()
    }

    /// Whether the element does something else with another seed.
    fn is_random(&self) -> bool;

    /// Refuses settings allowed only temporarily.
    fn check_lasting(&self) -> Result<(), SettingError> {
        Ok(())
    }

    /// Fills in settings derived from others, and refuses mutually exclusive ones.
    fn complete(&mut self) -> Result<(), SettingError> {
        Ok(())
    }
}
