"""Head-of-line blocking: how messages fare that lost nothing themselves, while another stream recovers a loss.

The ledger knows whose packets were dropped (`own_drops`). A message meets a recovery when none of its own packets was
dropped and a message of another stream of the same connection, of which one was, is in flight at the same time: from
when that was sent until it was received, or for good until its timeout. What meets none is the reference.
"""

import numpy as np
import numpy.typing as npt
import polars as pl

from crosswind.stats.estimate import Array

FEWEST_UNDISTURBED = 6
"""Messages that a reference takes: as many as the median needs for an interval."""

FENCE = 1.5
"""Interquartile ranges above the third quartile: beyond is what Tukey calls outside (Exploratory Data Analysis, 1977).

A quantile further out would be moved by the few undisturbed messages that are late for another reason.
"""

_Flags = npt.NDArray[np.bool_]


def with_recovery(rows: pl.DataFrame, timeout_ns: int) -> pl.DataFrame:
    """The samples of a cell with two columns more; both null throughout where there is no reference.

    `extra_ns`: round trip of a message that meets a recovery, beyond the median of those that meet none; else null.
    `blocked`: 1 when it was also slower than those usually are (FENCE), else 0; null for messages that lost packets.

    Args: rows: samples of multiplex of all repetitions, told apart by the column `run`. timeout_ns: of a message.
    """
    nothing = rows.with_columns(extra_ns=pl.lit(None, dtype=pl.Float64), blocked=pl.lit(None, dtype=pl.Float64))
    if rows["own_drops"].null_count() == rows.height:
        return nothing
    sent, received = _floats(rows, "sent_ns"), _floats(rows, "received_ns")
    drops = _floats(rows, "own_drops")
    whole = (rows["outcome"] == "ok").fill_null(value=False).to_numpy() & (drops == 0) & np.isfinite(received - sent)
    until = np.where(np.isfinite(received), received, sent + timeout_ns)
    met, undisturbed = np.zeros(rows.height, dtype=np.bool_), np.ones(rows.height, dtype=np.bool_)
    for members in rows.with_row_index("row").group_by("run", "connection", maintain_order=True).agg("row")["row"]:
        inside = members.to_numpy()
        others, own = _meets(sent[inside], until[inside], _floats(rows, "stream")[inside], drops[inside] > 0)
        met[inside], undisturbed[inside] = others, ~(others | own)
    rtt = received - sent
    reference = rtt[whole & undisturbed]
    if reference.size < FEWEST_UNDISTURBED:
        return nothing
    extra = np.where(whole & met, rtt - np.median(reference), np.nan)
    lower, upper = np.quantile(reference, [0.25, 0.75])
    slow = rtt > upper + FENCE * (upper - lower)
    blocked = np.where(whole, (met & slow).astype(np.float64), np.nan)
    return rows.with_columns(extra_ns=pl.Series(extra, nan_to_null=True), blocked=pl.Series(blocked, nan_to_null=True))


def _meets(sent: Array, until: Array, stream: Array, lossy: _Flags) -> tuple[_Flags, _Flags]:
    """Which messages of one connection are in flight while one that lost a packet is: of another stream, of their own.

    Args: of the messages of one connection, each shape (n,); `lossy`: a packet of it was dropped.
    """
    others, own = np.zeros(sent.size, dtype=np.bool_), np.zeros(sent.size, dtype=np.bool_)
    for at in np.flatnonzero(lossy & np.isfinite(sent)):
        together = (sent < until[at]) & (until > sent[at])
        others |= together & (stream != stream[at])
        own |= together & (stream == stream[at])
    return others, own


def _floats(rows: pl.DataFrame, column: str) -> Array:
    """A column as numbers, NaN where it is null."""
    return rows[column].cast(pl.Float64).fill_null(np.nan).to_numpy()
