"""The words of two runs compared: sides, changes, verdicts, and conditions."""

import re
from collections.abc import Iterator, Sequence

from crosswind.analysis.two_runs.result import (
    AskedCondition,
    Change,
    CommonCell,
    ConditionInCell,
    MetricChange,
    MetricOverview,
    RunComparison,
    RunSide,
)
from crosswind.catalog.metrics import METRICS, STATISTICS, metric_named
from crosswind.report.text.deciding import about_more, rounded
from crosswind.report.text.format import (
    MINUS,
    NOTHING,
    count,
    count_of,
    levels,
    number,
    scale_of,
    three_digits,
)
from crosswind.report.text.overall import TAIL, Measured, Respect, is_speed, overall_sentence
from crosswind.stats.estimate import EXACT, MOST, Interval

_MOST_CELLS = 12
_NEGLIGIBLE = 1e-4
MOST_LINES = 4
"""Common cells with a sentence."""


def change_text(change: Change, *, is_ratio: bool, unit: str) -> str:
    """A change with its interval: "+12.3 [+10.1, +14.6] %", "+12 % in every repetition"; without one by itself."""
    if change.value is None:
        return NOTHING
    parts = [change.value] + [end for end in (change.low, change.high) if end is not None]
    scale, label = _scale(parts, is_ratio=is_ratio, unit=unit)
    value, *ends = (_signed((part - is_ratio) * scale) for part in parts)
    if change.constant and change.low in (None, change.high):
        return f"{value} {label} in every repetition"
    most = ", the median of the repetitions" if change.of_most else ""
    return f"{value} [{', '.join(ends)}] {label}{most}" if ends else f"{value} {label}"


def side_text(name: str, side: RunSide) -> str:
    """A run in one line: its directory, title, start, clocks and size."""
    started = f", {side.started[:16].replace('T', ' ')}" if side.started else ""
    counts = f"{count_of(side.cells, 'cell')}, {count_of(side.repetitions, 'repetition')}"
    return f"{name}  {side.directory}: {side.title}{started}, {' and '.join(side.clocks)} clock, {counts}"


def common_text(comparison: RunComparison) -> str:
    """How many common cells there are, and which of them are looked at."""
    matched = f"matched by {matched_text(comparison.common)}"
    if comparison.overview is None:
        return f"{count_of(len(comparison.common), 'common cell')}, {matched}"
    cells = count_of(comparison.overview.cells, "common cell")
    if not comparison.common:
        return f"{cells}, none of which changed"
    return f"{cells}; the {len(comparison.common)} whose change stands out the most from their repetitions, {matched}"


def overview_sentences(comparison: RunComparison) -> list[str]:
    """What is known of all common cells of large runs."""
    overviews = comparison.overview.metrics if comparison.overview is not None else []
    return [_overview_sentence(overview) for overview in overviews]


def _overview_sentence(overview: MetricOverview) -> str:
    metric = metric_named(overview.metric)
    title = metric.title if metric else overview.metric
    which = f"larger in {count_of(overview.larger, 'cell')}, smaller in {count(overview.smaller)}"
    if overview.middle is None:
        return f"{title}: {which} of {count(overview.cells)}."
    ends = " to ".join(three_digits(end) for end in (overview.least, overview.most))
    middle = three_digits(overview.middle)
    return f"{title}: {ends} times that of A, in the middle {middle}; {which} of {count(overview.cells)}."


def overall_of_runs(comparison: RunComparison) -> list[str]:
    """For the first common cells, which run is better in the first metric of time or rate, and in what."""
    cells = [(cell, changes) for cell in comparison.common if (changes := _speeds(cell))]
    lines = [_overall_line(cell, changes) for cell, changes in cells[:MOST_LINES]]
    if len(cells) > MOST_LINES:
        lines.append(f"… and {count_of(len(cells) - MOST_LINES, 'more cell')}")
    return lines


def _speeds(cell: CommonCell) -> list[MetricChange]:
    """The changes in a cell's first metric for time or rate; the mean comes first."""
    known = [change for change in cell.changes if change.ratio.value and change.statistic in ("mean", "median", TAIL)]
    first = next((change.metric for change in known if is_speed(METRICS[change.metric])), None)
    of_first = [change for change in known if change.metric == first]
    return sorted(of_first, key=lambda change: change.statistic != "mean")


