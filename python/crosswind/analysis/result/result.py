"""The result of a run as JSON, schema `crosswind.result/1` (docs/result.md, docs/result.schema.json).

Fields may be added within version 1; none is removed or changes its meaning.
"""

import json
from typing import Any, Literal

from pydantic import Field

from crosswind.analysis.result.answers import Answer
from crosswind.analysis.result.cells import CellResult
from crosswind.analysis.result.checks import CheckResult
from crosswind.analysis.result.claims import ClaimResult
from crosswind.analysis.result.comparisons import EquivalenceClaim, LevelComparison, PublishedComparison
from crosswind.analysis.result.conditions import Conditions
from crosswind.analysis.result.estimates import ResultModel
from crosswind.analysis.result.figures import Figure
from crosswind.analysis.result.fits import Fit
from crosswind.analysis.result.model_errors import ModelErrors
from crosswind.analysis.result.programs import ClientProgram
from crosswind.analysis.result.thresholds import ThresholdResult
from crosswind.damage import Damage
from crosswind.precision import PrecisionReached

SCHEMA = "crosswind.result/1"


class Result(ResultModel):
    """Everything a report needs, without samples."""

    schema_: Literal["crosswind.result/1"] = Field(default="crosswind.result/1", alias="schema")
    study: str
    title: str
    answers: list[Answer] = Field(default=[])
    valid: bool
    complete: bool
    planned: int
    executed: int
    damaged: list[Damage] = Field(default=[])
    conditions: Conditions | None = None
    cells: list[CellResult]
    comparisons: list[LevelComparison]
    published: list[PublishedComparison]
    figures: list[Figure] = Field(default=[])
    fits: list[Fit] = Field(default=[])
    equivalences: list[EquivalenceClaim] = Field(default=[])
    model_errors: list[ModelErrors] = Field(default=[])
    precisions: list[PrecisionReached] = Field(default=[])
    claims: list[ClaimResult] = Field(default=[])
    checks: list[CheckResult] = Field(default=[])
    thresholds: list[ThresholdResult] = Field(default=[])
    peers: list[ClientProgram] = Field(default=[])
    notes: list[str]
    warnings: list[str]
    design: dict[str, Any]
    provenance: dict[str, Any]

    def to_json(self, *, indent: int | None = 2) -> str:
        """The result as JSON text, non-ASCII characters kept."""
        return json.dumps(self.model_dump(mode="json"), indent=indent, ensure_ascii=False, allow_nan=False)


def schema_text() -> str:
    """The JSON Schema of a result, as docs/result.schema.json holds it."""
    schema = Result.model_json_schema(mode="serialization")
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"
