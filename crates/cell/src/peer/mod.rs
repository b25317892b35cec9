//! The transports alone, on this machine's own addresses: an echo server, and a client with checked replies. For testing
//! third-party programs against ours.

mod call;
mod ends;
mod serve;

pub use call::call;
pub use serve::serve;
