"""Answers to the questions that a study declares: yes, no, or that this run cannot tell.

Each case is two cells that differ in the question's factor alone, compared as cells are everywhere; what decides is in
`crosswind.analysis.decisions`.
"""

from collections.abc import Iterable, Sequence

from crosswind.analysis.asked import AskedQuestion, absence_of
from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared_statistic, other_levels
from crosswind.analysis.decisions import LEVEL, Case, decided
from crosswind.analysis.estimates import one_estimate, within_nature
from crosswind.analysis.result import Answer, AnswerCase, AnswerSide, AnswerVerdict, CaseVerdict, Interval
from crosswind.analysis.trust import reason_of
from crosswind.metrics import LOST, METRICS, STATISTICS, Metric, metric_named
from crosswind.stats import TooFewSamples, difference, ratio, refused, share_interval
from crosswind.stats.beyond import counts_of, effect_estimate, is_of_most, share_limit, without_rounding
from crosswind.stats.effect import Effect, is_constant
from crosswind.stats.quantile import repetition_quantile_interval


def answers_of(asked: Sequence[AskedQuestion], data: Sequence[CellData]) -> list[Answer]:
    """The answer to every question of a run. One about cells that the run does not have says so."""
    found = [_cases(question, data) for question in asked]
    judged = iter(decided([case for cases in found for case in cases]))
    return [
        _answer(question, [next(judged) for _ in cases], data) for question, cases in zip(asked, found, strict=True)
    ]


def _cases(question: AskedQuestion, data: Sequence[CellData]) -> list[Case]:
    """Every pair of cells that answers a question, in the order of the levels that it names."""
    metric = _metric(question)
    orders = {cell: order for order, level in enumerate(question.compare) for cell in level.cells}
    groups: dict[tuple[tuple[str, str], ...], dict[int, CellData]] = {}
    for cell in data:
        if cell.cell in question.cells and cell.cell in orders and metric.applies(cell.settings.workload):
            group = groups.setdefault(tuple(other_levels(cell, question.factor).items()), {})
            group[orders[cell.cell]] = cell
    return [
        _case(question, group[0], group[order])
        for group in groups.values()
        if 0 in group
        for order in range(1, len(question.compare))
        if order in group
    ]


def _case(question: AskedQuestion, reference: CellData, other: CellData) -> Case:
    metric, statistic = _metric(question), compared_statistic(question.statistic)
    sides = [_side(question, cell) for cell in (reference, other)]
    unit = "1" if question.is_ratio else metric.unit.name
    size = 1.0 if question.is_ratio else max(abs(side.value.value or 0.0) for side in sides) or 1.0
    effect: Effect | None = None
    try:
        compared = reference.side(metric.name), other.side(metric.name)
        effect = without_rounding((ratio if question.is_ratio else difference)(*compared, statistic), size=size)
        shown = Interval.of(effect_estimate(effect, size=size, unit=unit, level=LEVEL))
    except TooFewSamples as error:
        n = sum(side.value.n for side in sides)
        shown = Interval.of(refused(error.message, n=n, level=LEVEL, unit=unit))
    constant = effect is not None and is_constant(effect, size=size)
    below, above = (0, 0) if effect is None else counts_of(effect, size=size)
    made = AnswerCase(
        reference=sides[0],
        other=sides[1],
        fixed=other_levels(reference, question.factor),
        effect=shown,
        pairs=0 if effect is None else effect.units,
        of_most=effect is not None and is_of_most(effect, size=size),
        below=below,
        above=above,
        constant=constant,
        exceptions_at_most=share_limit(effect.units, level=LEVEL) if constant and effect is not None else None,
        p_yes=None,
        p_no=None,
        verdict="cannot tell",
        needed=None,
        at_most=min((cell.at_most for cell in (reference, other) if cell.at_most and not cell.is_exact), default=None),
        reason=shown.reason,
    )
    return Case(question, made, effect, size)


def _side(question: AskedQuestion, cell: CellData) -> AnswerSide:
    """What is compared of a cell, with its interval, or why there is none."""
    metric = _metric(question)
    try:
        value = _value(cell, metric, question.statistic)
    except TooFewSamples as error:
        value = Interval.of(refused(error.message, n=0, level=LEVEL, unit=metric.unit.name))
    failed = sum(cell.outcomes.values()) - cell.outcomes.get("ok", 0) if metric.name in METRICS else 0
    return AnswerSide(
        level=cell.levels[question.factor],
        cell=cell.cell,
        value=value,
        failed=failed,
        valid=reason_of(cell.runs) is None,
    )


def _value(cell: CellData, metric: Metric, statistic: str) -> Interval:
    """Raises: TooFewSamples."""
    if metric.name == LOST.name:
        if cell.lost is None:
            raise TooFewSamples("there is no exchange")
        return Interval.of(share_interval(cell.lost, level=LEVEL))
    if metric.name not in cell.samples:
        raise TooFewSamples(cell.why_absent(metric.name))
    compared = compared_statistic(statistic)
    if isinstance(compared, str) or cell.is_exact:
        return one_estimate(cell, metric, STATISTICS[statistic], level=LEVEL)
    side = cell.side(metric.name)
    made = repetition_quantile_interval(side.units, compared, unit=metric.unit.name, design=side.design)
    return Interval.of(within_nature(made, metric))


def _answer(question: AskedQuestion, cases: list[AnswerCase], data: Sequence[CellData]) -> Answer:
    absent = _incomplete(question, data)
    return Answer(
        asks=question.asks,
        verdict="cannot tell" if cases and absent else _together([case.verdict for case in cases]),
        metric=question.metric,
        statistic=question.statistic,
        factor=question.factor,
        yes=question.yes,
        scale="ratio" if question.is_ratio else "difference",
        unit="1" if question.is_ratio else _metric(question).unit.name,
        margin=question.margin,
        bound=question.bound,
        cases=cases,
        figure=question.figure,
        reason=absent if cases else _absence(question, data),
        note=question.note,
    )


def _together(verdicts: Iterable[CaseVerdict]) -> AnswerVerdict:
    found: set[CaseVerdict] = set(verdicts)
    if len(found) > 1:
        return "mixed"
    return found.pop() if found else "cannot tell"


def _incomplete(question: AskedQuestion, data: Sequence[CellData]) -> str | None:
    """What the run lacks of the levels that the question compares; None where it has all."""
    missing = tuple(f"{question.factor} {level.level}" for level in question.compare if not level.cells)
    compared = frozenset(cell for level in question.compare for cell in level.cells)
    return absence_of(missing, question.cells & compared, {cell.cell for cell in data})


def _absence(question: AskedQuestion, data: Sequence[CellData]) -> str:
    """Why a question has no cases in a run."""
    executed = {cell.cell for cell in data}
    where = "".join(f", {key} {level}" for key, level in question.where.items())
    missing = [level.level for level in question.compare if not level.cells]
    if not question.cells and where:
        return f"this run has no cell with {where[2:]}"
    if missing:
        return f"this run has no cell with {question.factor} {' or '.join(missing)}{where}"
    if not any(level.cells & executed for level in question.compare):
        return "none of its cells was executed"
    own = [cell for cell in data if cell.cell in question.cells]
    if not any(_metric(question).applies(cell.settings.workload) for cell in own):
        return f"its cells do not have the metric {question.metric}"
    return f"this run has no two cells that differ in {question.factor} alone"


def _metric(question: AskedQuestion) -> Metric:
    metric = metric_named(question.metric)
    assert metric is not None  # The study was checked.
    return metric
