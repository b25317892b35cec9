"""A threshold's verdict, in one sentence."""

import math
from collections import Counter

from crosswind.catalog.metrics import STATISTICS, metric_named
from crosswind.findings.threshold.result import ThresholdCell, ThresholdResult
from crosswind.report.text.deciding import MOST_REPETITIONS, about_more, rounded
from crosswind.report.text.format import EXACT, NOTHING, count, count_of, interval, named_levels, scale_of, with_unit
from crosswind.stats.estimate import Interval

WORDS = {"pass": "Pass", "fail": "Fail", "inconclusive": "Inconclusive"}


def threshold_sentence(threshold: ThresholdResult) -> str:
    """The verdict, the threshold, and its deciding cell."""
    says = f"{WORDS[threshold.verdict]}: fail if {threshold.fail_if}"
    cell = decisive_cell(threshold)
    if cell is None:
        return f"{says}: {threshold.reason}."
    where = f" ({named_levels(cell.levels)})" if cell.levels else ""
    absent = f"; {threshold.reason}" if threshold.verdict == "inconclusive" and threshold.reason else ""
    return f"{says}: {measured(threshold, cell)}{where}{undecided_text(cell)}{_rest(threshold)}{absent}."


def cell_sentence(threshold: ThresholdResult, cell: ThresholdCell) -> str:
    """The verdict on one cell, and its reason."""
    return f"{WORDS[cell.verdict]}: {measured(threshold, cell)}{undecided_text(cell)}."


def decisive_cell(threshold: ThresholdResult) -> ThresholdCell | None:
    """Among the cells with the threshold's verdict, the one farthest beyond the bound, or nearest to it."""
    deciding = [cell for cell in threshold.cells if cell.verdict == threshold.verdict] or threshold.cells
    return max(deciding, key=lambda cell: _beyond(threshold, cell), default=None)


def measured(threshold: ThresholdResult, cell: ThresholdCell) -> str:
    """A cell's measurement, with its interval and its repetitions: "p95 of round-trip time is ..."."""
    metric = metric_named(threshold.metric)
    assert metric is not None  # The study was checked.
    name = metric.title[0].lower() + metric.title[1:]
    heading = STATISTICS[threshold.statistic].heading
    what = f"the share of {name}" if metric.is_share else f"{heading} {name}"
    text = threshold_value_text(cell.value, threshold.unit)
    if text == NOTHING:
        return f"{what} has no number"
    text = f"exactly {text.replace(f' {EXACT}', '')}" if cell.value.is_exact else text
    if cell.value.is_sign_test:
        return f"a repetition's {what} is {text} in the median (sign test), {_size(cell)}"
    return f"{what} is {text}, {_size(cell)}"


def threshold_value_text(value: Interval, unit: str) -> str:
    """A number with its interval and its unit: "182 [171, 195] ms". Args: unit: of results."""
    middle = value.value if value.value is not None else value.low
    if middle is None:
        return NOTHING
    divisor, shown = scale_of([middle], unit)
    return with_unit(interval(value, divisor), shown)


def _size(cell: ThresholdCell) -> str:
    return count_of(max(cell.value.units, 1), "repetition")


def undecided_text(cell: ThresholdCell, noun: str = "repetition") -> str:
    """Why a cell is undecided, and the remedy."""
    if cell.verdict != "inconclusive":
        return ""
    if cell.needed is not None:
        total = max(cell.value.units, 1) + rounded(cell.needed)
        option = f" (--repetitions {total})" if noun == "repetition" and cell.needed <= MOST_REPETITIONS else ""
        return f"; {about_more(cell.needed, noun)} would decide{option}"
    return f"; {cell.value.reason}" if cell.value.reason else ""


def _rest(threshold: ThresholdResult) -> str:
    if len(threshold.cells) == 1:
        return ""
    counts: Counter[str] = Counter(cell.verdict for cell in threshold.cells)
    tally = ", ".join(f"{count(counts[verdict])} {verdict}" for verdict in WORDS if counts[verdict])
    return f" (of {count(len(threshold.cells))} cells {tally})"


def _beyond(threshold: ThresholdResult, cell: ThresholdCell) -> float:
    """How far the interval of a cell reaches beyond the bound; negative where it stays within."""
    value, is_below = cell.value, threshold.low is not None
    end = value.low if is_below else value.high
    reached = next((number for number in (end, value.value, value.low) if number is not None), None)
    if reached is None:
        return -math.inf
    bound = (threshold.low if is_below else threshold.high) or 0.0
    return bound - reached if is_below else reached - bound
