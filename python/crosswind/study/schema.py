"""The JSON Schema of a study file, generated from the models of `document.py`.

It describes tables, keys, kinds and ranges. What depends on several keys, such as a UDP message that does not fit, only
Crosswind itself checks.
"""

import json
from typing import Any

from crosswind.study.document import StudyDocument


def study_schema() -> dict[str, Any]:
    """The schema, as JSON data (draft 2020-12)."""
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:crosswind:study:1",
        **StudyDocument.model_json_schema(),
    }


def schema_text() -> str:
    """The schema as text."""
    return json.dumps(study_schema(), indent=2, ensure_ascii=False) + "\n"
