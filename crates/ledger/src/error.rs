//! Ledger errors: its files.

use arrow_schema::ArrowError;
use std::io;

/// Why a table or a capture was not written.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// The operating system did not take the bytes: a full disk, most likely.
    #[error("cannot write {file}: {source}")]
    Write {
        /// The written file: `the packet table`, `the client's capture`.
        file: &'static str,
        /// The system's own reason.
        source: io::Error,
    },
    /// The Arrow library refused a table; a fault in its declaration.
    #[error("cannot encode {table}: {source}")]
    Encode {
        /// The table's name.
        table: &'static str,
        /// The library's own reason.
        source: ArrowError,
    },
}

impl LedgerError {
    /// `result` with the name of its file.
    pub(crate) fn writing<T>(file: &'static str, result: io::Result<T>) -> Result<T, Self> {
        result.map_err(|source| Self::Write { file, source })
    }

    /// `result` with the table's name in the error.
    pub(crate) fn encoding<T>(table: &'static str, result: Result<T, ArrowError>) -> Result<T, Self> {
        result.map_err(|error| match error {
            ArrowError::IoError(_, source) => Self::Write { file: table, source },
            source => Self::Encode { table, source },
        })
    }
}
