//! Two hosts.

use crate::error::Result;
use crate::home::Homes;
use crate::namespace::Namespace;
use crosswind_path::Side;
use std::net::IpAddr;

/// Two hosts, connected.
#[derive(Clone)]
pub struct Pair {
    /// The client's namespace.
    pub client: Namespace,
    /// The server's namespace.
    pub server: Namespace,
    /// The client's address.
    pub client_address: IpAddr,
    /// The server's address.
    pub server_address: IpAddr,
    /// What is theirs beside the network: the client's, the server's.
    pub homes: Homes,
}

impl Pair {
    /// The sending namespace of direction `side`.
    pub fn namespace(&self, side: Side) -> &Namespace {
        side.pick(&self.client, &self.server)
    }

    pub(crate) fn namespaces(&self) -> [&Namespace; 2] {
        [&self.client, &self.server]
    }

    /// `read`'s result in each namespace: client, server.
    pub(crate) fn read<T: Send>(&self, read: impl Fn() -> Result<T> + Copy + Send) -> Result<[T; 2]> {
        Ok([self.client.run(read)?, self.server.run(read)?])
    }
}
