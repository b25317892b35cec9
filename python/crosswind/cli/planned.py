"""A study's plan as `crosswind plan` shows it: its runs, the forecast of each cell, and the same for programs."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

from crosswind.cell.check import CheckedCell
from crosswind.execution.planning import PlanCosts, runs_of
from crosswind.study.cells import Cell
from crosswind.study.design import Study
from crosswind.study.plan import Plan, PlanItem

SCHEMA = "crosswind.plan/1"


@dataclass(frozen=True)
class PlannedRuns:
    """A study's plan as it will be run.

    Attributes: runs: in order. checked: the cells by their index; empty without crosswind-cell.
    """

    study: Study
    runs: tuple[PlanItem, ...]
    checked: Mapping[int, CheckedCell]

    @classmethod
    def of(cls, plan: Plan, checked: Sequence[CheckedCell]) -> Self:
        """The plan, and crosswind-cell's answers for its cells."""
        return cls(plan.study, runs_of(plan, checked), {cell.cell.index: cell for cell in checked})

    @property
    def cells(self) -> list[Cell]:
        """The cells, ordered by first run."""
        return [item.cell for item in self.runs if item.repetition == 0]


def as_dict(planned: PlannedRuns, costs: PlanCosts | None, *, checked: str, order: bool) -> dict[str, Any]:
    """The plan as plain data, schema crosswind.plan/1. Args: checked: the check in words. order: list runs."""
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
                "clock": _clock(planned.checked.get(cell.index)),
                **_expected(planned.checked.get(cell.index)),
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
                **_expected(planned.checked.get(item.cell.index)),
            }
            for item in planned.runs
        ]
    return document


def _clock(checked: CheckedCell | None) -> str | None:
    return None if checked is None else "virtual" if checked.is_virtual else "real"


def _expected(checked: CheckedCell | None) -> dict[str, Any]:
    if checked is None:
        return {"exact": False}
    costs = checked.forecast
    return {
        "exact": checked.exact,
        "expected_ns": costs.duration_ns,
        "expected_packets": costs.packets,
        "expected_bytes": costs.bytes,
        "expected_load": costs.load,
        "undelayed": costs.undelayed,
    }
