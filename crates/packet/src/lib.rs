//! The bytes of IP packets: what their headers say, and what a path does to them. Sans-IO, and without the standard library, as the path
//! that it serves.

#![no_std]

extern crate alloc;
#[cfg(test)]
extern crate std;

mod headers;
mod mark;
mod too_big;

pub use headers::{Headers, Service, TCP, TCP_ACK, TCP_FIN, TCP_PSH, TCP_RST, TCP_SYN, TcpOptions, UDP};
pub use mark::mark;
pub use too_big::icmp_about;
