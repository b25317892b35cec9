"""Answers to questions, and verdicts on documents' statements: yes, no, or cannot tell.

A case is two cells different in the factor alone, compared as everywhere; or a cell; or all of them together for a
model's error.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations, pairwise
from math import log
from sys import float_info
from typing import Self

from crosswind.analysis.axes import axis_of
from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import compared_cells, compared_statistic, other_levels
from crosswind.analysis.effects import Predicted, exponent_of, mean_error, over_model, per_step
from crosswind.analysis.estimates import BoundedNumber, estimate_of_cell, within_nature
from crosswind.analysis.predictions import predictions_of
from crosswind.analysis.result import ModelPrediction
from crosswind.catalog.metrics import METRICS, Metric, metric_named
from crosswind.decisions.families import DOCUMENT, LEVEL, QUESTIONS
from crosswind.decisions.judge import Judged, Number, OfEffect, OfInterval, Ruling, judge
from crosswind.decisions.statement import OF_CELLS, OF_NEIGHBOURS, PLAIN, Scale, Statement
from crosswind.findings.judged import Context, Judging
from crosswind.findings.question.result import Answer, AnswerCase, AnswerSide
from crosswind.findings.question.sentence import answer_sentence
from crosswind.findings.question.verdicts import with_joint
from crosswind.report.text.effects import named_level
from crosswind.stats.chance import share_limit
from crosswind.stats.design import share_shortage
from crosswind.stats.differences import INSTANT, Side
from crosswind.stats.estimate import Interval, estimated, without_interval
from crosswind.stats.quantile import repetition_quantile_interval
from crosswind.stats.share import OF_SHARES, Share, difference_limits


def answers_of(context: Context) -> list[Answer]:
    """Every question's answer, and every statement's verdict. One without cells in the run says so."""
    asked = [Statement.model_validate(stored) for stored in context.record.asked.get("question", ())]
    cases = [_Cases.of(_cases_of(question, context.data)) for question in asked]
    documents: dict[str, list[int]] = {}
    for at, question in enumerate(asked):
        documents.setdefault(question.source.partition(",")[0].strip(), []).append(at)
    rulings: dict[int, Ruling] = {}
    for places in documents.values():
        family = DOCUMENT if asked[places[0]].source else QUESTIONS
        rulings |= dict(
            zip(places, judge([[case.number for case in cases[at].judged] for at in places], family), strict=True)
        )
    return with_joint([_answer(question, cases[at], rulings[at], context.data) for at, question in enumerate(asked)])


@dataclass(frozen=True)
class _Case:
    """A case, and its deciding number."""

    made: AnswerCase
    number: Number


@dataclass(frozen=True)
class _Cases:
    """A question's cases. Attributes: instant: those without a ratio, as both sides take no time."""

    judged: Sequence[_Case]
    instant: Sequence[AnswerCase]

    @classmethod
    def of(cls, cases: Sequence[_Case]) -> Self:
        """All cases, told apart."""
        instant = [case.made for case in cases if case.made.reason == INSTANT]
        return cls([case for case in cases if case.made.reason != INSTANT], instant)


def _cases_of(question: Statement, data: Sequence[CellData]) -> list[_Case]:
    """A question's cases, in the order of its levels."""
    metric = _metric(question)
    cells = [cell for cell in data if cell.cell in question.cells and metric.applies(cell.settings.workload)]
    if question.scale == "model-error":
        return list(_of_model_error(question, cells))
    if question.scale in OF_CELLS:
        return [case for cell in cells if (case := _of_cell(question, cell)) is not None]
    return [_of_pair(question, *pair) for pair in _pairs(question, cells)]


_Places = tuple[float, float]


def _pairs(question: Statement, cells: Sequence[CellData]) -> Iterator[tuple[CellData, CellData, _Places | None]]:
    """The compared cells; for a law about numbers with both places along the factor."""
    groups = _groups(question, cells)
    if question.scale in OF_NEIGHBOURS or question.yes in ("rises", "falls"):
        places = axis_of(str(question.factor), cells).places if cells else {}
        for group in groups:
            for lower, upper in pairwise(sorted(group, key=lambda cell: places[cell.cell])):
                at = places[lower.cell], places[upper.cell]
                if question.scale != "exponent" or at[0] > 0:
                    yield lower, upper, at
        return
    for group in groups:
        if question.yes == "same" or not question.compare:
            yield from ((*pair, None) for pair in combinations(group, 2))
        elif group and group[0].cell in question.compare[0].cells:
            yield from ((group[0], other, None) for other in group[1:])


def _groups(question: Statement, cells: Sequence[CellData]) -> list[list[CellData]]:
    """Cells different in the factor alone, in the order of `compare`, if the question names levels."""
    factor = str(question.factor)
    orders = {cell: order for order, level in enumerate(question.compare) for cell in level.cells}
    groups: dict[tuple[tuple[str, str], ...], list[CellData]] = {}
    for cell in cells:
        if factor in cell.levels and (not question.compare or cell.cell in orders):
            groups.setdefault(tuple(other_levels(cell, factor).items()), []).append(cell)
    return [sorted(group, key=lambda cell: orders.get(cell.cell, 0)) for group in groups.values()]


