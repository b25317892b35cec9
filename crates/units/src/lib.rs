//! Quantities with their units in the type: `Instant`, `Duration`, `Bytes`, `BitRate`, `Probability`, `Seed`.
//!
//! Times, sizes and rates are integers (nanoseconds, bytes, bit/s), so arithmetic on virtual time is exact. An
//! `Instant` counts from its owner's origin; nothing here reads a clock. In JSON a quantity is its number. With the
//! feature `serde`, on by default; without it the crate needs no standard library.

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