def _overall_line(cell: CommonCell, changes: Sequence[MetricChange]) -> str:
    asked, metric = changes[0], METRICS[changes[0].metric]
    sides = (
        Measured("A", {}, None, asked.n_a + asked.failed_a, asked.failed_a, is_valid=cell.invalid_a is None),
        Measured("B", {}, None, asked.n_b + asked.failed_b, asked.failed_b, is_valid=cell.invalid_b is None),
    )
    respects = [_respect(change) for change in changes if not (change.statistic == TAIL and metric.more_is_better)]
    said = overall_sentence(sides, metric, asked.statistic, _effect(asked), respects)
    return f"{f'{levels(cell.levels)}: ' if cell.levels else ''}{metric.title}: {said}."


def _respect(change: MetricChange) -> Respect:
    """A change as a ratio of speeds."""
    ratio = change.ratio.value or 1.0
    speed = ratio if METRICS[change.metric].more_is_better else 1 / ratio
    name = "the median repetition" if change.ratio.of_most else STATISTICS[change.statistic].heading
    return Respect(name, speed, is_shown=change.verdict in ("worse", "better") and not is_negligible(change))


def _effect(change: MetricChange) -> Interval:
    """A change's ratio as an estimate."""
    ratio, units = change.ratio, min(change.units_a, change.units_b)
    is_exact = ratio.low is None and ratio.reason is None
    method = MOST if ratio.of_most else EXACT if is_exact else change.method
    low, high = (ratio.value, ratio.value) if ratio.constant else (ratio.low, ratio.high)
    return Interval(ratio.value, low, high, change.n_a + change.n_b, ratio.level, method, ratio.reason, units)


def matched_text(cells: Sequence[CommonCell]) -> str:
    """What common cells have in common."""
    ways = [cell.matched_by for cell in cells]
    kinds = list(dict.fromkeys(ways))
    return kinds[0] if len(kinds) == 1 else ", ".join(f"{kind} ({ways.count(kind)})" for kind in kinds)


def scaled(change: MetricChange) -> tuple[Change, bool]:
    """The ratio, else the difference, whichever has an interval of its statistic; and which of them it is."""
    is_of_difference = change.difference.low is not None and not change.difference.of_most
    has_interval = change.ratio.low is not None and not (change.ratio.of_most and is_of_difference)
    has_interval = has_interval or change.difference.low is None
    return (change.ratio, True) if change.ratio.value is not None and has_interval else (change.difference, False)


def units_text(change: MetricChange) -> str:
    """Repetitions on which a change rests: "20 pairs", "20 and 15"."""
    if change.a is None:
        return NOTHING
    if change.paired:
        left = " and ".join(
            f"{number} of {run}" for run, number in (("A", change.left_a), ("B", change.left_b)) if number
        )
        return f"{count_of(change.units_a, 'pair')}{f' ({left} without a partner)' if left else ''}"
    return f"{change.units_a} and {change.units_b}"


def is_negligible(change: MetricChange) -> bool:
    """Whether a shown change is smaller than the digits that a report has."""
    ratio = change.ratio.value
    return ratio is not None and abs(ratio - 1) < _NEGLIGIBLE


def verdict_text(change: MetricChange) -> str:
    """What is known of a change: "worse by 12 to 19 %", "no difference shown", "cannot tell" and why."""
    shown, is_ratio = scaled(change)
    if change.verdict in ("worse", "better") and is_negligible(change):
        return f"the same within {100 * _NEGLIGIBLE:g} %"
    if change.verdict in ("worse", "better"):
        ends = [end for end in (shown.low, shown.high, shown.value) if end is not None][:2]
        sizes = sorted(abs(end - 1) if is_ratio else abs(end) for end in ends)
        most = " in most repetitions" if shown.of_most else ""
        return f"{change.verdict} by {_range(sizes, is_ratio=is_ratio, unit=change.unit)}{most}"
    if change.verdict == "cannot tell":
        return f"cannot tell: {change.reason}"
    if change.verdict == "same":
        return "the same in every repetition" if change.units_a > 1 else "the same"
    return change.verdict


def _range(sizes: Sequence[float], *, is_ratio: bool, unit: str) -> str:
    """Sizes of a change, the smaller first: "12 to 19 %"."""
    scale, label = _scale(sizes, is_ratio=is_ratio, unit=unit)
    texts = list(dict.fromkeys(_signed(size * scale).removeprefix("+") for size in sizes))
    return f"{' to '.join(texts)} {label}"


def _scale(changes: Sequence[float], *, is_ratio: bool, unit: str) -> tuple[float, str]:
    """By what to multiply changes to show them, and the label of the result."""
    if is_ratio:
        return 100.0, "%"
    if unit == "1":
        return 100.0, "points"
    divisor, label = scale_of([max(changes, key=abs)], unit)
    return 1 / divisor, label


