"""`[[question]]`: a study's questions, and documents' statements, each with its condition for yes.

The deciding number, its cells and its range are declared before the run: a verdict is computed and never chosen.
`crosswind.findings.question.judge` answers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic import Field

from crosswind.catalog.metrics import SHARE_STATISTIC, Metric
from crosswind.decisions.statement import NUMBERS, OF_CELLS, OF_NEIGHBOURS, PLAIN, Range, Scale, Yes, range_of
from crosswind.errors import did_you_mean
from crosswind.findings.declared import (
    DeclaredTable,
    FindingError,
    check_asks,
    check_factors,
    check_fixed,
    check_numeric,
    check_statistic,
    indices_of,
    level_of,
    margin_of,
    metric_of,
    quantity_of,
)
from crosswind.study.cells import Cell, Where, where_of
from crosswind.study.declared import Declaration, Reading
from crosswind.study.errors import DesignError
from crosswind.study.tables import BoundValue, OrShare, TomlTable, TomlValue, WhereTable
from crosswind.study.toml_text import Location
from crosswind.text.units import shown

MOST_CHOICES = 4
"""Choices of a statement: more are a study of their own."""
_OF_MODELS: tuple[Scale, ...] = ("model", "model-error")


class ChoiceTable(TomlTable):
    """A choice that a document leaves open: the cells of its statement, and their comparison."""

    given: str = Field(description="the choice, after with: new HTTP connections")
    reason: str = Field(description="why the document leaves it open")
    metric: str | None = Field(default=None, description="instead of the statement's; so factor and compare")
    factor: str | None = None
    compare: list[TomlValue] = Field(default_factory=list)
    where: WhereTable = Field(default_factory=dict, description="beside the statement's")


class QuestionTable(TomlTable):
    """A question that the study is run for, or a statement of a document: yes, no, or that the run cannot tell.

    A question has `asks`; a statement has `source` and `says`.
    """

    asks: str | None = Field(default=None, description="the question, as one sentence that ends with ?")
    source: str | None = Field(default=None, description="the document and its place that makes a statement")
    says: str | None = Field(default=None, description="the statement, as one sentence")
    metric: str = Field(description="what is compared, as of a published number; or lost, the share of exchanges lost")
    statistic: OrShare = Field(default="mean", description="what is compared of it; of a share of exchanges, share")
    factor: str | None = Field(default=None, description="dotted key of the factor whose levels are compared, or part")
    compare: list[TomlValue] = Field(
        default_factory=list,
        description="levels of the factor: the reference first, then what is compared with it; where it may be left "
        "out, all levels",
    )
    yes: Yes | None = Field(
        default=None,
        description="what a level has to be beside the reference for the answer to be yes: less, more, different; same "
        "(every two levels); rises, falls (each level beside the next smaller one); within at_least and at_most. "
        "Without it what is better: more of a rate, a share of the path, fairness, utilisation and responsiveness, "
        "less of anything else",
    )
    scale: Scale | None = Field(
        default=None,
        description="the number that decides; without it, as the margin, else ratio where there can be one",
    )
    margin: str | None = Field(
        default=None,
        description="the smallest difference that matters: 5ms, 100kbit/s; 25% is from 1/1.25 to 1.25 times, and of a "
        "share 25 percentage points; same needs one",
    )
    at_least: BoundValue | None = Field(default=None, description="the least that the number may be")
    at_most: BoundValue | None = Field(default=None, description="the most that the number may be")
    model: str | None = Field(default=None, description="of the scales model and model-error: the model that predicts")
    where: WhereTable = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells that are compared"
    )
    figure: str | None = Field(
        default=None, description="title of the figure that shows it; without it one is drawn of what is compared"
    )
    note: str = ""
    choice: list[ChoiceTable] = Field(
        default_factory=list,
        description="of a statement: the choices that its document leaves open; each has its verdict",
    )

    def given(self, choice: ChoiceTable) -> "QuestionTable":
        """The statement with one choice."""
        own = {name: getattr(choice, name) for name in ("metric", "factor", "compare") if getattr(choice, name)}
        return self.model_copy(update={**own, "where": {**self.where, **choice.where}, "choice": [choice]})


@dataclass(frozen=True)
class QuestionDeclaration(DeclaredTable[QuestionTable]):
    """A question or a statement, and the cells that decide it.

    Attributes: named_levels: of the factor, to compare, the reference first; empty for all. range: where the number
        has to lie, in the metric's unit or as a ratio, an exponent. margin: of a ratio what is above 1; None without
        one.
    """

    scale: Scale = field(kw_only=True)
    yes: Yes = field(kw_only=True)
    range: Range = field(kw_only=True)
    margin: float | None = field(kw_only=True)

    @property
    def metric(self) -> str:
        """Its metric's name."""
        return self.table.metric

    @property
    def models(self) -> tuple[str, ...]:
        """Its model, if any."""
        return () if self.table.model is None else (self.table.model,)

    @property
    def summary(self) -> str:
        """Its line in `crosswind show`."""
        given = f", with {self.table.choice[0].given}" if self.table.choice else ""
        return self.table.asks or f"{self.table.says}{given} ({self.table.source})"

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As `crosswind.decisions.statement.Statement`, with `bound`, its margin's number."""
        own, table = self.where.among(cells), self.table
        return {
            "asks": table.asks or table.says,
            "source": table.source or "",
            "metric": table.metric,
            "statistic": "mean" if table.statistic == SHARE_STATISTIC else table.statistic,
            "scale": self.scale,
            "yes": self.yes,
            "factor": table.factor,
            "compare": [
                {"level": level.texts[str(table.factor)], "cells": indices_of(own, level)}
                for level in self.named_levels
            ],
            "low": self.range.low,
            "high": self.range.high,
            "inside": self.range.inside,
            "is_open": self.range.is_open,
            "margin": table.margin,
            "bound": self.margin,
            "model": table.model,
            "figure": table.figure,
            "note": table.note,
            "choice": table.choice[0].given if table.choice else "",
            "why_open": table.choice[0].reason if table.choice else "",
            "where": dict(self.where.texts),
            "cells": [cell.index for cell in own],
        }


