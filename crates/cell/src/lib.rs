//! One cell of an experiment: read, check, run, report. The protocol is in `docs/cell-protocol.md`.

mod cell;
mod error;
mod event;
mod fates;
pub mod peer;
mod profile;
mod program;
mod run;
mod table;

pub use cell::{Cell, Output, PathSection};
pub use error::CellError;
pub use event::{Event, EventWriter, write_event};
pub use run::run_cell;