def _of_pair(question: Statement, reference: CellData, other: CellData, places: _Places | None) -> _Case:
    metric, cells = _metric(question), (reference, other)
    sides = [_side(question, cell) for cell in cells]
    fixed = other_levels(reference, str(question.factor))
    is_ratio = question.scale in ("ratio", "exponent")
    made = compared_cells(reference, other, metric.name, question.statistic, is_ratio=is_ratio, level=LEVEL)
    if made.effect is None:
        made = replace(made, n=sum(side.value.n for side in sides))
    if made.is_constant and metric.is_share and question.bound is not None:
        # A few equal exchanges do not prove all shares within the margin.
        apart = partial(_shares_apart, reference.side(metric.name), other.side(metric.name))
        return _of_interval(OfInterval(apart, question.range), fixed, cells, sides=sides)
    return _Case(
        AnswerCase(
            reference=sides[0],
            other=sides[1],
            fixed=fixed,
            cells=[cell.cell for cell in cells],
            effect=_on_scale(question.scale, made.estimate, places),
            pairs=made.pairs,
            of_most=made.of_most,
            below=made.counts[0],
            above=made.counts[1],
            constant=made.is_constant,
            exceptions_at_most=share_limit(made.pairs) if made.is_constant else None,
            at_most=_limit_of(cells),
            reason=made.estimate.reason,
        ),
        OfEffect(made.effect, question.range, _place_of(question.scale, places)),
    )


def _limit_of(cells: Iterable[CellData]) -> int | None:
    """How often the study runs one of some cells at most; None where it sets no limit."""
    return min((cell.at_most for cell in cells if cell.at_most and not cell.is_exact), default=None)


def _shares_apart(reference: Side, other: Side, level: float) -> Interval:
    """The difference between two shares by both limits: it has a width even without spread."""
    a, b = (Share.of_units(side.units, exact=side.exact, least=side.design.least) for side in (reference, other))
    value, n, units = b.value - a.value, a.n + b.n, min(a.units, b.units)
    if short := share_shortage(units, max(a.least, b.least)):
        return without_interval(value, short.message, n=n, level=level, units=units)
    low, high = difference_limits(a, b, (1 - level) / 2)
    return Interval(value, low, high, n, level, OF_SHARES, None, units)


def _on_scale(scale: Scale, effect: Interval, places: _Places | None) -> Interval:
    if places is None or scale not in OF_NEIGHBOURS:
        return effect
    return exponent_of(effect, *places) if scale == "exponent" else per_step(effect, places[1] - places[0])


def _place_of(scale: Scale, places: _Places | None) -> Callable[[float], float]:
    """From a bound to its place on the effect's scale, with a ratio as a logarithm."""
    if scale == "exponent" and places is not None:
        return lambda bound: bound * log(places[1] / places[0])
    if scale == "slope" and places is not None:
        return lambda bound: bound * (places[1] - places[0])
    if scale == "ratio":
        # Every ratio is above 0.
        return lambda bound: log(max(bound, float_info.min))
    return lambda bound: bound


def _of_cell(question: Statement, cell: CellData) -> _Case | None:
    """A cell's statistic, or its comparison with a model's; None without a prediction."""
    measured = BoundedNumber(cell, question.metric, question.statistic)
    if question.scale != "model":
        return _of_interval(measured.within(question.range), dict(cell.levels), [cell])
    prediction = _prediction(question, cell)
    predicted = None if prediction is None else Predicted.of(prediction)
    if prediction is None or predicted is None:
        return None
    of_most = None if measured.of_most is None else _beside_model(measured.of_most, predicted)
    number = OfInterval(_beside_model(measured.at, predicted), question.range, most=of_most)
    return _of_interval(number, dict(cell.levels), [cell], prediction.violated)


def _beside_model(measured: Callable[[float], Interval], predicted: Predicted) -> Callable[[float], Interval]:
    """A measured number over the predicted one, at a level."""
    return lambda level: over_model(measured(level), predicted)


def _of_model_error(question: Statement, cells: Sequence[CellData]) -> Iterator[_Case]:
    """One case: the model's mean error over its predicted cells."""
    made = [(cell, prediction) for cell in cells if (prediction := _prediction(question, cell)) is not None]
    known = [(cell, of, predicted) for cell, of in made if (predicted := Predicted.of(of)) is not None]
    measured = [BoundedNumber(cell, question.metric, question.statistic) for cell, _, _ in known]

    def make(level: float) -> Interval:
        each = 1 - (1 - level) / len(known)
        return mean_error([number.at(each) for number in measured], [predicted for _, _, predicted in known])

    if known:
        violated = list(dict.fromkeys(broken for _, of, _ in known for broken in of.violated))
        matching = [cell for cell, _, _ in known]
        yield _of_interval(OfInterval(make, question.range), _common(matching), matching, violated)


