//! Opens the QUIC packets of programs with the keys that the programs logged, and tells what frames are in them.
//!
//! A program that is asked to by `SSLKEYLOGFILE` writes the secrets of its TLS handshakes to a file. The keys of Initial packets are
//! public (RFC 9001, section 5.2), and the `ClientHello` in them has the random number by which that file names a connection's secrets. The
//! cryptography is the crate `ring`'s. It has no I/O; it panics on no bytes.

mod connection;
mod crypto;
mod handshake;
mod header;
mod kept;
mod key_log;
mod keys;

pub use header::may_begin;
pub use kept::{Datagram, KeptDatagrams};
pub use key_log::KeyLog;

use connection::Connection;
use crosswind_ledger::QuicLog;
use crosswind_path::Side;
use std::collections::HashMap;

/// Datagrams of unknown connections for which it is tried whether a known one has moved to their ports.
const MOST_TRIALS: u32 = 8;

/// What is known of connections' packets.
#[derive(Debug, Default)]
pub struct Opened {
    /// The packets that the client's host sent, and the server's. Of one that could not be opened only its size is there.
    pub logs: [QuicLog; 2],
    /// How many connections there are.
    pub connections: u32,
    /// How many of them have secrets in the key log.
    pub with_secrets: u32,
}

/// Opens datagrams, in the order in which they were sent.
pub struct Opener<'k> {
    keys: &'k KeyLog,
    logs: [QuicLog; 2],
    connections: Vec<Connection>,
    /// By client's and server's port, which connection is there now.
    by_ports: HashMap<(u16, u16), usize>,
    /// By ports of no known connection, how often one was tried.
    trials: HashMap<(u16, u16), u32>,
    /// Where packets are opened.
    space: Vec<u8>,
}

impl<'k> Opener<'k> {
    /// Of at most so many packets of each host.
    pub fn new(keys: &'k KeyLog, most: usize) -> Self {
        Self {
            keys,
            logs: [QuicLog::new(most), QuicLog::new(most)],
            connections: Vec::new(),
            by_ports: HashMap::new(),
            trials: HashMap::new(),
            space: Vec::new(),
        }
    }

    /// Adds the next datagram.
    pub fn add(&mut self, datagram: Datagram<'_>) {
        let Datagram { side, client_port, server_port, payload } = datagram;
        let ports = (client_port, server_port);
        let number = self.connections.len() as u32;
        // A first packet of another connection, whatever there was at these ports.
        let begun = Connection::begin(number, side, payload, &mut self.space)
            .filter(|_| self.by_ports.get(&ports).is_none_or(|&at| !self.connections[at].takes_first(side, payload)));
        if let Some(begun) = begun {
            self.by_ports.insert(ports, self.connections.len());
            self.connections.push(begun);
        }
        let at = self.by_ports.get(&ports).copied().or_else(|| self.moved(ports, server_port, side, payload));
        let Some(at) = at else { return };
        self.connections[at].add(side, payload, self.keys, &mut self.logs[side as usize], &mut self.space);
    }

    /// What was opened.
    pub fn finish(self) -> Opened {
        let with_secrets = self.connections.iter().filter(|it| it.has_secrets(self.keys)).count() as u32;
        Opened { connections: self.connections.len() as u32, with_secrets, logs: self.logs }
    }

    /// The connection that has moved to other ports: one of the same server whose keys open a datagram.
    fn moved(&mut self, ports: (u16, u16), server_port: u16, side: Side, payload: &[u8]) -> Option<usize> {
        let trials = self.trials.entry(ports).or_insert(0);
        *trials += 1;
        if *trials > MOST_TRIALS {
            return None;
        }
        let of_server = self.by_ports.iter().filter(|it| it.0.1 == server_port).map(|it| *it.1);
        let mut of_server: Vec<usize> = of_server.collect();
        of_server.sort_unstable();
        of_server.dedup();
        let space = &mut self.space;
        let found = of_server.into_iter().rev().find(|&at| self.connections[at].opens(side, payload, space))?;
        self.by_ports.insert(ports, found);
        Some(found)
    }
}
