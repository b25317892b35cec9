//! The time of an exchange or a connection without one of its limits.

use crate::table::{Numbered, ns};
use crosswind_attribution::{Change, Changed};
use crosswind_ledger::Values::Length;
use crosswind_ledger::{Column, Row};

/// Those of an exchange.
pub type ExchangeLimits = Numbered<Changed, false>;
/// Those of a connection.
pub type ConnectionLimits = Numbered<Changed, true>;

impl<const OF_CONNECTION: bool> Row for Numbered<Changed, OF_CONNECTION> {
    const TABLE: &'static str = if OF_CONNECTION { "connection_limits.arrow" } else { "limits.arrow" };

    const COLUMNS: &'static [Column<Self>] = &[
        Self::NUMBER,
        Column::required(
            "without_loss_ns",
            Length(|row| ns(row.value.with(Change::NoLoss))),
            "How long it would take if nothing were lost.",
        ),
        Column::required(
            "without_receive_window_ns",
            Length(|row| ns(row.value.with(Change::NoReceiveWindow))),
            "The same if the receiver's window were never the limit.",
        ),
        Column::required(
            "without_send_buffer_ns",
            Length(|row| ns(row.value.with(Change::NoSendBuffer))),
            "The same if the send buffer were never the limit.",
        ),
        Column::required(
            "at_twice_the_rate_ns",
            Length(|row| ns(row.value.with(Change::TwiceTheRate))),
            "The same if the slowest link were twice as fast.",
        ),
    ];
}
