"""A run's sentences without a declared question: its estimates, and comparisons of the user's choices.

Users choose a transport or a congestion control, and suffer a loss or a delay. A long path being slower than a short
one is no finding, so levels of the path and of sizes are not compared here.
"""

import math
from collections.abc import Iterable, Mapping, Sequence

from crosswind.analysis.result import MEAN, CellResult, LevelComparison, Result, StatisticComparison
from crosswind.catalog.metrics import METRICS, STATISTICS, Metric, MetricPlace
from crosswind.report.text.effects import named_level, number_of_ratio
from crosswind.report.text.format import (
    count,
    count_of,
    exact_number,
    factor_name,
    interval,
    number,
    quantity,
    scale_of,
    times,
    with_unit,
)
from crosswind.stats.estimate import Interval

MOST_COMPARED = 4
"""Maximum sentences comparing levels."""
MOST_METRICS = 2
"""Maximum metrics with named estimates."""

_CHOSEN = (
    "transport", "client", "server", "connection", "resumption", "polling", "payload", "mode", "stream", "streams",
    "direction", "connections",
)  # fmt: skip
"""A workload's keys with chosen levels. All host keys are chosen too."""
_MEDIAN = "median"
_COMPARED = (_MEDIAN, MEAN)
_SAME = 0.02  # relative difference between two equal numbers
NEAR = 5e-5  # distance of a ratio from 1 invisible in four digits


def is_chosen(factor: str) -> bool:
    """Whether users choose a factor's levels, by its key."""
    table, _, name = factor.partition(".")
    return table == "host" or (table == "workload" and name in _CHOSEN) or factor in ("path.family", "path.backend")


def exploration(result: Result) -> list[str]:
    """Estimates in sentences, and comparisons of each chosen factor's levels, by the main metrics."""
    return [*_estimates(result), *_compared(result)]


def _estimates(result: Result) -> list[str]:
    """Each main metric's estimate in the only cell, or the smallest and the largest among all cells."""
    sentences = []
    for name in main_metrics(result):
        cells = [cell for cell in result.cells if name in cell.estimates]
        statistic = statistic_of(METRICS[name])
        known = [
            (cell, made)
            for cell in cells
            if _sorting_value(made := cell.estimates[name].statistic(statistic)) is not None
        ]
        if known:
            sentences.append(f"{_metric_name(METRICS[name], statistic)}: {_range(METRICS[name], known)}.")
    return sentences[:MOST_METRICS]


def statistic_of(metric: Metric) -> str:
    """The statistic for a metric over many cells: the median, if it has one."""
    return _MEDIAN if metric.has_quantiles else MEAN


def _range(metric: Metric, known: Sequence[tuple[CellResult, Interval]]) -> str:
    divisor, unit = scale_of([_sorting_value(made) for _, made in known], metric.unit.name)
    if len(known) == 1:
        return _estimate_text(known[0][1], divisor, unit)
    varied = [key for key in known[0][0].levels if len({cell.levels.get(key) for cell, _ in known}) > 1]
    ordered = sorted(known, key=lambda pair: _sorting_value(pair[1]) or 0.0)
    ends = [
        (cell, made, *scale_of([_sorting_value(made)], metric.unit.name)) for cell, made in (ordered[0], ordered[-1])
    ]
    low, high = (f"{_value_text(made, by)} {label} ({_named(cell.levels, varied)})" for cell, made, by, label in ends)
    return f"{low} to {high} in {count_of(len(known), 'cell')}"


def _estimate_text(made: Interval, divisor: float, unit: str) -> str:
    """The estimate in a one-cell run; with few repetitions from the smallest to the largest."""
    if made.spread is not None and made.spread[0] != made.spread[1]:
        low, high = (number(end, divisor) for end in made.spread)
        return f"{low} to {high} {unit} in {count_of(made.units, 'repetition')}"
    if made.value is not None and made.low is None and made.high is None and not made.is_exact:
        return f"{number(made.value, divisor)} {unit} in {count_of(made.units, 'repetition')}"
    if made.is_exact:
        return f"exactly {exact_number(made.value or 0.0, divisor)} {unit}".rstrip()
    return with_unit(interval(made, divisor), unit)


