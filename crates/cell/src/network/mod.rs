//! Cells across the network that is really there: the client on one machine, the server on another.
//!
//! The client's crosswind-cell (`client`) asks for a server over a control connection (`control`, `messages`, `token`); the other
//! machine's (`listen`) starts the server of that cell (`serve`), for that client alone, and reports what it saw. `strangers` bounds who
//! has not proven anything. `clocks` compares the two machines' clocks. `watch` is a client that sends a message whenever it is told to.

mod capture;
mod client;
mod clocks;
mod control;
mod events;
mod listen;
mod messages;
mod parts;
mod serve;
mod strangers;
mod token;
mod watch;

pub use capture::Capturing;
pub use client::{FarEnd, NetworkReport};
pub use listen::listen;
pub use messages::{FromClient, FromServer, ServedReport};
pub use parts::{Parts, TooLarge};
pub use watch::watch;

use clocks::WallClock;
use crosswind_host::wall_clock_error_ns;
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// How long a client waits while the server measures for another one.
const BUSY_LIMIT: Duration = Duration::from_secs(30);

/// `CLOCK_MONOTONIC`, nanoseconds.
fn own_clock() -> u64 {
    clock_gettime(ClockId::CLOCK_MONOTONIC).map_or(0, |t| t.tv_sec() as u64 * 1_000_000_000 + t.tv_nsec() as u64)
}

/// What this machine knows of the wall clock.
fn own_wall_clock() -> WallClock {
    let wall = clock_gettime(ClockId::CLOCK_REALTIME).map_or(0, |t| t.tv_sec() * 1_000_000_000 + t.tv_nsec());
    WallClock { ahead_ns: wall - own_clock() as i64, error_ns: wall_clock_error_ns() }
}

/// What the running kernel calls itself since it was started.
fn boot_id() -> String {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.trim().to_owned()
}
