//! Decrypts programs' QUIC packets, and HTTP/2 over TLS 1.3, with the keys they logged, and reads the frames.
//!
//! With `SSLKEYLOGFILE` set, a program writes the secrets of its TLS handshakes to a file. The keys of Initial packets
//! are public (RFC 9001, section 5.2), and the `ClientHello` in them has the random number that identifies the
//! connection's secrets in that file. The cryptography is the crate `ring`'s. No I/O; it panics on no bytes.

mod connection;
mod crypto;
mod handshake;
mod header;
mod kept;
mod key_log;
mod keys;
mod records;
mod segments;

pub use header::may_begin;
pub use kept::{Datagram, KeptDatagrams};
pub use key_log::KeyLog;
pub use segments::{KeptSegments, OpenedSegments};

use connection::Connection;
use crosswind_ledger::QuicLog;
use crosswind_path::Side;
use std::collections::HashMap;

/// Datagrams of unknown connections tried against known ones for a change of ports.
const MOST_TRIALS: u32 = 8;

/// Connections' decrypted packets.
#[derive(Debug, Default)]
pub struct Opened {
    /// The client host's packets, and the server host's. An undecryptable one has only its size.
    pub logs: [QuicLog; 2],
    /// How many connections there are.
    pub connections: u32,
    /// How many have secrets in the key log.
    pub with_secrets: u32,
}

/// Decrypts datagrams in sending order.
pub struct Opener<'k> {
    keys: &'k KeyLog,
    logs: [QuicLog; 2],
    connections: Vec<Connection>,
    /// The present connection, by client's and server's port.
    by_ports: HashMap<(u16, u16), usize>,
    /// Trials so far, by ports without a known connection.
    trials: HashMap<(u16, u16), u32>,
    /// Where packets are opened.
    space: Vec<u8>,
}

impl<'k> Opener<'k> {
    /// `most`: the packets kept for each host.
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
        // Another connection's first packet, whatever had these ports before.
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

    /// The decrypted packets.
    pub fn finish(self) -> Opened {
        let with_secrets = self.connections.iter().filter(|it| it.has_secrets(self.keys)).count() as u32;
        Opened { connections: self.connections.len() as u32, with_secrets, logs: self.logs }
    }

    /// The connection now on other ports: one of the same server whose keys open a datagram.
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
