//! What a server leaves behind, on this machine or on another one.

use crate::WorkloadError;
use crate::seen::Seen;
use crosswind_transport::SocketReadback;

/// What a server leaves behind.
pub struct Served {
    /// What it saw.
    pub seen: Vec<Seen>,
    /// Settings of the socket of its first connection.
    pub readback: Option<SocketReadback>,
    /// CPU time of its threads.
    pub cpu_ns: u64,
}

/// How the times of a client and of its server go together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clocks {
    /// They have one clock.
    Same,
    /// They have two, whose offset is known well enough for one-way delays.
    Compared,
    /// They have two, and only times of the same end can be compared.
    Apart,
}

/// What a server on another machine leaves behind.
pub struct FarServed {
    /// What it leaves behind; the times in it are those of the client's clock as well as they can be.
    pub served: Served,
    /// How its times go together with the client's.
    pub clocks: Clocks,
    /// By how much its times may be wrong.
    pub uncertainty: crosswind_units::Duration,
}

/// The server of a cell, on another machine. It listens already.
pub trait FarServer: Sync {
    /// Ends it, and returns what it leaves behind.
    fn stop(&self) -> Result<FarServed, WorkloadError>;
}
