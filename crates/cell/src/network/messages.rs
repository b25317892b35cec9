//! What a client and a server on two machines say to each other. `docs/two-hosts.md` describes it.

use super::clocks::WallClock;
use crate::ErrorKind;
use crosswind_host::Readback;
use crosswind_transport::{SocketReadback, TcpReport};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What a client says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum FromClient {
    /// The first message. All versions understand it.
    Hello {
        /// Of crosswind-cell.
        version: String,
        /// That the client knows the token.
        proof: Vec<u8>,
        /// Of a connection for a flow: the group of the first connection of the client that is being served.
        #[serde(default)]
        group: Option<Vec<u8>>,
    },
    /// What does your clock show?
    Clock {},
    /// Serve this cell.
    Serve {
        /// The cell, with every default filled in.
        cell: Value,
        /// Whether the server's packets are wanted as well.
        capture: bool,
        /// The number of a flow that runs beside the client's workload, and so its port: 0, the workload.
        #[serde(default)]
        flow: u16,
        /// The answers say how many messages were received (`crosswind_workload::NUMBERED_BYTES`).
        #[serde(default)]
        numbered: bool,
    },
    /// The clients are done.
    Stop {},
}

/// What a server says.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum FromServer {
    /// The answer to the first message.
    Hello {
        /// Of crosswind-cell.
        version: String,
        /// That the server knows the token.
        proof: Vec<u8>,
        /// Of its running kernel.
        kernel: String,
        /// Of its kernel, since it was started.
        boot_id: String,
    },
    /// What its clock (`CLOCK_MONOTONIC`) showed when the question came, and shows when the answer leaves.
    Clock {
        /// Nanoseconds.
        came: u64,
        /// Nanoseconds.
        left: u64,
        /// What it knows of the wall clock.
        wall: WallClock,
    },
    /// The cell's server can be connected to.
    Listening {
        /// Of the measured transports.
        port: u16,
        /// Which the client is to trust.
        certificate_pem: Option<String>,
    },
    /// The cell's server has ended.
    Served(ServedReport),
    /// What was asked is not done, or is ended.
    Refused {
        /// The kind of failure.
        kind: ErrorKind,
        /// Why.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
}

/// What a server leaves behind.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServedReport {
    /// How many messages or transfers it saw; as many records follow, in parts.
    pub seen: u64,
    /// Settings of the socket of its first connection.
    pub socket: Option<SocketReadback>,
    /// Its host's settings.
    pub host: Readback,
    /// What its kernel counted of its TCP connections.
    pub tcp: Option<TcpReport>,
    /// CPU time of its threads.
    pub cpu_ns: u64,
    /// Bytes of its capture, which follows in parts after what it saw; none where none was wanted.
    pub capture: Option<u64>,
    /// Packets that are missing from it.
    pub capture_missed: u64,
}
