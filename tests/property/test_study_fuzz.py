"""Whatever stands in a study file, it is read or refused with a StudyError: never anything else."""

import json
import tomllib
from typing import Any

import jsonschema
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cells import checked
from crosswind.catalog import catalog
from crosswind.cell.spec import cell_json
from crosswind.errors import StudyError
from crosswind.study.design import Study
from crosswind.study.files import decode
from crosswind.study.keys import SETTINGS, WORKLOAD_KINDS
from crosswind.study.plan import Plan
from crosswind.study.schema import study_schema
from crosswind.study.toml_text import key_lines, write_toml

SCHEMA = jsonschema.Draft202012Validator(study_schema())

# A number out of its range is refused by crosswind-cell, when a study is planned: tests/unit/test_check.py.
WITHOUT_RANGES = jsonschema.validators.extend(
    jsonschema.Draft202012Validator, {"minimum": lambda *_: None, "maximum": lambda *_: None}
)(study_schema())
SCALARS = st.one_of(
    st.booleans(),
    st.integers(min_value=-(2**63), max_value=2**63 - 1),
    st.floats(),
    st.text(st.characters(codec="utf-8"), max_size=8),
    st.sampled_from(
        ["5%", "0%", "101%", "10ms", "-1ms", "1mbit", "0bit", "100p", "64kB", "unlimited", "tun", "direct", "ipv6"]
    ),
    st.sampled_from(["tcp", "udp", "echo", "transfer", "connect", "program", "open", "closed", "new", "reno", "", "0"]),
)
VALUES = st.one_of(SCALARS, st.lists(SCALARS, max_size=3), st.lists(st.lists(SCALARS, max_size=2), max_size=2))
WORDS = sorted(
    {word for key in SETTINGS for word in key.split(".")}
    | {"name", "levels", "where", "reason", "seed", "repetitions", "x y", ""}
)
TABLES = st.recursive(VALUES, lambda inner: st.dictionaries(st.sampled_from(WORDS), inner, max_size=4), max_leaves=12)
DOCUMENTS = st.dictionaries(
    st.sampled_from(
        [
            "title",
            "path",
            "host",
            "workload",
            "study",
            "budget",
            "report",
            "quick",
            "part",
            "published",
            "question",
            "exclude",
            "other",
        ]
    ),
    st.one_of(TABLES, st.lists(TABLES, max_size=3)),
    max_size=6,
)


def read_or_refused(text: str) -> Study | None:
    try:
        return Study.from_toml(text, name="fuzz", file="fuzz.toml")
    except StudyError as error:
        assert error.message.startswith("fuzz.toml")
        return None


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes(data: bytes) -> None:
    try:
        text = decode(data, "fuzz.toml")
    except StudyError:
        return
    read_or_refused(text)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="[]{}.=\"'#,\n\\ abc05%\t_-", max_size=80))
def test_texts_that_look_like_toml(text: str) -> None:
    read_or_refused(text)
    key_lines(text)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(DOCUMENTS)
def test_any_structure(document: dict[str, Any]) -> None:
    try:
        text = write_toml(document)
        if tomllib.loads(text) != document:
            return
    except (tomllib.TOMLDecodeError, AttributeError, TypeError):
        return
    study = read_or_refused(text)
    if study is not None:
        check_whole(study)


