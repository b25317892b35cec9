//! Why a cell did not run to its end.

use crosswind_host::HostError;
use crosswind_ledger::LedgerError;
use crosswind_workload::WorkloadError;

/// A cell's failure, as its `error` event tells it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct CellError {
    /// The kind, as named in the cell protocol.
    pub kind: &'static str,
    /// What failed, on what.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl CellError {
    /// A failure of `kind`.
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), hint: None }
    }

    /// Adds what to do.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The cell itself is wrong.
    pub fn bad_cell(message: impl Into<String>) -> Self {
        Self::new("bad_cell", message)
    }

    /// A file could not be written.
    pub fn disk(what: &str, cause: &std::io::Error) -> Self {
        Self::new("disk", format!("cannot write {what}: {cause}"))
            .hint("free some space, or choose another output directory")
    }

    /// The exit status that goes with it.
    pub fn exit_status(&self) -> u8 {
        match self.kind {
            "bad_cell" => 2,
            "interrupted" => 130,
            _ => 1,
        }
    }
}

impl From<HostError> for CellError {
    fn from(error: HostError) -> Self {
        Self { kind: error.kind.name(), message: error.to_string(), hint: error.hint }
    }
}

impl From<WorkloadError> for CellError {
    fn from(error: WorkloadError) -> Self {
        match error {
            WorkloadError::Host(error) => error.into(),
            WorkloadError::Transport(error) => Self::new("host", error.to_string()),
            WorkloadError::Setting(_) => Self::new("unsupported", error.to_string())
                .hint("ask for a value that this kernel takes, or leave it to the kernel"),
            WorkloadError::Panicked => Self::new("internal", error.to_string()),
        }
    }
}

impl From<LedgerError> for CellError {
    fn from(error: LedgerError) -> Self {
        match error {
            LedgerError::Write { file, source } => Self::disk(file, &source),
            LedgerError::Encode(_) => Self::new("internal", error.to_string()),
        }
    }
}
