//! The emulator inside the kernel of virtual time: packet handling ([`Forwarding`]), the cell's settings ([`Settings`])
//! and the events for the cell ([`Event`]). Without the standard library.
//!
//! The kernel keeps no accounts: it logs events, and the cell books them as it books its own emulator's.

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

pub use crosswind_packet::{RawSending, mark};
pub use crosswind_path::Side;
pub use event::{Event, Events};
pub use forwarding::{Buffer, Forwarding, Leaving};
pub use log::LARGEST_CHUNK;
pub use settings::{Settings, SettingsError};
