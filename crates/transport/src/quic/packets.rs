//! Records each QUIC packet's frames before encryption, to explain sending times. The path sees sizes and times alone,
//! and quinn's own log names no frames.

use bytes::BytesMut;
use crosswind_ledger::{QuicLog, QuicSpace};
use quinn::Side;
use quinn::crypto::{CryptoError, KeyPair, Keys, PacketKey};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// The packets sent by the client's and the server's QUIC connections.
#[derive(Debug)]
pub struct QuicPackets {
    client: Mutex<QuicLog>,
    server: Mutex<QuicLog>,
    connections: AtomicU32,
}

impl QuicPackets {
    /// Keeps at most so many packets per host.
    pub fn new(most: usize) -> Self {
        Self {
            client: Mutex::new(QuicLog::new(most)),
            server: Mutex::new(QuicLog::new(most)),
            connections: AtomicU32::new(0),
        }
    }

    /// The client's and the server's packets so far; later ones are not kept.
    pub fn take(&self) -> [QuicLog; 2] {
        [&self.client, &self.server].map(|log| std::mem::take(&mut *log.lock().unwrap_or_else(PoisonError::into_inner)))
    }

    const fn log(&self, side: Side) -> &Mutex<QuicLog> {
        match side {
            Side::Client => &self.client,
            Side::Server => &self.server,
        }
    }
}

/// Records the packets from one end of a connection.
pub(super) struct Recording {
    packets: Arc<QuicPackets>,
    side: Side,
    connection: u32,
}

impl Recording {
    pub(super) fn start(packets: &Arc<QuicPackets>, side: Side) -> Arc<Self> {
        let connection = packets.connections.fetch_add(1, Ordering::Relaxed);
        Arc::new(Self { packets: Arc::clone(packets), side, connection })
    }

    /// Keys with recorded plaintext.
    pub(super) fn keys(self: &Arc<Self>, space: QuicSpace, keys: Keys) -> Keys {
        Keys { header: keys.header, packet: self.pair(space, keys.packet) }
    }

    pub(super) fn pair(
        self: &Arc<Self>,
        space: QuicSpace,
        pair: KeyPair<Box<dyn PacketKey>>,
    ) -> KeyPair<Box<dyn PacketKey>> {
        KeyPair { local: self.key(space, pair.local), remote: pair.remote }
    }

    pub(super) fn key(self: &Arc<Self>, space: QuicSpace, key: Box<dyn PacketKey>) -> Box<dyn PacketKey> {
        Box::new(RecordingKey { key, space, recording: Arc::clone(self) })
    }
}

struct RecordingKey {
    key: Box<dyn PacketKey>,
    space: QuicSpace,
    recording: Arc<Recording>,
}

impl PacketKey for RecordingKey {
    /// `buf` is one packet, its tag not yet written.
    fn encrypt(&self, packet: u64, buf: &mut [u8], header_len: usize) {
        let Recording { packets, side, connection } = &*self.recording;
        let mut log = packets.log(*side).lock().unwrap_or_else(PoisonError::into_inner);
        let frames = buf.get(header_len..buf.len().saturating_sub(self.tag_len())).unwrap_or_default();
        let recorded = log.add(*connection, self.space, packet, buf.len(), frames);
        self.key.encrypt(packet, buf, header_len);
        if let (Some(recorded), Some(tail)) = (recorded, buf.last_chunk()) {
            recorded.tail = u64::from_be_bytes(*tail);
        }
    }

    fn decrypt(&self, packet: u64, header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        self.key.decrypt(packet, header, payload)
    }

    fn tag_len(&self) -> usize {
        self.key.tag_len()
    }

    fn confidentiality_limit(&self) -> u64 {
        self.key.confidentiality_limit()
    }

    fn integrity_limit(&self) -> u64 {
        self.key.integrity_limit()
    }
}
