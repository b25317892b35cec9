//! The intervals of an exchange's or a connection's time.

use crosswind_attribution::Interval;
use crosswind_ledger::Values::{Text, Time, U32, U64};
use crosswind_ledger::{Column, Row};

/// An interval of an exchange.
pub type ExchangePiece = NumberedPiece<false>;
/// An interval of a connection.
pub type ConnectionPiece = NumberedPiece<true>;

/// An interval of a connection, or else of an exchange, which has a number.
#[derive(Debug)]
pub struct NumberedPiece<const OF_CONNECTION: bool> {
    number: u64,
    piece: Interval,
}

impl<const OF_CONNECTION: bool> NumberedPiece<OF_CONNECTION> {
    pub const fn new(number: u64, piece: Interval) -> Self {
        Self { number, piece }
    }

    const NUMBER: Column<Self> = if OF_CONNECTION {
        Column::required("connection", U64(|row| Some(row.number)), "Number of the connection.")
    } else {
        Column::required("exchange", U64(|row| Some(row.number)), "Number of the exchange.")
    };
}

impl<const OF_CONNECTION: bool> Row for NumberedPiece<OF_CONNECTION> {
    const TABLE: &'static str = if OF_CONNECTION { "connection_pieces.arrow" } else { "pieces.arrow" };

    const COLUMNS: &'static [Column<Self>] = &[
        Self::NUMBER,
        Column::required("from_ns", Time(|row| Some(row.piece.from)), "When it began."),
        Column::required("to_ns", Time(|row| Some(row.piece.to)), "When it ended, and the next one began."),
        Column::required("part", Text(|row| Some(row.piece.part.name())), "What it was spent on: a part."),
        Column::required("place", Text(|row| Some(row.piece.place.name())), "Where: client, server or path."),
        Column::optional(
            "direction",
            Text(|row| row.piece.packet.map(|packet| packet.side.name())),
            "Direction of the packet that it is about: which was in the path, was sent again, or had to wait.",
        ),
        Column::optional(
            "index",
            U64(|row| row.piece.packet.map(|packet| packet.index)),
            "Position of that packet in its direction.",
        ),
        Column::required(
            "count",
            U32(|row| Some(row.piece.count)),
            "Of a timer, how often it had expired in a row; else 0.",
        ),
    ];
}
