"""Thresholds: what a number must not exceed, or fall below, in some of a study's cells.

    p95(rtt) > 200ms where path.loss = 2%, transport = tcp

is when the study fails. `crosswind.analysis.thresholds` decides whether it does.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from crosswind.metrics import LOST, METRICS, STATISTICS, Metric, metric_named
from crosswind.study.cells import Cell, Where, where_of
from crosswind.study.errors import DesignError
from crosswind.study.format import StudyDocument
from crosswind.study.keys import KINDS
from crosswind.study.levels import did_you_mean
from crosswind.study.parts import Part
from crosswind.study.presentation import PublishedError, indices_of
from crosswind.study.questions import SHARE_STATISTIC
from crosswind.study.report_tables import ThresholdTable
from crosswind.study.toml_text import Location
from crosswind.units import shown

EXAMPLE = 'as "p95(rtt) > 200ms" or "share(lost) > 1% where loss = 2%"'

_TEXT = re.compile(
    r"(?P<statistic>\w+) ?\( ?(?P<metric>\w+) ?\) *(?P<sign>[<>]=?) *"
    r"(?P<number>-?[0-9]{1,15}(\.[0-9]{1,15})?) ?(?P<unit>[^\s,]*)( +where +(?P<where>.+))?"
)
_SECTIONS = ("path", "workload", "host")
"""Where a key is looked for that is written by its last word."""


@dataclass(frozen=True)
class Threshold:
    """When a study fails.

    Attributes:
        statistic: of each cell; `share` is the mean of a share. bound: in the metric's unit. above: whether it fails
            above the bound, or below it. at_bound: whether it fails at the bound itself too.
    """

    text: str
    metric: Metric
    statistic: str
    bound: float
    above: bool
    at_bound: bool
    where: Where
    _table: ThresholdTable = field(repr=False)

    @property
    def table(self) -> ThresholdTable:
        """It as it was written."""
        return self._table

    def as_dict(self, cells: Iterable[Cell]) -> dict[str, Any]:
        """As plain data, with the indices of its cells among `cells`."""
        return {
            "fail_if": self.text,
            "metric": self.metric.name,
            "statistic": "mean" if self.statistic == SHARE_STATISTIC else self.statistic,
            "bound": self.bound,
            "above": self.above,
            "at_bound": self.at_bound,
            "note": self._table.note,
            "where": dict(self.where.texts),
            "cells": indices_of(cells, self.where),
        }


def thresholds_of(document: StudyDocument, parts: Sequence[Part]) -> tuple[Threshold, ...]:
    """The thresholds of a study. Raises: PublishedError, CellError."""
    return tuple(_threshold(table, ("threshold", number), parts) for number, table in enumerate(document.threshold))


def check_cells(thresholds: Sequence[Threshold], cells: Iterable[Cell], options: Collection[Location]) -> None:
    """Refuses a threshold that is about no cell.

    Levels that were set anew may leave one of a file without cells, of which the report says so. Args: options: places
    that options have set. Raises: DesignError.
    """
    asked = {location[:2] for location in options}
    every = list(cells) if thresholds else []
    for number, threshold in enumerate(thresholds):
        if options and ("threshold", number) not in asked:
            continue
        place: Location = ("threshold", number, "fail_if")
        own = threshold.where.required(every, place)
        if not any(threshold.metric.applies(cell.workload) for cell in own):
            message = (
                f"no cell of it has the metric {threshold.metric.name}: it is that of {threshold.metric.of_workloads}"
            )
            raise DesignError(place, message, "name a metric of this workload")


def _threshold(table: ThresholdTable, place: Location, parts: Sequence[Part]) -> Threshold:
    written = (*place, "fail_if")
    text = " ".join(table.fail_if.split())
    found = _TEXT.fullmatch(text)
    if found is None:
        raise PublishedError(written, f"{shown(table.fail_if)} is not a threshold", EXAMPLE)
    metric = metric_named(found["metric"])
    if metric is None:
        hint = did_you_mean(found["metric"], [*METRICS, LOST.name])
        raise PublishedError(written, f"{shown(found['metric'])} is not a metric", hint)
    able = _statistics_of(metric)
    if found["statistic"] not in able:
        message = f"{metric.name} has no {found['statistic']}"
        raise PublishedError(written, message, f"it has {', '.join(able)}, {EXAMPLE}")
    where = {**table.where, **dict(_conditions(found["where"] or "", written))}
    return Threshold(
        text=text,
        metric=metric,
        statistic=found["statistic"],
        bound=_bound(found["number"], found["unit"], metric, written),
        above=found["sign"].startswith(">"),
        at_bound=found["sign"].endswith("="),
        where=where_of(where, (*place, "where"), parts) if not found["where"] else _where(where, written, parts),
        _table=table,
    )


def _where(raw: dict[str, Any], written: Location, parts: Sequence[Part]) -> Where:
    """As `where_of`, of conditions that stand in a threshold's text. Raises: DesignError."""
    try:
        return where_of(raw, written, parts)
    except DesignError as error:
        raise PublishedError(written, error.message, error.hint) from None


def _statistics_of(metric: Metric) -> tuple[str, ...]:
    if metric.is_share:
        return (SHARE_STATISTIC,)
    return tuple(STATISTICS) if metric.has_quantiles else ("mean",)


def _bound(number: str, unit: str, metric: Metric, place: Location) -> float:
    """A bound in the metric's unit. Raises: PublishedError."""
    bound = metric.unit.amount(number, unit)
    if bound is None:
        known = ", ".join(name for name in metric.unit.scales if name != "1")
        raise PublishedError(place, f"{number}{unit} is not an amount of {metric.name}", f"a number and one of {known}")
    return bound


def _conditions(text: str, place: Location) -> Iterator[tuple[str, str]]:
    """The levels that a text names: "loss = 2%, transport = tcp". Raises: PublishedError."""
    for condition in re.split(r",| and ", text) if text else ():
        key, equals, level = (piece.strip() for piece in condition.partition("="))
        if not (key and equals and level):
            raise PublishedError(place, f"{shown(condition.strip())} is not key = level", EXAMPLE)
        yield _key(key, place), level


def _key(word: str, place: Location) -> str:
    """The dotted key that a word means: `loss` is `path.loss`. Raises: PublishedError."""
    found = next((key for key in (word, *(f"{section}.{word}" for section in _SECTIONS)) if key in KINDS), None)
    if found is None and word != "part":
        last_words = {key.partition(".")[2] for key in KINDS}
        raise PublishedError(place, f"there is no key {shown(word)}", did_you_mean(word, last_words))
    return found or word
