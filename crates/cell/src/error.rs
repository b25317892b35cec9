//! Why a cell was refused, or did not run to its end.

use crosswind_host::{ErrorKind as HostErrorKind, HostError};
use crosswind_ledger::LedgerError;
use crosswind_settings::{Code, SettingError};
use crosswind_workload::{Fault, WorkloadError};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::thread::JoinHandle;

/// The kinds of failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ErrorKind {
    /// The cell or the command line is wrong.
    BadCell,
    /// Something may not be done by this user here.
    Privilege,
    /// The kernel or the machine lacks something.
    Unsupported,
    /// A file could not be written.
    Disk,
    /// The cell was not done by its deadline.
    Deadline,
    /// A signal ended the cell, or nobody reads its events any more.
    Interrupted,
    /// The other machine cannot be reached, or does not do what it was asked.
    Network,
    /// A system call failed for another reason.
    Host,
    /// A fault of this program.
    Internal,
}

impl ErrorKind {
    /// The matching exit status.
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::BadCell => 2,
            Self::Interrupted => 130,
            _ => 1,
        }
    }
}

impl From<HostErrorKind> for ErrorKind {
    fn from(kind: HostErrorKind) -> Self {
        match kind {
            HostErrorKind::Privilege => Self::Privilege,
            HostErrorKind::Unsupported => Self::Unsupported,
            HostErrorKind::Host => Self::Host,
        }
    }
}

/// A refused or failed cell.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}{}{message}", key.as_deref().unwrap_or_default(), if key.is_some() { " " } else { "" })]
pub struct CellError {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// The faulty key in the cell, dotted, if any.
    pub key: Option<String>,
    /// The key's kind of mistake.
    pub code: Code,
    /// The failure and its object; for a key, its fault: a sentence with the key as subject.
    pub message: String,
    /// Advice for the user.
    pub hint: Option<String>,
}

impl CellError {
    /// A failure of `kind`.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, key: None, code: Code::default(), message: message.into(), hint: None }
    }

    /// Adds advice.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The cell itself is wrong.
    pub fn bad_cell(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::BadCell, message)
    }

    /// A fault of this program.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(ErrorKind::Internal, message)
    }

    /// Nobody reads the output any more, so nobody needs the result.
    pub fn unheard(cause: &std::io::Error) -> Self {
        Self::new(ErrorKind::Interrupted, format!("cannot write to standard output: {cause}"))
    }

    /// A file could not be written.
    pub fn disk(what: &str, cause: &std::io::Error) -> Self {
        Self::new(ErrorKind::Disk, format!("cannot write {what}: {cause}"))
            .hint("free some space, or choose another output directory")
    }

    /// The same about a flow beside the workload.
    #[must_use]
    pub fn of_flow(mut self, name: &str) -> Self {
        self.message = format!("{name}, beside the workload, failed: {}", self.message);
        self
    }

    /// The matching exit status.
    pub const fn exit_status(&self) -> u8 {
        self.kind.exit_status()
    }
}

/// Its words alone.
impl From<&CellError> for Fault {
    fn from(error: &CellError) -> Self {
        Self { message: error.to_string(), hint: error.hint.clone() }
    }
}

/// Starts a thread.
pub fn spawn<T: Send + 'static>(
    name: &str,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, CellError> {
    let started = std::thread::Builder::new().name(name.into()).spawn(work);
    started.map_err(|cause| CellError::new(ErrorKind::Host, format!("cannot start a thread: {cause}")))
}

impl From<SettingError> for CellError {
    fn from(error: SettingError) -> Self {
        let SettingError { key, code, problem, hint } = error;
        Self { key, code, ..Self::bad_cell(problem).hint(hint) }
    }
}

impl From<HostError> for CellError {
    fn from(error: HostError) -> Self {
        Self { hint: error.hint.clone(), ..Self::new(error.kind.into(), error.to_string()) }
    }
}

impl From<Fault> for CellError {
    fn from(fault: Fault) -> Self {
        Self { hint: fault.hint, ..Self::new(ErrorKind::Host, fault.message) }
    }
}

impl From<WorkloadError> for CellError {
    fn from(error: WorkloadError) -> Self {
        match error {
            WorkloadError::Host(error) => error.into(),
            WorkloadError::Transport(error) => Self::new(ErrorKind::Host, error.to_string()),
            WorkloadError::Setting(_) => Self::new(ErrorKind::Unsupported, error.to_string())
                .hint("ask for a value that this kernel takes, or leave it to the kernel"),
            WorkloadError::Peer(fault) => fault.into(),
            WorkloadError::FarServer(fault) => Self { kind: ErrorKind::Network, ..fault.into() },
            WorkloadError::Panicked => Self::internal(error.to_string()),
        }
    }
}

impl From<LedgerError> for CellError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Write { file, source } => Self::disk(file, &source),
            LedgerError::Encode { .. } => Self::internal(error.to_string()),
        }
    }
}
