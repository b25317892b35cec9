//! The transports alone, on this machine's own addresses: a server that echoes, and a client that checks what comes back. For
//! programs that nobody here wrote, to be tried against ours.

mod call;
mod ends;
mod serve;

pub use call::call;
pub use serve::serve;
