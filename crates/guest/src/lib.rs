//! The emulator inside the kernel of virtual time: what the kernel does with a packet ([`Forwarding`]), what a cell tells it beforehand
//! ([`Settings`]), and what it tells the cell of every packet ([`Event`]). Without the standard library.
//!
//! The kernel keeps no accounts: it writes down what happens, and the cell books it as the emulator of a process books what it does.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod buffers;
mod event;
mod forwarding;
mod log;
mod settings;
mod wire;

pub use crosswind_packet::mark;
pub use crosswind_path::Side;
pub use event::{Event, Events};
pub use forwarding::{Buffer, Forwarding, Leaving};
pub use log::LARGEST_CHUNK;
pub use settings::{Settings, SettingsError};
