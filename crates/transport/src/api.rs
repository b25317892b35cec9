//! The interface of a transport: listeners, connections, their streams, and a stream's two halves.

use crate::{About, Call, Features, Settings, SocketReadback, TransportError};
use crosswind_ledger::Position;
use std::net::SocketAddr;
use std::time::Duration;

/// Setting up a connection.
pub type Connecting<'a> = Call<'a, Box<dyn Connection>>;

/// A way to carry messages.
pub trait Transport: Send + Sync {
    /// Its description.
    fn about(&self) -> About;

    /// Its name in a study.
    fn name(&self) -> &'static str {
        self.about().name
    }

    /// Its capabilities.
    fn features(&self) -> Features {
        self.about().features
    }

    /// The largest message in packets of `mtu` bytes; `None` without a limit.
    fn largest_message(&self, _ipv6: bool, _mtu: u32) -> Option<usize> {
        None
    }

    /// Starts to listen.
    fn listen<'a>(&'a self, address: SocketAddr, settings: &'a Settings) -> Call<'a, Box<dyn Listener>>;

    /// Sets up a connection within `timeout`, which then also bounds every later call on it.
    fn connect<'a>(&'a self, server: SocketAddr, settings: &'a Settings, timeout: Duration) -> Connecting<'a>;
}

/// Waits for connections.
pub trait Listener: Send {
    /// Where it listens.
    fn address(&self) -> Result<SocketAddr, TransportError>;

    /// The next connection. Its handshakes happen when its first stream is accepted, so none delays others. On threads:
    /// `Outcome::Timeout` after `timeout`.
    fn accept(&self, timeout: Duration) -> Call<'_, Box<dyn Connection>>;

    /// On threads: ends every wait for it, and for its datagram connections. On a reactor it is just dropped.
    fn wake(&self) {}

    /// On threads: another handle on the same listener, for another thread.
    fn try_clone(&self) -> Result<Box<dyn Listener>, TransportError> {
        Err(TransportError::unsupported("cannot share a listener"))
    }
}

/// Durations of a connection's setup steps, and the result of resumption. Steps absent from the transport are `None`.
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

/// A stream's purpose at the client. Only HTTP distinguishes them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Messages with answers.
    Messages,
    /// Bytes to the server, as many as given.
    Upload(Option<u64>),
    /// Bytes from the server: as many as given, or the document at `Settings::path`.
    Download(Option<u64>),
}

/// One end of a connection.
pub trait Connection: Send {
    /// At the client: a new stream. A single-stream connection opens its stream once.
    fn open(&self, _purpose: Purpose) -> Call<'_, Stream> {
        Call::done(Err(TransportError::unsupported("cannot open a stream at the server")))
    }

    /// At the server: the client's next stream. `Outcome::Closed` at the orderly end.
    fn accept(&mut self) -> Call<'_, Stream> {
        Call::done(Err(TransportError::unsupported("cannot accept a stream at the client")))
    }

    /// How setting it up went, at the client.
    fn phases(&self) -> Phases {
        Phases::default()
    }

    /// Ends it in an orderly way, if the protocol has one.
    fn close(&mut self) -> Call<'_, ()> {
        Call::done(Ok(()))
    }

    /// Drops it at once, without the orderly end, and ends its streams' waits. Datagrams have no connection to drop.
    fn abort(&mut self) {}

    /// On threads: ends every wait for it, called on another thread.
    fn interrupter(&self) -> Option<Box<dyn Fn() + Send>> {
        None
    }

    /// The client's port, which matches the two ends' records of a connection. If one connection carries many clients'
    /// datagrams: the last message's.
    fn client_port(&self) -> u16;

    /// The socket's settings, as the kernel has them.
    fn readback(&self) -> Result<SocketReadback, TransportError>;
}

/// A message stream. Each direction may have its own thread or task.
pub struct Stream {
    /// The direction to the other end.
    pub sender: Box<dyn Sender>,
    /// The direction from the other end.
    pub receiver: Box<dyn Receiver>,
    /// At an HTTP server: how many bytes the client asked for.
    pub asked: Option<u64>,
}

impl Stream {
    /// A stream from its halves.
    pub fn new(sender: impl Sender + 'static, receiver: impl Receiver + 'static) -> Self {
        Self { sender: Box::new(sender), receiver: Box::new(receiver), asked: None }
    }

    /// End positions of the last message sent and the last received, if known.
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

    /// Sends a part of many bytes, without message boundaries.
    fn send_some<'a>(&'a mut self, part: &'a [u8]) -> Call<'a, ()> {
        self.send(part)
    }

    /// The last message's end position, if known.
    fn position(&self) -> Option<Position> {
        None
    }

    /// Signals the end of sending, if the protocol can.
    fn finish(&mut self) -> Call<'_, ()> {
        Call::done(Ok(()))
    }
}

/// Receives messages.
pub trait Receiver: Send {
    /// Receives one message into `into`; returns its length. On a stream without boundaries a message is as long as
    /// `into`. `Outcome::Closed` at the orderly end; `Outcome::TooLarge` if it does not fit.
    fn receive<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize>;

    /// Receives the available bytes, as many as fit `into`. Zero at the orderly end. Dropping an unfinished call is
    /// safe.
    fn receive_some<'a>(&'a mut self, into: &'a mut [u8]) -> Call<'a, usize> {
        self.receive(into)
    }

    /// Receives as many bytes as fit `into`, from at least `to_come`, without a wake-up per packet; fewer at the
    /// orderly end, at the time limit, and if the transport knows no blocks. Dropping the call loses nothing.
    fn receive_block<'a>(&'a mut self, into: &'a mut [u8], _to_come: u64) -> Call<'a, usize> {
        self.receive_some(into)
    }

    /// The last message's end position, if known.
    fn position(&self) -> Option<Position> {
        None
    }

    /// On threads: changes every call's time limit. On a reactor the caller sets it ([`crate::driver::within`]).
    fn set_timeout(&mut self, _timeout: Duration) -> Result<(), TransportError> {
        Ok(())
    }

    /// The last message's client port.
    fn client_port(&self) -> Option<u16> {
        None
    }
}
