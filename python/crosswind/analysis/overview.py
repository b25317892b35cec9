"""A large run's cells, read part by part: means and medians, without intervals.

    parts of the run -> units -> a result for each cell

Nothing is held per exchange except metrics for questions about many cells, and nothing is simulated: a run with a
hundred thousand repetitions takes seconds.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import polars as pl

from crosswind.analysis.cells import CellData, most_of_cells
from crosswind.analysis.conditions import conditions_of
from crosswind.analysis.result import CellResult, Conditions, MetricEstimates
from crosswind.analysis.samples import read_samples
from crosswind.analysis.trust import cause_of_failure, cause_of_invalidity, causes_text, failures_warning
from crosswind.analysis.units import UNITS, is_of_samples, metrics_of_samples, units_of_samples
from crosswind.catalog.metrics import METRICS, STATISTICS, Metric, Per
from crosswind.catalog.tables import SAMPLES
from crosswind.catalog.warning import ResultWarning
from crosswind.cell.record import OF_REPETITION, CellRun, LargeRun, RunPart
from crosswind.cell.result import FailureCount, Finished
from crosswind.stats.estimate import EXACT, NO_INTERVAL, Interval

WHY_NONE = "an overview has no intervals: `crosswind report RUN --cell N` has"
_OWN = list(OF_REPETITION)
_STATISTICS = ("mean", "median")
_OUTCOME = pl.Struct({"outcome": pl.String, "count": pl.Int64, "first_error": pl.String})
_WARNING = pl.Struct({"name": pl.String, "text": pl.String, "hint": pl.String})
_RESULT = pl.Struct({
    "attempt": pl.Int64,
    "machine": pl.String,
    "failure": pl.Struct({"message": pl.String, "hint": pl.String}),
    "finished": pl.Struct({
        "valid": pl.Boolean,
        "reasons": pl.List(pl.String),
        "warnings": pl.List(_WARNING),
        "samples": pl.Struct({"rows": pl.Int64, "ok": pl.Int64, "outcomes": pl.List(_OUTCOME)}),
        "versions": pl.Struct({"kernel": pl.String}),
        "virtual_time": pl.Boolean,
    }),
})  # fmt: skip
"""The fields read from a result."""


@dataclass(frozen=True)
class Overview:
    """A large run's results.

    Attributes: cells: executed ones, by index. conditions: for all planned cells. units: each repetition's, for metrics
        from samples alone. executed: repetitions with a result. machines: of real-clock cells; None: the run's own.
        held: further cells under question, with some metrics' samples.
    """

    cells: list[CellResult]
    conditions: Conditions | None
    units: pl.DataFrame
    executed: int
    machines: Sequence[str | None]
    held: Sequence[CellData] = ()


@dataclass(frozen=True)
class Held:
    """Cells under question, too many to read whole. Attributes: metrics: with sufficient samples."""

    cells: frozenset[int] = frozenset()
    metrics: Sequence[Metric] = ()

    @property
    def columns(self) -> list[str]:
        """Their kept sample columns."""
        roots = {root for metric in self.metrics for root in pl.sql_expr(metric.formula).meta.root_names()}
        known = {*roots, "connect_ns", "connection", "exchange", "intended_ns", "outcome"} & set(SAMPLES.schema)
        return [*_OWN, *sorted(known)]


def can_be_held(metric: Metric) -> bool:
    """Whether samples alone tell a metric, each by itself."""
    return is_of_samples(metric) and not metric.of_failed


def read_large(run: LargeRun, held: Held | None = None) -> "Reading":
    """Reads a run, once. Args: held: the samples to keep."""
    reading = Reading(run.cells, held)
    for part in run.parts:
        reading.add(part)
    return reading


class Reading:
    """A run as far as read. Args: cells: all planned. held: as in `read_large`."""

    def __init__(self, cells: Sequence[CellRun], held: Held | None = None) -> None:
        self._cells = cells
        self._held = held or Held()
        self._kept: list[pl.DataFrame] = []
        self._metrics = list(metrics_of_samples(cells))
        datagrams = [cell.cell for cell in cells if (cell.parameters.get("workload") or {}).get("transport") == "udp"]
        self._setup = pl.when(pl.col("cell").is_in(datagrams)).then(0).otherwise(pl.col("connect_ns"))
        self._units: list[pl.DataFrame] = []
        self._ends: list[pl.DataFrame] = []
        self._outcomes: list[pl.DataFrame] = []
        self.executed = 0
        """Repetitions that have a result."""
        self.executed_cells: set[int] = set()
        self.examples: dict[int, Finished] = {}
        """What one repetition of each part came to, by its cell."""

    def add(self, part: RunPart) -> Sequence[pl.DataFrame]:
        """Some repetitions more. Returns: their units, one table for each metric."""
        self.executed += part.repetitions
        self.executed_cells |= part.cells
        if part.texts is not None:
            self._add_texts(part.texts)
        of_workload = part.samples.filter(pl.col("flow") == 0).with_columns(setup_ns=self._setup)
        if self._held.cells:
            self._kept.append(of_workload.select(self._held.columns))
        self._outcomes.append(of_workload.drop_nulls("outcome").group_by("cell", "outcome").len())
        went_well = of_workload.filter(pl.col("outcome") == "ok")
        units = []
        for metric, cells in self._metrics:
            rows = of_workload if metric.per is Per.REPETITION else went_well
            rows = rows if cells is None else rows.filter(pl.col("cell").is_in(cells))
            units.append(units_of_samples(metric, rows))
        self._units += units
        return units

    def _add_texts(self, texts: pl.DataFrame) -> None:
        ends = texts.with_columns(pl.col("result").str.json_decode(_RESULT)).unnest("result").unnest("finished")
        self._ends.append(ends.unnest("samples"))
        for cell, text in zip(*(texts[name].head(1) for name in ("cell", "result")), strict=True):
            if finished := json.loads(text)["finished"]:
                self.examples[cell] = Finished.from_stored(finished)

    @cached_property
    def units(self) -> pl.DataFrame:
        """As in `Overview`."""
        return pl.concat([pl.DataFrame(schema=UNITS), *self._units])

    @cached_property
    def ends(self) -> pl.DataFrame | None:
        """Each read repetition's end; None without one."""
        return pl.concat(self._ends) if self._ends else None

    @property
    def invalid(self) -> dict[int, str | None]:
        """Invalid cells' reasons, by index."""
        return {} if self.ends is None else {cell: causes_text(own) for cell, own in _causes(self.ends).items()}

    def overview(self, run: LargeRun, level: float) -> Overview:
        """The run as read."""
        units, ends = self.units, self.ends
        if ends is None:
            return Overview([], None, units, 0, [])
        facts = {row["cell"]: row for row in _facts(ends).iter_rows(named=True)}
        causes, warnings, failures = _causes(ends), _warnings(ends), _failures(ends)
        outcomes = _by_cell(pl.concat(self._outcomes).group_by("cell", "outcome").agg(pl.col("len").sum()))
        estimates = _estimates(units, {cell.cell for cell in self._cells if cell.exact}, level)
        cells = [
            _cell(
                kind,
                facts[kind.cell],
                outcomes=dict(sorted(outcomes.get(kind.cell, ()))),
                causes=causes.get(kind.cell, {}),
                warnings=warnings.get(kind.cell, []),
                failures=failures.get(kind.cell, []),
                estimates=estimates.get(kind.cell, {}),
                level=level,
            )
            for kind in self._cells
            if kind.cell in facts
        ]
        on_clock = ends.filter(~pl.col("virtual_time").fill_null(value=False))
        machines = on_clock["machine"].unique(maintain_order=True).to_list()
        held = list(self._held_cells(run, cells))
        return Overview(cells, self._conditions(run, ends, facts), units, ends.height, machines, held)

    def _held_cells(self, run: LargeRun, results: Sequence[CellResult]) -> Iterator[CellData]:
        """Held cells, with some metrics' samples and nothing else."""
        if not self._kept:
            return
        rows = pl.concat(self._kept).sort(_OWN, maintain_order=True)
        places = rows.with_row_index("start").group_by(_OWN, maintain_order=True).agg(pl.col("start").first(), pl.len())
        seeded = places.join(run.seeds, on=_OWN, how="left", maintain_order="left")
        kinds = {kind.cell: kind for kind in self._cells}
        runs: dict[int, list[CellRun]] = {}
        for cell, repetition, start, length, seed in seeded.iter_rows():
            if cell in self._held.cells:
                kind = kinds[cell]
                parameters, samples = {**kind.parameters, "seed": seed}, rows.slice(start, length)
                own = replace(kind, repetition=repetition, parameters=parameters, samples=samples)
                runs.setdefault(cell, []).append(own)
        at_most = most_of_cells(run.record)
        for result in results:
            if result.cell in self._held.cells:
                own_runs = [replace(own, exact=result.exact) for own in runs.get(result.cell, [kinds[result.cell]])]
                yield CellData(
                    result.cell,
                    result.levels,
                    own_runs,
                    read_samples(own_runs, undisturbed_ns=None, metrics=self._held.metrics),
                    len(results),
                    at_most=at_most.get(result.cell),
                    keeps_parts=run.record.keeps_parts,
                    result=result,
                )

    def _conditions(
        self, run: LargeRun, ends: pl.DataFrame, facts: Mapping[int, Mapping[str, Any]]
    ) -> Conditions | None:
        """All cells' conditions; one cell in each part names the programs."""
        kinds = [replace(kind, finished=self.examples.get(kind.cell)) for kind in self._cells if kind.cell in facts]
        made = conditions_of(run.record, [CellData(kind.cell, kind.levels, [kind], {}) for kind in kinds])
        if made is None:
            return None
        repetitions = [of_cell["repetitions"] for of_cell in facts.values()]
        kernels = [struct["kernel"] for struct in ends["versions"].drop_nulls().unique(maintain_order=True)]
        update = {"repetitions": (min(repetitions), max(repetitions)), "kernels": list(filter(None, kernels))}
        return made.model_copy(update=update)


