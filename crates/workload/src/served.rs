//! A server's results, from this machine or another one.

use crate::WorkloadError;
use crate::server_observation::ServerObservation;
use crosswind_transport::SocketReadback;

/// A server's results.
pub struct Served {
    /// Its observations.
    pub observations: Vec<ServerObservation>,
    /// Its first connection's socket settings.
    pub readback: Option<SocketReadback>,
    /// Its threads' CPU time.
    pub cpu_ns: u64,
}

/// The relation between a client's times and its server's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// They have one clock.
    Same,
    /// Two clocks, with an offset known well enough for one-way delays.
    Compared,
    /// Two clocks; only times from the same end can be compared.
    Apart,
}

/// The results of a server on another machine.
pub struct FarServed {
    /// The results; their times are on the client's clock, as well as possible.
    pub served: Served,
    /// How its times go together with the client's.
    pub clocks: Clocks,
    /// By how much its times may be wrong.
    pub uncertainty: crosswind_units::Duration,
}

/// A cell's server on another machine. It listens already.
pub trait FarServer: Sync {
    /// Ends it, and returns its results.
    fn stop(&self) -> Result<FarServed, WorkloadError>;
}
