//! The network another crate puts between the hosts: the kernel's queueing disciplines.

use crate::error::Result;
use crate::namespace::Namespace;
use crosswind_ledger::Passed;
use std::net::IpAddr;

/// The network between the hosts.
pub trait Middle: Send + Sync {
    /// Connects the hosts by their `device`. Nothing is up yet.
    fn connect(&mut self, client: &Namespace, server: &Namespace, device: &'static str) -> Result<()>;

    /// Sets it up, with queues of so many packets, and makes the way from host to host.
    fn bring_up(&self, queue_length: u32, client: IpAddr, server: IpAddr) -> Result<()>;

    /// Begins to change over time, from the hosts' first packet on.
    fn follow(&mut self, hosts: [&Namespace; 2]) -> Result<()>;

    /// Packets so far: forward, reverse.
    fn read(&mut self) -> Result<[Passed; 2]>;

    /// Ends; the last reading is final.
    fn finish(self: Box<Self>) -> Result<()>;
}
