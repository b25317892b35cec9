//! A QUIC client's TLS handshake, read for two facts missing from quinn: whether the session was resumed, and when the
//! ticket for the next one was received.
//!
//! A server proves its identity by a certificate or by the session shared with the client, never both (RFC 8446,
//! section 4.4.2). So a session was resumed exactly when the server's flight has a Finished message and no Certificate.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::sync::Notify;

// RFC 8446, section 4.
const NEW_SESSION_TICKET: u8 = 4;
const CERTIFICATE: u8 = 11;
const FINISHED: u8 = 20;

/// A handshake's messages so far.
#[derive(Default)]
pub(crate) struct Handshake {
    certificate: AtomicBool,
    finished: AtomicBool,
    has_ticket: AtomicBool,
    ticket: Notify,
}

impl Handshake {
    /// Whether the session was resumed, once known.
    pub(crate) fn resumed(&self) -> Option<bool> {
        self.finished.load(Ordering::Acquire).then(|| !self.certificate.load(Ordering::Acquire))
    }

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

/// Finds handshake messages in a byte stream: a type, a length in three bytes, and so many bytes.
#[derive(Default)]
struct Messages {
    header: [u8; 4],
    filled: usize,
    body: usize,
}

impl Messages {
    /// Calls `note` with the type for each message header ending in `bytes`.
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

/// Notes the handshake's messages, as TLS accepts them.
pub(super) struct Watch {
    messages: Messages,
    handshake: Arc<Handshake>,
}

impl Watch {
    pub(super) fn new(handshake: Arc<Handshake>) -> Self {
        Self { messages: Messages::default(), handshake }
    }

    pub(super) fn read(&mut self, bytes: &[u8]) {
        self.messages.read(bytes, |message| self.handshake.note(message));
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
