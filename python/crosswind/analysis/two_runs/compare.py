"""Two runs, compared cell by cell: changes, their significance, and verdicts on conditions."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal, Self

import polars as pl

from crosswind.analysis.cells import CellData, collect
from crosswind.analysis.overview import read_large
from crosswind.analysis.result import MEAN
from crosswind.analysis.two_runs.conditions import Condition
from crosswind.analysis.two_runs.effects import change_of, claimed_change, is_short, measure_pair, no_change
from crosswind.analysis.two_runs.matching import (
    Matching,
    Pair,
    clocks_of,
    differing_settings,
    differing_surroundings,
    match_cells,
)
from crosswind.analysis.two_runs.result import (
    AskedCondition,
    Change,
    ChangeVerdict,
    CommonCell,
    ConditionInCell,
    LargeComparison,
    MetricChange,
    MetricOverview,
    RunComparison,
    RunSide,
)
from crosswind.analysis.two_runs.why import NotPairedError, Packets, explain_change
from crosswind.analysis.units import failures_of
from crosswind.catalog.metrics import LOST, METRICS, Metric, metric_named
from crosswind.cell.record import LargeRun, RunRecord
from crosswind.decisions.families import ALPHA, CHANGES, CONDITIONS, LEVEL
from crosswind.decisions.judge import Judged, OfEffect, adjust_exploratory, judge
from crosswind.decisions.statement import KEPT, Kept, Range, more_than
from crosswind.files.damage import damage_sentences, left_out
from crosswind.stats.estimate import EXACT, TooFewSamples
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.significance import two_sided_p

MEDIAN = "median"
_SHOWN_STATISTICS = ("mean", "median", "p95", "share")


MOST_SHOWN = 10
"""Cells for each metric in large runs."""

_ROUNDING = 1e-12
"""Relative difference between equal numbers."""


@dataclass(frozen=True, eq=False)
class ComparedRun:
    """One run.

    Attributes: record: the run. name: for messages. cells: those with results. repetitions: with results. invalid:
        invalid cells' reasons, by index. means: a large run's repetition means with seeds (`UNITS`); its cells have no
        samples.
    """

    record: RunRecord
    name: str
    cells: Sequence[CellData]
    repetitions: int
    invalid: Mapping[int, str | None]
    means: pl.DataFrame | None = None

    @classmethod
    def whole(cls, record: RunRecord, name: str) -> Self:
        """A run with all its cells' samples."""
        cells = collect(record)
        invalid = {cell.cell: cell.reason for cell in cells if cell.reason is not None}
        return cls(record, name, cells, len(record.cells), invalid)

    @classmethod
    def large(cls, run: LargeRun, name: str) -> Self:
        """A large run, read once."""
        reading = read_large(run)
        executed = (kind for kind in run.cells if kind.cell in reading.executed_cells)
        kinds = [replace(kind, finished=reading.examples.get(kind.cell)) for kind in executed]
        # One repetition of each part says on which clock and kernel it ran.
        examples = [kind for kind in kinds if kind.finished is not None]
        means = reading.units.filter(statistic="mean").with_columns(pl.col("metric").cast(pl.String))
        return cls(
            replace(run.record, cells=examples, damaged=run.damaged),
            name,
            [CellData(kind.cell, kind.levels, [kind], {}) for kind in kinds],
            reading.executed + left_out(run.damaged),
            reading.invalid,
            means.join(run.seeds, on=["cell", "repetition"], how="left"),
        )

    @property
    def side(self) -> RunSide:
        """As a result has it."""
        return RunSide(
            directory=self.name,
            study=self.record.name,
            title=self.record.title,
            started=self.record.provenance.get("started"),
            clocks=clocks_of(self.record),
            cells=len(self.cells),
            repetitions=self.repetitions,
            valid=not self.record.damaged and not self.invalid,
            damaged=damage_sentences(self.record.damaged),
        )


