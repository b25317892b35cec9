"""From a large run to its result: what is asked about in depth, and means and medians of everything else."""

from collections.abc import Mapping, Sequence
from typing import Any

from crosswind.analysis.cells import CellData
from crosswind.analysis.flows import flows_of
from crosswind.analysis.likeness import with_likeness
from crosswind.analysis.model_errors import model_errors
from crosswind.analysis.overview import Overview, overview_of
from crosswind.analysis.result import CellResult, Result
from crosswind.analysis.round_trips import round_trips
from crosswind.analysis.spent import spent_differences
from crosswind.findings.pipeline import compared_by_questions, findings_of, run_warnings, summarise
from crosswind.findings.result import result_model
from crosswind.record import LargeRun, RunRecord
from crosswind.warning import WarningKind

MOST_IN_DEPTH = 500
"""Cells whose estimates have intervals. What is asked about more of them is answered all the same."""


def asked_cells(asked: Mapping[str, Sequence[Mapping[str, Any]]]) -> frozenset[int]:
    """The cells that something is asked about. Args: asked: as of `RunRecord`."""
    return frozenset(cell for kind in asked.values() for stored in kind for cell in stored.get("cells") or ())


def analyse_large(run: LargeRun, *, data: Sequence[CellData], level: float = 0.95) -> tuple[Result, Overview]:
    """Analyse a run of which all is read, and what is asked about is estimated in depth.

    Args: data: the samples of the cells that something is asked about. level: confidence level of every interval.
    Returns: the result, without comparisons of levels and precisions, and what was read.
    """
    overview = overview_of(run, level=level)
    deep = data if len(data) <= MOST_IN_DEPTH else []
    own = with_likeness([summarise(cell, run.record.models, level=level) for cell in deep])
    in_depth = {cell.cell: cell for cell in own}
    cells = [in_depth.get(cell.cell, cell) for cell in overview.cells]
    findings: dict[str, Any] = findings_of(run.record, data, cells, level)
    damaged = list({(damage.key, damage.file): damage for damage in run.damaged}.values())
    executed = overview.executed + len({damage.key for damage in damaged})
    warnings = run_warnings(damaged, executed, run.planned, overview.machines)
    warnings.append(WarningKind.OVERVIEW.warning(_of_what(cells, len(own), run.record)))
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
        model_errors=model_errors(own, deep),
        notes=list(run.record.notes),
        warnings=warnings,
        design=run.record.study,
        provenance=run.record.provenance,
        **findings,
    )
    return result, overview


def _of_what(cells: Sequence[CellResult], in_depth: int, record: RunRecord) -> str:
    """What an overview leaves out."""
    but = f", but for {in_depth:,} that the study asks about" if in_depth else ""
    precision = "" if record.precision is None else ", and no precision is judged"
    return (
        f"an overview of {len(cells):,} cells: means and medians without intervals{but}; "
        f"levels are not compared{precision}"
    )