@st.composite
def plausible(draw: st.DrawFn) -> dict[str, object]:
    """Options most of which belong together, so that many of these studies are right."""
    options: dict[str, object] = {}
    some = {
        "path.delay": ["0ms", "10ms", ["1ms", "2ms"], ["1ms", "1000us"]],
        "path.loss": ["5%", 0.1, ["0%", "5%"], "100%"],
        "path.rate": ["1mbit", "unlimited", ["1mbit", "unlimited"]],
        "path.queue": ["10p", "64kB"],
        "path.family": ["ipv4", "ipv6", ["ipv4", "ipv6"]],
        "path.mtu": [576, 1280, 1500, [1000, 9000]],
        "path.backend": ["tun", "direct", ["tun", "direct"]],
        "path.forward.loss": ["1%", ["2%", "3%"]],
        "host.congestion_control": ["reno", ["reno", "cubic"]],
        "path.network": ["lan", ["localhost", "wan"], ["thesis-lo", "wifi-lossy"]],
        "workload.transport": ["tcp", "udp", ["tcp", "udp"], *catalog().transports, ["https1", "http3"]],
        "workload.size": [1, "64kB", [1, "66kB"], 200],
        "workload.resumption": ["session", ["none", "0-rtt"]],
        "workload.payload": ["text", ["binary", "text"]],
        "workload.polling": [True, [False, True]],
        "workload.stream": ["new", ["kept", "new"]],
        "workload.streams": [1, [2, 8]],
        "workload.direction": ["upload", ["echo", "download"]],
        "workload.images": [1, 3],
        "workload.html_size": ["10kB"],
        "workload.messages": [1, [10, 20]],
        "workload.mode": ["open", "closed", ["open", "closed"]],
        "workload.rate": [10, "5/s"],
        "workload.connection": ["new", "kept"],
        "workload.duration": ["1s"],
        "workload.count": [3],
        "workload.client": [["true"], [["true"], ["false"]], "ping {server}"],
        "study.repetitions": [1, 2, "3"],
        "study.seed": [0, 99],
    }
    for key in draw(st.lists(st.sampled_from(sorted(some)), unique=True, max_size=6)):
        options[key] = draw(st.sampled_from(some[key]))  # type: ignore[arg-type]
    return options


@settings(max_examples=400, deadline=None)
@given(st.sampled_from(WORKLOAD_KINDS), plausible())
def test_plausible_studies(kind: str, options: dict[str, object]) -> None:
    try:
        study = Study.adhoc(kind, options)
    except StudyError as error:
        assert names_a_place(error, options)
        return
    check_whole(study)


@settings(max_examples=100, deadline=None)
@given(st.sampled_from(WORKLOAD_KINDS), plausible())
def test_what_crosswind_cell_refuses_of_plausible_studies_names_a_place(kind: str, options: dict[str, object]) -> None:
    try:
        study = Study.adhoc(kind, options)
    except StudyError:
        return
    try:
        assert len(checked(study)) == len(study)
    except StudyError as error:
        assert names_a_place(error, options)


def names_a_place(error: StudyError, options: dict[str, object]) -> bool:
    """Whether the message begins with an option, or says that it is the whole command line."""
    return error.message.startswith(("command line", *(f"{key} " for key in options)))


@settings(max_examples=200, deadline=None)
@given(
    st.dictionaries(
        st.one_of(st.sampled_from(sorted(SETTINGS)), st.text(max_size=10)), st.text(max_size=12), max_size=3
    )
)
def test_any_override(overrides: dict[str, str]) -> None:
    try:
        study = Study.adhoc("echo", {"path.delay": "1ms"}).with_overrides(overrides)
    except StudyError as error:
        assert error.message
        return
    check_whole(study)


def check_whole(study: Study) -> None:
    """A study that was accepted fits the schema, can be planned, handed to cells, and read back."""
    WITHOUT_RANGES.validate(study.document)
    assert all(note.startswith("Network ") for note in study.network_notes)
    plan = Plan.of(study)
    assert len(plan) == len(study) * study.repetitions
    for item in plan.items[:20]:
        cell = cell_json(item.cell, study.budget)
        assert json.loads(json.dumps(cell)) == cell
        assert 0 <= cell["path"]["forward"].get("loss", 0) <= 1
    again = Study.from_toml(study.to_toml(), name=study.name)
    assert again.digest() == study.digest()


