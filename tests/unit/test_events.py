"""What a cell prints, as types: what is whole is read, what lacks something is refused with the reason."""

import json
from typing import Any

import pytest

from cell_events import FINISHED
from crosswind.cell.events import (
    Error,
    ErrorKind,
    Finished,
    OutcomeCount,
    ProgramEnd,
    Progress,
    ProtocolError,
    Ready,
    Started,
    read_event,
)


def line(**event: Any) -> bytes:
    return json.dumps(event).encode()


def test_every_event_is_read_into_its_type() -> None:
    assert read_event(line(event="started", schema="crosswind.event/1", id="a")) == Started(id="a")
    assert read_event(line(event="ready", setup_ns=9)) == Ready(setup_ns=9)
    error = read_event(line(event="error", kind="disk", message="full", hint=None))
    assert error == Error(kind=ErrorKind.DISK, message="full", hint=None)
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
        OutcomeCount(outcome="certificate", count=60, first_error="cannot connect: it has expired"),
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


def test_a_stored_result_of_an_earlier_version_lacks_what_that_did_not_write() -> None:
    earlier = {key: value for key, value in FINISHED.items() if key not in ("program", "traffic", "profile")}
    earlier["samples"] = {"rows": 60, "ok": 60, "lost": 0}
    read = Finished.from_stored(earlier)
    assert (read.program, read.traffic, read.profile, read.samples.outcomes) == (None, None, None, ())
    with pytest.raises(ValueError, match="ledger"):
        Finished.from_stored({key: value for key, value in earlier.items() if key != "ledger"})


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
