//! One connection: its keys, and its packets, datagram by datagram.

use crate::crypto::Crypto;
use crate::handshake::{parameters, random};
use crate::header::{Long, PacketKind, Version, is_long};
use crate::key_log::{KeyLog, Label, Random};
use crate::keys::{Keys, Packet, Suite};
use crosswind_ledger::{Frames, QuicFrame, QuicLog, QuicSpace};
use crosswind_path::Side;

/// A connection's end, as an index.
const CLIENT: usize = 0;
const SERVER: usize = 1;
/// The number of a packet outside all packet number spaces.
const NO_NUMBER: u64 = (1 << 62) - 1;

pub struct Connection {
    number: u32,
    /// The direction from the client.
    client: Side,
    /// The client's first destination connection ID, from which Initial keys are derived.
    id: Box<[u8]>,
    /// By version: a server may change it during the handshake (RFC 9368).
    initial: Vec<(Version, [Keys; 2])>,
    /// The latest long header's.
    version: Version,
    ends: [End; 2],
    early: Option<Keys>,
    random: Option<Random>,
    /// Whether a Retry was received and not yet answered.
    is_retried: bool,
}

/// One sender's state.
#[derive(Default)]
struct End {
    handshake: Option<Keys>,
    data: Option<Keys>,
    /// By packet number space, one more than the largest number so far.
    next: [u64; 3],
    /// Lengths of its own connection IDs, the destinations of packets to it.
    ids: Vec<usize>,
    /// CRYPTO data in Initial packets, and in Handshake packets.
    crypto: [Crypto; 2],
    /// Whether its transport parameters are known.
    has_told: bool,
}

impl Connection {
    /// Starts with a client's first datagram; `None` if the Initial keys do not open it.
    pub fn begin(number: u32, side: Side, datagram: &[u8], space: &mut Vec<u8>) -> Option<Self> {
        let long = Long::read(datagram).filter(|it| it.kind == PacketKind::Initial)?;
        let mut keys = Keys::initial(long.version, long.destination)?;
        keys[CLIENT].open(datagram.get(..long.size)?, long.number_at, 0, space)?;
        Some(Self {
            number,
            client: side,
            id: long.destination.into(),
            initial: vec![(long.version, keys)],
            version: long.version,
            ends: [End::default(), End::default()],
            early: None,
            random: None,
            is_retried: false,
        })
    }

    /// Whether a connection-opening datagram belongs to this connection.
    pub fn takes_first(&self, side: Side, datagram: &[u8]) -> bool {
        let Some(long) = Long::read(datagram) else { return false };
        side == self.client && (self.is_retried || *long.destination == *self.id)
    }

    /// Whether this connection's present keys open a datagram with a short header.
    pub fn opens(&mut self, side: Side, datagram: &[u8], space: &mut Vec<u8>) -> bool {
        let is_known = self.ends[self.end(side)].data.is_some();
        is_known && !is_long(datagram) && self.open_short(side, datagram, &KeyLog::default(), space).is_some()
    }

    pub fn has_secrets(&self, keys: &KeyLog) -> bool {
        self.random.is_some_and(|random| keys.has(&random))
    }

    /// Adds a datagram of direction `side` to its sender's packets.
    pub fn add(&mut self, side: Side, datagram: &[u8], keys: &KeyLog, log: &mut QuicLog, space: &mut Vec<u8>) {
        let mut rest = datagram;
        while !rest.is_empty() && !log.is_full() {
            if rest.len() < datagram.len() && rest.iter().all(|&byte| byte == 0) {
                // Padding behind the last packet belongs to none.
                log.extend_last(rest.len(), datagram);
                return;
            }
            let size = if let Some(long) = Long::read(rest) {
                let packet = &rest[..long.size.min(rest.len())];
                let (number_space, opened) = self.open_long(side, &long, packet, keys, space);
                if long.kind == PacketKind::Retry {
                    log.add_sent(self.number, number_space, NO_NUMBER, packet, &[]);
                    log.add_frame(QuicFrame::Retry);
                } else {
                    self.record(side, number_space, opened, packet, log, space);
                }
                packet.len()
            } else {
                let opened = if is_long(rest) { None } else { self.open_short(side, rest, keys, space) };
                self.record(side, QuicSpace::Data, opened, rest, log, space);
                rest.len()
            };
            rest = &rest[size..];
        }
    }

    const fn end(&self, side: Side) -> usize {
        if side as usize == self.client as usize { CLIENT } else { SERVER }
    }

