"""The built-in studies: they hold together, keep their time, and carry the published figures."""

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from crosswind import study_schema
from crosswind.plan import Plan
from crosswind.study import Study, builtin_studies, load_study
from crosswind.study_format import KINDS

ROOT = Path(__file__).parents[2]
NAMES = [name for name, _ in builtin_studies()]
SECOND_NS = 10**9


def duration_ns(study: Study) -> int:
    return sum(Plan.expected_ns(item) for item in Plan.of(study))


def published(name: str, *keys: str) -> dict[tuple[str, ...], float]:
    return {tuple(p.levels[key] for key in keys): p.mean for p in load_study(name).published}


def test_the_built_in_studies() -> None:
    assert NAMES == ["latency-by-link", "mathis", "quickstart", "transfer-time-zero-loss"]
    assert all(title for _, title in builtin_studies())


@pytest.mark.parametrize("name", NAMES)
def test_the_quick_variant_takes_less_than_a_minute(name: str) -> None:
    assert duration_ns(load_study(name).quick()) < 60 * SECOND_NS


def test_the_quick_start_leaves_room_for_slow_machines() -> None:
    assert duration_ns(load_study("quickstart")) < 40 * SECOND_NS


@pytest.mark.parametrize("name", NAMES)
def test_every_published_figure_stands_beside_a_cell(name: str) -> None:
    for variant in (load_study(name), load_study(name).quick()):
        cells = list(variant.cells())
        for figure in variant.published:
            is_left_out = variant.table.quick == {} and figure.levels.get("workload.size") == "1MB"
            assert is_left_out or any(figure.matches(cell) for cell in cells), figure


def test_published_times_of_latency_by_link() -> None:
    assert published("latency-by-link", "part", "path.delay") == {
        ("tcp", "0ms"): 1.9,
        ("tcp", "1.5ms"): 10.2,
        ("tcp", "5ms"): 29.0,
        ("tcp", "15ms"): 88.0,
        ("udp", "0ms"): 1.0,
        ("udp", "1.5ms"): 4.0,
        ("udp", "5ms"): 11.0,
        ("udp", "15ms"): 31.0,
    }
    figures = load_study("latency-by-link").published
    assert [figure.inferred for figure in figures] == [False] * 4 + [True] * 4
    assert [(figure.sd, figure.ci) for figure in figures[:4]] == [
        (3.51, 2.09),
        (0.46, 0.27),
        (1.21, 0.72),
        (0.43, 0.31),
    ]
    assert [figure.metric for figure in figures] == ["total"] * 4 + ["rtt"] * 4
    assert {figure.scale for figure in figures} == {1e6}


def test_latency_by_link_opens_a_connection_for_each_message() -> None:
    (cell,) = [c for c in load_study("latency-by-link").cells() if c.part == "tcp" and c.levels["path.delay"] == "5ms"]
    assert cell.parameters.workload.connection == "new"
    assert cell.parameters.path.family == "ipv6"
    assert cell.parameters.path.rtt_ns == 10_000_000


def test_mathis_impairs_the_forward_direction_only() -> None:
    cells = list(load_study("mathis").cells())
    assert len(cells) == 12
    assert {cell.parameters.path.rtt_ns for cell in cells} == {0, 200_000_000}
    assert {float(cell.parameters.path.forward.loss) for cell in cells} == {0.0, 0.1}
    assert {float(cell.parameters.path.reverse.loss) for cell in cells} == {0.0}
    assert published("mathis", "path.forward.loss") == {("0%",): 94, ("10%",): 2.88}
    figure = load_study("mathis").published[0]
    assert sum(figure.matches(cell) for cell in cells) == 3
    assert figure.mean * figure.scale == 94_000_000


def test_published_times_of_transfers_without_loss() -> None:
    figures = published("transfer-time-zero-loss", "path.delay", "path.rate", "workload.size")
    table_4 = [0.2310, 1.54, 5.69, 0.2090, 0.68, 1.79, 0.2040, 0.65, 1.75, 0.2040, 0.61, 1.70]
    table_5 = [0.0900, 1.43, 5.58, 0.0690, 0.542, 1.44, 0.0640, 0.511, 1.15, 0.0640, 0.399, 0.508]
    cells = [
        (delay, rate, size)
        for delay in ("50ms", "15ms")
        for rate in ("1.5mbit", "6mbit", "15mbit", "25mbit")
        for size in ("15kB", "256kB", "1MB")
    ]
    assert figures == dict(zip(cells, table_4 + table_5, strict=True))


def test_no_queue_can_drop_in_transfers_without_loss() -> None:
    for cell in load_study("transfer-time-zero-loss").cells():
        queue = cell.parameters.path.reverse.queue
        assert queue is not None
        # The whole transfer fits into the queue, so it cannot overflow.
        assert (queue.packets or 0) * 1448 >= (cell.parameters.workload.size_bytes or 0)


def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((ROOT / "docs/study.schema.json").read_text(encoding="utf-8"))
    return loaded


def test_the_published_schema_is_current() -> None:
    written = (ROOT / "docs/study.schema.json").read_text(encoding="utf-8")
    assert written == study_schema.schema_text(), "run: python -m crosswind.study_schema > docs/study.schema.json"


@pytest.mark.parametrize("name", NAMES)
def test_the_built_in_studies_fit_the_schema(name: str) -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    study = load_study(name)
    jsonschema.validate(study.document, schema())
    jsonschema.validate(tomllib.loads(study.to_toml()), schema())


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
    ],
)
def test_the_schema_refuses(document: dict[str, Any]) -> None:
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(document, schema())


def test_the_example_of_the_reference_is_a_study() -> None:
    text = (ROOT / "docs/study.md").read_text(encoding="utf-8")
    example = text.split("```toml\n")[1].split("```")[0]
    study = Study.from_toml(example, name="example")
    assert (len(study), len(Plan.of(study))) == (8, 24)


def test_the_reference_lists_every_key() -> None:
    text = (ROOT / "docs/study.md").read_text(encoding="utf-8")
    missing = [key for key in KINDS if f"`{key.rsplit('.', 1)[-1]}`" not in text]
    assert missing == []
