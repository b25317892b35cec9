"""From a run's record to its result: estimates for each cell, comparisons, models and published numbers beside them.

    record -> samples of each cell -> estimates
           -> comparisons, models, and the findings of every kind (crosswind.findings) -> Result

Of a large run only the cells that something is asked about have intervals, up to a number of them (`MOST_IN_DEPTH`):
the others are those of its overview. Nothing here starts a process or reads a clock, and every interval is seeded: the
same record gives the same result.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.analysis.cells import CellData, collect
from crosswind.analysis.comparisons import compare_levels
from crosswind.analysis.conditions import conditions_of
from crosswind.analysis.counters import profile_of
from crosswind.analysis.endpoints import ends_of
from crosswind.analysis.estimates import estimates_of
from crosswind.analysis.flows import flows_of
from crosswind.analysis.likeness import with_likeness
from crosswind.analysis.model_errors import model_errors
from crosswind.analysis.network import retransmitted_of
from crosswind.analysis.overview import Held, Overview, can_be_held
from crosswind.analysis.precision import precision_of
from crosswind.analysis.predictions import predictions_of
from crosswind.analysis.programs import program_of
from crosswind.analysis.result import CellResult, Result
from crosswind.analysis.round_trips import round_trips
from crosswind.analysis.spent import spent_differences
from crosswind.analysis.trust import (
    clock_of,
    failures_of,
    fidelity_of,
    ledger_of,
    packet_loss_of,
    warnings_of,
)
from crosswind.catalog.metrics import LOST, METRICS, Metric, metric_named
from crosswind.catalog.warning import ResultWarning, WarningKind
from crosswind.cell.record import RunRecord
from crosswind.decisions.model import ResultModel
from crosswind.files.damage import Damage, damage_sentences, left_out
from crosswind.findings.judged import Context, judgings
from crosswind.findings.question.result import Answer
from crosswind.findings.result import result_model
from crosswind.stats.share import share_interval

LEVEL = 0.95
"""Of every interval."""

MOST_IN_DEPTH = 500
"""Cells of a large run whose estimates have intervals. What is asked about more of them is answered all the same."""

_OF_SAMPLES = ("question", "threshold")
"""Kinds of finding that need nothing of a cell but the samples of their metric."""


@dataclass(frozen=True)
class AskedCells:
    """The cells that something is asked about. Attributes: whole: those whose tables are read. held: others."""

    whole: frozenset[int]
    held: Held | None = None


def asked_cells(asked: Mapping[str, Sequence[Mapping[str, Any]]]) -> AskedCells:
    """The cells that something is asked about: few are read whole. Args: asked: as of `RunRecord`."""
    cells_of = [(_metric_held(kind, stored), frozenset(stored.get("cells") or ()))
                for kind, every in asked.items() for stored in every]  # fmt: skip
    every_cell = frozenset[int]().union(*(cells for _, cells in cells_of))
    if len(every_cell) <= MOST_IN_DEPTH:
        return AskedCells(every_cell)
    whole = frozenset[int]().union(*(cells for metric, cells in cells_of if metric is None))
    metrics = {metric.name: metric for metric, _ in cells_of if metric is not None and metric.name in METRICS}
    return AskedCells(whole, Held(every_cell - whole, list(metrics.values())))


def _metric_held(kind: str, stored: Mapping[str, Any]) -> Metric | None:
    """The metric whose samples are enough for what is asked; None where more is needed."""
    metric = metric_named(stored["metric"]) if kind in _OF_SAMPLES and not stored.get("model") else None
    return metric if metric is not None and (metric is LOST or can_be_held(metric)) else None


def analyse(
    record: RunRecord,
    *,
    data: Sequence[CellData] | None = None,
    level: float = LEVEL,
    overview: Overview | None = None,
) -> Result:
    """Analyse a run.

    Args:    record: the run. data: its cells, `collect(record)`, if they are known; of a large run those of the record,
             which are read whole. level: confidence level of every interval. overview: of a large run.
    Returns: the result, serialisable as `crosswind.result/1`; what the samples do not support is null with a reason.
             That of a large run is without comparisons of levels and precisions.
    """
    data = collect(record) if data is None else data
    deep = data if overview is None or len(data) <= MOST_IN_DEPTH else []
    in_depth = with_likeness([summarise(cell, record.models, level=level) for cell in deep])
    made, executed = in_depth, len(record.cells)
    machines: Iterable[str | None] = (run.machine for run in record.cells if run.clock == "real")
    if overview is not None:
        by_cell = {cell.cell: cell for cell in in_depth}
        made = [by_cell.get(cell.cell, cell) for cell in overview.cells]
        data = sorted([*data, *overview.held], key=lambda cell: cell.cell)
        executed, machines = overview.executed, overview.machines
    executed += left_out(record.damaged)
    warnings = run_warnings(record.damaged, executed, record.planned, machines)
    if overview is not None:
        warnings.append(_overview_warning(len(made), len(in_depth), record))
    findings: dict[str, Any] = findings_of(record, data, made, level)
    programs = (program_of(cell.cell, cell.runs) for cell in data) if overview is None else ()
    return result_model()(
        study=record.name,
        title=record.title,
        valid=bool(made) and not record.damaged and all(cell.valid for cell in made),
        complete=executed >= record.planned,
        planned=record.planned,
        executed=executed,
        copied=sum(run.same_as is not None for run in record.cells) if overview is None else 0,
        damaged=record.damaged,
        conditions=conditions_of(record, data) if overview is None else overview.conditions,
        cells=made,
        comparisons=[] if overview else compare_levels(data, level=level, statistics=record.compare_by),
        spent=spent_differences(deep, compared_by_questions(findings), level=level),
        round_trips=round_trips(deep, level=level),
        flows=flows_of(deep, level=level),
        model_errors=model_errors(in_depth, deep),
        precisions=[] if overview else [state.at_end() for state in precision_of(record, data)],
        peers=[program for program in programs if program is not None],
        notes=list(record.notes),
        left_out=list(record.left_out),
        warnings=warnings,
        design=record.study,
        provenance=record.provenance,
        **findings,
    )


def _overview_warning(cells: int, in_depth: int, record: RunRecord) -> ResultWarning:
    """What an overview leaves out."""
    but = f", but for {in_depth:,} that the study asks about" if in_depth else ""
    precision = "" if record.precision is None else ", and no precision is judged"
    return WarningKind.OVERVIEW.warning(cells=cells, but=but, precision=precision)


def run_warnings(
    damaged: Sequence[Damage], executed: int, planned: int, machines: Iterable[str | None]
) -> list[ResultWarning]:
    """What is doubtful about a whole run: damage, repetitions that are missing, several machines.

    Args: machines: those on whose clock cells ran; None is the run's own.
    """
    warnings = [WarningKind.DAMAGED.warning(damage=sentence) for sentence in damage_sentences(damaged)]
    if executed < planned:
        warnings.append(WarningKind.INCOMPLETE.warning(executed=executed, planned=planned))
    names = sorted({machine or "this machine" for machine in machines})
    if len(names) > 1:
        warnings.append(WarningKind.MACHINES.warning(count=len(names), names=", ".join(names)))
    return warnings


def findings_of(
    record: RunRecord, data: Sequence[CellData], cells: Sequence[CellResult], level: float
) -> dict[str, Sequence[ResultModel]]:
    """What a run has of each kind of finding, by its field of the result."""
    by_kind: dict[str, Sequence[ResultModel]] = {}
    for judging in judgings():
        by_kind[judging.kind] = judging.make(Context(record, data, cells, level, by_kind))
    return {judging.field: by_kind[judging.kind] for judging in judgings()}


def compared_by_questions(findings: Mapping[str, Sequence[ResultModel]]) -> Iterator[tuple[str, int, int]]:
    """Factor, reference and other of every pair of cells that questions compare."""
    for answer in (finding for kind in findings.values() for finding in kind if isinstance(finding, Answer)):
        for case in answer.cases:
            if answer.factor is not None and case.reference is not None and case.other is not None:
                yield answer.factor, case.reference.cell, case.other.cell


def summarise(data: CellData, models: Sequence[str], *, level: float) -> CellResult:
    """A cell's part of the result. Args: models: names of those to set beside it."""
    finished = data.finished
    n = sum(data.outcomes.values())
    lost = n - data.outcomes.get("ok", 0)
    reason = data.reason
    estimates = estimates_of(data, level=level)
    clock, kernel = clock_of(data.runs)
    return CellResult(
        cell=data.cell,
        levels=data.levels,
        clock=clock,
        kernel=kernel,
        exact=data.is_exact,
        valid=reason is None,
        reason=reason,
        warnings=warnings_of(data.runs),
        repetitions=len(data.runs),
        attempts=sum(run.attempts for run in data.runs),
        n=n,
        lost=lost,
        loss=share_interval(data.lost, level=level) if data.lost else None,
        outcomes=dict(sorted(data.outcomes.items())),
        failures=failures_of(data.runs),
        estimates=estimates,
        ledger=ledger_of(finished),
        packet_loss=packet_loss_of(finished, exact=data.is_exact, level=level),
        retransmitted=retransmitted_of(finished, level=level),
        fidelity=fidelity_of(finished),
        models=predictions_of(models, estimates, data),
        profile=profile_of(finished),
        ends=ends_of(finished),
    )
