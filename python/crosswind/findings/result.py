"""A run's whole result: its cells' analysis, and the findings of every kind."""

import json
from functools import cache
from typing import Any

from pydantic import Field, create_model

from crosswind.analysis.result import SCHEMA, Result
from crosswind.findings.judged import judgings


@cache
def result_model() -> type[Result]:
    """The result's model, with a field for each kind of finding."""
    findings: dict[str, Any] = {}
    for judging in judgings():
        kind: Any = judging.result
        findings[judging.field] = (list[kind], Field(default=[]))
    return create_model("Result", __base__=Result, __doc__="Everything a report needs, without samples.", **findings)


def schema_text() -> str:
    """A result's JSON Schema."""
    schema = result_model().model_json_schema(mode="serialization")
    described = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": SCHEMA, **schema}
    return json.dumps(described, indent=2, ensure_ascii=False) + "\n"
