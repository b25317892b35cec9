"""The result of a run as JSON, schema `crosswind.result/1` (docs/result.md).

Fields may be added within version 1; none is removed or changes its meaning.
"""

import json
from typing import Any, Literal, TypeVar

from pydantic import Field

from crosswind.analysis.result.cells import CellResult
from crosswind.analysis.result.comparisons import LevelComparison
from crosswind.analysis.result.conditions import Conditions
from crosswind.analysis.result.flows import FlowResult
from crosswind.analysis.result.model_errors import ModelErrors
from crosswind.analysis.result.programs import ClientProgram
from crosswind.analysis.result.round_trips import RoundTrips
from crosswind.analysis.result.spent import SpentDifference
from crosswind.catalog.precision import PrecisionReached
from crosswind.catalog.warning import ResultWarning
from crosswind.decisions.interval import ResultModel
from crosswind.files.damage import Damage

SCHEMA = "crosswind.result/1"


Found = TypeVar("Found", bound=ResultModel)


class Result(ResultModel):
    """Everything a report needs, without samples. Each kind of finding has a field more (crosswind.findings)."""

    schema_: Literal["crosswind.result/1"] = Field(default="crosswind.result/1", alias="schema")
    study: str
    title: str
    valid: bool
    complete: bool
    planned: int
    executed: int
    damaged: list[Damage] = Field(default=[])
    conditions: Conditions | None = None
    cells: list[CellResult]
    comparisons: list[LevelComparison]
    spent: list[SpentDifference] = Field(default=[])
    round_trips: list[RoundTrips] = Field(default=[])
    flows: list[FlowResult] = Field(default=[])
    model_errors: list[ModelErrors] = Field(default=[])
    precisions: list[PrecisionReached] = Field(default=[])
    peers: list[ClientProgram] = Field(default=[])
    notes: list[str]
    left_out: list[str] = Field(default=[])
    warnings: list[ResultWarning]
    design: dict[str, Any]
    provenance: dict[str, Any]

    def of(self, kind: type[Found]) -> list[Found]:
        """The findings of a kind, by the model of each."""
        lists = (value for value in self.__dict__.values() if isinstance(value, list))
        return [finding for findings in lists for finding in findings if isinstance(finding, kind)]

    def to_json(self, *, indent: int | None = 2) -> str:
        """The result as JSON text, non-ASCII characters kept."""
        return json.dumps(self.model_dump(mode="json"), indent=indent, ensure_ascii=False, allow_nan=False)
