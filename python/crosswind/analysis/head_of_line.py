"""Head-of-line blocking: how long messages take that lost no packet, while another stream recovers from a loss.

The ledger knows whose packets were dropped (`own_drops`). A message meets a recovery when it lost no packet, and a
message of another stream of its connection that did is in flight at the same time: from when that one was sent until
its answer came, or until its timeout where none came. Messages that meet no recovery are the reference.
"""

import numpy as np
import numpy.typing as npt
import polars as pl

from crosswind.stats.estimate import Array

MIN_UNDISTURBED = 6
"""The fewest messages that are a reference: as many as the median needs for an interval."""

FENCE = 1.5
"""Interquartile ranges above the third quartile: beyond is what Tukey calls outside (Exploratory Data Analysis, 1977).

A quantile further out would be moved by the few undisturbed messages that are late for another reason.
"""

_Flags = npt.NDArray[np.bool_]


def with_recovery(rows: pl.DataFrame, timeout_ns: float) -> pl.DataFrame:
    """The samples of a cell with two columns more; both null throughout where there is no reference.

    `extra_ns`: round trip of a message that meets a recovery, beyond the median of those that meet none; else null.
    `blocked`: 1 when it was also slower than those usually are (FENCE), else 0; null for messages that lost packets.

    Args:
        rows: samples of multiplex of all repetitions, which are numbered in the column `run`.
        timeout_ns: of a message.
    """
    nothing = rows.with_columns(extra_ns=pl.lit(None, dtype=pl.Float64), blocked=pl.lit(None, dtype=pl.Float64))
    if rows["own_drops"].null_count() == rows.height:
        return nothing
    round_trip = _floats(rows, "received_ns") - _floats(rows, "sent_ns")
    lost_nothing = (rows["outcome"] == "ok").fill_null(value=False).to_numpy() & (_floats(rows, "own_drops") == 0)
    lost_nothing &= np.isfinite(round_trip)
    meets, undisturbed = _recoveries(rows, timeout_ns)
    reference = round_trip[lost_nothing & undisturbed]
    if reference.size < MIN_UNDISTURBED:
        return nothing
    extra = np.where(lost_nothing & meets, round_trip - np.median(reference), np.nan)
    lower, upper = np.quantile(reference, [0.25, 0.75])
    is_slow = round_trip > upper + FENCE * (upper - lower)
    blocked = np.where(lost_nothing, (meets & is_slow).astype(np.float64), np.nan)
    return rows.with_columns(extra_ns=pl.Series(extra, nan_to_null=True), blocked=pl.Series(blocked, nan_to_null=True))


def _recoveries(rows: pl.DataFrame, timeout_ns: float) -> tuple[_Flags, _Flags]:
    """Which messages are in flight during another stream's recovery, and which during none, each shape (rows,)."""
    sent, received = _floats(rows, "sent_ns"), _floats(rows, "received_ns")
    until = np.where(np.isfinite(received), received, sent + timeout_ns)
    stream, lost_packets = _floats(rows, "stream"), _floats(rows, "own_drops") > 0
    meets, undisturbed = np.zeros(rows.height, dtype=np.bool_), np.ones(rows.height, dtype=np.bool_)
    connections = rows.with_row_index("row").group_by("run", "connection", maintain_order=True).agg("row")["row"]
    for members in connections:
        inside = members.to_numpy()
        of_others, of_own = _of_connection(sent[inside], until[inside], stream[inside], lost_packets[inside])
        meets[inside], undisturbed[inside] = of_others, ~(of_others | of_own)
    return meets, undisturbed


def _of_connection(sent: Array, until: Array, stream: Array, lost_packets: _Flags) -> tuple[_Flags, _Flags]:
    """Which messages of one connection are in flight during a recovery: of another stream, and of their own.

    Args: of the messages of the connection, each shape (n,).
    """
    of_others, of_own = np.zeros(sent.size, dtype=np.bool_), np.zeros(sent.size, dtype=np.bool_)
    for lossy in np.flatnonzero(lost_packets & np.isfinite(sent)):
        together = (sent < until[lossy]) & (until > sent[lossy])
        of_others |= together & (stream != stream[lossy])
        of_own |= together & (stream == stream[lossy])
    return of_others, of_own


def _floats(rows: pl.DataFrame, column: str) -> Array:
    """A column as numbers, NaN where it is null."""
    return rows[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