    fn open_long(
        &mut self,
        side: Side,
        long: &Long<'_>,
        packet: &[u8],
        keys: &KeyLog,
        space: &mut Vec<u8>,
    ) -> (QuicSpace, Option<Packet>) {
        let end = self.end(side);
        let ids = &mut self.ends[end].ids;
        if !ids.contains(&long.source.len()) {
            ids.push(long.source.len());
        }
        let secret = |label| keys.secret(self.random.as_ref()?, label);
        let sealed = Sealed { packet, number_at: long.number_at, version: long.version };
        match long.kind {
            PacketKind::Retry => {
                self.is_retried = end == SERVER;
                (QuicSpace::Initial, None)
            }
            PacketKind::Initial => (QuicSpace::Initial, self.open_initial(end, long, packet, space)),
            PacketKind::Early => {
                let next = self.ends[end].next[QuicSpace::Data as usize];
                let secret = secret(Label::ClientEarly);
                (QuicSpace::Data, sealed.open(&mut self.early, secret, next, space))
            }
            PacketKind::Handshake => {
                self.version = long.version;
                let secret = secret(if end == CLIENT { Label::ClientHandshake } else { Label::ServerHandshake });
                let End { handshake, next, .. } = &mut self.ends[end];
                let next = next[QuicSpace::Handshake as usize];
                (QuicSpace::Handshake, sealed.open(handshake, secret, next, space))
            }
        }
    }

    fn open_initial(&mut self, end: usize, long: &Long<'_>, packet: &[u8], space: &mut Vec<u8>) -> Option<Packet> {
        // After a Retry the client uses the server's connection ID, and its keys derive from that.
        if end == CLIENT && self.is_retried && *long.destination != *self.id {
            (self.id, self.initial, self.is_retried) = (long.destination.into(), Vec::new(), false);
        }
        if !self.initial.iter().any(|it| it.0 == long.version) {
            self.initial.push((long.version, Keys::initial(long.version, &self.id)?));
        }
        let keys = &mut self.initial.iter_mut().find(|it| it.0 == long.version)?.1;
        let next = self.ends[end].next[QuicSpace::Initial as usize];
        keys[end].open(packet, long.number_at, next, space)
    }

    fn open_short(&mut self, side: Side, packet: &[u8], keys: &KeyLog, space: &mut Vec<u8>) -> Option<Packet> {
        let end = self.end(side);
        let secret = self
            .random
            .as_ref()
            .and_then(|random| keys.secret(random, if end == CLIENT { Label::ClientData } else { Label::ServerData }));
        let [client, server] = &mut self.ends;
        let (sender, receiver) = if end == CLIENT { (client, server) } else { (server, client) };
        let next = sender.next[QuicSpace::Data as usize];
        receiver.ids.iter().find_map(|length| {
            let sealed = Sealed { packet, number_at: 1 + length, version: self.version };
            sealed.open(&mut sender.data, secret, next, space)
        })
    }

    /// Adds a packet to the log, opened in `space` or not, and learns from its frames.
    fn record(
        &mut self,
        side: Side,
        number_space: QuicSpace,
        opened: Option<Packet>,
        packet: &[u8],
        log: &mut QuicLog,
        space: &[u8],
    ) {
        let Some(opened) = opened else { return log.add_unread(self.number, number_space, packet) };
        let frames = &space[opened.frames];
        log.add_sent(self.number, number_space, opened.number, packet, frames);
        let is_client = self.end(side) == CLIENT;
        let end = &mut self.ends[usize::from(!is_client)];
        let next = &mut end.next[number_space as usize];
        *next = opened.number.saturating_add(1).max(*next);
        let mut read = Frames::new(frames);
        while let Some(frame) = read.next() {
            match frame {
                QuicFrame::Crypto { offset, length } if number_space != QuicSpace::Data => {
                    let ends_at = read.position();
                    let bytes = frames.get(ends_at - length as usize..ends_at).unwrap_or_default();
                    end.crypto[number_space as usize].add(offset, bytes);
                }
                QuicFrame::NewConnectionId { length } if !end.ids.contains(&length.into()) => {
                    end.ids.push(length.into());
                }
                _ => {}
            }
        }
        if number_space == QuicSpace::Data {
            return;
        }
        if is_client && self.random.is_none() {
            self.random = random(end.crypto[0].whole());
        }
        let told = end.crypto[usize::from(!is_client)].whole();
        if !end.has_told
            && let Some(limits) = parameters(told, is_client)
        {
            end.has_told = true;
            for limit in limits {
                log.add_frame(limit);
            }
        }
    }
}

/// A protected packet.
struct Sealed<'a> {
    packet: &'a [u8],
    number_at: usize,
    version: Version,
}

impl Sealed<'_> {
    /// Opens it with `keys`; when these are unknown, with the suite of `secret` that fits.
    fn open(&self, keys: &mut Option<Keys>, secret: Option<&[u8]>, next: u64, space: &mut Vec<u8>) -> Option<Packet> {
        if let Some(keys) = keys {
            return keys.open(self.packet, self.number_at, next, space);
        }
        let secret = secret?;
        Suite::of_secret(secret.len()).into_iter().find_map(|suite| {
            let mut tried = Keys::new(suite, self.version, secret)?;
            let opened = tried.open(self.packet, self.number_at, next, space)?;
            *keys = Some(tried);
            Some(opened)
        })
    }
}