def questions_of(reading: Reading) -> tuple[QuestionDeclaration, ...]:
    """A study's questions. Raises: FindingError, CellError."""
    titles = [str(getattr(figure, "title", "")) for figure in reading.tables.get("figure", ())]
    declared = tuple(
        _declared(given, number, place, reading, titles)
        for place, table in reading.of(QuestionTable, "question")
        for number, given in enumerate(_with_choices(table, place))
    )
    seen: dict[str, int] = {}
    for number, question in enumerate(declared):
        text = question.table.asks
        if text is not None and seen.setdefault(text, number) != number:
            raise FindingError(("question", number, "asks"), f"{shown(text)} is asked twice", "leave one of them out")
    return declared


def check_cells(question: QuestionDeclaration, cells: Callable[[], Sequence[Cell]]) -> None:
    """Refuses a question that no run of these cells could answer; of a statement, the report says so.

    Raises: DesignError.
    """
    place = question.place
    if question.table.asks is None:
        return
    matching = question.where.required(cells(), (*place, "where"))
    for at, level in enumerate(question.named_levels):
        if not any(level.matches(cell) for cell in matching):
            (factor, text), *_ = level.texts.items()
            there = ", ".join(_levels_of(factor, matching)) or "no level of it"
            raise DesignError((*place, "compare", at), f"no cell of the question has {factor} = {text}", there)
    metric = metric_of(question.metric, place)
    if not any(metric.applies(cell.workload) for cell in matching):
        message = f"no cell of the question has the metric {metric.name}: it is that of {metric.of_workloads}"
        raise DesignError((*place, "metric"), message, "ask for a metric of this workload")


def _levels_of(factor: str, cells: Iterable[Cell]) -> Iterator[str]:
    levels = dict.fromkeys(cell.levels[factor] for cell in cells if factor in cell.levels)
    if levels:
        yield f"levels there: {', '.join(levels)}"


def _with_choices(table: QuestionTable, place: Location) -> list[QuestionTable]:
    """The table itself, or one for each choice. Raises: FindingError for choices of a study's own question."""
    if not table.choice:
        return [table]
    if table.source is None:
        raise FindingError((*place, "choice"), "a study's own question leaves nothing open", "name the levels in where")
    if len(table.choice) > MOST_CHOICES:
        hint = "more are a study of their own"
        raise FindingError((*place, "choice"), f"a statement has at most {MOST_CHOICES} choices", hint)
    for number, choice in enumerate(table.choice):
        at: Location = (*place, "choice", number)
        for key in ("given", "reason"):
            text = getattr(choice, key)
            if not text.strip() or "\n" in text.strip():
                raise FindingError((*at, key), f"{shown(text)} is not a text of one line", "words for the report")
        if any(other.given == choice.given for other in table.choice[:number]):
            raise FindingError((*at, "given"), f"{shown(choice.given)} is there twice", "name each choice once")
        for key in choice.where.keys() & table.where.keys():
            message = f"{key} is set by the statement, and a choice adds to its where"
            raise FindingError((*at, "where"), message, "leave it out of one of them")
    return [table.given(choice) for choice in table.choice]


