//! Why a workload cannot run.

use crosswind_host::HostError;
use crosswind_transport::TransportError;

/// A workload that cannot run.
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
    /// A peer did not do what it was asked.
    #[error("{message}")]
    Peer {
        /// Which one, what it did, and its last words.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// The server on another machine is gone, or does not do what it was asked.
    #[error("{message}")]
    FarServer {
        /// Which one, and what it did.
        message: String,
        /// What to do.
        hint: Option<String>,
    },
    /// A fault of the workload itself.
    #[error("a thread of the workload panicked")]
    Panicked,
}
