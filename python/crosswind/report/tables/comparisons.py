"""Each factor's levels against its first one."""

import math
from collections.abc import Sequence
from itertools import islice, zip_longest

from crosswind.analysis.result import LevelComparison, Result, StatisticComparison
from crosswind.catalog.metrics import METRICS, STATISTICS
from crosswind.report.tables.metrics import method_name
from crosswind.report.tables.reasons import merged_reasons
from crosswind.report.tables.table import Column, Table, names, numbers, replaced, words
from crosswind.report.text.format import (
    EXACT,
    NOTHING,
    count,
    count_of,
    factor_and_level,
    interval,
    level_text,
    levels,
    p_value,
    plural_of,
    quantity,
    scale_of,
    with_unit,
)
from crosswind.stats.estimate import Interval

_NEAR = 5e-5
"""Distance of a ratio from 1, invisible in four digits."""
MAX_ROWS = 60
"""Maximum rows in the table; beyond, each family's largest."""

_SHORTER = {
    " against ": " / ", "no difference shown": "none shown", "not enough repetitions": "too few",
    " in most repetitions": ", mostly",
}  # fmt: skip
_HOW_TO_READ = (
    "Exploratory: 95 % intervals, each by itself; p tests no difference, corrected by Benjamini and Hochberg's "
    "method over all comparisons of the run. “In most repetitions”: a sign test of the pairs, where the design "
    "supports no interval; it says nothing about the mean. A median or another quantile is the mean of the "
    "repetitions' own. “No difference shown” does not mean equal: to test that, declare an equivalence in the study."
)


def comparison_tables(result: Result) -> list[Table]:
    """A row for each comparison tested, or needing no test because both cells are exact."""
    tested = [comparison for comparison in result.comparisons if _is_tested(comparison)]
    if not tested:
        return []
    shown = largest(tested, MAX_ROWS)
    metrics = {comparison.metric for comparison in shown}
    title = f"Comparisons: {METRICS[shown[0].metric].title.lower()}" if len(metrics) == 1 else "Comparisons"
    beside = statistics_beside(shown)
    columns = [
        *names("metric", "levels", "at"),
        *numbers("difference of means", "ratio of means", "Cliff's δ", "p (exploratory)"),
        *words("verdict"),
        *(column for name in beside for column in _columns_of(name)),
    ]
    rows = [_row(comparison, beside) for comparison in shown]
    # The title names the metric where there is only one.
    first = 1 if len(metrics) == 1 else 0
    ratios = tuple(range(8, 8 + 3 * len(beside), 3))
    order = (*range(first, 3), 4, *ratios, 7)
    narrow_columns = [columns[index] for index in order[:-1]]
    narrow = [[replaced(row[index], _SHORTER) for index in order] for row in rows]
    return [
        Table(
            title,
            columns[first:],
            [row[first:] for row in rows],
            footnotes=[*_footnotes(result, shown, len(tested)), *_why_not(shown)],
            narrow=Table(title, [*narrow_columns, *words("difference")], narrow),
        )
    ]


def statistics_beside(compared: Sequence[LevelComparison]) -> list[str]:
    """The statistics beside the mean with a number in any of some comparisons."""
    wanted = {
        name
        for comparison in compared
        for name, made in comparison.statistics.items()
        if made.difference.value is not None
    }
    return [name for name in STATISTICS if name in wanted]


def _is_tested(comparison: LevelComparison) -> bool:
    return comparison.p is not None or comparison.difference.is_exact or comparison.difference.is_whole


def largest(compared: Sequence[LevelComparison], most: int) -> list[LevelComparison]:
    """All comparisons, or `most` of them: equally many from each family (factor and metric), the largest ratios first.

    Within a family, a difference shown goes before one not shown.
    """
    if len(compared) <= most:
        return list(compared)
    families: dict[tuple[str, str], list[LevelComparison]] = {}
    for comparison in compared:
        families.setdefault((comparison.metric, comparison.factor), []).append(comparison)
    for family in families.values():
        family.sort(key=_clear_and_large_first)
    turns = zip_longest(*families.values())
    in_turn = (comparison for turn in turns for comparison in turn if comparison is not None)
    chosen = {id(comparison) for comparison in islice(in_turn, most)}
    return [comparison for family in families.values() for comparison in family if id(comparison) in chosen]


