//! Many cells, checked without being run: one answer each, in order.

use crate::demand::Demand;
use crate::event::write_line;
use crate::{Cell, CellError, ErrorKind, Flow};
use crosswind_host::{HostClock, HostConfig};
use crosswind_settings::Code;
use crosswind_workload::Warning;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Deserializer, Value};
use std::collections::HashMap;
use std::io::Write;

/// What is said of one cell.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Answer {
    /// It can be run.
    Checked(Box<Checked>),
    /// It cannot be run.
    Refused(Refused),
}

/// A cell that can be run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Checked {
    /// Its place among the cells that were given.
    pub index: usize,
    /// The cell with every default filled in.
    pub cell: Value,
    /// What a forecast is made from.
    pub demand: Demand,
    /// Whether nothing in it is left to chance: in virtual time it comes out the same with every seed.
    pub exact: bool,
    /// Whether in virtual time repetitions that lose the same packets come out the same: nothing but such losses is random.
    pub repeats_losses: bool,
    /// What a reader of its results should know, as far as that can be told before it runs.
    pub warnings: Vec<Warning>,
}

/// A cell that cannot be run.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Refused {
    /// Its place among the cells that were given.
    pub index: usize,
    /// The kind of failure: `bad_cell` or `unsupported`.
    pub kind: ErrorKind,
    /// The dotted key that is to blame; null where there is none.
    pub key: Option<String>,
    /// What kind of mistake it is, with the range or the choices of the key.
    #[serde(flatten)]
    pub code: Code,
    /// What is wrong: where there is a key, a sentence whose subject it is.
    pub problem: String,
    /// What would be right.
    pub hint: Option<String>,
}

/// Checks every cell in `text`, JSON values one after another, and writes one answer a line. Says whether all were accepted.
pub fn check_cells(text: &str, writer: &mut impl Write) -> Result<bool, CellError> {
    let mut kernel = Kernel::default();
    let mut all_accepted = true;
    let mut count = 0;
    for value in Deserializer::from_str(text).into_iter::<Value>() {
        let cell = value
            .map_err(|error| {
                CellError::bad_cell(format!("the cell is not JSON: {error}")).hint("give one JSON object a line")
            })
            .and_then(Cell::from_value)
            .and_then(|cell| kernel.check(&cell).map(|()| cell));
        let answer = answer(count, cell)?;
        all_accepted &= matches!(answer, Answer::Checked(_));
        write_line(writer, &answer).map_err(|e| CellError::unheard(&e))?;
        count += 1;
    }
    if count == 0 {
        return Err(CellError::bad_cell("there is no cell on standard input").hint("give one JSON object a line"));
    }
    Ok(all_accepted)
}

fn answer(index: usize, cell: Result<Cell, CellError>) -> Result<Answer, CellError> {
    match cell {
        Ok(cell) => {
            let (demand, exact, repeats_losses) = (cell.demand(), cell.is_exact(), cell.repeats_losses());
            let warnings = cell.preflight();
            let cell = serde_json::to_value(cell).map_err(|e| CellError::internal(e.to_string()))?;
            Ok(Answer::Checked(Box::new(Checked { index, cell, demand, exact, repeats_losses, warnings })))
        }
        Err(CellError { kind: kind @ (ErrorKind::BadCell | ErrorKind::Unsupported), key, code, message, hint }) => {
            Ok(Answer::Refused(Refused { index, kind, key, code, problem: message, hint }))
        }
        Err(error) => Err(error),
    }
}

/// This machine's kernel features, as far as asked.
#[derive(Default)]
struct Kernel {
    congestion_controls: HashMap<String, Result<(), CellError>>,
}

impl Kernel {
    /// Whether the kernel has everything `cell` needs.
    fn check(&mut self, cell: &Cell) -> Result<(), CellError> {
        if cell.host.clock == HostClock::Virtual {
            return Ok(()); // It is another kernel that has to have it.
        }
        let of_flow = |(number, flow): (usize, &Flow)| {
            Some((format!("flows.{number}.congestion_control"), flow.congestion_control.clone()?))
        };
        let of_hosts = cell.host.congestion_control.clone().map(|name| ("host.congestion_control".to_owned(), name));
        for (key, name) in of_hosts.into_iter().chain(cell.flows.iter().enumerate().filter_map(of_flow)) {
            let hosts = HostConfig { congestion_control: Some(name.clone()), ..HostConfig::default() };
            let check = || hosts.check_kernel().map_err(CellError::from);
            let checked = self.congestion_controls.entry(name).or_insert_with(check).clone();
            checked.map_err(|error| match error.kind {
                ErrorKind::Unsupported => {
                    CellError { key: Some(key), message: "is not offered by this kernel".to_owned(), ..error }
                }
                _ => error,
            })?;
        }
        Ok(())
    }
}
