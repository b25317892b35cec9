//! A workload's two ends, as part of its result.

use super::events::PeerClockEvent;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// The name of Crosswind's own ends.
const NATIVE: &str = "native";

/// Who the two ends were, where one of them was a peer.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PeersReport {
    /// The client.
    pub client: EndReport,
    /// The server.
    pub server: EndReport,
    /// The transport of every connection, as the client found it; null where it could not tell.
    pub verified_transport: Option<String>,
}

/// Who one end was.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct EndReport {
    /// Its name: `native` for Crosswind's own.
    pub name: String,
    /// The program and its version, as it calls itself; null of a server that does not follow the peer protocol.
    pub implementation: Option<String>,
    /// The clock of a client's times.
    pub clock: Option<PeerClock>,
    /// How long its threads waited for a processor while exchanges were measured; null where that was not measured.
    pub processor_wait_ns: Option<u64>,
    /// What else a client has counted, by its own names.
    pub facts: BTreeMap<String, f64>,
}

/// The clock of a client's times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct PeerClock {
    /// Its name.
    pub name: String,
    /// How fine it is.
    pub resolution_ns: u64,
}

impl EndReport {
    /// A peer's end.
    pub fn of_peer(name: &str, implementation: Option<String>, processor_wait_ns: Option<u64>) -> Self {
        Self { name: name.to_owned(), implementation, clock: None, processor_wait_ns, facts: BTreeMap::new() }
    }

    /// Crosswind's own client or server. Its threads are counted in `fidelity`.
    pub fn native() -> Self {
        let implementation = Some(format!("Crosswind {}", env!("CARGO_PKG_VERSION")));
        Self { implementation, ..Self::of_peer(NATIVE, None, None) }
    }

    /// With the clock of its times.
    #[must_use]
    pub fn with_clock(mut self, name: &str, resolution_ns: u64) -> Self {
        self.clock = Some(PeerClock { name: name.to_owned(), resolution_ns });
        self
    }
}

impl From<&PeerClockEvent> for PeerClock {
    fn from(event: &PeerClockEvent) -> Self {
        Self { name: event.name.clone(), resolution_ns: event.resolution_ns }
    }
}
