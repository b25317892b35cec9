"""Each flow's share of the path, estimated from its repetitions."""

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from crosswind.analysis.cells import CellData
from crosswind.analysis.flow_counts import INTERVAL_NS, IS_BACKGROUND, Flows
from crosswind.analysis.result import FlowOverTime, FlowResult
from crosswind.cell.record import CellRun
from crosswind.stats.arrays import Array
from crosswind.stats.design import LIGHT
from crosswind.stats.estimate import Interval, estimated, exactly, refused
from crosswind.stats.mean import mean_interval
from crosswind.stats.repetitions import Repetitions

MOST_INTERVALS = 300
"""A flow's maximum over time; longer runs have longer intervals."""


BACKGROUND = "background traffic"
"""Its row beside the flows'."""


def flows_of(data: Sequence[CellData], *, level: float) -> list[FlowResult]:
    """Each flow's share in each cell, same-named flows together."""
    return [made for cell in data for made in _of_cell(cell, level=level)]


def _of_cell(cell: CellData, *, level: float) -> Iterator[FlowResult]:
    known = [(run.repetition, flows) for run in cell.runs if (flows := Flows.of(run)) is not None]
    if not known:
        return
    repetitions = [repetition for repetition, _ in known]
    first = known[0][1]

    def estimate(values: list[float]) -> Interval:
        pairs = [(value, at) for value, at in zip(values, repetitions, strict=True) if np.isfinite(value)]
        if not pairs:
            return refused("no repetition has a value", n=0, level=level)
        if cell.is_exact:
            return exactly(pairs[0][0], n=len(pairs), level=level)
        units = Repetitions.of([value for value, _ in pairs], [at for _, at in pairs])
        return estimated(
            lambda: mean_interval(units, design=LIGHT, level=level), n=len(pairs), level=level, units=len(pairs)
        )

    for name in dict.fromkeys(first.names):
        numbers = [number for number, flow_name in enumerate(first.names) if flow_name == name]
        yield FlowResult(
            cell=cell.cell,
            name=name,
            count=len(numbers),
            direction=first.directions[numbers[0]],
            rate=estimate([float(flows.rates[numbers].sum()) for _, flows in known]),
            share=estimate([flows.share(numbers) for _, flows in known]),
            dropped=estimate([_mean(flows.dropped_shares[numbers]) for _, flows in known]),
            marked=estimate([_mean(flows.marked_shares[numbers]) for _, flows in known]),
            queueing=estimate([_mean(flows.queueing_ns[numbers]) for _, flows in known]),
            over_time=_over_time(cell.runs[0], ~IS_BACKGROUND & pl.col("flow").is_in(numbers)),
        )
    counts = [flows.background_counts for _, flows in known]
    if any(made["bytes"] for made in counts):
        sent = [made["packets"] + made["dropped"] for made in counts]
        no_share = refused("background traffic is no flow", n=len(known), level=level, units=len(known))
        yield FlowResult(
            cell=cell.cell,
            name=BACKGROUND,
            count=1,
            direction=first.direction,
            rate=estimate(
                [8e9 * made["bytes"] / flows.length_ns for made, (_, flows) in zip(counts, known, strict=True)],
            ),
            share=no_share,
            dropped=estimate([_ratio(made["dropped"], of) for made, of in zip(counts, sent, strict=True)]),
            marked=estimate([_ratio(made["marked"], made["packets"]) for made in counts]),
            queueing=estimate([_ratio(made["queueing_ns"], made["packets"]) for made in counts]),
            over_time=_over_time(cell.runs[0], IS_BACKGROUND),
        )


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else float("nan")


def _mean(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else float("nan")


def _over_time(run: CellRun, which: pl.Expr) -> list[FlowOverTime]:
    """The first repetition's intervals, all its time, some rows together; many are joined."""
    intervals = run.intervals.filter(which)
    end = run.intervals["from_ns"].max()
    assert isinstance(end, int)
    width = INTERVAL_NS * (end // INTERVAL_NS // MOST_INTERVALS + 1)
    sums = intervals.group_by("direction", pl.col("from_ns") // width * width).agg(
        pl.col("packets", "bytes", "dropped", "marked", "queueing_ns").sum()
    )
    return [FlowOverTime(**row) for row in sums.sort("direction", "from_ns").iter_rows(named=True)]
