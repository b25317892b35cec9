"""From a large run to its result: what is asked about in depth, and means and medians of everything else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.analysis.cells import CellData
from crosswind.analysis.flows import flows_of
from crosswind.analysis.held import HeldSamples, can_be_held
from crosswind.analysis.likeness import with_likeness
from crosswind.analysis.model_errors import model_errors
from crosswind.analysis.overview import Overview, overview_of
from crosswind.analysis.result import CellResult, Result
from crosswind.analysis.round_trips import round_trips
from crosswind.analysis.spent import spent_differences
from crosswind.catalog.metrics import LOST, METRICS, Metric, metric_named
from crosswind.catalog.warning import ResultWarning, WarningKind
from crosswind.cell.record import LargeRun, RunRecord
from crosswind.files.damage import left_out
from crosswind.findings.pipeline import compared_by_questions, findings_of, run_warnings, summarise
from crosswind.findings.result import result_model

MOST_IN_DEPTH = 500
"""Cells whose estimates have intervals. What is asked about more of them is answered all the same."""


_OF_SAMPLES = ("question", "threshold")
"""Kinds of finding that need nothing of a cell but the samples of their metric."""


@dataclass(frozen=True)
class AskedCells:
    """The cells that something is asked about.

    Attributes: whole: those whose tables are read. held: others, of which the samples of some metrics are enough.
    """

    whole: frozenset[int]
    held: frozenset[int] = frozenset()
    metrics: Sequence[Metric] = ()


def asked_cells(asked: Mapping[str, Sequence[Mapping[str, Any]]]) -> AskedCells:
    """The cells that something is asked about: few are read whole. Args: asked: as of `RunRecord`."""
    cells_of = [(_metric_held(kind, stored), frozenset(stored.get("cells") or ()))
                for kind, every in asked.items() for stored in every]  # fmt: skip
    every_cell = frozenset[int]().union(*(cells for _, cells in cells_of))
    if len(every_cell) <= MOST_IN_DEPTH:
        return AskedCells(every_cell)
    whole = frozenset[int]().union(*(cells for metric, cells in cells_of if metric is None))
    metrics = {metric.name: metric for metric, _ in cells_of if metric is not None and metric.name in METRICS}
    return AskedCells(whole, every_cell - whole, list(metrics.values()))


def _metric_held(kind: str, stored: Mapping[str, Any]) -> Metric | None:
    """The metric whose samples are enough for what is asked; None where more is needed."""
    metric = metric_named(stored["metric"]) if kind in _OF_SAMPLES and not stored.get("model") else None
    return metric if metric is not None and (metric is LOST or can_be_held(metric)) else None


def analyse_large(
    run: LargeRun, *, data: Sequence[CellData], asked: AskedCells, level: float = 0.95
) -> tuple[Result, Overview]:
    """Analyse a run of which all is read, and what is asked about is estimated in depth.

    Args: data: the cells that are read whole. asked: which these are, and the others that something is asked about.
        level: confidence level of every interval.
    Returns: the result, without comparisons of levels and precisions, and what was read.
    """
    held = HeldSamples(asked.metrics) if asked.held else None
    overview = overview_of(run, level=level, held=held)
    deep = data if len(data) <= MOST_IN_DEPTH else []
    if held is not None:
        others = held.cells(run, overview.cells, asked.held)
        data = sorted([*data, *others], key=lambda cell: cell.cell)
    summarised = with_likeness([summarise(cell, run.record.models, level=level) for cell in deep])
    in_depth = {cell.cell: cell for cell in summarised}
    cells = [in_depth.get(cell.cell, cell) for cell in overview.cells]
    findings: dict[str, Any] = findings_of(run.record, data, cells, level)
    damaged = list({(damage.key, damage.file): damage for damage in run.damaged}.values())
    executed = overview.executed + left_out(damaged)
    warnings = run_warnings(damaged, executed, run.planned, overview.machines)
    warnings.append(_overview_warning(cells, len(summarised), run.record))
    result = result_model()(
        study=run.record.name,
        title=run.record.title,
        valid=bool(cells) and not damaged and all(cell.valid for cell in cells),
        complete=executed >= run.planned,
        planned=run.planned,
        executed=executed,
        damaged=damaged,
        conditions=overview.conditions,
        cells=cells,
        comparisons=[],
        spent=spent_differences(deep, compared_by_questions(findings), level=level),
        round_trips=round_trips(deep, level=level),
        flows=flows_of(deep, level=level),
        model_errors=model_errors(summarised, deep),
        notes=list(run.record.notes),
        left_out=list(run.record.left_out),
        warnings=warnings,
        design=run.record.study,
        provenance=run.record.provenance,
        **findings,
    )
    return result, overview


def _overview_warning(cells: Sequence[CellResult], in_depth: int, record: RunRecord) -> ResultWarning:
    """What an overview leaves out."""
    but = f", but for {in_depth:,} that the study asks about" if in_depth else ""
    precision = "" if record.precision is None else ", and no precision is judged"
    return WarningKind.OVERVIEW.warning(cells=len(cells), but=but, precision=precision)