def compare_runs(
    a: ComparedRun,
    b: ComparedRun,
    *,
    metrics: Sequence[str] = (),
    conditions: Sequence[Condition] = (),
    packets: tuple[Packets, Packets] | None = None,
) -> RunComparison:
    """Compares run B with run A.

    For large runs the changes standing out are tested like any other two cells', and p is multiplied by the number of
    cells with the metric: being chosen makes none significant.

    Args: metrics: to compare; none: the workloads' level-comparison metrics, and the share of failed exchanges.
        conditions: for every common cell. packets: either run's, for the causes; None: not requested. Large runs have
        none of them.
    Raises: TooFewSamples for a run without results, without a common cell, or without a common cell with a requested
        metric; NotPairedError without any cause.
    """
    for run in (a, b):
        if not run.cells:
            raise TooFewSamples(f"{run.name} has no results")
    matching = match_cells(a.cells, b.cells)
    if not matching.pairs:
        raise TooFewSamples(f"{a.name} and {b.name} have no cell in common")
    _check_asked(matching, [*metrics, *(condition.metric.name for condition in conditions)])
    overview = None
    if a.means is not None and b.means is not None:
        common, overview = _standing_out(matching.pairs, a.means, b.means)
    else:
        common = _corrected([_common(pair, _compared(pair, metrics)) for pair in matching.pairs])
    if packets is not None:
        common = _with_reasons(common, matching.pairs, packets)
    return RunComparison(
        a=a.side,
        b=b.side,
        settings=differing_settings(matching.pairs),
        surroundings=differing_surroundings(a.record, b.record),
        common=[
            cell.model_copy(update={"invalid_a": a.invalid.get(cell.cell_a), "invalid_b": b.invalid.get(cell.cell_b)})
            for cell in common
        ],
        only_a=[cell.levels for cell in matching.only_a],
        only_b=[cell.levels for cell in matching.only_b],
        conditions=_answered(matching, conditions),
        level=LEVEL,
        overview=overview,
    )


def _check_asked(matching: Matching, names: Sequence[str]) -> None:
    for name in names:
        if not any(_has(pair, metric) for pair in matching.pairs if (metric := metric_named(name)) is not None):
            raise TooFewSamples(f"no cell that both runs have has the metric {name}")


def _has(pair: Pair, metric: Metric) -> bool:
    if metric is LOST:
        return all(any(run.samples.height for run in cell.runs) for cell in (pair.a, pair.b))
    # A run in which no exchange succeeded has no values, but its workload has the metric.
    return all(metric.applies(cell.settings.workload) for cell in (pair.a, pair.b)) and any(
        metric.name in cell.samples for cell in (pair.a, pair.b)
    )


# What changed


def _with_reasons(
    common: Sequence[CommonCell], pairs: Sequence[Pair], packets: tuple[Packets, Packets]
) -> list[CommonCell]:
    """Cells with their causes. Raises: NotPairedError without any."""
    with_reasons: list[CommonCell] = []
    problems: list[NotPairedError] = []
    for cell, pair in zip(common, pairs, strict=True):
        try:
            with_reasons.append(cell.model_copy(update={"why": explain_change(pair, packets, level=LEVEL)}))
        except NotPairedError as error:
            problems.append(error)
            with_reasons.append(cell)
    if len(problems) == len(with_reasons):
        raise problems[0]
    return with_reasons


def _common(pair: Pair, compared: Iterable[tuple[Metric, str]]) -> CommonCell:
    """Two matching cells. Args: compared: metrics and statistics."""
    return CommonCell(
        cell_a=pair.a.cell,
        cell_b=pair.b.cell,
        levels=pair.levels,
        matched_by=pair.by,
        changes=[_change_of(pair, metric, statistic) for metric, statistic in compared],
    )


def _compared(pair: Pair, metrics: Sequence[str]) -> Iterator[tuple[Metric, str]]:
    """The metrics and statistics to compare in a pair of cells."""
    kind = pair.a.settings.kind
    usual = [*(name for name, metric in METRICS.items() if kind in metric.compared_in), LOST.name]
    for name in metrics or usual:
        metric = metric_named(name)
        if metric is not None and _has(pair, metric):
            yield from ((metric, name) for name in metric.statistics if name in _SHOWN_STATISTICS)


