"""Time breakdowns for exchanges over several connections: those of programs, browsers and pages.

An exchange takes from `sent_ns` to `received_ns` of its sample. Each moment counts for the first of TIERS on any of
the repetition's connections; several connections in it share equally. Without an open connection, it is the client's.
"""

import numpy as np
import numpy.typing as npt
import polars as pl

from crosswind.catalog.tables import SPENT

_LINK = ("serialisation_forward", "serialisation_reverse")
_HOSTS = ("client_host", "server_host")
_CLOSING = ("closing",)
_UNKNOWN = ("unknown",)
_NAMES = [name.removesuffix("_ns") for name in SPENT.schema if name not in ("exchange", "whole_ns")]
TIERS = (
    _LINK,
    tuple(name for name in _NAMES if name not in (*_LINK, *_HOSTS, *_CLOSING, *_UNKNOWN)),
    _HOSTS,
    _CLOSING,
    _UNKNOWN,
)
"""A link with the exchange's bytes holds all of them up; a host's work while another connection waits for the network,
and closing a connection, hold up nothing."""

_Numbers = npt.NDArray[np.float64]
_Times = npt.NDArray[np.int64]


def with_connections(
    spent: pl.DataFrame,
    samples: pl.DataFrame,
    connections: pl.DataFrame,
    pieces: pl.DataFrame,
    *,
    is_cut_off: bool = False,
) -> pl.DataFrame:
    """The exchanges' time breakdown, from connections where it is unknown otherwise.

    Args:
        spent: shape of SPENT. samples: same repetition. connections, pieces: its connections, and their kept
            pieces; other connection time is unknown.
        is_cut_off: whether everything after these is unknown.
    """
    told = spent.filter(pl.col("unknown_ns") < pl.col("whole_ns"))
    asked = samples.filter(
        pl.col("outcome") == "ok",
        pl.col("received_ns") > pl.col("sent_ns"),
        ~pl.col("exchange").is_in(told["exchange"].implode()),
    )
    if connections.is_empty() or asked.is_empty():
        return spent
    kept = pieces.group_by("connection").agg(pl.col("to_ns").max().alias("kept_ns"))
    rest = connections.join(kept, on="connection", how="left").select(
        pl.coalesce("kept_ns", "from_ns").alias("from_ns"), "to_ns", pl.lit(_UNKNOWN[0]).alias("part")
    )
    every = pl.concat([pieces.select("from_ns", "to_ns", "part"), rest])
    if is_cut_off:
        after = (max(connections["to_ns"]), max(asked["received_ns"]), _UNKNOWN[0])
        every = pl.concat([every, pl.DataFrame([after], every.schema, orient="row")])
    every = every.filter(pl.col("from_ns") < pl.col("to_ns"))
    began, ended = asked["sent_ns"].to_numpy(), asked["received_ns"].to_numpy()
    at = np.unique(np.concatenate([began, ended, every["from_ns"].to_numpy(), every["to_ns"].to_numpy()]))
    at_begin, at_end = np.searchsorted(at, began), np.searchsorted(at, ended)
    until = _until(at, every)
    times = np.rint([sums[at_end] - sums[at_begin] for sums in until.values()]).astype(np.int64)
    # Shares are rounded: the largest part takes the remainder, so all sum to the whole exactly.
    whole = ended - began
    times[times.argmax(axis=0), np.arange(whole.size)] += whole - times.sum(axis=0)
    named = {f"{part}_ns": row for part, row in zip(until, times, strict=True)}
    given = {"exchange": asked["exchange"], "whole_ns": whole, **named}
    parts = pl.DataFrame({name: given.get(name, np.zeros_like(whole)) for name in SPENT.schema})
    return pl.concat([told, parts.cast(told.schema)]).sort("exchange")


def _until(at: _Times, pieces: pl.DataFrame) -> dict[str, _Numbers]:
    """Each part's cumulative time, ns, shape (moments,).

    Args: at: all possible moments of change, in order. pieces: all connections', in any order.
    """
    counts = {
        str(part): _active_pieces(at, own["from_ns"].to_numpy(), own["to_ns"].to_numpy())
        for (part,), own in pieces.group_by("part")
    }
    lengths = np.diff(at).astype(np.float64)
    free = np.ones(lengths.size, dtype=np.bool_)
    shares = {part: np.zeros(lengths.size) for part in (*counts, _HOSTS[0])}
    for tier in TIERS:
        parts = [part for part in tier if part in counts]
        together = np.sum([counts[part] for part in parts], axis=0) if parts else np.zeros(lengths.size)
        holds = free & (together > 0)
        for part in parts:
            shares[part][holds] = counts[part][holds] / together[holds]
        free &= ~holds
    shares[_HOSTS[0]][free] = 1
    return {part: np.concatenate([[0.0], np.cumsum(share * lengths)]) for part, share in shares.items()}


def _active_pieces(at: _Times, begins: _Times, ends: _Times) -> _Times:
    """How many pieces there are between each moment and the next, shape (moments - 1,)."""
    begun, over = (np.bincount(np.searchsorted(at, times), minlength=at.size) for times in (begins, ends))
    return np.cumsum(begun - over)[:-1]
