//! Calls' drivers, and code shared by the transports.

pub(crate) mod beside;
pub(crate) mod call;
pub mod driver;
pub(crate) mod handshaking;
pub mod serving;
pub(crate) mod shared;
pub(crate) mod single_stream;
pub(crate) mod tasks;
