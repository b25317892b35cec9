"""Client programs that report their own functions: times and shares computed by hand; malformed reports are refused."""

import json
from typing import Any

import pytest

from crosswind.analysis import analyse
from crosswind.analysis.result import Result
from crosswind.record import CellRun
from crosswind.report.html import render as html
from crosswind.report.tables.metrics import metric_tables
from crosswind.report.tables.programs import program_tables, readable
from crosswind.report.tables.published import published_tables
from crosswind.report.text.terminal import render
from records import echoes, empty_samples, finished, record, run

PROGRAM = {"workload": {"kind": "program", "client": ["{python}"], "server": None}}
ENDED = "the client program ended with exit status 2"
FAILED = {"exit_code": 2, "signal": None}
PUBLISHED = {
    "source": "An article",
    "metric": "send_time",
    "unit": "s",
    "levels": {"part": "slow"},
    "mean": 4.5,
    "functions": {"mask": 4.41, "send": 0.045},
    "note": "one call",
    "cells": [0],
}


def report(seconds: object, messages: int, *functions: tuple[str, int, float], **changes: Any) -> str:
    listed = [{"name": name, "calls": calls, "own_s": own_s} for name, calls, own_s in functions]
    return json.dumps({"seconds": seconds, "messages": messages, "functions": listed, "version": "1.9"} | changes)


def program(out: str, *, cell: int = 0, repetition: int = 0, part: str = "slow", err: str = "", **end: Any) -> CellRun:
    """A repetition whose client printed `out` and `err`. end: how it ended, in its `finished` event."""
    ended = finished() | {"program": {"exit_code": 0, "signal": None}} | end
    made = run(cell, empty_samples(), {"part": part}, repetition=repetition, parameters=PROGRAM, end=ended)
    return CellRun(**{**vars(made), "client_out": out, "client_err": err})


def two_repetitions(**changes: Any) -> Result:
    first = report(4.0, 2, ("frames.py:12(mask)", 2, 3.5), ("method 'send' of 'socket' objects", 20, 0.3))
    second = report(6.0, 2, ("frames.py:12(mask)", 2, 5.5), ("frames.py:40(format)", 2, 0.1))
    return analyse(record(program(first), program(second, repetition=1), **changes))


def test_functions_are_summed_over_repetitions_and_given_by_message() -> None:
    (peer,) = two_repetitions().peers
    assert (peer.cell, peer.version, peer.messages, peer.time_ns, peer.problem) == (0, "1.9", 4, 2.5e9, None)
    assert [(function.name, function.calls, function.own_ns, function.share) for function in peer.functions] == [
        ("frames.py:12(mask)", 1, 2.25e9, 0.9),
        ("method 'send' of 'socket' objects", 5, pytest.approx(0.075e9), pytest.approx(0.03)),
        ("frames.py:40(format)", 0.5, pytest.approx(0.025e9), pytest.approx(0.01)),
    ]


def test_the_time_of_a_message_is_a_metric_of_one_value_a_repetition() -> None:
    result = two_repetitions(published=[PUBLISHED])
    (cell,) = result.cells
    time = cell.estimates["send_time"]
    assert (time.unit, time.smallest, time.largest) == ("ns", 2e9, 3e9)
    assert (time.mean.value, time.mean.n) == (2.5e9, 2)
    assert (time.mean.low, time.mean.spread) == (None, (2e9, 3e9))
    assert metric_tables(result) == {}
    (figure,) = result.published
    assert (figure.theirs, figure.functions) == (4.5e9, {"mask": 4.41e9, "send": 0.045e9})
    assert figure.ratio == pytest.approx(2.5 / 4.5)
    assert [table.title for table in published_tables(result)] == ["Published numbers"]


def test_the_table_adds_up_beside_the_published_profile() -> None:
    (table,) = program_tables(two_repetitions(published=[PUBLISHED]))
    assert table.title == "Client programs"
    assert table.headings == ["program", "function", "n", "s a message [95 %]", "share"]
    assert [(row[0], row[1], row[2], row[3].split(" (")[0], row[4]) for row in table.rows] == [
        ("slow · 1.9", "in all", "4", "2.500", "100 %"),
        ("", "mask, frames.py:12", "", "2.250", "90 %"),
        ("", "method 'send' of 'socket' objects", "", "0.07500", "3 %"),
        ("", "format, frames.py:40", "", "0.02500", "1 %"),
        ("", "the rest", "", "0.1500", "6 %"),
        ("An article", "in all, published", "–", "4.500", "100 %"),
        ("", "mask", "", "4.410", "98 %"),
        ("", "send", "", "0.04500", "1 %"),
        ("", "the rest", "", "0.04500", "1 %"),
    ]
    assert "An article: one call" in table.footnotes