def _clear_and_large_first(comparison: LevelComparison) -> tuple[bool, float]:
    return not comparison.verdict.startswith(("larger", "smaller")), -abs(math.log(comparison.ratio.value or 1.0))


def _columns_of(statistic: str) -> list[Column]:
    of = plural_of(statistic)
    return [*numbers(f"ratio of {of}", f"p, {of}"), *words(f"verdict, {of}")]


def _row(comparison: LevelComparison, beside: Sequence[str]) -> list[str]:
    divisor, unit = scale_of([comparison.difference.value], comparison.unit)
    return [
        METRICS[comparison.metric].title,
        f"{factor_and_level(comparison.factor, comparison.other)} against {level_text(comparison.reference)}",
        levels(comparison.fixed) if comparison.fixed else NOTHING,
        with_unit(interval(comparison.difference, divisor), unit),
        interval(comparison.ratio),
        interval(comparison.cliffs_delta),
        _p(comparison),
        verdict_text(comparison, comparison.unit),
        *(text for name in beside for text in _by_statistic(comparison.by(name), comparison.unit)),
    ]


def _by_statistic(made: StatisticComparison | None, unit: str) -> list[str]:
    """Ratio, p and verdict by another statistic than the mean; dashes where the cells have none."""
    if made is None or made.difference.value is None:
        return [NOTHING, NOTHING, NOTHING]
    return [interval(made.ratio), _p(made), verdict_text(made, unit)]


def verdict_text(made: StatisticComparison, unit: str) -> str:
    """The verdict, with the difference where the ratio beside it is shown as 1: "larger by 12 ns"."""
    is_shown = made.verdict.startswith(("larger", "smaller"))
    if not is_shown or not made.difference.value or made.ratio.value is None or abs(made.ratio.value - 1) >= _NEAR:
        return made.verdict
    side, *most = made.verdict.split(" ", 1)
    return " ".join([f"{side} by {quantity(abs(made.difference.value), unit)}", *most])


def _p(made: StatisticComparison) -> str:
    return EXACT if made.difference.is_exact else p_value(made.p_adjusted)


def _why_not(shown: Sequence[LevelComparison]) -> list[str]:
    """Why there is no interval by other statistics than the mean, each reason once."""
    lines = []
    for name in dict.fromkeys(name for comparison in shown for name in comparison.statistics):
        made = [comparison.statistics[name].difference for comparison in shown if name in comparison.statistics]
        lines += _without_interval(made, f" by {plural_of(name)}")
    return lines


def _without_interval(differences: Sequence[Interval], by: str = "") -> list[str]:
    """How many differences have no interval, for each reason."""
    reasons = merged_reasons((made.reason, str(index)) for index, made in enumerate(differences) if made.reason)
    return [f"{count(len(of))}{by} without an interval: {why}." for why, of in reasons.items()]


def _footnotes(result: Result, shown: Sequence[LevelComparison], tested: int) -> list[str]:
    whole = [comparison.difference for comparison in shown if comparison.difference.is_whole]
    exact = [comparison.difference for comparison in shown if comparison.difference.is_exact]
    methods = dict.fromkeys(method_name(difference.method) for difference in (*whole, *exact))
    notes = [
        *(f"Difference and ratio: {method}." for method in methods),
        *_without_interval([comparison.difference for comparison in shown]),
        _HOW_TO_READ,
    ]
    if len(shown) < tested:
        notes.insert(
            0,
            f"Shown: {len(shown)} of {count(tested)}, the largest ratios by factor and metric, significant ones first."
            " The JSON result lists all.",
        )
    untested = len(result.comparisons) - tested
    if untested:
        notes.append(f"{count_of(untested, 'comparison')} more left out: too few repetitions.")
    return notes
