//! Ways to carry messages between the hosts. One file a protocol; a line in `REGISTRY` makes it known.
//!
//! Calls block, each with a deadline, on the thread that makes them: with one message in flight that is the least that can
//! stand between a workload and the kernel. Sockets belong to the namespace of the thread that opens them.

mod error;
mod settings;
mod tcp;
mod udp;

pub use error::{Outcome, TransportError};
pub use settings::{SocketReadback, SocketSettings};
pub use tcp::Tcp;
pub use udp::Udp;

use std::net::SocketAddr;
use std::time::Duration;

/// A way to carry messages.
pub trait Transport: Send + Sync {
    /// Its name in a study.
    fn name(&self) -> &'static str;

    /// Whether messages can be lost, and are bounded in size.
    fn is_datagram(&self) -> bool;

    /// The largest message that fits, bytes; `None` without a limit.
    fn largest_message(&self, ipv6: bool) -> Option<usize>;

    /// Starts to listen.
    fn listen(&self, address: SocketAddr, settings: &SocketSettings) -> Result<Box<dyn Listener>, TransportError>;

    /// Sets up a connection, within `timeout`, which then also bounds every later call on it.
    fn connect(
        &self,
        server: SocketAddr,
        settings: &SocketSettings,
        timeout: Duration,
    ) -> Result<Box<dyn Connection>, TransportError>;
}

/// Waits for connections. Several threads may wait on clones of one.
pub trait Listener: Send {
    /// Where it listens.
    fn address(&self) -> Result<SocketAddr, TransportError>;

    /// The next connection. `Outcome::Timeout` when none came within `timeout`, which also bounds every call on the connection.
    fn accept(&self, timeout: Duration) -> Result<Box<dyn Connection>, TransportError>;

    /// Ends every wait on it, and on datagram connections that it accepted.
    fn wake(&self);

    /// Another handle on the same listener.
    fn try_clone(&self) -> Result<Box<dyn Listener>, TransportError>;
}

/// One end of a connection.
pub trait Connection: Send {
    /// Sends one message whole.
    fn send(&mut self, message: &[u8]) -> Result<(), TransportError>;

    /// Receives one message of `into`'s size at most, and says its length. A stream has no boundaries: there a message is as
    /// long as `into`. `Outcome::Closed` at the orderly end.
    fn receive(&mut self, into: &mut [u8]) -> Result<usize, TransportError>;

    /// Receives what there is, at most `into`: for counting bytes. Zero at the orderly end.
    fn receive_some(&mut self, into: &mut [u8]) -> Result<usize, TransportError> {
        self.receive(into)
    }

    /// Changes what bounds every call.
    fn set_timeout(&mut self, timeout: Duration) -> Result<(), TransportError>;

    /// Says that nothing more will be sent. Datagrams have no such word.
    fn finish_sending(&mut self) -> Result<(), TransportError> {
        Ok(())
    }

    /// Drops the connection at once, without the orderly end. Datagrams have no connection to drop.
    fn abort(&mut self) -> Result<(), TransportError> {
        Ok(())
    }

    /// The client's port: of this end at the client, of the other end (of the last message) at the server.
    fn client_port(&self) -> u16;

    /// Another handle on the same connection, so that one thread can send while another receives.
    fn try_clone(&self) -> Result<Box<dyn Connection>, TransportError>;

    /// The socket's settings, as the kernel has them.
    fn readback(&self) -> Result<SocketReadback, TransportError>;
}

/// Every transport there is.
static REGISTRY: [&dyn Transport; 2] = [&Tcp, &Udp];

/// The transport called `name`.
pub fn find(name: &str) -> Option<&'static dyn Transport> {
    REGISTRY.iter().copied().find(|transport| transport.name() == name)
}

/// The names of all transports.
pub fn names() -> Vec<&'static str> {
    REGISTRY.iter().map(|transport| transport.name()).collect()
}
