"""Whether a study stays within its thresholds, by the intervals of its cells.

A study passes where every cell passes, so that each may be judged at 95 % by itself; to find one among many that fails,
its interval is made at the level 1 - 0.05 / cells of all thresholds (Bonferroni). So a study that is within all of its
thresholds fails with a probability of 5 % at most, and one that is beyond one of them passes as rarely.
"""

from collections.abc import Iterable, Sequence

from crosswind.analysis.asked import AskedThreshold, absence_of
from crosswind.analysis.cells import CellData
from crosswind.analysis.claims import Range
from crosswind.analysis.estimates import deciding_estimate
from crosswind.analysis.result import Interval, ThresholdCell, ThresholdResult, ThresholdVerdict
from crosswind.metrics import LOST, Metric, metric_named
from crosswind.stats import share_interval
from crosswind.stats.sample_size import more_to_decide

ALPHA = 0.05

VERDICTS: dict[str, ThresholdVerdict] = {"holds": "pass", "does not hold": "fail", "cannot tell": "cannot tell"}
"""Of a threshold, by that of the claim that a number is within its bound."""


def thresholds_of(asked: Iterable[AskedThreshold], data: Sequence[CellData]) -> list[ThresholdResult]:
    """What became of every threshold of a run."""
    own = [(threshold, _cells_of(threshold, data)) for threshold in asked]
    cells = sum(len(found) for _, found in own)
    executed = {cell.cell for cell in data}
    return [_judged(threshold, found, cells, executed) for threshold, found in own]


def _cells_of(threshold: AskedThreshold, data: Sequence[CellData]) -> list[CellData]:
    metric = _metric(threshold)
    return [cell for cell in data if cell.cell in threshold.cells and metric.applies(cell.settings.workload)]


def _metric(threshold: AskedThreshold) -> Metric:
    metric = metric_named(threshold.metric)
    assert metric is not None  # The study was checked.
    return metric


def _judged(threshold: AskedThreshold, own: Sequence[CellData], cells: int, executed: set[int]) -> ThresholdResult:
    """Args: cells: of all thresholds of the run. executed: the run's cells."""
    judged = [_judge(threshold, cell, cells) for cell in own]
    absent, verdict = (
        absence_of(threshold.missing, threshold.cells, executed),
        _together([one.verdict for one in judged]),
    )
    return ThresholdResult(
        fail_if=threshold.fail_if,
        metric=threshold.metric,
        statistic=threshold.statistic,
        unit=_metric(threshold).unit.name,
        bound=threshold.bound,
        above=threshold.above,
        at_bound=threshold.at_bound,
        verdict="cannot tell" if absent and verdict == "pass" else verdict,
        cells=judged,
        reason=absent if judged else "the run has no cell that it is about",
        note=threshold.note,
    )


def _together(verdicts: Sequence[ThresholdVerdict]) -> ThresholdVerdict:
    if "fail" in verdicts:
        return "fail"
    return "pass" if verdicts and all(verdict == "pass" for verdict in verdicts) else "cannot tell"


def _judge(threshold: AskedThreshold, cell: CellData, cells: int) -> ThresholdCell:
    low, high = (None, threshold.bound) if threshold.above else (threshold.bound, None)
    allowed = Range(low, high, is_open=threshold.at_bound)
    value = _value(threshold, cell, 1 - ALPHA)
    corrected = _value(threshold, cell, 1 - ALPHA / cells) if cells > 1 else value
    verdict = VERDICTS[allowed.verdict(value, corrected)]
    needed = _needed(threshold, value) if verdict == "cannot tell" else None
    return ThresholdCell(cell=cell.cell, levels=dict(cell.levels), value=value, verdict=verdict, needed=needed)


def _value(threshold: AskedThreshold, cell: CellData, level: float) -> Interval:
    """The statistic of a cell."""
    if threshold.metric == LOST.name and cell.lost:
        return Interval.of(share_interval(cell.lost, level=level))
    return deciding_estimate(cell, threshold.metric, threshold.statistic, level=level)


def _needed(threshold: AskedThreshold, value: Interval) -> int | None:
    """More repetitions that would probably decide a cell."""
    if value.value is None or value.is_exact or value.units == 0:
        return None
    end = value.low if value.value > threshold.bound else value.high
    return more_to_decide(value.value, end, threshold.bound, value.units)