def _named(of_cell: Mapping[str, str], keys: Iterable[str]) -> str:
    return ", ".join(named_level(key, of_cell[key]) for key in keys if key in of_cell)


def _sorting_value(made: Interval) -> float | None:
    """An estimate's place among others: its value, or a timed-out exchange's timeout."""
    return made.low if made.value is None else made.value


def _value_text(made: Interval, divisor: float) -> str:
    if made.value is None:
        return f"over {number(made.low, divisor)}"
    half = (made.high - made.low) / 2 if made.low is not None and made.high is not None else None
    return number(made.value, divisor, resolution=half or None)


def main_metrics(result: Result) -> list[str]:
    """The compared metrics, in report order."""
    estimated = {name for cell in result.cells for name in cell.estimates}
    names = [name for name in METRICS if name in estimated]
    compared = [name for name in names if METRICS[name].compared_in]
    # Connection set-up is the subject of some workloads, and a detail of the others.
    main = [name for name in compared if METRICS[name].place is MetricPlace.MAIN] or compared
    return [name for at, name in enumerate(main) if not any(_is_same(name, other, result) for other in main[:at])]


def _is_same(name: str, other: str, result: Result) -> bool:
    """Whether two metrics agree: response times, if no message waits for the one before."""
    pairs = [(cell.estimates[name], cell.estimates.get(other)) for cell in result.cells if name in cell.estimates]
    return all(
        beside is not None
        and all(_is_close(own.statistic(key).value, beside.statistic(key).value) for key in _COMPARED)
        for own, beside in pairs
    )


def _is_close(own: float | None, beside: float | None) -> bool:
    return own == beside or (own is not None and beside is not None and abs(own - beside) <= _SAME * abs(beside))


def _compared(result: Result) -> list[str]:
    """Comparisons of each chosen factor's levels."""
    families: dict[tuple[str, str], list[LevelComparison]] = {}
    main = main_metrics(result)
    for comparison in result.comparisons:
        if is_chosen(comparison.factor) and comparison.metric in main:
            families.setdefault((comparison.factor, comparison.metric), []).append(comparison)
    sentences = [
        sentence
        for (factor, name), family in families.items()
        if (sentence := _comparison_sentence(factor, name, family))
    ]
    return sentences[:MOST_COMPARED]


def _comparison_sentence(factor: str, name: str, family: Sequence[LevelComparison]) -> str:
    """How the levels of a factor compare by a metric; empty where there is no ratio."""
    statistic = _MEDIAN if any(_has_ratio(comparison, _MEDIAN) for comparison in family) else MEAN
    made = [
        (comparison, effect) for comparison in family if (effect := comparison.by(statistic)) and effect.ratio.value
    ]
    if not made:
        return ""
    what, reference = _metric_name(METRICS[name], statistic), named_level(factor, made[0][0].reference)
    if len(made) == 1:
        ((comparison, effect),) = made
        at = f" (at {_named(comparison.fixed, comparison.fixed)})" if comparison.fixed else ""
        other = named_level(factor, comparison.other)
        constant = f"{what} with {other} is {_constant_text(effect, comparison.unit, reference)}{at}"
        if _is_constant(effect.difference):
            return f"{constant}, {_in_all_repetitions(effect)}."
        if effect.difference.value and abs((effect.ratio.value or math.nan) - 1) < NEAR:
            return f"{constant}; {_conclusion([effect])}."
        ratio = times(effect.ratio, _without_remarks(effect.ratio))
        return f"{what} with {other} is {ratio} that with {reference}{at}; {_conclusion([effect])}."
    ordered = sorted(made, key=lambda pair: pair[1].ratio.value or 0.0)
    several = len({comparison.other for comparison, _ in made}) > 1
    low, high = (_extreme(factor, *pair, several=several) for pair in (ordered[0], ordered[-1]))
    subject = f"by {factor_name(factor)}" if several else f"with {named_level(factor, made[0][0].other)}"
    return (
        f"{what} {subject}: {low} to {high} times that with {reference}; {_conclusion([effect for _, effect in made])}."
    )


