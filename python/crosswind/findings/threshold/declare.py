"""`[[threshold]]`: when a run fails, as `crosswind.decisions.grammar` reads it."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import Field

from crosswind.catalog.metrics import SHARE_STATISTIC, Metric
from crosswind.decisions.grammar import EXAMPLE, GrammarError, Written, read_bound
from crosswind.errors import did_you_mean
from crosswind.findings.declared import FindingError, indices_of, metric_of
from crosswind.study.cells import Cell, Where, where_of
from crosswind.study.declared import Declaration, Reading
from crosswind.study.errors import DesignError
from crosswind.study.keys import SETTINGS
from crosswind.study.tables import TomlTable, WhereTable
from crosswind.study.toml_text import Location
from crosswind.text.units import shown

_SECTIONS = ("path", "workload", "host")
"""Sections to search for a key written by its last word."""


class ThresholdTable(TomlTable):
    """When the study fails: a number that is beyond a bound in some cell."""

    fail_if: str = Field(
        description='STATISTIC(METRIC) > BOUND, or <: "p95(rtt) > 200ms", "share(lost) > 1% where loss = 2%"'
    )
    where: WhereTable = Field(
        default_factory=dict, description="dotted keys (or part) and the value each has in the cells it is about"
    )
    note: str = ""


@dataclass(frozen=True)
class Threshold:
    """A study's failure condition.

    Attributes:
        statistic: in each cell; `share` is a share's mean. bound: in the metric's unit. above: whether it fails above
            the bound, or below it. at_bound: whether it fails at the bound itself too.
    """

    text: str
    metric: Metric
    statistic: str
    bound: float
    above: bool
    at_bound: bool
    where: Where
    place: Location = field(repr=False)
    table: ThresholdTable = field(repr=False)

    @property
    def summary(self) -> str:
        """Its line in `crosswind show`."""
        return self.text

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """The statement of a kept bound (crosswind.decisions.statement)."""
        return {
            "asks": self.text,
            "metric": self.metric.name,
            "statistic": "mean" if self.statistic == SHARE_STATISTIC else self.statistic,
            "scale": "value",
            "yes": "within",
            "low": None if self.above else self.bound,
            "high": self.bound if self.above else None,
            "is_open": self.at_bound,
            "note": self.table.note,
            "where": dict(self.where.texts),
            "cells": indices_of(cells, self.where),
        }


def declare_thresholds(reading: Reading) -> tuple[Threshold, ...]:
    """A study's thresholds. Raises: FindingError, CellError."""
    return tuple(_threshold(table, place, reading) for place, table in reading.of(ThresholdTable, "threshold"))


def check_cells(threshold: Threshold, cells: Callable[[], Sequence[Cell]]) -> None:
    """Refuses a threshold that is about no cell. Raises: DesignError."""
    place = (*threshold.place, "fail_if")
    matching = threshold.where.required(cells(), place)
    if not any(threshold.metric.applies(cell.workload) for cell in matching):
        message = f"no cell of it has the metric {threshold.metric.name}: it is that of {threshold.metric.of_workloads}"
        raise DesignError(place, message, "name a metric of this workload")


def _threshold(table: ThresholdTable, place: Location, reading: Reading) -> Threshold:
    at = (*place, "fail_if")
    try:
        written = read_bound(table.fail_if)
    except GrammarError as error:
        raise FindingError(at, f"{shown(table.fail_if)} {error.message}", error.hint) from None
    metric = metric_of(written.metric, at)
    if written.statistic not in metric.statistics:
        message = f"{metric.name} has no {written.statistic}"
        raise FindingError(at, message, f"it has {', '.join(metric.statistics)}, {EXAMPLE}")
    bound = metric.unit.amount(written.number, written.unit)
    if bound is None:
        message = f"{written.number}{written.unit} is not an amount of {metric.name}"
        raise FindingError(at, message, f"a number and one of {metric.unit.written_in()}")
    return Threshold(
        text=written.text,
        metric=metric,
        statistic=written.statistic,
        bound=bound,
        above=written.relation.startswith(">"),
        at_bound=written.relation.endswith("="),
        where=_where(written, table, place, reading),
        place=place,
        table=table,
    )


def _where(written: Written, table: ThresholdTable, place: Location, reading: Reading) -> Where:
    """Its cells. Raises: DesignError."""
    raw = {**table.where, **dict(_keys(written, (*place, "fail_if")))}
    if not written.where:
        return where_of(raw, (*place, "where"), reading.parts)
    try:
        return where_of(raw, (*place, "fail_if"), reading.parts)
    except DesignError as error:
        raise FindingError((*place, "fail_if"), error.message, error.hint) from None


def _keys(written: Written, place: Location) -> Iterator[tuple[str, str]]:
    """Its levels by dotted key: `loss` is `path.loss`. Raises: FindingError."""
    for word, level in written.where:
        metric = next((key for key in (word, *(f"{section}.{word}" for section in _SECTIONS)) if key in SETTINGS), None)
        if metric is None and word != "part":
            last_words = {key.partition(".")[2] for key in SETTINGS}
            raise FindingError(place, f"there is no key {shown(word)}", did_you_mean(word, last_words))
        yield metric or word, level


DECLARATION = Declaration("threshold", ThresholdTable, ("threshold", "thresholds"), declare_thresholds, check_cells)
