//! A server's allowance for another machine: every served stream counts against it.

use crosswind_transport::{Call, Outcome, Receiver, Sender, Stream, TransportError};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Header bytes of a message and its answer if answers are numbered: eight for the client, then the number of messages
/// received by the server, little-endian, which the client leaves zero.
pub const NUMBERED_BYTES: usize = 16;

/// A server's allowance for another machine, and its use so far.
#[derive(Debug)]
pub struct Allowance {
    connections: u64,
    bytes: u64,
    used_connections: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    is_exceeded: AtomicBool,
    numbers_answers: bool,
    messages: AtomicU64,
}

impl Allowance {
    /// So many connections in all, and so many bytes in both directions together.
    pub const fn new(connections: u64, bytes: u64) -> Self {
        Self {
            connections,
            bytes,
            used_connections: AtomicU64::new(0),
            received: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            is_exceeded: AtomicBool::new(false),
            numbers_answers: false,
            messages: AtomicU64::new(0),
        }
    }

    /// Puts the number of received messages into every answer, and keeps no single ones: a long-lived client needs no
    /// table.
    #[must_use]
    pub const fn numbering_answers(mut self) -> Self {
        self.numbers_answers = true;
        self
    }

    /// Whether answers say how many messages have been received.
    pub(crate) const fn numbers_answers(&self) -> bool {
        self.numbers_answers
    }

    /// `message` as it is sent: with the number, where answers are numbered and it has room for it.
    fn numbered(&self, message: &[u8]) -> Option<Vec<u8>> {
        if !self.numbers_answers || message.len() < NUMBERED_BYTES {
            return None;
        }
        let mut numbered = message.to_vec();
        numbered[NUMBERED_BYTES - 8..NUMBERED_BYTES].copy_from_slice(&self.messages.load(Relaxed).to_le_bytes());
        Some(numbered)
    }

    /// Connections so far, rejected ones included.
    pub fn connections(&self) -> u64 {
        self.used_connections.load(Relaxed)
    }

    /// Bytes received so far.
    pub fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// Bytes handed to the transport so far.
    pub fn sent(&self) -> u64 {
        self.sent.load(Relaxed)
    }

    /// Whether more was asked than is allowed.
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Relaxed)
    }

    pub(crate) fn admits(&self) -> bool {
        let allowed = self.used_connections.fetch_add(1, Relaxed) < self.connections;
        if !allowed {
            self.is_exceeded.store(true, Relaxed);
        }
        allowed
    }

    /// Counts bytes in one direction. An error once both together exceed the allowance.
    fn count(&self, direction: &AtomicU64, bytes: usize) -> Result<(), TransportError> {
        direction.fetch_add(bytes as u64, Relaxed);
        if self.received().saturating_add(self.sent()) <= self.bytes {
            return Ok(());
        }
        self.is_exceeded.store(true, Relaxed);
        let cause = format!("the server allows {} bytes", self.bytes);
        Err(TransportError::with("cannot go on", Outcome::Closed, cause))
    }

    /// The same stream, with counted bytes.
    pub(crate) fn bound(self: &Arc<Self>, stream: Stream) -> Stream {
        let Stream { sender, receiver, asked } = stream;
        let (to, from) = (Arc::clone(self), Arc::clone(self));
        Stream {
            sender: Box::new(BoundSender { inner: sender, allowance: to }),
            receiver: Box::new(BoundReceiver { inner: receiver, allowance: from }),
            asked,
        }
    }
}

struct BoundSender {
    inner: Box<dyn Sender>,
    allowance: Arc<Allowance>,
}

impl Sender for BoundSender {
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()> {
        if let Err(error) = self.allowance.count(&self.allowance.sent, message.len()) {
            return Call::done(Err(error));
        }
        match self.allowance.numbered(message) {
            None => self.inner.send(message),
            Some(numbered) => Call::new(async move { self.inner.send(&numbered).await }),
        }
    }

    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        match self.allowance.count(&self.allowance.sent, part.len()) {
            Ok(()) => self.inner.send_some(part),
            Err(error) => Call::done(Err(error)),
        }
    }

    fn finish(&mut self) -> Call<'_, ()> {
        self.inner.finish()
    }
}

struct BoundReceiver {
    inner: Box<dyn Receiver>,
    allowance: Arc<Allowance>,
}

impl Receiver for BoundReceiver {
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(async {
            let length = self.inner.receive(into).await?;
            self.allowance.messages.fetch_add(1, Relaxed);
            self.allowance.count(&self.allowance.received, length)?;
            Ok(length)
        })
    }

    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        Call::new(async {
            let length = self.inner.receive_some(into).await?;
            self.allowance.count(&self.allowance.received, length)?;
            Ok(length)
        })
    }

    fn receive_block<'a>(&'a mut self, into: &'a mut [u8], to_come: u64) -> Call<'a, usize> {
        Call::new(async move {
            let length = self.inner.receive_block(into, to_come).await?;
            self.allowance.count(&self.allowance.received, length)?;
            Ok(length)
        })
    }

    fn set_timeout(&mut self, timeout: Duration) -> Result<(), TransportError> {
        self.inner.set_timeout(timeout)
    }

    fn client_port(&self) -> Option<u16> {
        self.inner.client_port()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowance_is_exceeded_by_the_first_byte_and_the_first_connection_too_many() {
        let allowance = Allowance::new(2, 10);
        assert!(allowance.admits() && allowance.admits());
        assert!(allowance.count(&allowance.sent, 6).is_ok() && allowance.count(&allowance.received, 4).is_ok());
        assert!(!allowance.is_exceeded());
        let error = allowance.count(&allowance.received, 1).unwrap_err();
        assert_eq!((error.outcome, error.cause.as_str()), (Outcome::Closed, "the server allows 10 bytes"));
        assert!(allowance.is_exceeded());
        assert!(!allowance.admits());
        assert_eq!((allowance.connections(), allowance.sent(), allowance.received()), (3, 6, 5));
    }

    #[test]
    fn an_answer_says_how_many_messages_came_where_it_is_asked_and_has_room() {
        let allowance = Allowance::new(1, 1000).numbering_answers();
        allowance.messages.store(0x0102, Relaxed);
        assert_eq!(allowance.numbered(&[9; 15]), None);
        let numbered = allowance.numbered(&[9; 17]).unwrap();
        assert_eq!(numbered, [&[9; 8][..], &[2, 1, 0, 0, 0, 0, 0, 0], &[9]].concat());
        assert_eq!(Allowance::new(1, 1000).numbered(&[9; 17]), None);
    }
}
