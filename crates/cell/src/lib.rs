//! One cell of an experiment: read, check, run, report. The protocol is in `docs/cell-protocol.md`.

mod cell;
mod cell_network;
mod check;
mod connections;
mod demand;
mod describe;
mod error;
mod event;
mod files;
mod flow;
mod flows;
mod gate;
mod losses;
mod message_drops;
pub mod network;
pub mod peer;
mod pieces;
mod preflight;
mod processor_time;
mod recorded_packets;
mod result;
mod run;
mod sections;
mod spent;
mod table;

pub use cell::{Cell, Output, PathSection};
pub use check::{Answer, Checked, Refused, check_cells};
pub use demand::Demand;
pub use describe::Catalogue;
pub use error::{CellError, ErrorKind, spawn};
pub use event::{ErrorReport, Event, FidelitySoFar, ProgressReport, write_last_event, write_line};
pub use flow::Flow;
pub use losses::{Lost, tell_losses};
pub use recorded_packets::recorded_packets;
pub use result::{CellResult, FlowReport};
pub use run::run_cell;
