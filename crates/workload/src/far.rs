//! A client and a server on two machines: what the two halves of a workload are to each other then.

use crate::WorkloadError;
use crate::context::Context;
use crate::measured::Measured;
use crate::seen::{Seen, SeenByPort};
use crate::server::{Served, Server};
use crate::session::{ClientServer, add_server_side, check_settings, measured_of, run_clients};
use crosswind_transport::{Call, Outcome};
use crosswind_transport::{Receiver, Sender, Stream, TransportError};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// How the times of a client and of its server go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// They have one clock.
    Same,
    /// They have two, whose offset is known well enough for one-way delays.
    Compared,
    /// They have two, and only times of the same end can be compared.
    Apart,
}

/// What a server on another machine leaves behind.
pub struct FarServed {
    /// What it leaves behind; the times in it are those of the client's clock as well as they can be.
    pub served: Served,
    /// How its times go together with the client's.
    pub clocks: Clocks,
    /// By how much its times may be wrong.
    pub uncertainty: crosswind_units::Duration,
}

/// The server of a cell, on another machine. It listens already.
pub trait FarServer: Sync {
    /// Ends it, and returns what it leaves behind.
    fn stop(&self) -> Result<FarServed, WorkloadError>;
}

/// Runs the clients against a server on another machine.
pub fn run_clients_alone<W: ClientServer>(
    workload: &W,
    context: &Context<'_>,
    server: &dyn FarServer,
) -> Result<Measured, WorkloadError> {
    let readback = OnceLock::new();
    let (mut exchanges, client_cpu_ns) = run_clients(workload, context, &readback)?;
    let FarServed { served, clocks, uncertainty } = server.stop()?;
    let expected = !served.seen.is_empty();
    let seen = SeenByPort::new(served.seen, uncertainty);
    let matched = add_server_side(workload, &mut exchanges, &seen, clocks);
    let sockets = [readback.into_inner(), served.readback];
    check_settings(context, &sockets)?;
    let mut measured = Measured { sockets, cpu_ns: [client_cpu_ns, served.cpu_ns], ..measured_of(context, exchanges) };
    if expected && matched == 0 {
        measured.warnings.push(
            "the server saw the client's connections come from other ports: something on the way translates addresses, so \
             that nothing is known of single exchanges at the server"
                .into(),
        );
    }
    Ok(measured)
}

/// Serves clients on another machine: starts to listen, calls `until_done`, which returns when they need the server no more, and stops.
pub fn serve<W: ClientServer>(
    workload: &W,
    context: &Context<'_>,
    until_done: &mut dyn FnMut(),
) -> Result<Served, WorkloadError> {
    let serve = workload.server(context.clock());
    let server = Server::new(context, workload.needs(), &serve);
    std::thread::scope(|scope| {
        server.start(scope, workload.lanes())?;
        until_done();
        server.stop();
        Ok::<_, WorkloadError>(())
    })?;
    server.into_served()
}

/// Bytes at the beginning of a message and of its answer where answers are numbered: eight that are the client's, then the number of
/// messages that the server had received, as little-endian, which the client leaves zero.
pub const NUMBERED_BYTES: usize = 16;

/// What a server may do for another machine, and how much of that it has done.
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

    /// Has every answer say how many messages have been received, and nothing kept of single ones: a client that stays for long asks
    /// for no table.
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

    /// Connections so far, those included that were not served.
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

    /// Whether one more connection is allowed.
    pub(crate) fn admits(&self) -> bool {
        let allowed = self.used_connections.fetch_add(1, Relaxed) < self.connections;
        if !allowed {
            self.is_exceeded.store(true, Relaxed);
        }
        allowed
    }

    /// Counts bytes of one direction. An error once both have more than is allowed.
    fn count(&self, direction: &AtomicU64, bytes: usize) -> Result<(), TransportError> {
        direction.fetch_add(bytes as u64, Relaxed);
        if self.received().saturating_add(self.sent()) <= self.bytes {
            return Ok(());
        }
        self.is_exceeded.store(true, Relaxed);
        let cause = format!("the server allows {} bytes", self.bytes);
        Err(TransportError::with("cannot go on", Outcome::Closed, cause))
    }

    /// The same stream, whose bytes count.
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

    fn set_timeout(&mut self, timeout: Duration) -> Result<(), TransportError> {
        self.inner.set_timeout(timeout)
    }

    fn client_port(&self) -> Option<u16> {
        self.inner.client_port()
    }
}

/// Bytes of one [`Seen`] on the way from machine to machine.
pub const SEEN_BYTES: usize = 6 * 8;

impl Seen {
    /// As bytes: six numbers, the smallest byte first; times are nanoseconds since `origin_ns`, of the server's clock.
    pub fn to_bytes(self, origin_ns: u64) -> [u8; SEEN_BYTES] {
        let time = |instant: crosswind_units::Instant| instant.as_nanos() + origin_ns;
        let numbers =
            [self.client_port.into(), self.tag, time(self.first), time(self.received), time(self.sent), self.bytes];
        let mut bytes = [0; SEEN_BYTES];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// Reads them; `to_client` is what a time of the server's clock is at the client.
    pub fn from_bytes(bytes: &[u8; SEEN_BYTES], to_client: impl Fn(u64) -> crosswind_units::Instant) -> Self {
        let mut numbers = [0_u64; 6];
        for (number, place) in numbers.iter_mut().zip(bytes.chunks_exact(8)) {
            let mut eight = [0; 8];
            eight.copy_from_slice(place);
            *number = u64::from_le_bytes(eight);
        }
        let [client_port, tag, first, received, sent, bytes] = numbers;
        Self {
            client_port: client_port as u16,
            tag,
            first: to_client(first),
            received: to_client(received),
            sent: to_client(sent),
            bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crosswind_units::Instant;

    #[test]
    fn what_was_seen_arrives_as_it_left() {
        let at = Instant::from_nanos;
        let seen =
            Seen { client_port: 65_535, tag: u64::MAX, first: at(1), received: at(2), sent: at(3), bytes: 1 << 40 };
        let back = Seen::from_bytes(&seen.to_bytes(1000), |ns| at(ns - 990));
        assert_eq!((back.client_port, back.tag, back.bytes), (65_535, u64::MAX, 1 << 40));
        assert_eq!((back.first, back.received, back.sent), (at(11), at(12), at(13)));
    }

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
