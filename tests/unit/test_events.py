"""What a cell prints, as types: what is whole is read, what lacks something is refused with the reason."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from pydantic import TypeAdapter

from cell_events import FINISHED
from conftest import requires_binary
from crosswind.cell.events import Measured, Progress, ProtocolError, Ready, Started, read_event
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.result import FailureCount, Finished, ProgramEnd


def line(**event: Any) -> bytes:
    return json.dumps(event).encode()


def test_every_event_is_read_into_its_type() -> None:
    assert read_event(line(event="started", schema="crosswind.event/1", id="a")) == Started(id="a")
    assert read_event(line(event="ready", setup_ns=9)) == Ready(setup_ns=9)
    error = read_event(line(event="error", kind="disk", message="full", hint=None))
    assert error == Failure(ErrorKind.DISK, "full", None)
    progress = line(event="progress", done=1, total=4, lost=0, elapsed_ns=5, median_ns=None, fidelity=None)
    read = read_event(progress)
    assert isinstance(read, Progress)
    assert (read.fraction, read.fidelity) == (0.25, None)


def test_a_result_is_read_with_all_its_parts() -> None:
    outcomes = [{"outcome": "certificate", "count": 60, "first_error": "cannot connect: it has expired"}]
    samples = {"rows": 60, "ok": 0, "lost": 60, "outcomes": outcomes}
    read = read_event(line(**{**FINISHED, "samples": samples, "program": {"exit_code": None, "signal": 9}}))
    assert isinstance(read, Finished)
    assert read.samples.outcomes == (
        FailureCount(outcome="certificate", count=60, first_error="cannot connect: it has expired"),
    )
    assert read.program is not None
    assert (read.program.signal, read.program.ok) == (9, False)
    assert read.ledger.forward.in_ == 60
    assert read.ledger.forward.dropped == {"loss": 0, "queue": 0, "device": 0}
    assert read.fidelity is not None
    assert read.fidelity.cpus.emulator == (1,)


def test_a_result_is_stored_as_it_was_printed_with_what_is_not_known_here() -> None:
    newer = {**FINISHED, "weather": "fine", "samples": {**FINISHED["samples"], "late": [1]}}
    read = read_event(line(**newer))
    assert isinstance(read, Finished)
    assert read.as_json() == newer
    assert Finished.from_stored(read.as_json()) == read


def without(path: str) -> dict[str, Any]:
    """A result that lacks one key, given with its place."""
    result: dict[str, Any] = json.loads(json.dumps(FINISHED))
    *places, key = path.split(".")
    part = result
    for place in places:
        part = part[place]
    del part[key]
    return result


PLACES = (
    "id",
    "program",
    "samples.outcomes",
    "ledger.forward.in",
    "fidelity.budget.starvation",
    "readback.client.route",
)


@pytest.mark.parametrize("path", PLACES)
def test_a_result_that_lacks_something_breaks_the_protocol(path: str) -> None:
    with pytest.raises(ProtocolError, match=f"^its event 'finished' lacks {path}$"):
        read_event(line(**without(path)))


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (b"panic: garbage", "not JSON: 'panic: garbage'"),
        (b"\xff\xfe", "not JSON"),
        (b"[1]", "not an event: [1]"),
        (b'{"a": 1}', 'not an event: {"a": 1}'),
        (b'{"event": 1}', "not an event"),
        (line(event="started", schema="crosswind.event/2", id=""), "of schema 'crosswind.event/2', not 'crosswind"),
        (line(event="ready", setup_ns="9"), "its event 'ready' has setup_ns = '9': "),
        (line(event="ready", setup_ns=9.5), "its event 'ready' has setup_ns = 9.5: "),
        (line(event="error", kind="weather", message="", hint=None), "its event 'error' has kind = 'weather': "),
    ],
)
def test_what_is_no_event_is_refused_with_the_reason(text: bytes, reason: str) -> None:
    with pytest.raises(ProtocolError) as caught:
        read_event(text)
    assert reason in str(caught.value)


def test_an_event_of_a_newer_version_is_passed_over() -> None:
    assert read_event(line(event="weather", wind="cross")) is None


@pytest.mark.parametrize(
    ("done", "total", "fraction"), [(0, 10, None), (0, 0, None), (5, 0, None), (5, 10, 0.5), (11, 10, 1.0)]
)
def test_a_cell_says_how_far_it_is_once_something_is_done(done: int, total: int, fraction: float | None) -> None:
    now = Progress(done=done, total=total, lost=0, elapsed_ns=1, median_ns=None, fidelity=None)
    assert now.fraction == fraction


def test_only_exit_code_0_is_a_good_end_of_a_program() -> None:
    ends = [
        ProgramEnd(exit_code=0, signal=None),
        ProgramEnd(exit_code=1, signal=None),
        ProgramEnd(exit_code=None, signal=9),
    ]
    assert [end.ok for end in ends] == [True, False, False]


# What the cell says of its events itself


Schema = Mapping[str, Any]
EVENTS: dict[str, type] = {
    "started": Started,
    "ready": Ready,
    "progress": Progress,
    "measured": Measured,
    "finished": Finished,
    "error": Failure,
}


@pytest.fixture(scope="module")
def described() -> dict[str, Schema]:
    """The JSON Schema of every event, as `crosswind-cell --describe` prints it."""
    described = subprocess.run([requires_binary(), "--describe"], capture_output=True, text=True, check=True)
    return dict(json.loads(described.stdout)["events"])


@pytest.mark.parametrize("name", EVENTS)
def test_events_are_what_the_cell_says_that_they_are(described: dict[str, Schema], name: str) -> None:
    schema = TypeAdapter(EVENTS[name]).json_schema()
    assert list(differences(described[name], schema, schema.get("$defs", {}))) == []


def differences(printed: Schema, read: Schema, parts: Mapping[str, Schema], place: str = "") -> Iterator[str]:
    """Where what a cell prints by its own schema is not what is read.

    An object that is read by any keys, and a text that is read as any, take what is described more narrowly.
    """
    read = parts[read["$ref"].rpartition("/")[2]] if "$ref" in read else read
    printed = with_what_all_kinds_have(printed)
    if is_nullable(printed) != is_nullable(read):
        yield f"{place} may be null in one of the two only"
    printed, read = without_null(printed), without_null(read)
    read = parts[read["$ref"].rpartition("/")[2]] if "$ref" in read else read
    if kind_of(printed) != kind_of(read) and "anyOf" not in read:
        yield f"{place}: {kind_of(printed)} is read as {kind_of(read)}"
    elif kind_of(read) == "object" and "properties" in read:
        yield from differences_of_objects(printed, read, parts, place)
    elif kind_of(read) == "object":
        values = printed.get("properties", {}) or {"": printed["additionalProperties"]}
        for key, value in values.items():
            wider = read["additionalProperties"]
            yield from differences(value, wider if is_nullable(value) else without_null(wider), parts, f"{place}.{key}")
    elif kind_of(read) == "array":
        yield from differences(printed["items"], read["items"], parts, f"{place}[]")
    elif choices_of(read) and not choices_of(printed) <= choices_of(read):
        yield f"{place}: {choices_of(printed) - choices_of(read)} are not known"


def differences_of_objects(printed: Schema, read: Schema, parts: Mapping[str, Schema], place: str) -> Iterator[str]:
    for key in sorted(printed["properties"].keys() ^ read["properties"].keys()):
        yield f"{place}.{key} is in one of the two only"
    for key in sorted(printed["properties"].keys() & read["properties"].keys()):
        yield from differences(printed["properties"][key], read["properties"][key], parts, f"{place}.{key}")
    # The two that name an event have defaults, so that tests need not write them.
    needed = set(read.get("required", ())) | {"event", "schema"} & read["properties"].keys()
    for key in sorted(needed ^ set(printed["required"])):
        yield f"{place}.{key} is always there in one of the two only"


def with_what_all_kinds_have(schema: Schema) -> Schema:
    """An object of one of several kinds, each with properties of its own, by what it has whichever it is."""
    if schema.get("type") != "object" or "oneOf" not in schema:
        return schema
    kinds = schema["oneOf"]
    common = set.intersection(*(set(kind["required"]) for kind in kinds))
    shared = {key: value for key, value in kinds[0]["properties"].items() if key in common}
    whole = {key: value for key, value in schema.items() if key != "oneOf"}
    required = [*schema["required"], *sorted(common)]
    return {**whole, "properties": {**schema["properties"], **shared}, "required": required}


def is_nullable(schema: Schema) -> bool:
    return "null" in schema.get("type", ()) or any(kind.get("type") == "null" for kind in schema.get("anyOf", ()))


def without_null(schema: Schema) -> Schema:
    if isinstance(schema.get("type"), list):
        (kind,) = [kind for kind in schema["type"] if kind != "null"]
        return {**schema, "type": kind}
    kinds = [kind for kind in schema.get("anyOf", ()) if kind.get("type") != "null"]
    return kinds[0] if len(kinds) == 1 else {**schema, "anyOf": kinds} if kinds else schema


def kind_of(schema: Schema) -> str | None:
    return "string" if "oneOf" in schema else schema.get("type")


def choices_of(schema: Schema) -> set[str]:
    """The texts that it may be; empty where it may be any."""
    if "oneOf" in schema:
        return {choice["const"] for choice in schema["oneOf"]}
    return set(schema.get("enum", ())) | ({schema["const"]} if "const" in schema else set())


def test_a_field_that_only_one_of_the_two_knows_is_a_difference(described: dict[str, Schema]) -> None:
    schema = Progress.model_json_schema()
    without = json.loads(json.dumps(described["progress"]))
    del without["properties"]["done"]
    without["properties"]["lost"] = {"type": "string"}
    without["properties"]["fidelity"]["type"] = "object"
    assert list(differences(without, schema, schema["$defs"])) == [
        ".done is in one of the two only",
        ".fidelity may be null in one of the two only",
        ".lost: string is read as integer",
    ]