def _of_interval(
    number: OfInterval,
    fixed: dict[str, str],
    cells: Sequence[CellData],
    violated: Sequence[str] = (),
    sides: Sequence[AnswerSide | None] = (None, None),
) -> _Case:
    effect = number.at_95
    made = AnswerCase(
        reference=sides[0], other=sides[1], fixed=fixed, cells=[cell.cell for cell in cells], effect=effect,
        pairs=effect.units, of_most=effect.is_sign_test, at_most=_limit_of(cells), reason=effect.reason,
        violated=list(violated),
    )  # fmt: skip
    return _Case(made, number)


def _common(cells: Iterable[CellData]) -> dict[str, str]:
    """The levels common to some cells."""
    first, *others = [cell.levels for cell in cells]
    return {key: level for key, level in first.items() if all(other.get(key) == level for other in others)}


def _prediction(question: Statement, cell: CellData) -> ModelPrediction | None:
    made = predictions_of([str(question.model)], {}, cell)
    return next((prediction for prediction in made if prediction.metric == question.metric), None)


def _side(question: Statement, cell: CellData) -> AnswerSide:
    """A cell's compared number, with its interval, or why there is none."""
    metric = _metric(question)
    failed = sum(cell.outcomes.values()) - cell.outcomes.get("ok", 0) if metric.name in METRICS else 0
    return AnswerSide(
        level=cell.levels[str(question.factor)],
        cell=cell.cell,
        value=_value(cell, metric, question.statistic),
        failed=failed,
        valid=cell.reason is None,
    )


def _value(cell: CellData, metric: Metric, statistic: str) -> Interval:
    asked = compared_statistic(statistic)
    if isinstance(asked, str) or cell.is_exact or metric.name not in cell.samples:
        return estimate_of_cell(cell, metric.name, statistic, level=LEVEL)
    side = cell.side(metric.name)
    return estimated(
        lambda: within_nature(repetition_quantile_interval(side.units, asked, design=side.design), metric),
        n=0,
        level=LEVEL,
    )


def _answer(question: Statement, made: _Cases, ruling: Ruling, data: Sequence[CellData]) -> Answer:
    cases = made.judged
    absent = question.absence({cell.cell for cell in data})
    # One contradicting case is enough for a statement; a question is about all its levels.
    is_open = absent is not None and (not question.source or ruling.verdict == "yes" or question.scale == "model-error")
    answer = Answer(
        **question.shared_with(Answer),
        verdict="cannot tell" if cases and is_open else ruling.verdict,
        unit="1" if question.scale in PLAIN else _metric(question).unit.name,
        cases=[_judged(case, judged) for case, judged in zip(cases, ruling.cases, strict=True)],
        reason=absent if cases else INSTANT if made.instant else _absence(question, data),
        instant=list(dict.fromkeys(_place_of_instant(case, made) for case in made.instant)),
    )
    return answer.model_copy(update={"sentence": answer_sentence(answer)})


def _place_of_instant(case: AnswerCase, made: _Cases) -> str:
    """What tells a case without a ratio from the others: "delay 0ms"."""
    others = [*(other.made for other in made.judged), *made.instant]
    varied = [key for key in case.fixed if len({other.fixed.get(key) for other in others}) > 1]
    return ", ".join(named_level(key, case.fixed[key]) for key in varied)


def _judged(case: _Case, judged: Judged) -> AnswerCase:
    update: dict[str, object] = {
        "verdict": judged.verdict, "p_yes": judged.p_yes, "p_no": judged.p_no, "needed": judged.needed
    }  # fmt: skip
    if isinstance(case.number, OfInterval):
        effect = case.number.deciding(judged.verdict)
        update |= {"effect": effect, "of_most": effect.is_sign_test}
    return case.made.model_copy(update=update)


def _absence(question: Statement, data: Sequence[CellData]) -> str:
    """Why a question has no cases in a run."""
    where = "".join(f", {key} {level}" for key, level in question.where.items())
    missing = [level.level for level in question.compare if not level.cells]
    if not question.cells and where:
        return question.without_cell(where[2:])
    if missing:
        return question.without_cell(f"{question.factor} {' or '.join(missing)}{where}")
    return _absence_of_data(question, data)


def _absence_of_data(question: Statement, data: Sequence[CellData]) -> str:
    """The same where the plan has its cells."""
    executed = {cell.cell for cell in data}
    cells = [cell for cell in data if cell.cell in question.cells]
    if question.compare and not any(level.cells & executed for level in question.compare):
        return "none of its cells was executed"
    if not cells:
        return "no cell was executed"
    if not any(_metric(question).applies(cell.settings.workload) for cell in cells):
        return f"its cells do not have the metric {question.metric}"
    if question.model is not None:
        return f"{question.model} says nothing of {question.metric} in these cells"
    return f"this run has no two cells that differ in {question.factor} alone"


def _metric(question: Statement) -> Metric:
    metric = metric_named(question.metric)
    assert metric is not None  # The study was checked.
    return metric


JUDGING = Judging("question", "answers", Answer, answers_of)
