//! What can go wrong with a ledger: its files.

use arrow_schema::ArrowError;
use std::io;

/// Why a table or a capture was not written.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The operating system did not take the bytes: a full disk, most likely.
    #[error("cannot write {file}: {source}")]
    Write {
        /// What was being written: `the packet table`, `the client's capture`.
        file: &'static str,
        /// The system's own reason.
        source: io::Error,
    },
    /// The Arrow library refused the packet table; a fault of this crate.
    #[error("cannot encode the packet table: {0}")]
    Encode(#[source] ArrowError),
}

impl LedgerError {
    /// `result`, with the name of the file that it was about.
    pub(crate) fn writing<T>(file: &'static str, result: io::Result<T>) -> Result<T, Self> {
        result.map_err(|source| Self::Write { file, source })
    }
}

impl From<ArrowError> for LedgerError {
    fn from(error: ArrowError) -> Self {
        match error {
            ArrowError::IoError(_, source) => Self::Write { file: "the packet table", source },
            other => Self::Encode(other),
        }
    }
}
