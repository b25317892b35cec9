//! What a transport is: listeners, connections, their streams, and the two halves of a stream.

use crate::{Call, Features, Settings, SocketReadback, TransportError};
use crosswind_ledger::Position;
use std::net::SocketAddr;
use std::time::Duration;

/// Setting up a connection.
pub type Connecting<'a> = Call<'a, Box<dyn Connection>>;

/// A way to carry messages.
pub trait Transport: Send + Sync {
    /// Its name in a study.
    fn name(&self) -> &'static str;

    /// What it is, in one sentence.
    fn summary(&self) -> &'static str;

    /// What it can do.
    fn features(&self) -> Features;

    /// The largest message that fits into packets of `mtu` bytes, bytes; `None` without a limit.
    fn largest_message(&self, _ipv6: bool, _mtu: u32) -> Option<usize> {
        None
    }

    /// Starts to listen.
    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>>;

    /// Sets up a connection, within `timeout`, which then also bounds every later call on it.
    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a>;
}

/// Waits for connections.
pub trait Listener: Send {
    /// Where it listens.
    fn address(&self) -> Result<SocketAddr, TransportError>;

    /// The next connection. Its handshakes are done when its first stream is accepted, so that none keeps others waiting. On
    /// threads: `Outcome::Timeout` when there is none within `timeout`.
    fn accept(&self, timeout: Duration) -> Call<'_, Box<dyn Connection>>;

    /// On threads: ends every wait for it, and for datagram connections that it accepted. On a reactor it is just dropped.
    fn wake(&self) {}

    /// On threads: another handle on the same listener, for another thread.
    fn try_clone(&self) -> Result<Box<dyn Listener>, TransportError> {
        Err(TransportError::unsupported("cannot share a listener"))
    }
}

/// How long the steps of setting up a connection took, and what became of resumption. A step that the transport does not have is
/// `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Phases {
    /// TCP's connect.
    pub transport: Option<Duration>,
    /// TLS or QUIC handshake.
    pub security: Option<Duration>,
    /// WebSocket, WebTransport, Socket.IO.
    pub upgrade: Option<Duration>,
    /// A session was resumed.
    pub resumed: bool,
    /// The first flight may carry data.
    pub early_data: bool,
}

/// What a client opens a stream for. Only HTTP treats them differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Messages that are answered.
    Messages,
    /// Bytes to the server: that many, if a number is given.
    Upload(Option<u64>),
    /// Bytes from the server: that many, or what is at `Settings::path`.
    Download(Option<u64>),
}

/// One end of a connection.
pub trait Connection: Send {
    /// At the client: a new stream. A connection that is one stream has only that, to be opened once.
    fn open(&self, purpose: Purpose) -> Call<'_, Stream>;

    /// At the server: the next stream that the client opened. `Outcome::Closed` at the orderly end.
    fn accept(&mut self) -> Call<'_, Stream>;

    /// How setting it up went, at the client.
    fn phases(&self) -> Phases {
        Phases::default()
    }

    /// Ends it in an orderly way, if the protocol has one.
    fn close(&mut self) -> Call<'_, ()> {
        Call::done(Ok(()))
    }

    /// Drops it at once, without the orderly end, and ends every wait for its streams. Datagrams have no connection to drop.
    fn abort(&mut self) {}

    /// On threads: what ends every wait for it, called on another thread.
    fn interrupter(&self) -> Option<Box<dyn Fn() + Send>> {
        None
    }

    /// The client's port, by which the two ends' records of a connection are matched. Where one connection carries the datagrams of
    /// many clients: that of the last message.
    fn client_port(&self) -> u16;

    /// The socket's settings, as the kernel has them.
    fn readback(&self) -> Result<SocketReadback, TransportError>;
}

/// A stream of messages. Each of its two directions can be used by a thread or task of its own.
pub struct Stream {
    /// The direction to the other end.
    pub sender: Box<dyn Sender>,
    /// The direction from the other end.
    pub receiver: Box<dyn Receiver>,
    /// At an HTTP server: how many bytes the client asked for.
    pub asked: Option<u64>,
}

impl Stream {
    /// A stream of these halves.
    pub fn new(sender: impl Sender + 'static, receiver: impl Receiver + 'static) -> Self {
        Self { sender: Box::new(sender), receiver: Box::new(receiver), asked: None }
    }

    /// Where the last message that was sent and the last one that was received end, as far as that is known.
    pub fn positions(&self) -> [Option<Position>; 2] {
        let sent = self.sender.position();
        // A stream with one message each way has the answer's as well.
        let answer = sent.filter(|sent| matches!(sent, Position::Stream { end: None, .. }));
        [sent, self.receiver.position().or(answer)]
    }
}

/// Sends messages.
pub trait Sender: Send {
    /// Sends one message.
    fn send<'a>(&'a mut self, message: &'a [u8]) -> Call<'a, ()>;

    /// Sends a part of many bytes, which together are no message.
    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        self.send(part)
    }

    /// Where the last message ends, if that is known.
    fn position(&self) -> Option<Position> {
        None
    }

    /// Says that nothing more will be sent, if the protocol can.
    fn finish(&mut self) -> Call<'_, ()> {
        Call::done(Ok(()))
    }
}

/// Receives messages.
pub trait Receiver: Send {
    /// Receives one message of at most `into`'s size; the result is its length. On a stream without boundaries a message is as long
    /// as `into`. `Outcome::Closed` at the orderly end; `Outcome::TooLarge` for a message that does not fit.
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize>;

    /// Receives the bytes that there are, at most as many as fit `into`. Zero at the orderly end. Nothing is lost when the call is
    /// dropped before it is done.
    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize>;

    /// Receives as many bytes as fit `into`, of at least `to_come`, without waking up for every packet; fewer at the orderly end, when the time limit
    /// has passed, and where the transport knows no blocks. Nothing is lost when the call is dropped.
    fn receive_block<'a>(&'a mut self, into: &'a mut [u8], _to_come: u64) -> Call<'a, usize> {
        self.receive_some(into)
    }

    /// Where the last message ends, if that is known.
    fn position(&self) -> Option<Position> {
        None
    }

    /// On threads: changes the time limit of every call. On a reactor the caller sets it ([`crate::driver::within`]).
    fn set_timeout(&mut self, _timeout: Duration) -> Result<(), TransportError> {
        Ok(())
    }

    /// The client's port of the last message.
    fn client_port(&self) -> Option<u16> {
        None
    }
}
