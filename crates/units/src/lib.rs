//! Quantities with their units in the type: `Instant`, `Duration`, `Bytes`, `BitRate`, `Probability`, `Seed`.
//!
//! Everything is an integer of the smallest unit (nanosecond, byte, bit/s), so that arithmetic on virtual time is exact.
//! An `Instant` counts from an origin that its owner chooses; nothing here reads a clock.

mod probability;
mod seed;
mod size;
mod time;

pub use probability::{Probability, ProbabilityError};
pub use seed::Seed;
pub use size::{BitRate, Bytes, Transmission};
pub use time::{Duration, Instant};
