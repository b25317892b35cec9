//! The time of an exchange or a connection without one of its limits.

use crate::table::ns;
use crosswind_attribution::{Change, Changed};
use crosswind_ledger::Values::{Length, U64};
use crosswind_ledger::{Column, Row};

/// Those of an exchange.
pub type ExchangeLimits = NumberedLimits<false>;
/// Those of a connection.
pub type ConnectionLimits = NumberedLimits<true>;

/// Those of a connection, or else of an exchange, which has a number.
#[derive(Debug)]
pub struct NumberedLimits<const OF_CONNECTION: bool> {
    number: u64,
    changed: Changed,
}

impl<const OF_CONNECTION: bool> NumberedLimits<OF_CONNECTION> {
    pub const fn new(number: u64, changed: Changed) -> Self {
        Self { number, changed }
    }

    const NUMBER: Column<Self> = if OF_CONNECTION {
        Column::required("connection", U64(|row| Some(row.number)), "Number of the connection.")
    } else {
        Column::required("exchange", U64(|row| Some(row.number)), "Number of the exchange.")
    };
}

impl<const OF_CONNECTION: bool> Row for NumberedLimits<OF_CONNECTION> {
    const TABLE: &'static str = if OF_CONNECTION { "connection_limits.arrow" } else { "limits.arrow" };

    const COLUMNS: &'static [Column<Self>] = &[
        Self::NUMBER,
        Column::required(
            "without_loss_ns",
            Length(|row| ns(row.changed.with(Change::NoLoss))),
            "How long it would take if nothing were lost.",
        ),
        Column::required(
            "without_receive_window_ns",
            Length(|row| ns(row.changed.with(Change::NoReceiveWindow))),
            "The same if the receiver's window were never the limit.",
        ),
        Column::required(
            "without_send_buffer_ns",
            Length(|row| ns(row.changed.with(Change::NoSendBuffer))),
            "The same if the send buffer were never the limit.",
        ),
        Column::required(
            "at_twice_the_rate_ns",
            Length(|row| ns(row.changed.with(Change::TwiceTheRate))),
            "The same if the slowest link were twice as fast.",
        ),
    ];
}