QUESTIONS = st.fixed_dictionaries(
    {
        "asks": st.sampled_from(["Is it so?", "It is.", "?", "", "a" * 300 + "?"]),
        "metric": st.sampled_from(["rtt", "lost", "goodput", "cpu_client", "delayed_share", "rt"]),
    },
    optional={
        "factor": st.sampled_from(["workload.transport", "path.loss", "workload.size", "part", "host.profile", "x"]),
        "compare": st.lists(
            st.sampled_from(["tcp", "udp", "0%", "5%", 0.05, 1, "1B", "64kB", True, "linux", ""]), max_size=4
        ),
        "statistic": st.sampled_from(["mean", "median", "p95", "share", "most"]),
        "yes": st.sampled_from(["less", "more", "different", "same", "within", "rises", "falls", "yes"]),
        "scale": st.sampled_from(["ratio", "difference", "value", "exponent", "slope", "model", "model-error"]),
        "source": st.sampled_from(["", "A paper, table 1"]),
        "says": st.sampled_from(["", "It is so."]),
        "at_least": st.sampled_from([0, 0.5, "5ms", "5 apples"]),
        "at_most": st.sampled_from([0, 2, "9ms", "9%"]),
        "model": st.sampled_from(["ping-pong", "ping"]),
        "margin": st.sampled_from(["5%", "5ms", "1kbit/s", "-1ms", "", "200%"]),
        "where": st.dictionaries(st.sampled_from(["path.loss", "workload.size", "part", "y"]), SCALARS, max_size=2),
        "figure": st.sampled_from(["", "Fig. 1"]),
    },
)


@settings(max_examples=400, deadline=None)
@given(st.lists(QUESTIONS, max_size=2))
def test_any_question(questions: list[dict[str, Any]]) -> None:
    levels = {"transport": ["tcp", "udp"], "size": [1, "64kB"], "kind": "echo"}
    document = {"path": {"loss": ["0%", "5%"]}, "workload": levels, "question": questions}
    try:
        study = Study.from_document(document, name="fuzz")
    except StudyError as error:
        assert error.hint
        return
    cells = list(study.cells())
    for question in study.findings["question"]:
        made = question.as_dict(cells)
        assert all(level["cells"] for level in made["compare"])


IN_ROWS = st.one_of(
    st.sampled_from(["tcp", "udp", "0%", "5%", 0.05, 1, "1B", 20, 20.5, "", True, "one run"]),
    st.dictionaries(st.sampled_from(["mean", "sd", "n", "note", "functions", "x"]), st.sampled_from([1, 1.5, "a", ""])),
)
COLUMNS = st.sampled_from(
    ["workload.transport", "path.loss", "part", "mean", "sd", "n", "inferred", "note", "x", "",
     {"workload.size": [1, "64kB"]}, {"path.loss": ["0%", "7%"]}, {"mean": [1]}, {"path.loss": []}, {}]
)  # fmt: skip
PUBLISHED = st.fixed_dictionaries(
    {"source": st.just("s"), "metric": st.sampled_from(["rtt", "goodput"]), "unit": st.sampled_from(["ms", "x"])},
    optional={
        "columns": st.lists(COLUMNS, max_size=4),
        "rows": st.lists(st.lists(IN_ROWS, max_size=5), max_size=3),
        "levels": st.dictionaries(st.sampled_from(["path.loss", "workload.size", "y"]), SCALARS, max_size=2),
        "mean": st.just(1.5),
        "n": st.just(5),
        "says": st.just("It is"),
        "given": st.sampled_from([{"a": {}}, {"a": {"path.loss": "0%"}}, {"a": [1, 2]}]),
        "value": st.sampled_from(["count(a)", "a / 0", "b"]),
        "what": st.just("it"),
        "at_most": st.just(1),
    },
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PUBLISHED, max_size=2))
def test_any_table_of_published_numbers(tables: list[dict[str, Any]]) -> None:
    levels = {"transport": ["tcp", "udp"], "size": [1, "64kB"], "kind": "echo"}
    document = {"path": {"loss": ["0%", "5%"]}, "workload": levels, "published": tables}
    try:
        study = Study.from_document(document, name="fuzz")
    except StudyError as error:
        assert error.message
        return
    SCHEMA.validate(study.document)
    again = Study.from_toml(study.to_toml(), name="fuzz")
    cells = list(study.cells())
    made = [number.as_dict(cells) for number in study.findings["published"]]
    assert [number.as_dict(cells) for number in again.findings["published"]] == made
