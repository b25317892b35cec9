//! The intervals of an exchange's or a connection's time.

use crate::table::Numbered;
use crosswind_attribution::Interval;
use crosswind_ledger::Values::{Text, Time, U32, U64};
use crosswind_ledger::{Column, Row};

/// An interval of an exchange.
pub type ExchangePiece = Numbered<Interval, false>;
/// An interval of a connection.
pub type ConnectionPiece = Numbered<Interval, true>;

impl<const OF_CONNECTION: bool> Row for Numbered<Interval, OF_CONNECTION> {
    const TABLE: &'static str = if OF_CONNECTION { "connection_pieces.arrow" } else { "pieces.arrow" };

    const COLUMNS: &'static [Column<Self>] = &[
        Self::NUMBER,
        Column::required("from_ns", Time(|row| Some(row.value.from)), "When it began."),
        Column::required("to_ns", Time(|row| Some(row.value.to)), "When it ended, and the next one began."),
        Column::required("part", Text(|row| Some(row.value.part.name())), "What it was spent on: a part."),
        Column::required("place", Text(|row| Some(row.value.place.name())), "Where: client, server or path."),
        Column::optional(
            "direction",
            Text(|row| row.value.packet.map(|packet| packet.side.name())),
            "Direction of the packet that it is about: which was in the path, was sent again, or had to wait.",
        ),
        Column::optional(
            "index",
            U64(|row| row.value.packet.map(|packet| packet.index)),
            "Position of that packet in its direction.",
        ),
        Column::required(
            "count",
            U32(|row| Some(row.value.count)),
            "Of a timer, how often it had expired in a row; else 0.",
        ),
    ];
}
