"""The questions that a study is run for, each with what would make the answer yes.

Which levels are compared, by what and where is declared before the run, so that its answers are the confirmatory
statements of the study. `crosswind.analysis.questions` answers them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from crosswind.metrics import LOST, METRICS, Metric, metric_named
from crosswind.quantities import RATE
from crosswind.study.cells import Cell, Where, meaning_of, where_of
from crosswind.study.errors import DesignError
from crosswind.study.format import StudyDocument
from crosswind.study.levels import did_you_mean, text_of
from crosswind.study.parts import Part
from crosswind.study.presentation import PublishedError, check_factors, indices_of, margin_of
from crosswind.study.report_tables import QuestionTable
from crosswind.study.toml_text import Location
from crosswind.units import shown

SHARE_STATISTIC = "share"
"""What a study may call the mean of a metric that is a share of exchanges."""

MOST_CHARACTERS = 200
"""Of a question, which is one sentence."""


@dataclass(frozen=True)
class Question:
    """One question, and the cells that answer it.

    Attributes:
        compare: the levels of the factor, the reference first. yes: what another level has to be for a yes.
        is_ratio: whether the levels are compared by ratio. margin: of a ratio what is above 1, of a difference in the
            metric's unit; None without one.
    """

    where: Where
    compare: tuple[Where, ...]
    yes: Literal["less", "more", "different", "same"]
    is_ratio: bool
    margin: float | None
    _table: QuestionTable = field(repr=False)

    @property
    def metric(self) -> str:
        """The name of its metric."""
        return self._table.metric

    def as_dict(self, cells: Iterable[Cell]) -> dict[str, Any]:
        """As plain data, with the indices of its cells among `cells`, and of those of each level that is compared.

        `margin` is as written, `bound` its number.
        """
        own = self.where.among(cells)
        plain = self._table.model_dump(exclude_none=True, exclude={"compare", "scale"})
        statistic = "mean" if self._table.statistic == SHARE_STATISTIC else self._table.statistic
        compare = [
            {"level": level.texts[self._table.factor], "cells": indices_of(own, level)} for level in self.compare
        ]
        decided = {"statistic": statistic, "yes": self.yes, "is_ratio": self.is_ratio, "bound": self.margin}
        of_cells = {"where": dict(self.where.texts), "cells": [cell.index for cell in own], "compare": compare}
        return {**plain, **decided, **of_cells}


def questions_of(document: StudyDocument, parts: Sequence[Part]) -> tuple[Question, ...]:
    """The questions of a study. Raises: PublishedError, CellError."""
    titles = [figure.title for figure in document.figure]
    return tuple(_question(table, ("question", at), parts, titles) for at, table in enumerate(document.question))


def check_cells(questions: Sequence[Question], cells: Sequence[Cell]) -> None:
    """Refuses a question that no run of these cells could answer. Raises: DesignError."""
    for number, question in enumerate(questions):
        place: Location = ("question", number)
        own = question.where.required(cells, (*place, "where"))
        for at, level in enumerate(question.compare):
            if not any(level.matches(cell) for cell in own):
                (factor, text), *_ = level.texts.items()
                there = ", ".join(_levels_of(factor, own)) or "no level of it"
                raise DesignError((*place, "compare", at), f"no cell of the question has {factor} = {text}", there)
        metric = metric_named(question.metric)
        if metric is not None and not any(metric.applies(cell.workload) for cell in own):
            message = f"no cell of the question has the metric {metric.name}: it is that of {metric.of_workloads}"
            raise DesignError((*place, "metric"), message, "ask for a metric of this workload")


def _levels_of(factor: str, cells: Iterable[Cell]) -> Iterator[str]:
    found = dict.fromkeys(cell.levels[factor] for cell in cells if factor in cell.levels)
    if found:
        yield f"levels there: {', '.join(found)}"


def _question(table: QuestionTable, place: Location, parts: Sequence[Part], figures: Sequence[str]) -> Question:
    _check_sentence(table.asks, (*place, "asks"))
    metric = metric_named(table.metric)
    if metric is None:
        hint = did_you_mean(table.metric, [*METRICS, LOST.name])
        raise PublishedError((*place, "metric"), f"{shown(table.metric)} is not a metric", hint)
    _check_statistic(table.statistic, metric, place)
    check_factors({"factor": table.factor}, place, parts)
    where = where_of(table.where, (*place, "where"), parts)
    if table.factor in where.texts:
        message = f"{table.factor} has one value only where {table.factor} = {where.texts[table.factor]}"
        raise PublishedError((*place, "where"), message, "leave it out: its levels are what is compared")
    if table.figure is not None and table.figure not in figures:
        hint = did_you_mean(table.figure, figures) if figures else "this study has no figure"
        raise PublishedError((*place, "figure"), f"no figure has the title {shown(table.figure)}", hint)
    yes = table.yes or ("more" if metric.unit is RATE else "less")
    is_ratio, margin = _scale(table, metric, place)
    if yes == "same" and margin is None:
        message = "whether two levels are the same takes a margin"
        raise PublishedError((*place, "margin"), message, 'the smallest difference that matters, as "5ms" or "25%"')
    return Question(where, _compared(table, place, parts), yes, is_ratio, margin, table)


def _check_sentence(text: str, place: Location) -> None:
    if not text.strip().endswith("?") or len(text.strip()) < 2:
        raise PublishedError(place, f"{shown(text)} is not a question", "one sentence that ends with a question mark")
    if len(text) > MOST_CHARACTERS or "\n" in text.strip():
        message = f"the question has {len(text)} characters" if len(text) > MOST_CHARACTERS else "it has several lines"
        raise PublishedError(place, message, f"one sentence of at most {MOST_CHARACTERS} characters, on one line")


def _check_statistic(statistic: str, metric: Metric, place: Location) -> None:
    if statistic == SHARE_STATISTIC:
        if not metric.is_share:
            message = f"{metric.name} is not a share of exchanges"
            raise PublishedError((*place, "statistic"), message, "it is compared by mean, median, p95, ...")
    elif statistic != "mean" and not metric.has_quantiles:
        message = f"{metric.name} has no {statistic} in a repetition"
        raise PublishedError((*place, "statistic"), message, "it is compared by its mean")


def _compared(table: QuestionTable, place: Location, parts: Sequence[Part]) -> tuple[Where, ...]:
    """The levels that are compared. Raises: PublishedError, CellError."""
    if len(table.compare) < 2:
        have = "1 level" if table.compare else "no level"
        message = f"compare has {have}, and a comparison takes two"
        raise PublishedError((*place, "compare"), message, "the reference first, then what is compared with it")
    names = [part.name for part in parts if part.name]
    found: dict[Any, Where] = {}
    for number, level in enumerate(table.compare):
        value = meaning_of(table.factor, level, (*place, "compare", number), names)
        if value in found:
            message = f"{text_of(level)} is compared with itself"
            raise PublishedError((*place, "compare", number), message, "name each level once")
        found[value] = Where({table.factor: text_of(level)}, {table.factor: value})
    return tuple(found.values())


def _scale(table: QuestionTable, metric: Metric, place: Location) -> tuple[bool, float | None]:
    """Whether levels are compared by ratio, and the margin. Raises: PublishedError."""
    if table.scale == "ratio" and not metric.is_positive:
        message = f"{metric.name} may be 0 or less, of which there is no ratio"
        raise PublishedError((*place, "scale"), message, 'write scale = "difference", or leave it out')
    if table.margin is None:
        return (metric.is_positive if table.scale is None else table.scale == "ratio"), None
    is_ratio, margin = margin_of(table.margin, metric.unit, (*place, "margin"))
    if is_ratio and not metric.is_positive:
        message = f"{metric.name} may be 0 or less, of which there is no ratio"
        units = ", ".join(name for name in metric.unit.scales if name != "1")
        raise PublishedError((*place, "margin"), message, f"a number and one of {units}")
    if table.scale is not None and is_ratio != (table.scale == "ratio"):
        kind = "ratio" if is_ratio else "difference"
        message = f"{shown(table.margin)} is the margin of a {kind}, and not of a {table.scale}"
        raise PublishedError((*place, "margin"), message, "write another margin, or leave out scale")
    return is_ratio, margin
