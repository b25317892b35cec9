//! Cells across an existing network: the client on one machine, the server on another.
//!
//! The client's crosswind-cell (`client`) asks for a server over a control connection (`control`, `messages`, `token`);
//! the other machine's (`listen`) starts that cell's server (`serve`), for that client alone, and reports its
//! observations. `unauthenticated` limits unauthenticated connections. `clocks` compares the two machines' clocks. `watch` is
//! a client that sends a message on demand.

mod capture;
mod client;
mod clocks;
mod control;
mod events;
mod listen;
mod messages;
mod parts;
mod serve;
mod token;
mod unauthenticated;
mod watch;

pub use capture::Capturing;
pub use client::{NetworkReport, RemoteFacts, RemoteServer};
pub use listen::listen;
pub use messages::{FromClient, FromServer, ServedReport};
pub use parts::{Parts, TooLarge};
pub use watch::watch;
