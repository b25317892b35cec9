//! Hosts' QUIC datagrams, kept until the keys are known.

use crate::header::may_begin;
use crosswind_ledger::{Headers, UDP};
use crosswind_path::Side;
use std::collections::HashSet;

/// Bytes per allocation: no datagram is ever copied.
const PIECE: usize = 1 << 20;

/// A host's datagram.
#[derive(Clone, Copy, Debug)]
pub struct Datagram<'a> {
    /// Its direction.
    pub side: Side,
    /// Port at the client's host.
    pub client_port: u16,
    /// Port at the server's host.
    pub server_port: u16,
    /// Its payload.
    pub payload: &'a [u8],
}

/// Datagrams between QUIC connections' ports, or to and from QUIC servers' ports. Others cost nothing.
#[derive(Debug)]
pub struct KeptDatagrams {
    all: Vec<Kept>,
    pieces: Vec<Vec<u8>>,
    /// How many bytes may still be kept.
    room: usize,
    left_out: u64,
    /// Servers: the host a connection's first packet went to, and its port.
    servers: HashSet<(Side, u16)>,
}

#[derive(Clone, Copy, Debug)]
struct Kept {
    side: Side,
    client_port: u16,
    server_port: u16,
    piece: u32,
    start: u32,
    length: u16,
}

impl KeptDatagrams {
    /// At most so many bytes.
    pub fn new(most: usize) -> Self {
        Self { all: Vec::new(), pieces: Vec::new(), room: most, left_out: 0, servers: HashSet::new() }
    }

    /// Adds an IP packet in direction `side`, if it is QUIC.
    pub fn add(&mut self, side: Side, packet: &[u8]) {
        let headers = Headers::parse(packet);
        let length = headers.payload_bytes as usize;
        if headers.protocol != UDP || length == 0 || headers.source_port == 0 {
            return;
        }
        let payload = &packet[packet.len().saturating_sub(length)..];
        let (from, to) = ((side.opposite(), headers.source_port), (side, headers.destination_port));
        let is_known = self.servers.contains(&from) || self.servers.contains(&to);
        if !is_known {
            if !may_begin(payload) {
                return;
            }
            self.servers.insert(to);
        }
        let Some(room) = self.room.checked_sub(length).filter(|_| u16::try_from(length).is_ok()) else {
            self.left_out += 1;
            return;
        };
        self.room = room;
        if self.pieces.last().is_none_or(|piece| piece.len() + length > PIECE) {
            self.pieces.push(Vec::with_capacity(PIECE));
        }
        let number = self.pieces.len() as u32 - 1;
        if let Some(piece) = self.pieces.last_mut() {
            self.all.push(Kept {
                side,
                client_port: headers.client_port(side),
                server_port: headers.client_port(side.opposite()),
                piece: number,
                start: piece.len() as u32,
                length: length as u16,
            });
            piece.extend_from_slice(payload);
        }
    }

    /// How many there was no room for.
    pub const fn left_out(&self) -> u64 {
        self.left_out
    }

    /// The kept datagrams, in sending order.
    pub fn iter(&self) -> impl Iterator<Item = Datagram<'_>> {
        self.all.iter().map(|kept| {
            let start = kept.start as usize;
            let payload = &self.pieces[kept.piece as usize][start..start + usize::from(kept.length)];
            Datagram { side: kept.side, client_port: kept.client_port, server_port: kept.server_port, payload }
        })
    }
}
