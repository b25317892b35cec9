//! The emulated network, sans-IO: no clock, no socket, no thread.
//!
//! A [`Path`] is two [`Direction`]s, each a chain of [`Element`]s, hop by hop. A packet goes in by `handle_packet`, and
//! comes out of `poll_packet` exactly once: forwarded, or dropped with its cause. Time and chance are arguments: every
//! random decision is a function of a seed and the packet's index in its direction.
//!
//! A packet's bytes are its owner's business: the path carries a token, [`Packet::buffer`], and a size.
//!
//! Each kind of element has a file of its own, with its settings ([`ElementSettings`]) and its behaviour, and a line in
//! `registry.rs`.
//!
//! With the feature `settings`, on by default, paths are read from JSON ([`PathConfig`]). Without it the crate has no
//! text and needs no standard library: a direction is made from [`CompiledStage`]s, the compiled form of `PathConfig`.

#![no_std]
// Limits used only by a key's description.
#![cfg_attr(not(feature = "settings"), allow(dead_code, unused_imports))]

extern crate alloc;

pub mod background;
#[cfg(feature = "settings")]
mod change;
mod compiled;
#[cfg(feature = "settings")]
mod config;
pub mod corrupt;
mod counting;
pub mod delay;
pub mod deliveries;
mod derive;
mod direction;
pub mod duplicate;
mod effect;
mod element;
mod filter;
mod group;
pub mod hold;
pub mod light_deliveries;
pub mod link;
pub mod loss;
pub mod mtu;
pub mod queue;
mod rate;
mod registry;
mod schedule;
mod settings;
pub mod slots;
#[cfg(feature = "settings")]
mod table;
pub mod world;

#[cfg(feature = "settings")]
pub use change::{Change, ChangeKeys, Directions};
pub use compiled::CompiledStage;
#[cfg(feature = "settings")]
pub use config::{Hop, PathConfig, Timeline};
pub use counting::{Cells, Counting, Frame};
pub use direction::{Direction, Path, Side};
pub use effect::Effect;
pub use element::{Arrival, Cause, Departure, Ecn, Element, Leaving, Outcome, Packet, TimeSpent};
pub use filter::filter;
#[cfg(feature = "settings")]
pub use group::ElementGroup;
pub use registry::{CompiledElement, DirectionConfig};
pub use schedule::{Course, Period, Schedule};
pub use settings::ElementSettings;
#[cfg(feature = "settings")]
pub use table::Row;
