//! The emulated network, sans-IO: no clock, no socket, no thread.
//!
//! A [`Path`] is two [`Direction`]s, each a chain of [`Element`]s. A packet goes in by `handle_packet`, and comes out of
//! `poll_packet` exactly once: forwarded, or dropped with its cause. Time and chance are arguments: every random decision
//! is a function of a seed and the packet's index in its direction.
//!
//! The bytes of a packet are its owner's business: the path carries a token, [`Packet::buffer`], and a size.

mod config;
mod delay;
mod direction;
mod element;
mod link;
mod loss;
pub mod queue;
pub mod world;

pub use config::{Counting, DirectionConfig, PathConfig, PathConfigError, QueueLimit};
pub use delay::Delay;
pub use direction::{Direction, Path, Side};
pub use element::{Cause, Departure, Element, Packet};
pub use link::Link;
pub use loss::RandomLoss;