def _declared(
    table: QuestionTable, number: int, place: Location, reading: Reading, figures: Sequence[str]
) -> QuestionDeclaration:
    """A question, or a statement with one choice, to which its mistakes belong. Raises: FindingError, CellError."""
    try:
        return _question(table, place, reading, figures)
    except DesignError as error:
        key = error.location[len(place)] if len(error.location) > len(place) else ""
        own = table.choice[0].model_fields_set if table.choice else ()
        if key not in own:
            raise
        at = (*place, "choice", number, *error.location[len(place) :])
        raise FindingError(at, error.message, error.hint) from None


def _question(table: QuestionTable, place: Location, reading: Reading, figures: Sequence[str]) -> QuestionDeclaration:
    _check_sentence(table, place)
    metric = metric_of(table.metric, place)
    check_statistic(table.statistic, metric, place)
    where = where_of(table.where, (*place, "where"), reading.parts)
    if table.figure is not None and table.figure not in figures:
        hint = did_you_mean(table.figure, figures) if figures else "this study has no figure"
        raise FindingError((*place, "figure"), f"no figure has the title {shown(table.figure)}", hint)
    yes, scale, margin = _asked_for(table, metric, place)
    if (table.model is not None) != (scale in _OF_MODELS):
        message = f"the scale {scale} {'needs a model' if scale in _OF_MODELS else 'has no model'}"
        raise FindingError((*place, "model"), message, f"model = ... goes with the scales {' and '.join(_OF_MODELS)}")
    within = _within(table, metric, scale, place) if yes == "within" else None
    of_levels = range_of(yes, margin, is_ratio=scale == "ratio")
    levels: tuple[Where, ...] = ()
    if scale in OF_CELLS:
        _check_of_cells(table, scale, place)
    else:
        takes_all = yes in ("same", "different", "rises", "falls") or scale in OF_NEIGHBOURS
        _check_factor(table, scale, where, place, reading)
        levels = _compared(table, place, reading, takes_all=takes_all)
    return QuestionDeclaration(
        where=where,
        named_levels=levels,
        scale=scale,
        yes=yes,
        range=within or of_levels,
        margin=margin,
        place=place,
        table=table,
    )


def _check_sentence(table: QuestionTable, place: Location) -> None:
    """Raises: FindingError."""
    if table.source is not None:
        if table.says is None or table.asks is not None:
            message = "a statement of a document has says, and no asks"
            raise FindingError((*place, "says" if table.says is None else "asks"), message, "what the document says")
        return
    if table.says is not None:
        raise FindingError((*place, "source"), "says needs a source", "name the document, or write asks = a question")
    if table.asks is None:
        raise FindingError((*place, "asks"), "is missing", "write asks = ..., or source = ... and says = ...")
    check_asks(table.asks, place)


def _asked_for(table: QuestionTable, metric: Metric, place: Location) -> tuple[Yes, Scale, float | None]:
    """The condition for yes, the deciding number, and the margin. Raises: FindingError."""
    has_bounds = table.at_least is not None or table.at_most is not None
    yes = table.yes or ("within" if has_bounds else "more" if metric.more_is_better else "less")
    if yes == "within" and not has_bounds:
        raise FindingError((*place, "at_least"), "within needs at_least, at_most or both", 'as at_most = "5ms"')
    if yes != "within":
        unwanted = [key for key in ("at_least", "at_most") if getattr(table, key) is not None]
        if unwanted:
            raise FindingError((*place, unwanted[0]), f"{yes} has no {unwanted[0]}", "leave it out, or leave out yes")
    if table.margin is not None and yes in ("within", "rises", "falls"):
        raise FindingError((*place, "margin"), f"{yes} has no margin", "leave it out")
    if table.scale not in (None, "ratio", "difference") and yes != "within":
        message = f"a number of the scale {table.scale} is not {yes}"
        raise FindingError((*place, "yes"), message, "leave out yes, and write at_least or at_most")
    if yes == "same" and table.margin is None:
        hint = 'the smallest difference that matters, as "5ms" or "25%"'
        raise FindingError((*place, "margin"), "whether two levels are the same takes a margin", hint)
    scale = table.scale
    if scale in ("ratio", "exponent") and not metric.is_positive:
        message = f"{metric.name} may be 0 or less, of which there is no ratio"
        raise FindingError((*place, "scale"), message, 'write scale = "difference", or leave it out')
    if table.margin is None:
        return yes, scale or _usual_scale(table, metric), None
    is_ratio, margin = margin_of(table.margin, metric.unit, (*place, "margin"))
    if is_ratio and not metric.is_positive:
        message = f"{metric.name} may be 0 or less, of which there is no ratio"
        raise FindingError((*place, "margin"), message, f"a number and one of {metric.unit.written_in()}")
    own: Scale = "ratio" if is_ratio else "difference"
    if scale is not None and scale != own:
        message = f"{shown(table.margin)} is the margin of a {own}, and not of a {scale}"
        raise FindingError((*place, "margin"), message, "write another margin, or leave out scale")
    return yes, own, margin


