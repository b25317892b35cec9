"""Costs of single packets, lost or held back: repetitions with one by design, beside the clean repetition."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import polars as pl

from crosswind.catalog.disturbed import Packet
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.cell.record import CellRun

NOTHING_NS = 1_000.0
"""Smaller costs count as zero: a host's virtual time for one more packet is shorter."""


@dataclass(frozen=True)
class Disturbance:
    """A repetition with disturbed packets, beside the clean one with its seed.

    Attributes: packets: those disturbed. total_ns: what all exchanges and connections took longer; None where an
        exchange failed. connect_ns: the part of it of connections that exchanges share. failed: exchanges beyond the
        clean one's failures. delayed: exchanges that took longer, or failed. sent: packets that hosts sent.
        connecting_ns: the part of all connections.
        weight: how many packets it stands for.
    """

    run: CellRun
    packets: tuple[Packet, ...]
    total_ns: float | None
    connect_ns: float
    connecting_ns: float
    failed: int
    delayed: int
    sent: int
    weight: float

    @property
    def direction(self) -> str:
        """The first packet's direction."""
        return self.packets[0][0]

    @property
    def index(self) -> int:
        """The first packet's index."""
        return self.packets[0][1]


def disturbances(clean: CellRun, runs: Sequence[CellRun], hold_ns: int | None = None) -> list[Disturbance]:
    """The costs of single packets, in their order, direction by direction; none for a repetition without a result.

    Args: runs: repetitions with any seed and cell. hold_ns: how long packets were held back; None: they were lost.
    """
    own = _ended(_beside(clean, runs, hold_ns, 1))
    before = Taken.of(clean)
    made: list[Disturbance] = []
    for direction, count in packets_of(clean).items():
        indexes = sorted(index for ((way, index),) in own if way == direction)
        weights = weights_of(indexes, count)
        made += [
            _cost(before, own[(direction, index),], weight) for index, weight in zip(indexes, weights, strict=True)
        ]
    return made


def pairs_of(clean: CellRun, runs: Sequence[CellRun]) -> list[Disturbance]:
    """The costs of two packets lost together. Args: as for `disturbances`."""
    before = Taken.of(clean)
    return [_cost(before, run, 1.0) for run in _ended(_beside(clean, runs, None, 2)).values()]


def failure_of(clean: CellRun, runs: Sequence[CellRun], hold_ns: int | None) -> str | None:
    """Why the first repetition with a disturbed packet has no result; None where all have one."""
    failures = (run.failure for run in _beside(clean, runs, hold_ns, 1).values() if run.finished is None)
    return next((failure.message for failure in failures if failure is not None), None)


def slope_ns(clean: CellRun, costs: Sequence[Disturbance], *, connecting: bool = True) -> float | None:
    """The derivative of an exchange's mean by the loss rate, at rate 0.

    Args:    costs: from `disturbances`. connecting: with the connection opened for this exchange alone.
    Returns: None without costs, or where an exchange fails.
    """
    known = [
        cost.weight * (cost.total_ns - (cost.connect_ns if connecting else cost.connecting_ns))
        for cost in costs
        if cost.total_ns is not None
    ]
    return sum(known) / clean.samples.height if costs and len(known) == len(costs) else None


def packets_of(run: CellRun) -> dict[str, int]:
    """The hosts' packets, by direction."""
    ledger = None if run.finished is None else run.finished.ledger
    return dict.fromkeys(DIRECTIONS, 0) if ledger is None else ledger.sent


def weights_of(indexes: Sequence[int], count: int) -> Iterator[float]:
    """Each sampled packet's weight: the packets up to half way to either neighbour."""
    edges = [-0.5, *((before + after) / 2 for before, after in pairwise(indexes)), count - 0.5]
    yield from (high - low for low, high in pairwise(edges) if indexes)


def shared_connections(run: CellRun) -> int:
    """Connections that are set up once for several exchanges; 0 where each exchange opens its own, or none is told."""
    told = run.samples["connect_ns"]
    opened = told.len() - told.null_count()
    return 0 if opened == run.samples.height else opened


@dataclass(frozen=True)
class Taken:
    """A repetition's times, read from its samples once.

    Attributes: times_ns: each exchange's, in order; NaN for one that failed. In an open loop an exchange begins when it
        is due: waiting behind others counts. connects_ns: what each took to open its connection.
    """

    times_ns: np.ndarray
    connects_ns: np.ndarray
    shares_connections: bool

    @classmethod
    def of(cls, run: CellRun) -> "Taken":
        """Args: run: one with samples."""
        is_open = (run.parameters.get("workload") or {}).get("mode") == "open"
        begun = pl.col("intended_ns" if is_open else "sent_ns")
        took = pl.when(pl.col("outcome") == "ok").then(pl.col("received_ns") - begun)
        samples = run.samples.sort("exchange")
        times = samples.select(took.cast(pl.Float64).fill_null(float("nan"))).to_series()
        connects = samples["connect_ns"].cast(pl.Float64).fill_null(0.0)
        return cls(times.to_numpy(), connects.to_numpy(), shared_connections(run) > 0)

    @property
    def connecting_ns(self) -> float:
        """All connections' set-up time."""
        return float(self.connects_ns.sum())

    @property
    def whole_ns(self) -> np.ndarray:
        """Each exchange's time, with the connection that it opens for itself."""
        return self.times_ns if self.shares_connections else self.times_ns + self.connects_ns

    @property
    def failed(self) -> int:
        """Exchanges that did not succeed."""
        return int(np.isnan(self.times_ns).sum())

    @property
    def exchanges_ns(self) -> float:
        """The successful exchanges' total time."""
        return float(np.nansum(self.times_ns))


def _beside(
    clean: CellRun, runs: Sequence[CellRun], hold_ns: int | None, packets: int
) -> Mapping[tuple[Packet, ...], CellRun]:
    """Disturbed repetitions with the clean one's cell and seed, by their packets."""
    seed = clean.parameters.get("seed")
    return {
        run.disturbed.packets: run
        for run in runs
        if run.disturbed is not None and run.disturbed.hold_ns == hold_ns and len(run.disturbed.packets) == packets
        if (run.cell, run.parameters.get("seed")) == (clean.cell, seed)
    }


def _ended(runs: Mapping[tuple[Packet, ...], CellRun]) -> Mapping[tuple[Packet, ...], CellRun]:
    """The repetitions with a result."""
    return {packets: run for packets, run in runs.items() if run.finished is not None}


def _cost(before: Taken, run: CellRun, weight: float) -> Disturbance:
    assert run.disturbed is not None
    now = Taken.of(run)
    failed = now.failed - before.failed
    is_comparable = len(now.times_ns) == len(before.times_ns)
    connecting = now.connecting_ns - before.connecting_ns
    total = now.exchanges_ns - before.exchanges_ns + connecting if is_comparable and failed == 0 else None
    total = 0.0 if total is not None and abs(total) < NOTHING_NS else total
    shared = connecting if total and before.shares_connections else 0.0
    unharmed = ~(now.times_ns >= before.times_ns + NOTHING_NS) & ~np.isnan(now.times_ns) if is_comparable else None
    delayed = len(before.times_ns) if unharmed is None else int((~unharmed).sum())
    sent = sum(packets_of(run).values())
    return Disturbance(run, run.disturbed.packets, total, shared, connecting, failed, delayed, sent, weight)
