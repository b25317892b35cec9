//! Messages between a client and a server on two machines, described in `docs/two-hosts.md`.

use super::clocks::WallClock;
use crate::ErrorKind;
use crosswind_host::Readback;
use crosswind_transport::{SocketReadback, TcpReport};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A client's message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum FromClient {
    /// The first message. All versions understand it.
    Hello {
        /// crosswind-cell's.
        version: String,
        /// The proof of the token.
        proof: Vec<u8>,
        /// On a flow's connection: the first connection's group, of the client being served.
        #[serde(default)]
        group: Option<Vec<u8>>,
    },
    /// Asks for the clock's time.
    Clock {},
    /// Serve this cell.
    Serve {
        /// The cell, with every default filled in.
        cell: Value,
        /// Whether the server's packets are wanted as well.
        capture: bool,
        /// The number of a flow beside the client's workload, and so its port: 0, the workload.
        #[serde(default)]
        flow: u16,
        /// The answers say how many messages were received (`crosswind_workload::NUMBERED_BYTES`).
        #[serde(default)]
        numbered: bool,
    },
    /// The clients are done.
    Stop {},
}

/// A server's message.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case")]
pub enum FromServer {
    /// The answer to the first message.
    Hello {
        /// crosswind-cell's.
        version: String,
        /// The proof of the token.
        proof: Vec<u8>,
        /// Its running kernel's version.
        kernel: String,
        /// Its kernel's boot id.
        boot_id: String,
    },
    /// Its clock (`CLOCK_MONOTONIC`) at the question's arrival, and at the answer's departure.
    Clock {
        /// Nanoseconds.
        came: u64,
        /// Nanoseconds.
        left: u64,
        /// Its wall clock.
        wall: WallClock,
    },
    /// The cell's server can be connected to.
    Listening {
        /// The measured transports'.
        port: u16,
        /// For the client to trust.
        certificate_pem: Option<String>,
    },
    /// The cell's server has ended.
    Served(ServedReport),
    /// The request failed, or was ended.
    Refused {
        /// The kind of failure.
        kind: ErrorKind,
        /// Why.
        message: String,
        /// Advice for the user.
        hint: Option<String>,
    },
}

/// A server's results.
#[derive(Debug, Serialize, Deserialize)]
pub struct ServedReport {
    /// How many messages or transfers it saw; as many records follow, in parts.
    pub seen: u64,
    /// Its first connection's socket settings.
    pub socket: Option<SocketReadback>,
    /// Its host's settings.
    pub host: Readback,
    /// Its kernel's counts for its TCP connections.
    pub tcp: Option<TcpReport>,
    /// Its threads' CPU time.
    pub cpu_ns: u64,
    /// Bytes of its capture, which follows in parts after its observations; none if not wanted.
    pub capture: Option<u64>,
    /// Packets missing from it.
    pub capture_missed: u64,
}
