"""What the loss of single packets costs: repetitions that lose one packet by design, beside the one that loses none."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import polars as pl

from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.cell.record import CellRun

NOTHING_NS = 1_000.0
"""Smaller costs count as zero: in virtual time a host takes this long for another packet at most."""


@dataclass(frozen=True)
class LossCost:
    """A repetition that loses one packet, beside the clean one with its seed.

    Attributes: direction, index: of the packet. total_ns: what all exchanges and connections took longer; None where an
        exchange failed. connect_ns: the part of it of connections that exchanges share. failed: exchanges beyond the
        clean one's failures. weight: how many packets it stands for.
    """

    run: CellRun
    direction: str
    index: int
    total_ns: float | None
    connect_ns: float
    failed: int
    weight: float


def loss_costs(clean: CellRun, losing: Sequence[CellRun]) -> list[LossCost]:
    """The costs in packets' order, direction by direction. Args: losing: repetitions with any seed and cell."""
    own = [run for run in losing if run.lost is not None and _is_beside(run, clean)]
    before = _Taken.of(clean)
    made: list[LossCost] = []
    for direction in DIRECTIONS:
        of_way = {run.lost[1]: run for run in own if run.lost is not None and run.lost[0] == direction}
        indexes = sorted(of_way)
        weights = weights_of(indexes, packets_of(clean, direction))
        made += [_cost(before, of_way[index], weight) for index, weight in zip(indexes, weights, strict=True)]
    return made


def slope_ns(clean: CellRun, costs: Sequence[LossCost]) -> float | None:
    """The derivative of an exchange's mean by the loss rate, at rate 0.

    None without costs, or where an exchange fails. Args: costs: from `loss_costs`.
    """
    known = [cost.weight * (cost.total_ns - cost.connect_ns) for cost in costs if cost.total_ns is not None]
    return sum(known) / clean.samples.height if costs and len(known) == len(costs) else None


def packets_of(run: CellRun, direction: str) -> int:
    """The packets that a host sent."""
    return 0 if run.finished is None else int(getattr(run.finished.ledger, direction).in_)


def weights_of(indexes: Sequence[int], count: int) -> Iterator[float]:
    """Each sampled packet's weight: the packets up to half way to either neighbour."""
    edges = [-0.5, *((before + after) / 2 for before, after in pairwise(indexes)), count - 0.5]
    yield from (high - low for low, high in pairwise(edges) if indexes)


def shared_connections(run: CellRun) -> int:
    """Connections that are set up once for several exchanges; 0 where each exchange opens its own, or none is told."""
    told = run.samples["connect_ns"]
    opened = told.len() - told.null_count()
    return 0 if opened == run.samples.height else opened


def exchanges_ns(run: CellRun) -> float:
    """The sum of what a repetition's successful exchanges took.

    In an open loop an exchange begins when it is due: waiting behind others counts.
    """
    is_open = (run.parameters.get("workload") or {}).get("mode") == "open"
    begun = pl.col("intended_ns" if is_open else "sent_ns")
    took = pl.when(pl.col("outcome") == "ok").then(pl.col("received_ns") - begun)
    return float(run.samples.select(took.sum()).item() or 0)


def connecting_ns(run: CellRun) -> float:
    """The sum of what a repetition's connections took to set up."""
    return float(run.samples["connect_ns"].sum() or 0)


def _is_beside(run: CellRun, clean: CellRun) -> bool:
    return (run.cell, run.parameters.get("seed")) == (clean.cell, clean.parameters.get("seed"))


@dataclass(frozen=True)
class _Taken:
    """A repetition's sums, read from its samples once."""

    exchanges: int
    failed: int
    exchanges_ns: float
    connecting_ns: float
    shares_connections: bool

    @classmethod
    def of(cls, run: CellRun) -> "_Taken":
        failed = int((run.samples["outcome"] != "ok").sum())
        shares = shared_connections(run) > 0
        return cls(run.samples.height, failed, exchanges_ns(run), connecting_ns(run), shares)


def _cost(before: _Taken, run: CellRun, weight: float) -> LossCost:
    assert run.lost is not None
    now = _Taken.of(run)
    failed = now.failed - before.failed
    is_whole = failed == 0 and run.failure is None and now.exchanges == before.exchanges
    connecting = now.connecting_ns - before.connecting_ns
    total = now.exchanges_ns - before.exchanges_ns + connecting if is_whole else None
    total = 0.0 if total is not None and abs(total) < NOTHING_NS else total
    shared = connecting if total and before.shares_connections else 0.0
    return LossCost(run, *run.lost, total, shared, failed, weight)
