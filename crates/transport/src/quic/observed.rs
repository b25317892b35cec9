//! Observed TLS sessions: their handshakes and plaintext.

use crate::quic::handshake::{Handshake, Watch};
use crate::quic::packets::{QuicPackets, Recording};
use crosswind_ledger::QuicSpace;
use quinn::ConnectError;
use quinn::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig, QuicServerConfig};
use quinn::crypto::{
    ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, ServerConfig, Session,
    UnsupportedVersion,
};
use quinn::{ConnectionId, Side};
use quinn_proto::TransportError;
use quinn_proto::transport_parameters::TransportParameters;
use std::any::Any;
use std::sync::Arc;

/// A client's TLS settings with an observed handshake.
pub(crate) struct ObservedClient {
    tls: Arc<QuicClientConfig>,
    handshake: Arc<Handshake>,
    packets: Option<Arc<QuicPackets>>,
}

impl ObservedClient {
    /// For one connection; its packets go to `packets`, if given.
    pub(crate) fn new(
        tls: Arc<rustls::ClientConfig>,
        handshake: Arc<Handshake>,
        packets: Option<Arc<QuicPackets>>,
    ) -> Result<Self, NoInitialCipherSuite> {
        Ok(Self { tls: Arc::new(QuicClientConfig::try_from(tls)?), handshake, packets })
    }
}

impl ClientConfig for ObservedClient {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(ObservedSession {
            tls: Arc::clone(&self.tls).start_session(version, server_name, params)?,
            watch: Some(Watch::new(Arc::clone(&self.handshake))),
            recording: self.packets.as_ref().map(|packets| Recording::start(packets, Side::Client)),
            next: QuicSpace::Handshake,
        }))
    }
}

/// A server's TLS settings with recorded packets.
pub(crate) struct RecordedServer {
    /// The wrapped settings.
    pub(crate) tls: Arc<QuicServerConfig>,
    pub(crate) packets: Arc<QuicPackets>,
}

impl ServerConfig for RecordedServer {
    fn initial_keys(&self, version: u32, dst_cid: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        self.tls.initial_keys(version, dst_cid)
    }

    fn retry_tag(&self, version: u32, orig_dst_cid: &ConnectionId, packet: &[u8]) -> [u8; 16] {
        self.tls.retry_tag(version, orig_dst_cid, packet)
    }

    fn start_session(self: Arc<Self>, version: u32, params: &TransportParameters) -> Box<dyn Session> {
        Box::new(ObservedSession {
            tls: Arc::clone(&self.tls).start_session(version, params),
            watch: None,
            recording: Some(Recording::start(&self.packets, Side::Server)),
            next: QuicSpace::Handshake,
        })
    }
}

struct ObservedSession {
    tls: Box<dyn Session>,
    watch: Option<Watch>,
    recording: Option<Arc<Recording>>,
    /// The packet number space of the next keys.
    next: QuicSpace,
}

impl Session for ObservedSession {
    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let read = self.tls.read_handshake(buf)?;
        // Only messages accepted by TLS count.
        if let Some(watch) = &mut self.watch {
            watch.read(buf);
        }
        Ok(read)
    }

    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        let keys = self.tls.initial_keys(dst_cid, side);
        match &self.recording {
            Some(recording) => recording.keys(QuicSpace::Initial, keys),
            None => keys,
        }
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.tls.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.tls.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        let (header, packet) = self.tls.early_crypto()?;
        Some(match &self.recording {
            Some(recording) => (header, recording.key(QuicSpace::Data, packet)),
            None => (header, packet),
        })
    }

    fn early_data_accepted(&self) -> Option<bool> {
        self.tls.early_data_accepted()
    }

    fn is_handshaking(&self) -> bool {
        self.tls.is_handshaking()
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        self.tls.transport_parameters()
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let keys = self.tls.write_handshake(buf)?;
        let space = std::mem::replace(&mut self.next, QuicSpace::Data);
        Some(match &self.recording {
            Some(recording) => recording.keys(space, keys),
            None => keys,
        })
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        let keys = self.tls.next_1rtt_keys()?;
        Some(match &self.recording {
            Some(recording) => recording.pair(QuicSpace::Data, keys),
            None => keys,
        })
    }

    fn is_valid_retry(&self, orig_dst_cid: &ConnectionId, header: &[u8], payload: &[u8]) -> bool {
        self.tls.is_valid_retry(orig_dst_cid, header, payload)
    }

    fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        self.tls.export_keying_material(output, label, context)
    }
}
