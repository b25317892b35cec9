"""The JSON Schema of study files: current, and neither stricter nor looser than the studies that there are."""

import tomllib
from typing import Any

import jsonschema
import pytest

from crosswind.study.files import builtin_names, load_study
from crosswind.study.schema import study_schema

NAMES = builtin_names()


# Checked once: `jsonschema.validate` would check the schema each time, which takes longer than to check a study.
SCHEMA: dict[str, Any] = study_schema()
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def test_the_schema_is_one() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)


@pytest.mark.parametrize("name", NAMES)
def test_the_built_in_studies_fit_the_schema(name: str) -> None:
    study = load_study(name)
    VALIDATOR.validate(study.document)
    VALIDATOR.validate(tomllib.loads(study.to_toml()))


@pytest.mark.parametrize(
    "document",
    [
        {"path": {"los": "1%"}},
        {"path": {"loss": []}},
        {"path": {"loss": "5ms"}},
        {"path": {"delay": 5}},
        {"path": {"mtu": 500}},
        {"workload": {"kind": ["echo", "connect"]}},
        {"workload": {"size": [1, 1]}},
        {"study": {"repetitions": 0}},
        {"part": [{}]},
        {"repetitions": [{"at_most": 5}]},
        {"claim": [{"says": "It is.", "metric": "rtt", "rule": "rises"}]},
        {"question": [{"asks": "Is it?", "metric": "rtt", "yes": "equivalent"}]},
        {"published": [{"source": "s", "metric": "rtt", "unit": "ms", "rows": [[["0%"]]]}]},
        {"published": [{"source": "s", "metric": "rtt", "unit": "ms", "rows": [[{"note": "no mean"}]]}]},
        {"published": [{"source": "s", "metric": "rtt", "unit": "ms", "columns": [{"path.loss": "0%"}]}]},
        {"figure": [{"title": "t", "metric": "rtt", "x": "path.loss", "scale": "cubic"}]},
        {"fit": [{"title": "t", "model": "line", "metric": "rtt", "x": "path.loss", "by": "a", "over": "b"}]},
    ],
)
def test_the_schema_refuses(document: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        VALIDATOR.validate(document)
