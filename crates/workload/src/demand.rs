//! Inputs of a forecast: a workload's traffic and its amount.

use schemars::JsonSchema;
use serde::Serialize;

#[allow(clippy::trivially_copy_pass_by_ref)] // as serde calls it
pub const fn is_zero(value: &u64) -> bool {
    *value == 0
}

/// What a workload sends, by pattern.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "pattern", rename_all = "lowercase")]
pub enum TrafficPattern {
    /// Messages that are answered.
    Exchanges {
        /// Messages over all connections.
        count: u64,
        /// Connections side by side.
        connections: u32,
        /// Size of a message.
        request_bytes: u64,
        /// Size of its answer.
        reply_bytes: u64,
        /// Whether each message has a connection of its own.
        new_connections: bool,
        /// Messages a second over all connections; null where each waits for the answer to the one before.
        rate_per_s: Option<f64>,
    },
    /// Bytes in one direction, each transfer on a new connection.
    Transfers {
        /// Transfers over all connections.
        count: u64,
        /// Transfers side by side.
        connections: u32,
        /// Size of a transfer; null where it has a duration.
        size_bytes: Option<u64>,
        /// Duration of a transfer; null where it has a size.
        duration_ns: Option<u64>,
        /// When the first begins, after the path is up.
        #[serde(skip_serializing_if = "is_zero")]
        start_after_ns: u64,
        /// From client to server.
        upload: bool,
    },
    /// Connections that are set up and closed again.
    Handshakes {
        /// Connections in all.
        count: u64,
        /// Connections that are set up side by side.
        connections: u32,
    },
    /// Messages on several streams, each sent when it is time.
    Streams {
        /// Messages over all streams.
        messages: u64,
        /// Streams side by side.
        streams: u32,
        /// Connections that carry them.
        connections: u32,
        /// Size of a message and of its answer.
        size_bytes: u64,
        /// Messages a second on each stream.
        rate_per_s: f64,
    },
    /// Pages, each on new connections: a document, then everything that it names.
    Pages {
        /// Pages in all.
        count: u64,
        /// Connections for each page.
        connections: u32,
        /// Size of the document.
        html_bytes: u64,
        /// Size of everything that the document names.
        objects_bytes: u64,
        /// How many objects that is.
        objects: u32,
        /// Size of the header of a request.
        request_bytes: u64,
    },
    /// Nothing is known: another program decides.
    Unknown {},
}

impl TrafficPattern {
    /// Concurrent connections. For programs the number is unknown: one counts for them.
    pub const fn connections(&self) -> u32 {
        match *self {
            Self::Exchanges { connections, .. }
            | Self::Transfers { connections, .. }
            | Self::Handshakes { connections, .. }
            | Self::Streams { connections, .. }
            | Self::Pages { connections, .. } => connections,
            Self::Unknown {} => 1,
        }
    }
}
