"""How long cells are measured: until an interval is as narrow as a study asks, or the most repetitions are reached.

An interval is looked at after the first repetitions, and then each time there are a quarter more. Few looks widen it
less than many, and between two looks cells can run side by side.
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crosswind.catalog.metrics import METRICS, STATISTICS, Metric, Per
from crosswind.errors import did_you_mean
from crosswind.study.cells import Cell, RepetitionLimit, Where, repetitions_of, where_of
from crosswind.study.errors import DesignError
from crosswind.study.format import DesignDocument, PrecisionTable
from crosswind.study.parts import Part
from crosswind.study.toml_text import Location
from crosswind.text.quantities import SHARE, Unit
from crosswind.text.units import NUMBER, shown

FIRST_LOOK = 5
"""Repetitions before an interval is looked at, at least: fewer show too little of how much they spread."""
STEP = 4
"""A look follows when there is one more repetition for every so many."""

_TARGET = re.compile(rf"(?P<number>{NUMBER}) ?(?P<unit>\S*)")


@dataclass(frozen=True)
class Precision:
    """A target half-width for an interval, in some cells.

    Attributes:
        metric: None for each workload's main one. statistic: per repetition; its mean has the interval.
        is_relative: whether `target` is a share of the mean; else it is in the metric's unit.
    """

    metric: str | None
    statistic: str
    where: Where
    is_relative: bool
    target: float
    _table: PrecisionTable = field(repr=False)

    @property
    def text(self) -> str:
        """The target as written."""
        return self._table.target

    def metric_of(self, cell: Cell) -> str | None:
        """The metric in a cell; None where its workload has none to compare by."""
        return self.metric or main_metric(cell.workload)

    def as_dict(self, cells: Sequence[Cell]) -> list[dict[str, Any]]:
        """As plain data, once for each metric, with the indices of its cells among `cells`."""
        by_metric: dict[str, list[int]] = {}
        for cell in cells:
            metric = self.metric_of(cell)
            if metric is not None and self.where.matches(cell):
                by_metric.setdefault(metric, []).append(cell.index)
        given = {"statistic": self.statistic, "is_relative": self.is_relative, "bound": self.target}
        return [{"metric": m, **given, "target": self._table.target, "cells": own} for m, own in by_metric.items()]


def main_metric(workload: Mapping[str, object]) -> str | None:
    """The first metric for comparing levels in a workload, given by its settings."""
    return common_metric([workload])


def common_metric(workloads: Iterable[Mapping[str, object]]) -> str | None:
    """The first metric for comparing levels in all of some workloads."""
    of = list(workloads)
    return next(
        (
            name
            for name, metric in METRICS.items()
            if all(workload["kind"] in metric.compared_in and metric.applies(workload) for workload in of)
        ),
        None,
    )


def look_schedule(first: int, most: int) -> tuple[int, ...]:
    """Repetitions at each look, from the first to the last."""
    looks = [min(first, most)]
    while looks[-1] < most:
        looks.append(min(most, looks[-1] + max(1, looks[-1] // STEP)))
    return tuple(looks)


def looks_of(
    cell: Cell, precisions: Sequence[Precision], *, repetitions: int, most: int, limits: Sequence[RepetitionLimit]
) -> tuple[int, ...]:
    """Repetitions at each look at a cell's intervals; empty without a precision.

    Args: repetitions: at the first look. most: maximum. limits: cells with fewer repetitions.
    """
    if not any(precision.where.matches(cell) and precision.metric_of(cell) for precision in precisions):
        return ()
    return look_schedule(max(repetitions, FIRST_LOOK), repetitions_of(cell, most, limits))


def precisions_of(document: DesignDocument, parts: Sequence[Part]) -> tuple[Precision, ...]:
    """A study's precisions. Raises: DesignError."""
    precisions = tuple(
        _precision(table, ("precision", number), parts) for number, table in enumerate(document.precision)
    )
    table = document.study
    if not precisions and table.repetitions_max is not None:
        message = "study.repetitions_max has no effect without a precision"
        raise DesignError(
            ("study", "repetitions_max"), message, 'add [[precision]] with target = "5%", or --precision 5%'
        )
    first = max(table.repetitions, FIRST_LOOK)
    if precisions and most_repetitions(document) < first:
        message = f"{most_repetitions(document)} repetitions are fewer than the {first} of the first look"
        raise DesignError(
            ("study", "repetitions_max"), message, f"at least {first}; an interval needs some repetitions"
        )
    return precisions


def most_repetitions(document: DesignDocument) -> int:
    """Maximum repetitions for a precision: 100, unless set.

    100 repetitions narrow a mean's interval to 5 % for a standard deviation of 20 %.
    """
    given = document.study.repetitions_max
    return max(100, document.study.repetitions) if given is None else given


def _precision(table: PrecisionTable, place: Location, parts: Sequence[Part]) -> Precision:
    where = where_of(table.where, (*place, "where"), parts)
    meant = [part for part in parts if where.texts.get("part", part.name) == part.name]
    kinds = {part.kind for part in meant}
    usual = {name for part in meant for workload in part.workloads if (name := main_metric(workload))}
    names = sorted(usual) if table.metric is None else [table.metric]
    if not names:
        raise DesignError(place, "the workload has no metric that can have a precision", "remove [[precision]]")
    targets = set()
    for name in names:
        if name not in METRICS:
            raise DesignError((*place, "metric"), f"{shown(name)} is not a metric", did_you_mean(name, METRICS))
        metric = METRICS[name]
        if metric.needs_others:
            message = f"{name} of one repetition depends on the others, so it cannot have a precision"
            raise DesignError((*place, "metric"), message, "ask for the precision of another metric")
        if table.metric is not None and metric.workloads is not None and not kinds & set(metric.workloads):
            message = f"no cell has the metric {name}: it is that of {metric.of_workloads}"
            raise DesignError((*place, "metric"), message, "ask for the precision of a metric of this workload")
        _check_statistic(table.statistic, metric, place)
        targets.add(_target(table.target, metric.unit, place))
    if len(targets) > 1:
        message = f"{shown(table.target)} means different things for {' and '.join(names)}"
        raise DesignError(
            (*place, "target"), message, "write one [[precision]] with its metric for each, or a percentage"
        )
    is_relative, target = targets.pop()
    return Precision(table.metric, table.statistic, where, is_relative, target, table)


def _check_statistic(statistic: str, metric: Metric, place: Location) -> None:
    known = [name for name, row in STATISTICS.items() if name == "mean" or row.quantile is not None]
    if statistic not in known:
        raise DesignError((*place, "statistic"), f"{shown(statistic)} is not a statistic", f"one of {', '.join(known)}")
    if statistic != "mean" and metric.per not in (Per.EXCHANGE, Per.REPORTED):
        message = f"{metric.name} has one value a repetition, and no {statistic} of it"
        raise DesignError((*place, "statistic"), message, 'write statistic = "mean"')


def _target(text: str, unit: Unit, place: Location) -> tuple[bool, float]:
    """Whether a target is relative, and its number."""
    amount = _TARGET.fullmatch(text.strip())
    change = None if amount is None else unit.change(amount["number"], amount["unit"])
    if change is None:
        hint = f'half the width of an interval: "5%" of it, or one of {unit.written_in("%")}'
        raise DesignError((*place, "target"), f"{shown(text)} is not a precision", hint)
    is_relative, target = change
    if not 0 < target < (1 if is_relative or unit is SHARE else math.inf):
        raise DesignError((*place, "target"), f"{shown(text)} is not a precision", "above 0, and below 100 %")
    return is_relative, target