def _usual_scale(table: QuestionTable, metric: Metric) -> Scale:
    if table.model is not None:
        return "model"
    if table.factor is None:
        return "value"
    return "ratio" if metric.is_positive else "difference"


def _check_of_cells(table: QuestionTable, scale: Scale, place: Location) -> None:
    """Raises: FindingError where a number of single cells names levels to compare."""
    for key in ("factor", "compare"):
        if getattr(table, key):
            message = f"the scale {scale} is of single cells, and compares no levels"
            raise FindingError((*place, key), message, f"leave out {key}, or write another scale")


def _check_factor(table: QuestionTable, scale: Scale, where: Where, place: Location, reading: Reading) -> None:
    """Raises: FindingError for a factor impossible for the number."""
    if table.factor is None:
        raise FindingError((*place, "factor"), "is missing", "the key of the factor whose levels are compared")
    check_factors({"factor": table.factor}, place, reading.parts, metric=metric_of(table.metric, place))
    check_fixed(table.factor, where, place)
    if scale in OF_NEIGHBOURS:
        check_numeric(table.factor, (*place, "factor"), f", of which there is a {scale}")


def _compared(table: QuestionTable, place: Location, reading: Reading, *, takes_all: bool) -> tuple[Where, ...]:
    """The compared levels. Args: takes_all: whether all are allowed. Raises: FindingError, CellError."""
    factor = str(table.factor)
    if len(table.compare) < 2 and (table.compare or not takes_all):
        have = "1 level" if table.compare else "no level"
        message = f"compare has {have}, and a comparison takes two"
        raise FindingError((*place, "compare"), message, "the reference first, then what is compared with it")
    sides: dict[Any, Where] = {}
    for number, level in enumerate(table.compare):
        at: Location = (*place, "compare", number)
        level_value = level_of(factor, level, at, reading.parts)
        if level_value.value_of(factor) in sides:
            raise FindingError(at, f"{level_value.texts[factor]} is compared with itself", "name each level once")
        sides[level_value.value_of(factor)] = level_value
    return tuple(sides.values())


def _within(table: QuestionTable, metric: Metric, scale: Scale, place: Location) -> Range:
    """The range from at_least to at_most. Raises: FindingError."""
    scales = {"1": 1.0} if scale in PLAIN else metric.unit.scales
    bounds = {"at_least": table.at_least, "at_most": table.at_most}
    low, high = (None if raw is None else _bound(raw, scales, (*place, key)) for key, raw in bounds.items())
    if low is not None and high is not None and low > high:
        raise FindingError((*place, "at_most"), f"at_least {table.at_least} is more than at_most", "exchange them")
    return Range(low, high)


def _bound(raw: BoundValue, scales: Mapping[str, float], place: Location) -> float:
    """A bound in the unit of results. Args: scales: units it may be written in, "1" for a plain number."""
    quantity = quantity_of(raw)
    # Zero is zero in every unit.
    if quantity is not None and quantity == (0.0, ""):
        return 0.0
    if quantity is None or (quantity[1] or "1") not in scales:
        known = ", ".join(name for name in scales if name != "1")
        raise FindingError(
            place,
            f"{shown(raw)} is not a bound of this number",
            f"a number and one of {known}" if known else "a number",
        )
    return quantity[0] * scales[quantity[1] or "1"]


assert set(NUMBERS) == set(get_args(Scale))


DECLARATION = Declaration(
    "question",
    QuestionTable,
    ("question or statement", "questions and statements"),
    questions_of,
    check_cells,
    may_be_left_out=True,
)