def _change_of(pair: Pair, metric: Metric, statistic: str) -> MetricChange:
    """A statistic's change in two matching cells; p is not corrected yet."""
    try:
        measured = measure_pair(pair, metric, statistic)
    except TooFewSamples as error:
        nothing = no_change(error.message)
        return MetricChange(
            metric=metric.name, statistic=statistic, unit=metric.unit.name, reason=error.message, difference=nothing,
            ratio=nothing,
        )  # fmt: skip
    shown = measured.shown
    effect, made = shown.effect, shown.estimate
    assert effect is not None and measured.difference.effect is not None  # Else it was refused.
    is_same = effect.error == 0 and effect.value == 0
    reason = made.reason if (is_short(shown) or shown.is_constant) and not is_same else None
    verdict: ChangeVerdict = "no difference shown" if reason is None else "cannot tell"
    if is_same:
        verdict = "same"
    elif effect.how == EXACT:
        verdict = _direction(metric, measured.difference.effect.value)
    any_change = OfEffect(effect, Range(0.0, 0.0, inside=False))
    values, sides = measured.values, (measured.a.units, measured.b.units)
    return MetricChange(
        metric=metric.name,
        statistic=statistic,
        unit=metric.unit.name,
        a=values[0],
        b=values[1],
        units_a=sides[0].count,
        units_b=sides[1].count,
        n_a=sides[0].n,
        n_b=sides[1].n,
        failed_a=sum(failures_of(pair.a, metric).values()),
        failed_b=sum(failures_of(pair.b, metric).values()),
        left_a=measured.left[0],
        left_b=measured.left[1],
        pooled_a=measured.pooled[0],
        pooled_b=measured.pooled[1],
        paired=measured.paired,
        method=made.method,
        difference=change_of(measured.difference),
        ratio=change_of(measured.ratio),
        p=two_sided_p(effect) if reason is None else None,
        verdict=verdict,
        reason=reason,
        needed=effect.needed if reason else None if verdict == "same" else any_change.needed(yes=True, alpha=ALPHA),
    )


def _direction(metric: Metric, difference: float) -> Literal["worse", "better"]:
    return "better" if (difference > 0) == metric.more_is_better else "worse"


def _corrected(common: Sequence[CommonCell]) -> list[CommonCell]:
    """With corrected p-values (`CHANGES`), and their verdicts."""
    families: dict[tuple[str, str], list[float | None]] = {}
    for change in (change for cell in common for change in cell.changes):
        families.setdefault((change.metric, change.statistic), []).append(change.p)
    corrected = {name: iter(adjust_exploratory(family, CHANGES)) for name, family in families.items()}

    def judged(change: MetricChange) -> MetricChange:
        p = next(corrected[change.metric, change.statistic])
        return change if p is None else _corrected_change(change, p)

    return [cell.model_copy(update={"changes": [judged(change) for change in cell.changes]}) for cell in common]


def _corrected_change(change: MetricChange, p: float) -> MetricChange:
    """With its corrected p-value, and its verdict."""
    metric = metric_named(change.metric)
    update: dict[str, object] = {"p_holm": p}
    if metric is not None and change.verdict != "same" and p < ALPHA and change.difference.value:
        update |= {"verdict": _direction(metric, change.difference.value), "needed": None}
    return change.model_copy(update=update)


# Large runs


