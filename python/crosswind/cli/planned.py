"""A study's plan as `crosswind plan` shows it: its runs, the forecast of each cell, and the same for programs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from crosswind.cell.check import CheckedCell
from crosswind.execution.planning import PlanCosts, runs_of
from crosswind.forecast import Forecast
from crosswind.study.cells import Cell
from crosswind.study.design import Study
from crosswind.study.plan import Plan, PlanItem

SCHEMA = "crosswind.plan/1"


@dataclass(frozen=True)
class PlannedRuns:
    """A study's plan as it will be run.

    Attributes: runs: in order. each: the forecast of a run of each cell, by its index; empty without crosswind-cell.
        virtual: cells in virtual time. exact: those of them that come out the same every time, and run once.
        network: whether they run over a network that is really there.
    """

    study: Study
    runs: tuple[PlanItem, ...]
    each: Mapping[int, Forecast]
    virtual: frozenset[int]
    exact: frozenset[int]
    network: bool = False

    @classmethod
    def of(cls, plan: Plan, checked: Sequence[CheckedCell]) -> Self:
        """The plan, and what crosswind-cell says of its cells."""
        return cls(
            plan.study,
            runs_of(plan, checked),
            {cell.cell.index: cell.forecast for cell in checked},
            frozenset(cell.cell.index for cell in checked if cell.is_virtual),
            frozenset(cell.cell.index for cell in checked if cell.exact),
            any(cell.is_over_network for cell in checked),
        )

    @property
    def cells(self) -> list[Cell]:
        """The cells, in the order of their first runs."""
        return [item.cell for item in self.runs if item.repetition == 0]

    def clock(self, cell: int) -> str | None:
        """The clock of a cell; None where nobody could say what this machine allows."""
        if not self.each:
            return None
        return "virtual" if cell in self.virtual else "real"


def as_dict(planned: PlannedRuns, costs: PlanCosts | None, *, checked: str, order: bool) -> dict[str, Any]:
    """The plan as plain data, schema crosswind.plan/1. Args: checked: by whom. order: whether to list every run."""
    study = planned.study
    times = Counter(item.cell.index for item in planned.runs)
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "name": study.name,
        "title": study.title,
        "study_digest": study.digest(),
        "seed": study.seed,
        "repetitions": study.repetitions,
        "runs": len(planned.runs),
        "factors": {key: list(texts) for key, texts in study.factors.items()},
        "excluded": [exclusion.as_dict() for exclusion in study.exclusions],
        "checked": checked,
        "total": None if costs is None else asdict(costs),
        "cells": [
            {
                "cell": cell.index,
                "levels": dict(cell.levels),
                "runs": times[cell.index],
                "clock": planned.clock(cell.index),
                "exact": cell.index in planned.exact,
                **_expected(planned.each.get(cell.index)),
            }
            for cell in sorted(planned.cells, key=lambda cell: cell.index)
        ],
    }
    if order:
        document["order"] = [
            {
                "order": item.order,
                "key": item.key,
                "cell": item.cell.index,
                "repetition": item.repetition,
                "block": item.block,
                "seed": item.seed,
                "levels": dict(item.cell.levels),
                "exact": item.cell.index in planned.exact,
                **_expected(planned.each.get(item.cell.index)),
            }
            for item in planned.runs
        ]
    return document


def _expected(costs: Forecast | None) -> dict[str, Any]:
    if costs is None:
        return {}
    return {
        "expected_ns": costs.duration_ns,
        "expected_packets": costs.packets,
        "expected_bytes": costs.bytes,
        "expected_load": costs.load,
        "undelayed": costs.undelayed,
    }
