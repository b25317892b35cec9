//! A workload's interface: its settings in a cell, and its run.

use crate::context::Context;
use crate::demand::TrafficPattern;
use crate::error::WorkloadError;
use crate::measured::Measured;
use crate::needs::{ConnectionNeeds, STREAM_TIMEOUT_NS};
use crate::peer::Peers;
use crate::served::Served;
use crosswind_host::HostError;
use crosswind_settings::SettingError;
use crosswind_transport::{Features, TransportRef};
use crosswind_units::Duration;
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::fmt;

/// One kind of workload's settings.
///
/// The implementing struct is the only place for a key: its fields with their documentation, defaults and ranges are
/// the keys, their help, their defaults and their ranges (see `crosswind_settings`).
pub trait WorkloadSettings: Runnable + Serialize + DeserializeOwned + JsonSchema + 'static {
    /// Its name in a cell.
    const KIND: &'static str;

    /// The meaning of a row in the samples.
    const SAMPLE: &'static str;

    /// Whether peers can replace its client and its server (docs/peers.md). Not if it brings its own programs.
    const TAKES_PEERS: bool = true;

    /// Whether a transport with these features can carry it. Never for a workload with its own programs.
    fn fits(_features: &Features) -> bool {
        true
    }

    /// Fills in defaults, also those that depend on other settings or on the path.
    fn fill_in(&mut self, _path: &PathFacts) {}

    /// Refuses combinations of settings. Single values have been checked before.
    fn check(&self) -> Result<(), SettingError> {
        Ok(())
    }

    /// Refuses unsuitable peers.
    fn check_peers(&self, _peers: &Peers) -> Result<(), SettingError> {
        Ok(())
    }
}

/// A workload's properties before it runs.
pub trait Workload: fmt::Debug + Send + Sync {
    /// Its connections; `None` for a workload with its own programs.
    fn connections(&self) -> Option<ConnectionNeeds>;

    /// Bound on one exchange.
    fn timeout(&self) -> Option<std::time::Duration> {
        self.connections().map(|needs| needs.timeout)
    }

    /// The number of exchanges: rows in the samples.
    fn exchanges(&self) -> u64;

    /// The input of a forecast.
    fn traffic(&self) -> TrafficPattern;

    /// Whether another seed changes it; third-party programs may do anything. No workload of our own draws random
    /// numbers: messages are due at equal intervals.
    fn is_random(&self) -> bool {
        self.connections().is_none_or(|needs| needs.transport.features().is_random())
    }

    /// Whether samples count each message's own packets dropped by the path.
    fn wants_own_drops(&self) -> bool {
        false
    }
}

/// How a workload is run: `session` implements it for all with clients and a server on connections.
pub trait Runnable: Workload {
    /// Runs it.
    fn run(&self, context: &Context<'_>) -> Result<Measured, WorkloadError>;

    /// Runs its server alone, for clients on another machine: it listens when `until_done` is called, and stops when
    /// that returns.
    fn serve(&self, _context: &Context<'_>, _until_done: &mut dyn FnMut()) -> Result<Served, WorkloadError> {
        Err(HostError::unsupported("cannot serve another machine", "the workload brings programs of its own").into())
    }
}

/// The path's properties that a workload's validity and timeouts depend on.
#[derive(Clone, Copy, Debug)]
pub struct PathFacts {
    /// Whether addresses are IPv6.
    pub ipv6: bool,
    /// Largest IP packet, bytes.
    pub mtu_bytes: u32,
    /// Propagation there and back.
    pub round_trip: Duration,
}

/// The description of the timeout's default. [`default_timeout_ns`] computes it.
pub(crate) const TIMEOUT_HELP: &str = "1 s and 4 round trips for datagrams, 60 s for streams";

const DATAGRAM_TIMEOUT_NS: u64 = 1_000_000_000;

/// Bounds for a timeout.
pub(crate) const MIN_TIMEOUT_NS: u64 = 1_000_000;
pub(crate) const MAX_TIMEOUT_NS: u64 = 3_600_000_000_000;
/// A cell has a deadline, and a typing mistake should not fill it.
pub(crate) const MAX_COUNT: u64 = 100_000_000;
pub(crate) const MAX_CONNECTIONS: u32 = 1000;

/// How long one exchange may take where the cell does not say.
pub(crate) fn default_timeout_ns(transport: TransportRef, path: &PathFacts) -> u64 {
    if transport.features().datagram { DATAGRAM_TIMEOUT_NS + 4 * path.round_trip.as_nanos() } else { STREAM_TIMEOUT_NS }
}

/// A key's default, for serde.
pub const fn number<const N: u64>() -> u64 {
    N
}

/// The default of a key with a small number, for serde.
pub const fn small<const N: u32>() -> u32 {
    N
}
