"""Whether a run stays within its thresholds, by the intervals of its cells."""

from collections.abc import Sequence

from crosswind.analysis.cells import CellData
from crosswind.analysis.estimates import BoundedNumber
from crosswind.catalog.metrics import metric_named
from crosswind.decisions.families import THRESHOLDS
from crosswind.decisions.judge import OfInterval, Ruling, judge
from crosswind.decisions.statement import KEPT, Statement, more_than
from crosswind.findings.judged import Context, Judging
from crosswind.findings.threshold.result import ThresholdCell, ThresholdResult
from crosswind.findings.threshold.sentence import threshold_sentence


def judge_thresholds(context: Context) -> list[ThresholdResult]:
    """The verdict on every threshold of a run."""
    return judged(
        [Statement.model_validate(stored) for stored in context.record.asked.get("threshold", ())], context.data
    )


def judged(thresholds: Sequence[Statement], data: Sequence[CellData]) -> list[ThresholdResult]:
    """The verdicts on some thresholds together, as statements of kept bounds."""
    matching = [_cells_of(threshold, data) for threshold in thresholds]
    numbers = [
        [BoundedNumber(cell, asked.metric, asked.statistic).within(asked.range) for cell in cells]
        for asked, cells in zip(thresholds, matching, strict=True)
    ]
    rulings = judge(numbers, THRESHOLDS)
    executed = {cell.cell for cell in data}
    return [_result(*of, executed) for of in zip(thresholds, matching, numbers, rulings, strict=True)]


def _cells_of(threshold: Statement, data: Sequence[CellData]) -> list[CellData]:
    metric = metric_named(threshold.metric)
    assert metric is not None  # The study was checked.
    return [cell for cell in data if cell.cell in threshold.cells and metric.applies(cell.settings.workload)]


def _result(
    threshold: Statement,
    cells: Sequence[CellData],
    numbers: Sequence[OfInterval],
    ruling: Ruling,
    executed: set[int],
) -> ThresholdResult:
    absent, metric = threshold.absence(executed), metric_named(threshold.metric)
    assert metric is not None and ruling.verdict != "mixed"  # The study was checked; every cell has to pass.
    made = [
        ThresholdCell(
            cell=cell.cell,
            levels=dict(cell.levels),
            value=number.deciding(of_cell.verdict),
            verdict=KEPT[of_cell.verdict],
            needed=more_than(of_cell.needed, number.at_95.units),
        )
        for cell, number, of_cell in zip(cells, numbers, ruling.cases, strict=True)
    ]
    result = ThresholdResult(
        **threshold.shared_with(ThresholdResult, but=("cells",)),
        fail_if=threshold.asks,
        unit=metric.unit.name,
        verdict="inconclusive" if absent and ruling.verdict == "yes" else KEPT[ruling.verdict],
        cells=made,
        reason=absent if made else "the run has no cell that it is about",
    )
    return result.model_copy(update={"sentence": threshold_sentence(result)})


JUDGING = Judging("threshold", "thresholds", ThresholdResult, judge_thresholds)
