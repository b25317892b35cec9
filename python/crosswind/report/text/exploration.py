"""A run's sentences without a declared question: its estimates, and comparisons of the user's choices.

Users choose a transport or a congestion control, and suffer a loss or a delay. A long path being slower than a short
one is no finding, so levels of the path and of sizes are not compared here.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from crosswind.analysis.result import MEAN, CellResult, LevelComparison, Result, StatisticComparison
from crosswind.catalog.metrics import METRICS, STATISTICS, Metric, MetricPlace
from crosswind.report.text.effects import named_level
from crosswind.report.text.format import count_of, exact_number, interval, number, scale_of, with_unit
from crosswind.report.text.overall import is_speed, sentence_of_cells
from crosswind.stats.estimate import Interval
from crosswind.text.lists import begun

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


def _compared(result: Result) -> Iterator[str]:
    """Comparisons of each chosen factor's levels, a sentence for each pair of cells."""
    main = [name for name in main_metrics(result) if is_speed(METRICS[name])]
    cells = {cell.cell: cell for cell in result.cells}
    made = [of for of in result.comparisons if is_chosen(of.factor) and of.metric in main]
    sentences = [said for of in made if (said := _comparison_sentence(of, cells))]
    yield from sentences[:MOST_COMPARED]
    if len(sentences) > MOST_COMPARED:
        yield f"{count_of(len(sentences) - MOST_COMPARED, 'more comparison')}: `crosswind report --all`."


def _comparison_sentence(comparison: LevelComparison, cells: Mapping[int, CellResult]) -> str:
    """Two levels compared by a metric; empty without a ratio. Exploratory: no question declared it."""
    metric = METRICS[comparison.metric]
    statistic = MEAN if comparison.ratio.value else _MEDIAN
    effect = comparison.by(statistic)
    if effect is None or not effect.ratio.value:
        return ""
    levels = [
        (comparison.reference, cells[comparison.reference_cell]),
        (comparison.other, cells[comparison.other_cell]),
    ]
    at = _named(comparison.fixed, comparison.fixed)
    said = sentence_of_cells(comparison.factor, levels, metric, statistic, effect.ratio)
    return f"{metric.title}{f' at {at}' if at else ''}: {said}{_conclusion(effect)}."


def _conclusion(effect: StatisticComparison) -> str:
    """What the test of one comparison says beside its numbers."""
    if effect.verdict == "not enough repetitions":
        return "; too few repetitions to show a difference"
    if effect.verdict == "no difference shown":
        return "; no difference is shown"
    return ""


def _metric_name(metric: Metric, statistic: str) -> str:
    title = metric.title_in_sentence
    name = STATISTICS[statistic].heading
    return f"{begun(name)} {title}"