def notes_on(rows: Sequence[tuple[CommonCell, MetricChange]]) -> Iterator[str]:
    """What to say below the changes of a metric."""
    changes = [change for _, change in rows]
    yield from _two_quantiles(rows)
    if any(change.failed_a or change.failed_b for change in changes if change.statistic == "mean"):
        yield "Means are over successful exchanges; quantiles count failed ones as the worst."
    unknown = [change for change in changes if change.verdict == "no difference shown"]
    totals = ((change.needed or 0, max(change.units_a, change.units_b)) for change in unknown)
    if open_ := [needed for needed, units in totals if needed > units]:
        fewest = min(open_)
        yield (
            f"Showing differences as large as the observed ones would take {count(rounded(fewest))} repetitions or more"
            " of each run. “No difference shown” does not mean equal: to test that, give a margin with --fail-if."
        )


def _two_quantiles(rows: Sequence[tuple[CommonCell, MetricChange]]) -> Iterator[str]:
    """The quantile of all exchanges, which a report has, beside the mean of the repetitions' own, which is compared."""
    for statistic in dict.fromkeys(change.statistic for _, change in rows if change.pooled_a is not None):
        of_statistic = [(cell, change) for cell, change in rows if change.statistic == statistic]
        divisor, label = scale_of([change.pooled_a for _, change in of_statistic], of_statistic[0][1].unit)
        texts = [
            f"{f'{levels(cell.levels)}: ' if cell.levels else ''}A {number(change.pooled_a, divisor)}, "
            f"B {number(change.pooled_b, divisor)} {label}"
            for cell, change in of_statistic[:_MOST_CELLS]
        ]
        more = "; --json has all" if len(of_statistic) > _MOST_CELLS else ""
        yield (
            f"{statistic} is the mean of the repetitions' own {statistic}. Of all exchanges together, as in a report, "
            f"it is {'; '.join(texts)}{more}."
        )


def condition_text(asked: AskedCondition) -> str:
    """A condition; one that passes with what was shown: "p95(rtt) not worse by 10%"."""
    if asked.answer != "pass":
        return asked.condition
    what, direction, amount = re.split(r" +(worse|better|differs) ", asked.condition, maxsplit=1)
    return f"{what} {'does not differ' if direction == 'differs' else f'not {direction}'} {amount}"


def answer_text(cell: ConditionInCell, asked: AskedCondition) -> str:
    """What decides a condition in a cell, or why nothing does."""
    change = change_text(cell.change, is_ratio=asked.is_ratio, unit=asked.unit)
    if cell.answer != "inconclusive":
        return f"the change is {change}"
    known = "" if cell.reason else f"the change is {change}; "
    return f"{known}not decided: {open_text(cell, asked)}"


def open_text(cell: ConditionInCell, asked: AskedCondition) -> str:
    """The largest possible change of an inconclusive condition, and the ways to decide it."""
    if cell.reason:
        return cell.reason
    on = f"a condition on {cell.instead}({asked.metric})"
    if cell.needed is None:
        more, instead = "no known number of repetitions", f", but {on} would"
    else:
        more, instead = f"{about_more(cell.needed)} of each run", f", and so would {on}"
    return f"{_at_most(cell.change, asked)}; {more} would decide{instead if cell.instead else ''}"


def _at_most(change: Change, asked: AskedCondition) -> str:
    """The largest possible change in the asked direction: "mean(rtt) may be worse by up to 31 %"."""
    none = float(asked.is_ratio)
    above, below = (None if end is None else end - none for end in (change.high, change.low))
    down = None if below is None else -below
    sizes = [above, down] if asked.direction == "differs" else [above if asked.is_upward else down]
    known = [size for size in sizes if size is not None]
    how = "differ" if asked.direction == "differs" else f"be {asked.direction}"
    up_to = f"up to {_range([max(0.0, *known)], is_ratio=asked.is_ratio, unit=asked.unit)}" if known else ""
    return f"{asked.statistic}({asked.metric}) may {how} by {up_to if len(known) == len(sizes) else 'any amount'}"


def _signed(value: float) -> str:
    """Three digits, below a thousandth 0."""
    size = abs(value)
    text = "0" if size < 0.001 else f"{size:.3g}" if size < 999.5 else f"{size:.0f}"
    return f"{MINUS if value < 0 and text != '0' else '+'}{text}"
