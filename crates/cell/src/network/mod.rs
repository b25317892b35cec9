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
