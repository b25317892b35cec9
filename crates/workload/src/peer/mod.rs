//! Peers: programs in place of a workload's own client or server (docs/peers.md).
//!
//! - `config`: a cell's settings for them. `job`: a peer's task.
//! - `events`, `client_report`, `server_report`: a peer's output, checked against the protocol, without I/O.
//! - `programs`, `times`: their programs, and their processor time.
//! - `client`, `server`: one end. `session`: both, each perhaps Crosswind's own.

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