def test_terminal_page_and_json_have_it() -> None:
    given = {"published": [PUBLISHED]}
    result = two_repetitions(**given)
    text = render(result)
    assert "\nslow · 1.9 " in text
    assert "mask, frames.py:12 " in text
    page = html(record(program(report(4.0, 2, ("mask", 2, 3.5))), **given), result)
    assert "<h2>Client programs</h2>" in page
    assert json.loads(result.to_json())["peers"][0]["functions"][0]["share"] == 0.9


def test_one_repetition_has_no_interval() -> None:
    (table,) = program_tables(analyse(record(program(report(0.5, 10, ("mask", 10, 0.4))))))
    assert [row[3] for row in table.rows] == ["50.00 (no interval)", "40.00", "10.00"]
    assert table.headings[3] == "ms a message [95 %]"


def test_a_client_that_did_not_run_says_what_is_missing() -> None:
    err = "error: websocket-client is not installed\nhint: pip install websocket-client\n"
    runs = [program("", cell=cell, part=part, err=err, program=FAILED) for cell, part in enumerate(("slow", "fast"))]
    result = analyse(record(*runs))
    said = f"{ENDED}: websocket-client is not installed (pip install websocket-client)"
    assert result.valid
    assert [cell.warnings for cell in result.cells] == [[said], [said]]
    assert [(peer.messages, peer.time_ns, peer.functions, peer.problem) for peer in result.peers] == [
        (0, None, [], said)
    ] * 2
    (table,) = program_tables(result)
    assert table.rows[0] == ["slow", "it sent nothing: see below", "0", "–", "–"]
    assert f"slow, fast: {said}" in table.footnotes
    assert "pip install" in render(result)


@pytest.mark.parametrize(
    ("err", "words"),
    [
        ("", ENDED),
        ("Traceback\n  File x\nValueError: no\n\n", f"{ENDED}: ValueError: no"),
        ("error: no\x1b[31m\x07\n", f"{ENDED}: no[31m"),
        ("x" * 1000, f"{ENDED}: {'x' * 200}"),
    ],
)
def test_the_last_words_of_any_program(err: str, words: str) -> None:
    (cell,) = analyse(record(program("", err=err, program=FAILED, warnings=["another"]))).cells
    assert cell.warnings == [words, "another"]


def test_a_client_that_was_killed_is_a_field_of_the_result() -> None:
    killed = program("", program={"exit_code": None, "signal": 9}, repetition=1)
    result = analyse(record(program(report(4.0, 2, ("mask", 2, 3.5))), killed))
    (peer,) = result.peers
    text = "the client program ended with signal 9 (SIGKILL)"
    assert [problem.model_dump() for problem in peer.problems] == [
        {"repetition": 1, "exit_code": None, "signal": 9, "text": text}
    ]
    assert (peer.problem, result.cells[0].warnings) == (text, [text])
    unknown = analyse(record(program("", program={"exit_code": None, "signal": 99}))).peers[0]
    assert unknown.problem == "the client program ended with signal 99"


@pytest.mark.parametrize(
    "out",
    [
        "", "PING 10.0.0.1", "[]", "3", "null", '{"seconds": 1}', "[" * 100_000,
        report(0, 1), report(1, 0), report(-1, 1), report(float("inf"), 1), report(float("nan"), 1), report(1, True),
        report("1", 1), report(1, 1, functions=None), report(1, 1, functions=[3]),
        report(1, 1, ("mask", 1, -0.1)), report(1, 1, ("mask", 1, float("nan"))), report(1, 1, ("mask", 0, 0.1)),
    ],
)  # fmt: skip
def test_what_is_no_report_is_none(out: str) -> None:
    result = analyse(record(program(out)))
    assert result.peers == []
    assert result.cells[0].estimates == {}
    assert program_tables(result) == []
    json.loads(result.to_json())


def test_names_and_versions_are_plain_text() -> None:
    (peer,) = analyse(record(program(report(1, 1, ("a\nb\x1b[1m", 1, 0.5), version="1\x07")))).peers
    assert (peer.version, peer.functions[0].name) == ("1", "ab[1m")
    assert readable("a.py:3(<module>)") == "<module>, a.py:3"
    assert readable("built-in method from_bytes") == "built-in method from_bytes"


def test_other_workloads_have_no_peers() -> None:
    assert analyse(record(run(0, echoes([1, 2, 3])))).peers == []
