//! A cell's files: written under a `.part` name, renamed when whole. And tables of measurements.

use crate::CellError;
use crosswind_ledger::Values::U64;
use crosswind_ledger::{Column, Row, Table};
use crosswind_units::{Duration, Instant};
use std::fs::{self, File};
use std::path::{Path, PathBuf};

const ROWS_PER_BATCH: usize = 16_384;

pub struct UnfinishedFile {
    name: &'static str,
    path: PathBuf,
    final_path: PathBuf,
}

impl UnfinishedFile {
    /// Begins `name` in `directory`.
    pub fn create(directory: &Path, name: &'static str) -> Result<(Self, File), CellError> {
        let unfinished = Self { name, path: directory.join(format!("{name}.part")), final_path: directory.join(name) };
        let file = File::create(&unfinished.path).map_err(|e| CellError::disk(name, &e))?;
        Ok((unfinished, file))
    }

    /// Everything is written: gives the file its name.
    pub fn complete(self) -> Result<(), CellError> {
        fs::rename(&self.path, &self.final_path).map_err(|e| CellError::disk(self.name, &e))
    }
}

/// A row about a connection, or else about an exchange, which has a number.
#[derive(Debug)]
pub struct Numbered<T, const OF_CONNECTION: bool> {
    number: u64,
    pub value: T,
}

impl<T: 'static, const OF_CONNECTION: bool> Numbered<T, OF_CONNECTION> {
    pub const NUMBER: Column<Self> = if OF_CONNECTION {
        Column::required("connection", U64(|row| Some(row.number)), "Number of the connection.")
    } else {
        Column::required("exchange", U64(|row| Some(row.number)), "Number of the exchange.")
    };

    pub const fn new(number: u64, value: T) -> Self {
        Self { number, value }
    }
}

/// Writes a table with times counted from `zero`.
pub fn write_table<R: Row>(directory: &Path, all: &[R], zero: Instant) -> Result<(), CellError> {
    let (unfinished, file) = UnfinishedFile::create(directory, R::TABLE)?;
    let mut table = Table::new(file, zero)?;
    for rows in all.chunks(ROWS_PER_BATCH) {
        table.append(rows)?;
    }
    table.finish()?;
    unfinished.complete()
}

/// As columns take it.
#[allow(clippy::unnecessary_wraps)]
pub const fn ns(length: Duration) -> Option<i64> {
    Some(length.as_nanos() as i64)
}
