"""Client programs: what they print, by numbers computed by hand; how they ended; what is not understood."""

import json
from typing import Any

from crosswind.cell.record import CellRun
from crosswind.findings.pipeline import analyse
from records import MS, counts_of, finished, record, run, table, texts

PROGRAM = {"workload": {"kind": "program", "client": ["{python}"], "server": None}}
ENDED = "the client program ended with exit status 2"


def report(seconds: object, messages: int, *functions: tuple[str, int, float], **changes: Any) -> str:
    listed = [{"name": name, "calls": calls, "own_s": own_s} for name, calls, own_s in functions]
    return json.dumps({"seconds": seconds, "messages": messages, "functions": listed, "version": "1.9"} | changes)


def program(
    out: str, *, cell: int = 0, repetition: int = 0, part: str = "slow", said: str | None = None, took_ns: int = 7 * MS
) -> CellRun:
    """A repetition whose client printed `out`. said: how it failed; None where it ended well, after `took_ns`."""
    outcome = "ok" if said is None else "error"
    samples = table(1, connection=[0], sent_ns=[0], received_ns=[took_ns], outcome=[outcome])
    program = {"exit_code": 0 if said is None else 2, "signal": None}
    end = finished() | {"program": program, "samples": counts_of(samples, {"error": said or ""})}
    made = run(cell, samples, {"part": part}, repetition=repetition, parameters=PROGRAM, end=end)
    return CellRun(**{**vars(made), "client_out": out, "key": f"c{cell:03d}-r{repetition:02d}"})


def test_a_client_that_failed_sometimes_is_a_warning_with_its_last_words_and_a_field_of_the_result() -> None:
    said = f"{ENDED}: no route to host"
    good = program(report(4.0, 2, ("mask", 2, 3.5)))
    result = analyse(record(good, program("", repetition=1, said=said), program("", repetition=2, said=said)))
    (peer,) = result.peers
    log = "cells/c000-r01/client.err"
    assert texts(result.cells[0]) == [f"{said} ({log})"]
    assert (result.cells[0].valid, result.cells[0].lost, peer.problem) == (True, 2, said)
    assert [problem.model_dump() for problem in peer.problems] == [
        {"repetition": 1, "exit_code": 2, "signal": None, "text": said, "log": log},
        {"repetition": 2, "exit_code": 2, "signal": None, "text": said, "log": "cells/c000-r02/client.err"},
    ]
