"""Checks common to all kinds of finding's tables."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

from crosswind.catalog.factors import factor_scale
from crosswind.catalog.metrics import LOST, METRICS, SHARE_STATISTIC, Metric, metric_named
from crosswind.errors import did_you_mean
from crosswind.study.cells import Cell, Where, meaning_of
from crosswind.study.declared import MOST_CHARACTERS, AnyTable
from crosswind.study.errors import DesignError
from crosswind.study.keys import SETTINGS, table_of_key
from crosswind.study.levels import text_of
from crosswind.study.parts import Part
from crosswind.study.titles import filled_title
from crosswind.study.toml_text import Location
from crosswind.text.quantities import SHARE, Unit
from crosswind.text.units import NUMBER, shown

_QUANTITY = re.compile(rf"(?P<number>-?{NUMBER}) ?(?P<unit>\S*)")


class FindingError(DesignError):
    """A finding naming something unknown, or saying nothing."""


def quantity_of(text: str | float) -> tuple[float, str] | None:
    """The number and the unit of "5ms", "-3", 0.5; None where it is none."""
    match = _QUANTITY.fullmatch(str(text).strip())
    return None if match is None else (float(match["number"]), match["unit"])


def margin_of(text: str, unit: Unit, place: Location) -> tuple[bool, float]:
    """Whether a margin is a ratio's, and its number: in `unit` for a difference, the part above 1 for a ratio.

    Raises: FindingError.
    """
    quantity = quantity_of(text)
    change = None if quantity is None else unit.change(*quantity)
    if change is None:
        raise FindingError(place, f"{shown(text)} is not a margin", f"a number and one of {unit.written_in('%')}")
    is_ratio, margin = change
    if not 0 < margin < (1 if unit is SHARE else math.inf):
        raise FindingError(place, f"{shown(text)} is not a margin", "above 0, and of a share below 100%")
    return is_ratio, margin


def metric_of(name: str, place: Location) -> Metric:
    """The metric with a name, or the share of exchanges lost. Raises: FindingError."""
    metric = metric_named(name)
    if metric is None:
        hint = did_you_mean(name, [*METRICS, LOST.name])
        raise FindingError((*place, "metric"), f"{shown(name)} is not a metric", hint)
    return metric


def measured_metric(name: str, place: Location) -> Metric:
    """The same, for metrics with a value per exchange. Raises: FindingError."""
    if name not in METRICS:
        raise FindingError((*place, "metric"), f"{shown(name)} is not a metric", did_you_mean(name, METRICS))
    return METRICS[name]


def check_statistic(statistic: str, metric: Metric, place: Location) -> None:
    """Raises: FindingError for a quantile or a trimmed mean of a share, or of one value a repetition."""
    if statistic == SHARE_STATISTIC:
        if not metric.is_share:
            message = f"{metric.name} is not a share of exchanges"
            raise FindingError((*place, "statistic"), message, "it is compared by mean, median, p95, ...")
    elif statistic != "mean" and not metric.has_quantiles:
        message = f"{metric.name} has no {statistic} in a repetition"
        raise FindingError((*place, "statistic"), message, "it is compared by its mean")


def level_of(factor: str, level: object, place: Location, parts: Sequence[Part]) -> Where:
    """The cells at a factor's level. Raises: CellError."""
    return Where({factor: text_of(level)}, {factor: meaning_of(factor, level, place, parts)})


def check_asks(asks: str, place: Location) -> None:
    """Raises: FindingError for a text other than a question on one line."""
    text = asks.strip()
    if not text.endswith("?") or len(text) < 2:
        hint = "one sentence that ends with a question mark"
        raise FindingError((*place, "asks"), f"{shown(asks)} is not a question", hint)
    if len(asks) > MOST_CHARACTERS or "\n" in text:
        is_long = len(asks) > MOST_CHARACTERS
        message = f"the question has {len(asks)} characters" if is_long else "it has several lines"
        hint = f"one sentence of at most {MOST_CHARACTERS} characters, on one line"
        raise FindingError((*place, "asks"), message, hint)


def check_numeric(factor: str, place: Location, why: str = "") -> None:
    """Raises: FindingError for a factor without numbers. Args: place: with the key. why: numbers are needed."""
    if factor_scale(factor) is None:
        hint = "a key that is a time, a rate, a size or a share, as path.delay"
        raise FindingError(place, f"the levels of {factor} are no numbers{why}", hint)


def check_fixed(factor: str, where: Where, place: Location) -> None:
    """Raises: FindingError for a fixed compared factor."""
    if factor in where.texts:
        message = f"{factor} has one value only where {factor} = {where.texts[factor]}"
        raise FindingError((*place, "where"), message, "leave it out: the comparison is between its levels")


def check_factors(
    keys: Mapping[str, str], place: Location, parts: Sequence[Part], *, metric: Metric | None = None
) -> None:
    """Refuses impossible factors, two names for one axis, and those that a metric is not compared across.

    Raises: FindingError.
    """
    known = [key for key, setting in SETTINGS.items() if setting.type.can_vary] + (["part"] if len(parts) > 1 else [])
    seen: dict[str, str] = {}
    for name, key in keys.items():
        if key not in known and not (table_of_key(key) and key in SETTINGS and SETTINGS[key].type.can_vary):
            raise FindingError((*place, name), f"{shown(key)} is not a factor's key", did_you_mean(key, known))
        if key in seen:
            raise FindingError((*place, name), f"{shown(key)} is {seen[key]} already", "name another factor's key")
        seen[key] = name
        if metric is not None and key in metric.within:
            message = f"{metric.name} is of one {key} alone: TCP's handshake has no payload, and QUIC's has"
            raise FindingError((*place, "metric"), message, "total counts from asking for the connection")


@dataclass(frozen=True)
class DeclaredTable(Generic[AnyTable]):
    """A declared finding: its table, with its cells. named_levels: of its factor."""

    where: Where
    place: Location = field(repr=False)
    table: AnyTable = field(repr=False)
    named_levels: tuple[Where, ...] = ()

    @property
    def models(self) -> tuple[str, ...]:
        """The models to set beside its cells."""
        return tuple(getattr(self.table, "models", ()))

    @property
    def summary(self) -> str:
        """Its line in `crosswind show`."""
        return ""

    def as_dict(self, cells: Sequence[Cell]) -> dict[str, Any]:
        """As plain data, with its cells' indices among `cells`, and its title filled in from these."""
        matching = self.where.among(cells)
        return {
            **self.table.model_dump(exclude_none=True),
            "title": filled_title(getattr(self.table, "title"), matching),  # noqa: B009 -- who has none has its own form
            "where": dict(self.where.texts),
            "cells": [cell.index for cell in matching],
        }


def indices_of(cells: Iterable[Cell], where: Where) -> list[int]:
    """Some cells' indices among others."""
    return [cell.index for cell in where.among(cells)]
