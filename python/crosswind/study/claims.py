"""Statements of documents, each with the rule by which the data decide whether it holds.

The rules are few and closed, so that a verdict is computed and never chosen. Each says which number of the cells has
to lie in which range (`RULES`); `crosswind.analysis.claims` applies them.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from crosswind.factors import factor_scale
from crosswind.metrics import METRICS
from crosswind.study.cells import Cell, Where, meaning_of, where_of
from crosswind.study.format import StudyDocument
from crosswind.study.levels import text_of
from crosswind.study.parts import Part
from crosswind.study.presentation import PublishedError, check_factors, check_metric, indices_of, margin_of
from crosswind.study.report_tables import ClaimTable
from crosswind.study.toml_text import Location
from crosswind.units import shown

_QUANTITY = re.compile(r"(?P<number>-?[0-9]{1,15}(\.[0-9]{1,15})?) ?(?P<unit>\S*)")


class Limits(Enum):
    """How the range of a rule is written."""

    QUANTITIES = "at_least and at_most, in units of the metric"
    NUMBERS = "at_least and at_most, as numbers"
    MARGIN = "margin"
    NONE = "nothing"


@dataclass(frozen=True)
class Rule:
    """One rule.

    Attributes:
        help: which number has to lie in the range for a statement to hold. limits: how the range is written.
        levels: the least and the most levels of a factor that it compares; None for a rule without a factor.
        needs_numbers: whether those levels have to be numbers. needs_model: whether it compares with a model.
    """

    help: str
    limits: Limits
    levels: tuple[int, int | None] | None = (2, None)
    needs_numbers: bool = False
    needs_model: bool = False


RULES: Mapping[str, Rule] = {
    "value": Rule("the statistic of every cell", Limits.QUANTITIES, levels=None),
    "model": Rule(
        "of every cell, the statistic divided by what `model` predicts", Limits.NUMBERS, levels=None, needs_model=True
    ),
    "model-error": Rule(
        "over all cells together, the mean of |predicted / measured - 1|, by what `model` predicts",
        Limits.NUMBERS,
        levels=None,
        needs_model=True,
    ),
    "ratio": Rule("the second level divided by the first", Limits.NUMBERS, levels=(2, 2)),
    "difference": Rule("the second level less the first", Limits.QUANTITIES, levels=(2, 2)),
    "equivalent": Rule("of every two levels, the difference or ratio: within `margin`", Limits.MARGIN),
    "differs": Rule("of every two levels, the difference or ratio: beyond `margin`", Limits.MARGIN),
    "rises": Rule("each level divided by the next smaller one: above 1", Limits.NONE),
    "falls": Rule("each level divided by the next smaller one: below 1", Limits.NONE),
    "power-law": Rule(
        "the exponent k between each two neighbouring levels, where the statistic is proportional to level^k",
        Limits.NUMBERS,
        needs_numbers=True,
    ),
    "slope": Rule(
        "between each two neighbouring levels, by how much the statistic grows for each ms (of path.delay, there and "
        "back), %, Mbit/s or byte",
        Limits.QUANTITIES,
        needs_numbers=True,
    ),
}  # fmt: skip
"""Every rule by its name."""


@dataclass(frozen=True)
class Claim:
    """One statement, its rule, and the cells that decide it.

    Attributes:
        compare: the levels of the factor to compare, the reference first; empty for all of them. low, high: the range,
            in the metric's unit or as a ratio, an exponent; None where it has no such end. is_ratio: of a margin,
            whether it is one of ratios.
    """

    where: Where
    compare: tuple[Where, ...]
    low: float | None
    high: float | None
    is_ratio: bool
    _table: ClaimTable = field(repr=False)

    @property
    def table(self) -> ClaimTable:
        """It as it was written."""
        return self._table

    @property
    def models(self) -> tuple[str, ...]:
        """The model that it names, if any."""
        return () if self._table.model is None else (self._table.model,)

    def as_dict(self, cells: Iterable[Cell]) -> dict[str, Any]:
        """As plain data, with the indices of its cells among `cells`, and of those of each compared level."""
        own = self.where.among(cells)
        plain = self._table.model_dump(exclude_none=True, exclude={"compare", "at_least", "at_most"})
        compare = [
            {"level": next(iter(level.texts.values())), "cells": indices_of(own, level)} for level in self.compare
        ]
        limits = {"low": self.low, "high": self.high, "is_ratio": self.is_ratio}
        cells_of_it = {"cells": [cell.index for cell in own], "compare": compare}
        return {**plain, **limits, "where": dict(self.where.texts), **cells_of_it}


def claims_of(document: StudyDocument, parts: Sequence[Part]) -> tuple[Claim, ...]:
    """The claims of a study. Raises: PublishedError, CellError."""
    return tuple(_claim(table, ("claim", number), parts) for number, table in enumerate(document.claim))


def _claim(table: ClaimTable, place: Location, parts: Sequence[Part]) -> Claim:
    check_metric(table.metric, place)
    rule = RULES[table.rule]
    where = where_of(table.where, (*place, "where"), parts)
    compare = _compared(table, rule, where, place, parts)
    if (table.model is not None) != rule.needs_model:
        message = f"the rule {table.rule} {'needs a model' if rule.needs_model else 'has no model'}"
        raise PublishedError((*place, "model"), message, "model = ... goes with the rules model and model-error")
    low, high, is_ratio = _range(table, rule, place)
    return Claim(where, compare, low, high, is_ratio, table)


def _compared(table: ClaimTable, rule: Rule, where: Where, place: Location, parts: Sequence[Part]) -> tuple[Where, ...]:
    """The levels that are compared. Raises: PublishedError, CellError."""
    if rule.levels is None:
        if table.factor is not None or table.compare:
            key = "factor" if table.factor is not None else "compare"
            raise PublishedError((*place, key), f"the rule {table.rule} compares no levels", f"leave out {key}")
        return ()
    if table.factor is None:
        raise PublishedError((*place, "factor"), f"the rule {table.rule} needs a factor", "name a factor's key")
    check_factors({"factor": table.factor}, place, parts)
    if table.factor in where.texts:
        message = f"{table.factor} has one value only where {table.factor} = {where.texts[table.factor]}"
        raise PublishedError((*place, "where"), message, "leave it out: its levels are what is compared")
    if rule.needs_numbers and factor_scale(table.factor) is None:
        message = f"the levels of {table.factor} are no numbers for the rule {table.rule}"
        raise PublishedError(
            (*place, "factor"), message, "a key that is a time, a rate, a size or a share, as path.delay"
        )
    fewest, most = rule.levels
    if (most is not None and len(table.compare) != most) or 0 < len(table.compare) < fewest:
        message = f"compare has {len(table.compare)} levels, the rule {table.rule} needs {most or f'{fewest} or more'}"
        raise PublishedError((*place, "compare"), message, "the reference first, then what is compared with it")
    names = [part.name for part in parts if part.name]
    found = []
    for number, level in enumerate(table.compare):
        value = meaning_of(table.factor, level, (*place, "compare", number), names)
        found.append(Where({table.factor: text_of(level)}, {table.factor: value}))
    return tuple(found)


def _range(table: ClaimTable, rule: Rule, place: Location) -> tuple[float | None, float | None, bool]:
    """The range of a claim, and whether it is one of ratios. Raises: PublishedError."""
    bounds = {"at_least": table.at_least, "at_most": table.at_most}
    has_bounds = rule.limits in (Limits.QUANTITIES, Limits.NUMBERS)
    unwanted = [key for key, value in bounds.items() if value is not None and not has_bounds]
    unwanted += ["margin"] if table.margin is not None and rule.limits is not Limits.MARGIN else []
    if unwanted:
        message = f"the rule {table.rule} has no {unwanted[0]}"
        raise PublishedError((*place, unwanted[0]), message, f"it takes {rule.limits.value}")
    unit = METRICS[table.metric].unit
    if rule.limits is Limits.MARGIN:
        if table.margin is None:
            raise PublishedError((*place, "margin"), f"the rule {table.rule} needs a margin", 'as "5ms" or "25%"')
        is_ratio, margin = margin_of(table.margin, unit, (*place, "margin"))
        return (1 / (1 + margin), 1 + margin, True) if is_ratio else (-margin, margin, False)
    if rule.limits is Limits.NONE:
        return (1.0, None, True) if table.rule == "rises" else (None, 1.0, True)
    if table.at_least is None and table.at_most is None:
        raise PublishedError((*place, "at_least"), f"the rule {table.rule} needs at_least, at_most or both", None)
    scales = unit.scales if rule.limits is Limits.QUANTITIES else {"1": 1.0}
    low, high = (None if value is None else _bound(value, scales, (*place, key)) for key, value in bounds.items())
    if low is not None and high is not None and low > high:
        raise PublishedError((*place, "at_most"), f"at_least {table.at_least} is more than at_most", "exchange them")
    return low, high, rule.limits is Limits.NUMBERS


def _bound(raw: str | float, scales: Mapping[str, float], place: Location) -> float:
    """A bound in the unit of results. Args: scales: units it may be written in, "1" for a plain number."""
    found = _QUANTITY.fullmatch(str(raw).strip())
    unit = (found["unit"] or "1") if found is not None else ""
    # Zero is zero in every unit.
    if found is not None and float(found["number"]) == 0 and not found["unit"]:
        return 0.0
    if found is None or unit not in scales:
        known = ", ".join(name for name in scales if name != "1")
        hint = f"a number and one of {known}" if known else "a number"
        raise PublishedError(place, f"{shown(raw)} is not a bound of this rule", hint)
    return float(found["number"]) * scales[unit]
