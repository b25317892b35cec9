//! Observes a QUIC client's TLS handshake, for two facts that quinn does not tell: whether the session was resumed, and when the
//! ticket for the next one was received.
//!
//! A server proves its identity by a certificate or by the session that it shares with the client, never both (RFC 8446, section
//! 4.4.2). So a session was resumed exactly when the server's flight has a Finished message and no Certificate.

use quinn::ConnectError;
use quinn::crypto::rustls::{NoInitialCipherSuite, QuicClientConfig};
use quinn::crypto::{ClientConfig, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey, Session};
use quinn::{ConnectionId, Side};
use quinn_proto::TransportError;
use quinn_proto::transport_parameters::TransportParameters;
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

// RFC 8446, section 4.
const NEW_SESSION_TICKET: u8 = 4;
const CERTIFICATE: u8 = 11;
const FINISHED: u8 = 20;

/// Which messages a handshake has had.
#[derive(Default)]
pub(crate) struct Handshake {
    certificate: AtomicBool,
    finished: AtomicBool,
    has_ticket: AtomicBool,
    ticket: Notify,
}

impl Handshake {
    /// Whether the session was resumed, once that is known.
    pub(crate) fn resumed(&self) -> Option<bool> {
        self.finished.load(Ordering::Acquire).then(|| !self.certificate.load(Ordering::Acquire))
    }

    /// Waits for a ticket.
    pub(crate) async fn ticket(&self) {
        let received = self.ticket.notified();
        if !self.has_ticket.load(Ordering::Acquire) {
            received.await;
        }
    }

    fn note(&self, message: u8) {
        match message {
            CERTIFICATE => self.certificate.store(true, Ordering::Release),
            FINISHED => self.finished.store(true, Ordering::Release),
            NEW_SESSION_TICKET => {
                self.has_ticket.store(true, Ordering::Release);
                self.ticket.notify_waiters();
            }
            _ => {}
        }
    }
}

/// Finds the handshake messages in a stream of bytes. Each has a type, a length of three bytes, and that many bytes.
#[derive(Default)]
struct Messages {
    header: [u8; 4],
    filled: usize,
    body: usize,
}

impl Messages {
    /// Calls `note` with the type of each message whose header ends in `bytes`.
    fn read(&mut self, mut bytes: &[u8], mut note: impl FnMut(u8)) {
        while !bytes.is_empty() {
            if self.body > 0 {
                let skipped = self.body.min(bytes.len());
                self.body -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            self.header[self.filled] = bytes[0];
            self.filled += 1;
            bytes = &bytes[1..];
            if self.filled == self.header.len() {
                let [kind, a, b, c] = self.header;
                self.filled = 0;
                self.body = u32::from_be_bytes([0, a, b, c]) as usize;
                note(kind);
            }
        }
    }
}

/// A client's TLS settings, whose handshake is observed.
pub(crate) struct Observed {
    tls: Arc<QuicClientConfig>,
    handshake: Arc<Handshake>,
}

impl Observed {
    /// For one connection.
    pub(crate) fn new(tls: Arc<rustls::ClientConfig>, handshake: Arc<Handshake>) -> Result<Self, NoInitialCipherSuite> {
        Ok(Self { tls: Arc::new(QuicClientConfig::try_from(tls)?), handshake })
    }
}

impl ClientConfig for Observed {
    fn start_session(
        self: Arc<Self>,
        version: u32,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        let tls = Arc::clone(&self.tls).start_session(version, server_name, params)?;
        Ok(Box::new(ObservedSession { tls, messages: Messages::default(), handshake: Arc::clone(&self.handshake) }))
    }
}

struct ObservedSession {
    tls: Box<dyn Session>,
    messages: Messages,
    handshake: Arc<Handshake>,
}

impl Session for ObservedSession {
    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        let read = self.tls.read_handshake(buf)?;
        // Only messages that TLS has accepted count.
        self.messages.read(buf, |message| self.handshake.note(message));
        Ok(read)
    }

    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        self.tls.initial_keys(dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        self.tls.handshake_data()
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        self.tls.peer_identity()
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        self.tls.early_crypto()
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
        self.tls.write_handshake(buf)
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        self.tls.next_1rtt_keys()
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

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, length: usize) -> Vec<u8> {
        let mut bytes = vec![kind, 0, (length >> 8) as u8, length as u8];
        bytes.resize(4 + length, kind);
        bytes
    }

    /// However the stream is cut into pieces, the messages in it are the same.
    #[test]
    fn messages_are_found_in_pieces_of_any_size() {
        let stream = [message(2, 90), message(8, 0), message(CERTIFICATE, 700), message(FINISHED, 32)].concat();
        for size in 1..=stream.len() {
            let (mut messages, mut seen) = (Messages::default(), Vec::new());
            stream.chunks(size).for_each(|piece| messages.read(piece, |kind| seen.push(kind)));
            assert_eq!(seen, [2, 8, CERTIFICATE, FINISHED]);
        }
    }

    #[test]
    fn a_server_that_presents_no_certificate_resumed_the_session() {
        let handshake = Handshake::default();
        assert_eq!(handshake.resumed(), None);
        handshake.note(FINISHED);
        assert_eq!(handshake.resumed(), Some(true));
        handshake.note(CERTIFICATE);
        assert_eq!(handshake.resumed(), Some(false));
    }
}
