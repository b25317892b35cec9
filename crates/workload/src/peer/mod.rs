//! Peers: programs that take the place of a workload's own client or server (docs/peers.md).
//!
//! - `config`: the settings of a cell that name them. `job`: what a peer is told.
//! - `events`, `client_report`, `server_report`: what a peer says, held to the protocol, without I/O.
//! - `programs`, `times`: their programs, and their processor time.
//! - `client`, `server`: one end. `session`: both, each of which may be Crosswind's own.

mod client;
mod client_report;
mod config;
mod events;
mod job;
mod programs;
mod report;
mod server;
mod server_report;
pub(crate) mod session;
#[cfg(test)]
mod tests;
mod times;

pub use client_report::{ClientFollower, ClientReport, Expected, Notice};
pub use config::{Peer, Peers};
pub use events::{PeerClockEvent, Violation};
pub use report::{EndReport, PeerClock, PeersReport};
pub use server_report::ServerFollower;