def _standing_out(pairs: Sequence[Pair], a: pl.DataFrame, b: pl.DataFrame) -> tuple[list[CommonCell], LargeComparison]:
    """The cells with outstanding changes, and the overview over all. Args: a, b: repetitions' means."""
    families = _changes(pairs, a, b).partition_by("metric", as_dict=True)
    heights = {str(name): family.height for (name,), family in families.items()}
    chosen = [pairs[at] for at in sorted({at for family in families.values() for at in _largest(family)})]
    ours, theirs = _samples(a, [pair.a.cell for pair in chosen]), _samples(b, [pair.b.cell for pair in chosen])
    common = []
    for pair in chosen:
        sides = ours[pair.a.cell], theirs[pair.b.cell]
        measured = Pair(replace(pair.a, samples=sides[0]), replace(pair.b, samples=sides[1]), pair.by)
        both = [(METRICS[name], MEAN) for name in heights if name in sides[0] and name in sides[1]]
        made = _common(measured, both)
        # How many repetitions would show a change among so many cells is not known.
        changes = [
            change if change.p is None
            else _corrected_change(
                change.model_copy(update={"needed": None}), min(1.0, change.p * heights[change.metric])
            )
            for change in made.changes
        ]  # fmt: skip
        common.append(made.model_copy(update={"changes": changes}))
    overviews = [_overview(str(name), family) for (name,), family in families.items()]
    return common, LargeComparison(cells=len(pairs), metrics=overviews)


def _samples(means: pl.DataFrame, cells: Sequence[int]) -> dict[int, dict[str, Repetitions]]:
    """Some cells' repetition means, by metric."""
    samples: dict[int, dict[str, Repetitions]] = {}
    own = means.filter(pl.col("cell").is_in(cells)).sort("cell", "metric", "repetition")
    for (cell, name), rows in own.partition_by("cell", "metric", as_dict=True, maintain_order=True).items():
        keys = list(rows.select("repetition", "seed").iter_rows())
        repetitions = Repetitions.of(rows["value"].to_numpy(), rows["repetition"].to_numpy(), keys=keys)
        samples.setdefault(int(cell), {})[str(name)] = repetitions
    return samples


