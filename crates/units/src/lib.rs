//! Quantities with their units in the type: `Instant`, `Duration`, `Bytes`, `BitRate`, `Probability`, `Seed`.
//!
//! Times, sizes and rates are integers of the smallest unit (nanosecond, byte, bit/s), so that arithmetic on virtual time
//! is exact. An `Instant` counts from an origin that its owner chooses; nothing here reads a clock. In JSON a quantity is
//! its number. With the feature `serde`, which is on by default; without it the crate needs no standard library.

#![no_std]

#[cfg(test)]
extern crate std;

mod named;
mod probability;
mod seed;
mod size;
mod time;

pub use probability::{Chance, Probability, ProbabilityError};
pub use seed::Seed;
pub use size::{BitRate, Bytes, Transmission, ZeroRateError};
pub use time::{Duration, Instant};