def _facts(ends: pl.DataFrame) -> pl.DataFrame:
    """Each cell's repetitions, attempts, clock and kernel, and its repetitions without success, from 1."""
    fruitless = ((pl.col("rows") > 0) & (pl.col("ok") == 0)).fill_null(value=False)
    return ends.group_by("cell").agg(
        repetitions=pl.len(),
        attempts=pl.col("attempt").sum(),
        virtual=pl.col("virtual_time").drop_nulls().first(),
        kernel=pl.col("versions").struct.field("kernel").drop_nulls().first(),
        fruitless=pl.col("repetition").filter(fruitless).sort() + 1,
    )


def _causes(ends: pl.DataFrame) -> dict[int, dict[str, list[int]]]:
    """Invalid cells' causes, each with its affected repetitions, from 1."""
    causes: dict[int, dict[str, list[int]]] = {}
    invalid = ends.filter(~pl.col("valid").fill_null(value=False)).sort(_OWN)
    for row in invalid.select(*_OWN, "valid", "reasons", "failure").iter_rows(named=True):
        if row["valid"] is None:
            failure = row["failure"] or {"message": "no result", "hint": None}
            cause = cause_of_failure(failure["message"], filter(None, [failure["hint"]]))
        else:
            cause = cause_of_invalidity(row["reasons"] or ())
        causes.setdefault(row["cell"], {}).setdefault(cause, []).append(row["repetition"] + 1)
    return causes


