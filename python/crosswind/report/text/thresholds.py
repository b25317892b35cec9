"""What became of a threshold, in one sentence."""

import math
from collections import Counter
from collections.abc import Sequence

from crosswind.analysis.result import Interval, ThresholdCell, ThresholdResult, ThresholdVerdict
from crosswind.metrics import STATISTICS, metric_named
from crosswind.report.text.format import EXACT, NOTHING, count, count_of, interval, named_levels, scale_of, with_unit

_MOST_SENTENCES = 5
VERDICTS = {"pass": "Pass", "fail": "Fail", "cannot tell": "Cannot tell"}


def threshold_sentence(threshold: ThresholdResult) -> str:
    """The verdict, the threshold, and the cell that decides it."""
    says = f"{VERDICTS[threshold.verdict]}: fail if {threshold.fail_if}"
    cell = decisive(threshold)
    if cell is None:
        return f"{says}: {threshold.reason}."
    where = f" ({named_levels(cell.levels)})" if cell.levels else ""
    absent = f"; {threshold.reason}" if threshold.verdict == "cannot tell" and threshold.reason else ""
    return f"{says}: {measured(threshold, cell)}{where}{why(cell)}{_rest(threshold)}{absent}."


def cell_sentence(threshold: ThresholdResult, cell: ThresholdCell) -> str:
    """The verdict on one cell, and what decides it."""
    return f"{VERDICTS[cell.verdict]}: {measured(threshold, cell)}{why(cell)}."


def threshold_sentences(thresholds: Sequence[ThresholdResult]) -> list[tuple[ThresholdVerdict, str]]:
    """A sentence for each threshold; of many, those that are kept have one together."""
    kept = [threshold for threshold in thresholds if threshold.verdict == "pass"]
    if len(thresholds) <= _MOST_SENTENCES or len(kept) < 2:
        return [(threshold.verdict, threshold_sentence(threshold)) for threshold in thresholds]
    others = [(one.verdict, threshold_sentence(one)) for one in thresholds if one.verdict != "pass"]
    return [*others, ("pass", f"Pass: {count_of(len(kept), 'threshold')}, each listed in the table of thresholds.")]


def decisive(threshold: ThresholdResult) -> ThresholdCell | None:
    """Of the cells with the threshold's verdict, the one that reaches farthest beyond the bound, or nearest to it."""
    own = [cell for cell in threshold.cells if cell.verdict == threshold.verdict] or threshold.cells
    return max(own, key=lambda cell: _beyond(threshold, cell), default=None)


def measured(threshold: ThresholdResult, cell: ThresholdCell) -> str:
    """What was measured in a cell, with its interval and how many repetitions: "p95 of round-trip time is ..."."""
    metric = metric_named(threshold.metric)
    assert metric is not None  # The study was checked.
    name = metric.title[0].lower() + metric.title[1:]
    heading = STATISTICS[threshold.statistic].heading
    what = f"the share of {name}" if metric.is_share else f"{heading} {name}"
    text = value_text(cell.value, threshold.unit)
    if text == NOTHING:
        return f"{what} has no number"
    text = f"exactly {text.replace(f' {EXACT}', '')}" if cell.value.is_exact else text
    if cell.value.is_of_most:
        return f"a repetition's {what} is {text} in the median (sign test), {_size(cell)}"
    return f"{what} is {text}, {_size(cell)}"


def value_text(value: Interval, unit: str) -> str:
    """A number with its interval and its unit: "182 [171, 195] ms". Args: unit: of results."""
    middle = value.value if value.value is not None else value.low
    if middle is None:
        return NOTHING
    divisor, shown = scale_of([middle], unit)
    return with_unit(interval(value, divisor), shown)


def _size(cell: ThresholdCell) -> str:
    return count_of(max(cell.value.units, 1), "repetition")


def why(cell: ThresholdCell) -> str:
    """Why a cell is not decided, and what would decide it."""
    if cell.verdict != "cannot tell":
        return ""
    if cell.needed is not None:
        return f"; about {count(cell.needed)} more would tell"
    return f"; {cell.value.reason}" if cell.value.reason else ""


def _rest(threshold: ThresholdResult) -> str:
    if len(threshold.cells) == 1:
        return ""
    found: Counter[str] = Counter(cell.verdict for cell in threshold.cells)
    tally = ", ".join(f"{count(found[verdict])} {text}" for verdict, text in _TALLY.items() if found[verdict])
    return f" (of {count(len(threshold.cells))} cells {tally})"


_TALLY = {"pass": "pass", "fail": "fail", "cannot tell": "cannot tell"}


def _beyond(threshold: ThresholdResult, cell: ThresholdCell) -> float:
    """How far the interval of a cell reaches beyond the bound; negative where it stays within."""
    value = cell.value
    end = value.high if threshold.above else value.low
    reached = next((number for number in (end, value.value, value.low) if number is not None), None)
    if reached is None:
        return -math.inf
    return reached - threshold.bound if threshold.above else threshold.bound - reached
