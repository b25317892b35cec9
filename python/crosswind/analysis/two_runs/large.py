"""Two large runs, compared by the means of their repetitions: an overview, and the cells whose change stands out."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import polars as pl

from crosswind.analysis.cells import CellData
from crosswind.analysis.overview import read_large
from crosswind.analysis.two_runs.compare import change_of, corrected_change, side_of
from crosswind.analysis.two_runs.effects import LEVEL
from crosswind.analysis.two_runs.matching import (
    Matching,
    Pair,
    differing_settings,
    differing_surroundings,
    match_cells,
)
from crosswind.analysis.two_runs.result import (
    CommonCell,
    LargeComparison,
    MetricChange,
    MetricOverview,
    RunComparison,
)
from crosswind.catalog.metrics import METRICS
from crosswind.cell.record import LargeRun
from crosswind.files.damage import left_out
from crosswind.stats import Repetitions
from crosswind.stats.estimate import TooFewSamples

MOST_SHOWN = 10
"""Cells of each metric."""

_ROUNDING = 1e-12
"""Of a number: by how much others that are the same may differ."""


def compare_large(a: LargeRun, b: LargeRun, *, names: tuple[str, str]) -> RunComparison:
    """Compares run B with run A, both read once.

    The changes of the cells that stand out are tested as those of any other two runs are, and p is multiplied by the
    number of all cells that have the metric: that they were chosen by their changes makes none of them significant.

    Raises: TooFewSamples when a run has no results, or the two have no cell in common.
    """
    sides = [_Side(run, name) for run, name in ((a, names[0]), (b, names[1]))]
    matching = match_cells(*(side.cells for side in sides))
    if not matching.pairs:
        raise TooFewSamples(f"{names[0]} and {names[1]} have no cell in common")
    changes = _changes(matching, sides[0], sides[1])
    families = {name: of_metric for (name,), of_metric in changes.partition_by("metric", as_dict=True).items()}
    chosen = sorted({pair for family in families.values() for pair in _standing_out(family)})
    return RunComparison(
        a=sides[0].result,
        b=sides[1].result,
        settings=differing_settings(matching.pairs),
        surroundings=differing_surroundings(sides[0].record, sides[1].record),
        common=_common([matching.pairs[at] for at in chosen], sides[0], sides[1], families),
        only_a=[cell.levels for cell in matching.only_a],
        only_b=[cell.levels for cell in matching.only_b],
        conditions=[],
        level=LEVEL,
        overview=LargeComparison(
            cells=len(matching.pairs), metrics=[_overview(str(name), family) for name, family in families.items()]
        ),
    )


class _Side:
    """One of the runs, read. Raises: TooFewSamples where it has no results."""

    def __init__(self, run: LargeRun, name: str) -> None:
        reading = read_large(run)
        if reading.ends is None:
            raise TooFewSamples(f"{name} has no results")
        self.invalid = reading.invalid
        executed = (kind for kind in run.cells if kind.cell in reading.executed_cells)
        kinds = [replace(kind, finished=reading.examples.get(kind.cell)) for kind in executed]
        self.cells = [CellData(kind.cell, kind.levels, [kind], {}) for kind in kinds]
        means = reading.units.filter(statistic="mean").with_columns(pl.col("metric").cast(pl.String))
        self.means = means.join(run.seeds, on=["cell", "repetition"], how="left")
        # One repetition of each part says on which clock and kernel it ran.
        examples = [kind for kind in kinds if kind.finished is not None]
        self.record = replace(run.record, cells=examples, damaged=run.damaged)
        repetitions = reading.executed + left_out(run.damaged)
        self.result = side_of(self.record, name, cells=len(kinds), repetitions=repetitions, is_valid=not self.invalid)

    def of_cells(self, cells: Sequence[int]) -> dict[int, dict[str, Repetitions]]:
        """The means of the repetitions of some cells, by metric."""
        samples: dict[int, dict[str, Repetitions]] = {}
        means = self.means.filter(pl.col("cell").is_in(cells)).sort("cell", "metric", "repetition")
        for (cell, name), rows in means.partition_by("cell", "metric", as_dict=True, maintain_order=True).items():
            keys = list(rows.select("repetition", "seed").iter_rows())
            repetitions = Repetitions.of(rows["value"].to_numpy(), rows["repetition"].to_numpy(), keys=keys)
            samples.setdefault(int(cell), {})[str(name)] = repetitions
        return samples


def _changes(matching: Matching, a: _Side, b: _Side) -> pl.DataFrame:
    """How B differs from A in each `pair` and `metric`, by the means of their repetitions.

    Returns: `ratio`, B to A, null where A is not above 0. `change`: the mean difference of repetitions that both have.
        `errors`: how many of its standard errors that is.
    """
    numbers = pl.DataFrame(
        {
            "pair": range(len(matching.pairs)),
            "cell_a": [pair.a.cell for pair in matching.pairs],
            "cell_b": [pair.b.cell for pair in matching.pairs],
        },
        schema={"pair": pl.UInt32, "cell_a": pl.UInt32, "cell_b": pl.UInt32},
    )
    ours, theirs = (
        side.means.select("metric", pl.col("cell").alias(name), "repetition", pl.col("value").alias(way))
        for side, name, way in ((a, "cell_a", "a"), (b, "cell_b", "b"))
    )
    both = ours.join(numbers, on="cell_a").join(theirs, on=["metric", "cell_b", "repetition"])
    change = pl.col("b") - pl.col("a")
    error = change.std() / pl.len().sqrt()
    size = pl.max_horizontal(pl.col("a").mean().abs(), pl.col("b").mean().abs())
    return (
        both.group_by("metric", "pair", maintain_order=True)
        .agg(
            ratio=pl.when(pl.col("a").mean() > 0).then(pl.col("b").mean() / pl.col("a").mean()),
            change=change.mean(),
            # What all repetitions have in common stands out the most, but rounding does not.
            errors=change.mean().abs() / pl.max_horizontal(error.fill_null(0.0), _ROUNDING * size, 1e-300),
        )
        .sort("metric", "pair")
    )


def _standing_out(family: pl.DataFrame) -> list[int]:
    changed = family.filter(pl.col("change") != 0)
    return (
        changed.sort("errors", pl.col("change").abs(), descending=True, maintain_order=True)["pair"]
        .head(MOST_SHOWN)
        .to_list()
    )


def _common(pairs: Sequence[Pair], a: _Side, b: _Side, families: Mapping[object, pl.DataFrame]) -> list[CommonCell]:
    ours, theirs = a.of_cells([pair.a.cell for pair in pairs]), b.of_cells([pair.b.cell for pair in pairs])
    return [
        CommonCell(
            cell_a=pair.a.cell,
            cell_b=pair.b.cell,
            levels=pair.levels,
            matched_by=pair.by,
            invalid_a=a.invalid.get(pair.a.cell),
            invalid_b=b.invalid.get(pair.b.cell),
            changes=list(_tested(pair, ours[pair.a.cell], theirs[pair.b.cell], families)),
        )
        for pair in pairs
    ]


def _tested(
    pair: Pair, ours: dict[str, Repetitions], theirs: dict[str, Repetitions], families: Mapping[object, pl.DataFrame]
) -> Iterator[MetricChange]:
    """The changes of a pair of cells, each corrected for all cells that have the metric."""
    measured = Pair(replace(pair.a, samples=ours), replace(pair.b, samples=theirs), pair.by)
    for name, family in families.items():
        metric = METRICS[str(name)]
        if metric.name not in ours or metric.name not in theirs:
            continue
        made = change_of(measured, metric, "mean")
        if made.p is None:
            yield made
            continue
        # How many repetitions would show it among so many cells is not known.
        yield corrected_change(made.model_copy(update={"needed": None}), min(1.0, made.p * family.height))


def _overview(name: str, family: pl.DataFrame) -> MetricOverview:
    least, middle, most = family.select(
        least=pl.col("ratio").min(), middle=pl.col("ratio").median(), most=pl.col("ratio").max()
    ).row(0)
    return MetricOverview(
        metric=name,
        cells=family.height,
        larger=family.filter(pl.col("change") > 0).height,
        smaller=family.filter(pl.col("change") < 0).height,
        least=least,
        middle=middle,
        most=most,
    )
