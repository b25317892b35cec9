//! IP packets as bytes: header parsing, and a path's changes to them. Sans-IO, and without the standard library.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod headers;
mod mark;
mod sending;
mod too_big;
mod waking;

pub use headers::{Headers, Service, TCP, TCP_ACK, TCP_FIN, TCP_PSH, TCP_RST, TCP_SYN, TcpOptions, UDP};
pub use mark::mark;
pub use sending::{Hold, RawSending, Sending, Trigger};
pub use too_big::icmp_about;
pub use waking::{Place, ThreadName, Timer, Waker};
