"""Causes of one run's longer times: repetitions with the same seeds, exchange by exchange and packet by packet.

The first difference is a cause, later ones are consequences. So each pair of repetitions counts by its first packet
with another sending time, size or fate.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import polars as pl

from crosswind.analysis.comparisons import compared
from crosswind.analysis.result import MEAN
from crosswind.analysis.samples import repetition_key
from crosswind.analysis.spent import part_side
from crosswind.analysis.two_runs.matching import Pair
from crosswind.analysis.two_runs.result import Change, ExchangeChange, PacketAt, Parting, PartOfChange, Why
from crosswind.catalog.spent import GROUPS, TAKES
from crosswind.catalog.tables import SPENT
from crosswind.cell.record import CellRun
from crosswind.stats.differences import Side
from crosswind.stats.estimate import TooFewSamples

Packets = Callable[[CellRun], pl.DataFrame | None]
"""Gives a repetition's packets, None without kept ones."""
Numbers = npt.NDArray[np.int64]

PARTS = tuple(part for group in GROUPS for part in group.parts if f"{part}_ns" in SPENT.schema)
PROMPT_NS = {"virtual": 2_000, "real": 500_000}
"""A host's longest immediate action, by clock: smaller time differences are none."""


def explain_change(pair: Pair, packets: tuple[Packets, Packets], *, level: float) -> Why:
    """A cell's change, broken down. Raises: NotPairedError."""
    runs = _paired_runs(pair)
    sides = {part: _chosen(pair, part, runs) for part in PARTS}
    used = {part: exchange for part, exchange in sides.items() if any(side.units.values.any() for side in exchange)}
    whole = tuple(_sum([exchange[at] for exchange in sides.values()]) for at in (0, 1))
    parts = [
        PartOfChange(part=part, a=_mean(exchange[0]), b=_mean(exchange[1]), change=_change(*exchange, level=level))
        for part, exchange in used.items()
    ]
    tolerance = max(PROMPT_NS[run.clock] for both in runs for run in both)
    exchanges = pl.concat([_exchanges(*both) for both in runs])
    differing = exchanges.filter((pl.col("whole_ns_b") - pl.col("whole_ns")).abs() > tolerance)
    kept = [(a, b, tables) for a, b in runs if (tables := _tables(a, b, packets)) is not None]
    partings = [parting for a, b, tables in kept if (parting := _parting(a, b, tables, tolerance)) is not None]
    largest = differing.sort((pl.col("whole_ns_b") - pl.col("whole_ns")).abs(), descending=True, maintain_order=True)
    return Why(
        a=_mean(whole[0]),
        b=_mean(whole[1]),
        change=_change(*whole, level=level),
        parts=sorted(parts, key=lambda part: -abs(part.change.value or 0.0)),
        repetitions=len(runs),
        exchanges=exchanges.height,
        differing=differing.height,
        tolerance_ns=tolerance,
        first=_exchange_change(differing),
        largest=_exchange_change(largest),
        packets=len(kept),
        partings=partings,
    )


class NotPairedError(TooFewSamples):
    """Two runs without pairs. Attributes: hint: the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


# What time was spent on


def _paired_runs(pair: Pair) -> list[tuple[CellRun, CellRun]]:
    """Repetitions with the same number and seed, and a successful exchange."""
    for cell, name in ((pair.a, "A"), (pair.b, "B")):
        if not any(run.spent.height for run in cell.runs):
            raise NotPairedError(f"nothing tells what the time of exchanges of {name} was spent on", TAKES)
    theirs = {repetition_key(run): run for run in pair.b.runs if run.spent.height}
    runs = [
        (run, theirs[repetition_key(run)]) for run in pair.a.runs if run.spent.height and repetition_key(run) in theirs
    ]
    if not runs:
        raise NotPairedError("no repetition has the same seed in A and B", "run both with the same --seed")
    return runs


def _chosen(pair: Pair, part: str, runs: Sequence[tuple[CellRun, CellRun]]) -> tuple[Side, Side]:
    keys = [repetition_key(a) for a, _ in runs]
    a, b = (part_side(cell, part) for cell in (pair.a, pair.b))
    return replace(a, units=a.units.chosen(keys)), replace(b, units=b.units.chosen(keys))


def _sum(sides: Sequence[Side]) -> Side:
    values = np.sum([side.units.values for side in sides], axis=0)
    return replace(sides[0], units=replace(sides[0].units, values=values))


def _mean(side: Side) -> float:
    return float(side.units.values.mean())


def _change(a: Side, b: Side, *, level: float) -> Change:
    return Change.of(compared(a, b, MEAN, level=level).of_statistic)


def _exchanges(a: CellRun, b: CellRun) -> pl.DataFrame:
    """Common exchanges with their parts; B's end in _b."""
    return a.spent.join(b.spent, on="exchange", suffix="_b", maintain_order="left").with_columns(
        repetition=pl.lit(a.repetition)
    )


