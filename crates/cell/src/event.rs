//! A running cell's output: one JSON object a line.

use crate::result::CellResult;
use crate::{CellError, ErrorKind};
use crosswind_host::Punctual;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// The schema of the events.
const SCHEMA: &str = "crosswind.event/1";

/// An event of a running cell.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The cell was read.
    Started {
        /// Schema of the events.
        schema: &'static str,
        /// Name of the cell.
        id: String,
    },
    /// The path is up.
    Ready {
        /// How long that took.
        setup_ns: u64,
    },
    /// How far the cell is.
    Progress(ProgressReport),
    /// Everything is measured and written but what its time was spent on, which is worked out next. Only where that is asked for.
    Measured {},
    /// The end, with the result.
    Finished(Box<CellResult>),
    /// The end, without a result.
    Error(ErrorReport),
}

/// How far a cell is.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ProgressReport {
    /// Exchanges that have ended.
    pub done: u64,
    /// Exchanges in all.
    pub total: u64,
    /// Exchanges that have ended and were not ok.
    pub lost: u64,
    /// Time since the path was up.
    pub elapsed_ns: u64,
    /// Median time of the exchanges that were ok; null where none was.
    pub median_ns: Option<u64>,
    /// How close the emulation is to what was asked; null where there is no emulator.
    pub fidelity: Option<FidelitySoFar>,
}

/// How close the emulation is to what was asked, since the start.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FidelitySoFar {
    /// Packets that have left the path.
    pub released: u64,
    /// Of these, how many left it later than the budget allows.
    pub late: u64,
    /// How long the emulator waited for a processor.
    pub wait_ns: u64,
    /// How long that thread of a host waited for a processor that waited most.
    pub probe_wait_ns: u64,
    /// How much of the budget of `exchange_delay` is used: 1 is all of it. Null before the first exchange succeeded.
    pub exchange_delay: Option<f64>,
}

/// Why a cell has no result.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ErrorReport {
    /// The kind of failure.
    pub kind: ErrorKind,
    /// What failed, on what.
    pub message: String,
    /// What to do.
    pub hint: Option<String>,
}

impl Event {
    /// The cell called `id` was read.
    pub fn started(id: &str) -> Self {
        Self::Started { schema: SCHEMA, id: id.to_owned() }
    }
}

impl FidelitySoFar {
    /// The emulator's and the hosts' threads' counts.
    pub const fn new(emulator: Punctual, probe_wait_ns: u64, exchange_delay: Option<f64>) -> Self {
        let Punctual { released, late, wait_ns, .. } = emulator;
        Self { released, late, wait_ns, probe_wait_ns, exchange_delay }
    }
}

impl From<&CellError> for Event {
    fn from(error: &CellError) -> Self {
        Self::Error(ErrorReport { kind: error.kind, message: error.to_string(), hint: error.hint.clone() })
    }
}

/// Writes `line` as one line of JSON.
pub fn write_line(writer: &mut impl Write, line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    writer.write_all(&text)?;
    writer.flush()
}

/// Writes one last event to standard output. On failure nobody is left to read it.
pub fn write_last_event(event: &Event) {
    let _ = write_line(&mut io::stdout(), event);
}
