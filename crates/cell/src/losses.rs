//! Which packets a cell's path loses with a seed, told before it runs.

use crate::{Cell, CellError, write_line};
use crosswind_path::Side;
use crosswind_units::Seed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Deserializer, Value};
use std::io::Write;

/// A question about one cell.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Wanted {
    /// As for a run.
    cell: Value,
    /// In place of the cell's own.
    seeds: Vec<u64>,
    /// How many packets of each direction, from the first on.
    packets: Packets,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Packets {
    forward: u64,
    reverse: u64,
}

/// The packets lost with one seed, by their index.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Lost {
    /// Client to server.
    pub forward: Vec<u64>,
    /// Server to client.
    pub reverse: Vec<u64>,
}

/// Answers each question in `text`, JSON values one after another: a line with a [`Lost`] for each seed.
pub fn tell_losses(text: &str, writer: &mut impl Write) -> Result<(), CellError> {
    for value in Deserializer::from_str(text).into_iter::<Wanted>() {
        let wanted = value.map_err(|error| {
            CellError::bad_cell(format!("the question is not as expected: {error}"))
                .hint("give {\"cell\": ..., \"seeds\": [1, 2], \"packets\": {\"forward\": 100, \"reverse\": 100}}")
        })?;
        let cell = Cell::from_value(wanted.cell)?;
        if !cell.repeats_losses() {
            return Err(CellError::bad_cell("the cell's losses depend on more than a packet's index")
                .hint("only independent losses and bursts counted in packets are known before a run"));
        }
        let path = cell.path.emulated();
        let lost =
            |side: Side, seed: u64, packets: u64| path.lost_packets(side, Seed(seed), packets).map_err(CellError::from);
        let answer = wanted.seeds.iter().map(|seed| {
            let forward = lost(Side::Forward, *seed, wanted.packets.forward)?;
            Ok(Lost { forward, reverse: lost(Side::Reverse, *seed, wanted.packets.reverse)? })
        });
        let answer = answer.collect::<Result<Vec<_>, CellError>>()?;
        write_line(writer, &answer).map_err(|cause| CellError::unheard(&cause))?;
    }
    Ok(())
}