def _exchange_change(exchanges: pl.DataFrame) -> ExchangeChange | None:
    row = next(exchanges.head(1).iter_rows(named=True), None)
    if row is None:
        return None
    changes = {part: row[f"{part}_ns_b"] - row[f"{part}_ns"] for part in PARTS}
    part = max(changes, key=lambda name: changes[name] * (1 if row["whole_ns_b"] > row["whole_ns"] else -1))
    return ExchangeChange(
        repetition=row["repetition"], exchange=row["exchange"], a=row["whole_ns"], b=row["whole_ns_b"], part=part,
        part_change=changes[part],
    )  # fmt: skip


# Packets


def _tables(a: CellRun, b: CellRun, packets: tuple[Packets, Packets]) -> tuple[pl.DataFrame, pl.DataFrame] | None:
    ours, theirs = packets[0](a), packets[1](b)
    return None if ours is None or theirs is None else (ours, theirs)


def _parting(a: CellRun, b: CellRun, tables: tuple[pl.DataFrame, pl.DataFrame], tolerance: int) -> Parting | None:
    """The first differing packet in either direction; None without one."""
    partings = list(_of_directions(a, b, tables, tolerance))
    return min(partings, key=lambda each: min(at.in_ns for at in (each.a, each.b) if at is not None), default=None)


def _of_directions(
    a: CellRun, b: CellRun, tables: tuple[pl.DataFrame, pl.DataFrame], tolerance: int
) -> Iterator[Parting]:
    for direction in ("forward", "reverse"):
        ours, theirs = (_sent(table, direction) for table in tables)
        both = min(ours.height, theirs.height)
        late = _numbers(theirs, "in_ns", both) - _numbers(ours, "in_ns", both)
        # What hosts take in addition adds up, so that only a step in it says something.
        steps = np.diff(late, prepend=0)
        in_path = _numbers(theirs, "path_ns", both) - _numbers(ours, "path_ns", both)
        flags = {
            "time": np.abs(steps) > tolerance,
            "size": _numbers(ours, "size_bytes", both) != _numbers(theirs, "size_bytes", both),
            "time in the path": np.abs(in_path) > tolerance,
            "fate": (ours["fate"].head(both) != theirs["fate"].head(both)).to_numpy(),
        }
        differ = np.flatnonzero(np.logical_or.reduce(list(flags.values())))
        if not differ.size and ours.height == theirs.height:
            continue
        at = int(differ[0]) if differ.size else both
        sides = [_packet_at(table, at) for table in (ours, theirs)]
        names = [name for name, flag in flags.items() if flag[at]] if differ.size else ["presence"]
        # A packet that was not delivered has no time in the path to compare.
        names = [name for name in names if not (name == "time in the path" and "fate" in names)]
        run, table = (a, ours) if at < ours.height else (b, theirs)
        yield Parting.model_validate({
            "repetition": a.repetition, "direction": direction, "index": table["index"][at], "differs": names,
            "exchange": _under_way(run, table.row(at, named=True)), "a": sides[0], "b": sides[1],
            "late_ns": int(steps[at]) if differ.size else 0,
        })  # fmt: skip


def _sent(packets: pl.DataFrame, direction: str) -> pl.DataFrame:
    """One host's sent packets, in order: each once."""
    fate = (
        pl.when(pl.col("verdict") == "dropped")
        .then(pl.concat_str(pl.lit("dropped by "), pl.col("cause").fill_null("the path")))
        .when(pl.col("flipped_bit").is_not_null())
        .then(pl.lit("damaged"))
        .otherwise(pl.col("verdict"))
    )
    return (
        packets.filter(direction=direction, copy=0)
        .sort("index")
        .with_columns(fate=fate, path_ns=pl.col("due_ns") - pl.col("in_ns"))
    )


def _numbers(packets: pl.DataFrame, column: str, first: int) -> Numbers:
    return packets[column].head(first).cast(pl.Int64).to_numpy()


def _packet_at(packets: pl.DataFrame, at: int) -> PacketAt | None:
    if at >= packets.height:
        return None
    row = packets.row(at, named=True)
    return PacketAt(in_ns=row["in_ns"], path_ns=row["path_ns"], size_bytes=row["size_bytes"], fate=row["fate"])


def _under_way(run: CellRun, packet: dict[str, int | str]) -> int | None:
    """The exchange under way on a packet's connection at its sending."""
    port = packet["source_port" if packet["direction"] == "forward" else "destination_port"]
    began = pl.col("sent_ns") - pl.col("connect_ns").fill_null(0)
    under_way = run.samples.filter(
        (began <= packet["in_ns"])
        & (pl.max_horizontal("received_ns", "failed_ns").fill_null(2**62) >= packet["in_ns"])
        & ((pl.col("client_port") == port) | pl.col("client_port").is_null())
    )
    return None if under_way.is_empty() else int(under_way["exchange"][0])
