//! What is asked of a transport: echo, transfer, connect, multiplex, page. One file a workload, generic over transports.
//!
//! A workload runs a client in the client's namespace and a server in the server's, on one clock, and
//! returns one [`Sample`] an exchange. Whatever happens to an exchange is data; only a workload that cannot run is an error.

mod answers;
mod check;
mod config;
mod connect;
mod context;
mod echo;
mod lane;
mod message;
mod multiplex;
mod open_loop;
mod pace;
mod page;
mod server;
mod session;
mod transfer;

pub use check::{ConfigError, Limits};
pub use config::{ConnectionMode, Mode, TransferDirection, WorkloadConfig};
pub use context::{Context, Progress, Resumptions, Snapshot};
pub use page::PageObject;

use crosswind_host::{HostError, Traffic};
use crosswind_transport::{Outcome, SocketReadback, TransportError};
use crosswind_units::Instant;

/// One exchange. What did not happen is `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sample {
    /// Its number in the cell.
    pub exchange: u64,
    /// The connection it ran on: the unit that statistics resample.
    pub connection: u32,
    /// When it was to be sent (open loop).
    pub intended: Option<Instant>,
    /// When sending began.
    pub sent: Option<Instant>,
    /// When the reply, or the last byte, was there.
    pub received: Option<Instant>,
    /// How long setting up the connection took that this exchange opened.
    pub connect_ns: Option<u64>,
    /// Of that, TCP's connect.
    pub transport_ns: Option<u64>,
    /// Of that, the TLS or QUIC handshake.
    pub security_ns: Option<u64>,
    /// Of that, the upgrade to the protocol proper.
    pub upgrade_ns: Option<u64>,
    /// Stream or channel of a multiplex, else 0.
    pub stream: u32,
    /// Packets of the message and its reply that the path dropped, where that is known.
    pub own_drops: Option<u32>,
    /// When the server had the message.
    pub server_received: Option<Instant>,
    /// When the server began to answer.
    pub server_sent: Option<Instant>,
    /// Bytes handed to the transport.
    pub sent_bytes: u64,
    /// Bytes that came back, or through.
    pub received_bytes: u64,
    /// First to last packet with payload, as the path delivered them.
    pub wire_ns: Option<u64>,
    /// How it ended.
    pub outcome: Outcome,
}

impl Sample {
    /// An exchange of which nothing is known yet.
    pub fn new(exchange: u64, connection: u32) -> Self {
        Self {
            exchange,
            connection,
            intended: None,
            sent: None,
            received: None,
            connect_ns: None,
            transport_ns: None,
            security_ns: None,
            upgrade_ns: None,
            stream: 0,
            own_drops: None,
            server_received: None,
            server_sent: None,
            sent_bytes: 0,
            received_bytes: 0,
            wire_ns: None,
            outcome: Outcome::Error,
        }
    }
}

/// What a workload brings back.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// One an exchange, in the order of their numbers.
    pub samples: Vec<Sample>,
    /// What pages were made of.
    pub objects: Vec<PageObject>,
    /// Settings of a client's and a server's socket, as the kernel has them.
    pub sockets: [Option<SocketReadback>; 2],
    /// CPU time of the client's and the server's threads.
    pub cpu_ns: [u64; 2],
    /// What the hosts had handed to the path when every kept connection was open.
    pub setup: Option<Traffic>,
    /// What a reader should know.
    pub warnings: Vec<String>,
}

/// A workload that cannot run.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The host layer failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A socket could not be made or listen.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// A setting was asked for that the kernel did not take.
    #[error("the kernel did not take a socket setting: {0}")]
    Setting(String),
    /// A fault of the workload itself.
    #[error("a thread of the workload panicked")]
    Panicked,
}

/// Runs `config` on what `context` offers.
pub fn run(config: &WorkloadConfig, context: &Context<'_>) -> Result<Measured, WorkloadError> {
    let mut measured = match config {
        WorkloadConfig::Echo(echo) => echo::run(echo, context)?,
        WorkloadConfig::Transfer(transfer) => transfer::run(transfer, context)?,
        WorkloadConfig::Connect(connect) => connect::run(connect, context)?,
        WorkloadConfig::Multiplex(multiplex) => multiplex::run(multiplex, context)?,
        WorkloadConfig::Page(page) => page::run(page, context)?,
        // A program's namespaces and children are the cell's business; there is no transport to measure.
        WorkloadConfig::Program(_) => Measured::default(),
    };
    measured.samples.sort_by_key(|sample| sample.exchange);
    measured.setup = context.setup.get().copied();
    measured.warnings.extend(context.resumptions.warning());
    for readback in measured.sockets.iter().flatten() {
        if let Some(mismatch) = context.settings.socket.mismatch(readback) {
            return Err(WorkloadError::Setting(mismatch));
        }
    }
    Ok(measured)
}
