"""The JSON Schema for study files, from the models in `document.py`.

It describes tables, keys, types and ranges. Only Crosswind checks rules over several keys, such as a UDP message's
size.
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