def _changes(pairs: Sequence[Pair], a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    """B less A in each `pair` and `metric`, by their repetitions' means.

    Returns: `ratio`, B to A, null for A not above 0. `change`: the mean difference over common repetitions. `errors`:
        the same in standard errors.
    """
    numbers = pl.DataFrame(
        {
            "pair": range(len(pairs)),
            "cell_a": [pair.a.cell for pair in pairs],
            "cell_b": [pair.b.cell for pair in pairs],
        },
        schema={"pair": pl.UInt32, "cell_a": pl.UInt32, "cell_b": pl.UInt32},
    )
    ours, theirs = (
        side.select("metric", pl.col("cell").alias(name), "repetition", pl.col("value").alias(way))
        for side, name, way in ((a, "cell_a", "a"), (b, "cell_b", "b"))
    )
    both = ours.join(numbers, on="cell_a").join(theirs, on=["metric", "cell_b", "repetition"])
    change = pl.col("b") - pl.col("a")
    error = change.std() / pl.len().sqrt()
    size = pl.max_horizontal(pl.col("a").mean().abs(), pl.col("b").mean().abs())
    return (
        both.group_by("metric", "pair", maintain_order=True)
        .agg(
            ratio=pl.when(pl.col("a").mean() > 0).then(pl.col("b").mean() / pl.col("a").mean()),
            change=change.mean(),
            # What all repetitions have in common stands out the most, but rounding does not.
            errors=change.mean().abs() / pl.max_horizontal(error.fill_null(0.0), _ROUNDING * size, 1e-300),
        )
        .sort("metric", "pair")
    )


def _largest(family: pl.DataFrame) -> list[int]:
    """A metric's pairs with the most outstanding changes."""
    changed = family.filter(pl.col("change") != 0)
    ordered = changed.sort("errors", pl.col("change").abs(), descending=True, maintain_order=True)
    return ordered["pair"].head(MOST_SHOWN).to_list()


def _overview(name: str, family: pl.DataFrame) -> MetricOverview:
    least, middle, most = family.select(
        least=pl.col("ratio").min(), middle=pl.col("ratio").median(), most=pl.col("ratio").max()
    ).row(0)
    return MetricOverview(
        metric=name,
        cells=family.height,
        larger=family.filter(pl.col("change") > 0).height,
        smaller=family.filter(pl.col("change") < 0).height,
        least=least,
        middle=middle,
        most=most,
    )


# Conditions


@dataclass(frozen=True)
class _Asked:
    """A condition in two matching cells. number: for the judge; None where it is known without, or impossible."""

    cell: ConditionInCell
    number: OfEffect | None = None


def _answered(matching: Matching, conditions: Sequence[Condition]) -> list[AskedCondition]:
    """Each condition in each common cell, all judged together."""
    matching_of = [[pair for pair in matching.pairs if _has(pair, condition.metric)] for condition in conditions]
    asked = [
        (condition, [_asked(condition, pair) for pair in pairs])
        for condition, pairs in zip(conditions, matching_of, strict=True)
    ]
    numbers = [[cell.number for cell in cells if cell.number is not None] for _, cells in asked]
    rulings = judge(numbers, CONDITIONS)
    answered = []
    for (condition, cells), pairs, ruling in zip(asked, matching_of, rulings, strict=True):
        judged = iter(ruling.cases)
        made = [cell.cell if cell.number is None else _ruled(cell.cell, cell.number, next(judged)) for cell in cells]
        answered.append(_judged(condition, [_with_instead(*of, condition) for of in zip(made, pairs, strict=True)]))
    return answered


def _with_instead(cell: ConditionInCell, pair: Pair, condition: Condition) -> ConditionInCell:
    """With a statistic able to decide an inconclusive condition: the median, hardly moved by a few long waits."""
    if cell.answer != "inconclusive" or condition.statistic == MEDIAN or MEDIAN not in condition.metric.statistics:
        return cell
    other = _asked(replace(condition, statistic=MEDIAN), pair)
    if other.number is None:
        return cell
    (ruling,) = judge([[other.number]], CONDITIONS)
    return cell if ruling.verdict == "cannot tell" else cell.model_copy(update={"instead": MEDIAN})


def _asked(condition: Condition, pair: Pair) -> _Asked:
    """A condition in two matching cells, as far as known before the judgement."""

    def answer(change: Change, reason: str | None = None, needed: int | None = None) -> ConditionInCell:
        cells = pair.a.cell, pair.b.cell
        return ConditionInCell(
            cell_a=cells[0], cell_b=cells[1], levels=pair.levels, change=change, reason=reason, needed=needed
        )

    try:
        measured = measure_pair(pair, condition.metric, condition.statistic)
    except TooFewSamples as error:
        return _Asked(answer(no_change(error.message), error.message))
    made = measured.ratio if condition.is_ratio else measured.difference
    effect = made.effect
    if effect is None:
        reason = "a change in per cent needs two numbers above 0"
        return _Asked(answer(no_change(reason), reason))
    change = claimed_change(made, effect)
    if is_short(made) and not effect.is_bounded:
        return _Asked(answer(change, effect.shortage, more_than(effect.needed, effect.units)))
    return _Asked(answer(change), condition.number(effect))


def _ruled(cell: ConditionInCell, number: OfEffect, judged: Judged) -> ConditionInCell:
    units = 0 if number.effect is None else number.effect.units
    more = more_than(judged.needed, units)
    p = number.p(yes=False)
    update = {"p": p, "p_holm": judged.p_no, "needed": more, "answer": KEPT[judged.verdict]}
    return cell.model_copy(update=update)


def _judged(condition: Condition, cells: list[ConditionInCell]) -> AskedCondition:
    answers = {cell.answer for cell in cells}
    answer: Kept = "inconclusive"
    if "fail" in answers:
        answer = "fail"
    elif answers == {"pass"}:
        answer = "pass"
    return AskedCondition(
        condition=condition.text,
        metric=condition.metric.name,
        statistic=condition.statistic,
        is_ratio=condition.is_ratio,
        unit=condition.metric.unit.name,
        direction=condition.direction,
        is_upward=condition.is_upward,
        answer=answer,
        cells=cells,
    )