def _warnings(ends: pl.DataFrame) -> dict[int, list[ResultWarning]]:
    """Each cell's warnings, each once."""
    given = ends.sort(_OWN).select("cell", "warnings").explode("warnings").drop_nulls().unique(maintain_order=True)
    return {cell: [ResultWarning(**warning) for (warning,) in rows] for cell, rows in _by_cell(given).items()}


def _failures(ends: pl.DataFrame) -> dict[int, list[FailureCount]]:
    """Each cell's failed exchanges by outcome, the most frequent first."""
    counted = (
        ends.sort(_OWN).select("cell", "outcomes").explode("outcomes").drop_nulls().unnest("outcomes")
        .group_by("cell", "outcome").agg(pl.col("count").sum(), pl.col("first_error").drop_nulls().first())
        .sort(pl.col("count"), "outcome", descending=[True, False])
    )  # fmt: skip
    return {
        cell: [FailureCount(outcome=outcome, count=count, first_error=error) for outcome, count, error in rows]
        for cell, rows in _by_cell(counted).items()
    }


def _by_cell(rows: pl.DataFrame) -> dict[int, list[tuple[Any, ...]]]:
    """Rows by their first column."""
    groups: dict[int, list[tuple[Any, ...]]] = {}
    for cell, *row in rows.iter_rows():
        groups.setdefault(cell, []).append(tuple(row))
    return groups


