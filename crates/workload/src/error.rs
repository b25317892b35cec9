//! Why a workload cannot run.

use crosswind_host::HostError;
use crosswind_transport::TransportError;

/// A failure in words.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The problem.
    pub message: String,
    /// Advice for the user.
    pub hint: Option<String>,
}

/// A workload failure.
#[derive(Debug, thiserror::Error)]
pub enum WorkloadError {
    /// The host layer failed.
    #[error(transparent)]
    Host(#[from] HostError),
    /// A socket could not be made or listen.
    #[error(transparent)]
    Transport(#[from] TransportError),
    /// The kernel did not take a setting.
    #[error("the kernel did not take a socket setting: {0}")]
    Setting(String),
    /// A peer did not do its job: the peer, its failure, and its output's tail.
    #[error("{}", .0.message)]
    Peer(Fault),
    /// The server on another machine is gone, or does not do its job.
    #[error("{}", .0.message)]
    FarServer(Fault),
    /// A fault in the workload itself.
    #[error("a thread of the workload panicked")]
    Panicked,
}