def _constant_text(effect: StatisticComparison, unit: str, reference: str) -> str:
    """One level beside another, in words, with the same difference in every repetition."""
    difference, ratio = effect.difference.value or 0.0, effect.ratio.value or math.nan
    if difference == 0:
        return f"that with {reference}"
    if abs(ratio - 1) < NEAR:
        return f"almost that with {reference}, {quantity(abs(difference), unit)} {'less' if difference < 0 else 'more'}"
    return f"{times(effect.ratio, number_of_ratio(ratio))} that with {reference}"


def _in_all_repetitions(effect: StatisticComparison) -> str:
    few = "" if effect.difference.is_whole else ", too few to conclude for most"
    return f"in all {effect.difference.units} repetitions{few}"


def _is_constant(difference: Interval) -> bool:
    """Whether a difference is the same in every repetition though it could vary."""
    ends = difference.spread or (difference.low, difference.high)
    return not difference.is_exact and ends[0] is not None and ends[0] == ends[1]


def _without_remarks(ratio: Interval) -> str:
    """A ratio without words repeated in the rest of the sentence."""
    return interval(ratio).replace(" exact", ", exactly,").replace(" (no interval)", "")


def _has_ratio(comparison: LevelComparison, statistic: str) -> bool:
    difference = comparison.by(statistic)
    return difference is not None and difference.ratio.value is not None


def _extreme(factor: str, comparison: LevelComparison, made: StatisticComparison, *, several: bool) -> str:
    """The smallest or the largest ratio, and where it is."""
    level = [named_level(factor, comparison.other)] if several else []
    where = ", ".join([*level, *([f"at {_named(comparison.fixed, comparison.fixed)}"] if comparison.fixed else [])])
    return f"{number_of_ratio(made.ratio.value or math.nan)}{f' ({where})' if where else ''}"


def _conclusion(made: Sequence[StatisticComparison]) -> str:
    """Some comparisons' conclusion, in words: undeclared before the run, they explore."""
    shown = [effect for effect in made if effect.verdict.startswith(("larger", "smaller"))]
    of_most = [effect for effect in shown if effect.verdict.endswith("most repetitions")]
    if all(effect.verdict == "not enough repetitions" for effect in made):
        return "too few repetitions to show a difference"
    if all(effect.verdict == "equal" for effect in made):
        return "exactly equal"
    if len(made) == 1:
        if of_most:
            return f"a repetition's is {_in_most(made[0])} (sign test, exploratory)"
        return f"{'a' if shown else 'no'} difference is shown (exploratory)"
    total = count(len(made))
    if of_most:
        others = f", and {count(len(shown) - len(of_most))} by their intervals" if len(shown) > len(of_most) else ""
        return f"in {count(len(of_most))} of {total} comparisons most repetitions differ{others} (exploratory)"
    return f"{count(len(shown))} of {total} comparisons show a difference (exploratory)"


def _in_most(effect: StatisticComparison) -> str:
    """A sign test's count: "smaller in 8 of 8"."""
    agreeing, side = max((effect.below or 0, "smaller"), (effect.above or 0, "larger"))
    return f"{side} in {count(agreeing)} of {count(effect.difference.units)}"


def _metric_name(metric: Metric, statistic: str) -> str:
    title = metric.title if metric.title[1:2].isupper() else metric.title[:1].lower() + metric.title[1:]
    name = STATISTICS[statistic].heading
    return f"{name[:1].upper()}{name[1:]} {title}"