def _estimates(units: pl.DataFrame, exact: Iterable[int], level: float) -> dict[int, dict[str, MetricEstimates]]:
    """Each cell's mean and median for each metric."""
    of = {name: pl.col("value").filter(statistic=name) for name in ("mean", "median", "smallest", "largest")}
    n = pl.col("n").filter(statistic="mean")
    rows = units.group_by("metric", "cell", maintain_order=True).agg(
        n.len().alias("units"),
        n.sum(),
        of["smallest"].min().alias("smallest"),
        of["largest"].max().alias("largest"),
        ((of["mean"] * n).sum() / n.sum()).alias("mean"),
        of["median"].median().alias("median"),
        *(getattr(of[name], end)().alias(f"{name}_{end}") for name in _STATISTICS for end in ("min", "max")),
    )
    absent = Interval(value=None, low=None, high=None, n=0, level=level, method=NO_INTERVAL, reason=WHY_NONE)
    estimates: dict[int, dict[str, MetricEstimates]] = {}
    of_exact = frozenset(exact)
    for row in rows.iter_rows(named=True):
        is_exact = row["cell"] in of_exact
        given = {"n": row["n"], "level": level, "units": row["units"], "low": None, "high": None}
        given |= {"method": EXACT} if is_exact else {"method": NO_INTERVAL, "reason": WHY_NONE}

        def estimate(name: str, row: Mapping[str, Any] = row, given: Mapping[str, Any] = given) -> Interval:
            ends = (row[f"{name}_min"], row[f"{name}_max"]) if row["units"] > 1 else None
            return Interval(value=row[name], spread=ends, **given)

        estimates.setdefault(row["cell"], {})[row["metric"]] = MetricEstimates.of(
            METRICS[row["metric"]].unit,
            (row["smallest"], row["largest"]),
            {name: estimate(name) if name in _STATISTICS else absent for name in STATISTICS},
        )
    return estimates


def _cell(
    kind: CellRun,
    facts: Mapping[str, Any],
    *,
    outcomes: Mapping[str, int],
    causes: Mapping[str, Sequence[int]],
    warnings: Sequence[ResultWarning],
    failures: Sequence[FailureCount],
    estimates: Mapping[str, MetricEstimates],
    level: float,
) -> CellResult:
    n = sum(outcomes.values())
    lost = n - outcomes.get("ok", 0)
    counts = ", ".join(failure.text() for failure in failures)
    fruitless = facts["fruitless"]
    reason = causes_text(causes)
    if reason is None and len(fruitless) == facts["repetitions"]:
        reason = f"no exchange succeeded: {counts}"
    elif len(fruitless) < facts["repetitions"]:
        failed = failures_warning(fruitless, "no exchange succeeded", failed=lost, exchanges=n, counts=counts)
        warnings = [*failed, *warnings]
    share = Interval(
        value=lost / n, low=None, high=None, n=n, level=level, method=NO_INTERVAL, reason=WHY_NONE
    ) if n else None  # fmt: skip
    return CellResult(
        cell=kind.cell,
        levels=kind.levels,
        clock=kind.clock if facts["virtual"] is None else "virtual" if facts["virtual"] else "real",
        kernel=facts["kernel"],
        exact=kind.exact and bool(facts["virtual"]),
        valid=reason is None,
        reason=reason,
        warnings=list(warnings),
        repetitions=facts["repetitions"],
        attempts=facts["attempts"],
        n=n,
        lost=lost,
        loss=share,
        outcomes=dict(outcomes),
        failures=list(failures),
        estimates=dict(estimates),
        ledger=None,
        fidelity=None,
        models=[],
    )
