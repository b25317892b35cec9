//! What every kind of element says about itself.

use crate::{Cause, Effect, Element, Schedule};
use alloc::boxed::Box;
use crosswind_settings::SettingError;
use crosswind_units::{Duration, Seed};

/// The settings of one kind of element: how it is made from them, and what can be known of it beforehand.
///
/// They are a struct that can be read from JSON and described (`crosswind_settings`). Left at their defaults, they make no
/// element.
pub trait ElementSettings {
    /// The element, whose random decisions come from `seed`; none where the settings never ask for anything.
    fn element(settings: Schedule<Self>, seed: Seed) -> Option<Box<dyn Element>>
    where
        Self: Sized;

    /// Keys that cannot change over time.
    fn fixed_keys() -> &'static [&'static str]
    where
        Self: Sized,
    {
        &[]
    }

    /// The causes for which the element drops packets.
    fn drop_causes(&self) -> &'static [Cause] {
        &[]
    }

    /// The longest that the element holds a packet by itself: without the time on the wire, or behind other packets.
    fn longest_delay(&self) -> Duration {
        Duration::ZERO
    }

    /// What the element does to traffic: all that models, designs and forecasts see of it.
    fn effect(&self) -> Effect {
        Effect::default()
    }

    /// Whether the element does something else with another seed.
    fn is_random(&self) -> bool;

    /// Refuses settings that may hold for a time only.
    fn check_lasting(&self) -> Result<(), SettingError> {
        Ok(())
    }

    /// Fills in what one setting leaves to another, and refuses settings that exclude each other.
    fn complete(&mut self) -> Result<(), SettingError> {
        Ok(())
    }
}
