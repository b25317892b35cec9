"""Client programs: what they print, by numbers computed by hand; how they ended; what is not understood."""

import json
from typing import Any

import pytest

from crosswind.analysis.result import Result
from crosswind.cell.record import CellRun
from crosswind.findings.pipeline import analyse
from crosswind.findings.published.judge import PublishedResult
from crosswind.findings.published.show import published_table
from crosswind.report.run_page import render as html
from crosswind.report.tables.metrics import metric_tables
from crosswind.report.tables.programs import program_tables, readable
from crosswind.report.tables.summary import summary_tables
from records import MS, counts_of, echoes, finished, record, run, table, texts
from screens import render

PROGRAM = {"workload": {"kind": "program", "client": ["{python}"], "server": None}}
ENDED = "the client program ended with exit status 2"
LOG = "cells/c000-r00/client.err"
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
    assert list(metric_tables(result)) == ["program_time"]
    (figure,) = result.of(PublishedResult)
    assert (figure.theirs, figure.functions) == (4.5e9, {"mask": 4.41e9, "send": 0.045e9})
    assert figure.numbers[0].ratio == pytest.approx(2.5 / 4.5)
    assert published_table(result).title == "Published numbers"


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
    text = render(result, everything=True)
    assert "\nslow · 1.9 " in text
    assert "mask, frames.py:12 " in text
    page = html(record(program(report(4.0, 2, ("mask", 2, 3.5))), **given), result)
    assert "<h2>Client programs</h2>" in page
    assert json.loads(result.to_json())["peers"][0]["functions"][0]["share"] == 0.9


def test_one_repetition_has_no_interval() -> None:
    (table,) = program_tables(analyse(record(program(report(0.5, 10, ("mask", 10, 0.4))))))
    assert [row[3] for row in table.rows] == ["50.00 (no interval)", "40.00", "10.00"]
    assert table.headings[3] == "ms a message [95 %]"


def test_the_wall_time_of_a_client_is_a_metric_whatever_it_prints() -> None:
    runs = [program("hello", repetition=number, took_ns=(5 + number) * MS) for number in range(3)]
    (cell,) = analyse(record(*runs)).cells
    time = cell.estimates["program_time"]
    assert (time.mean.value, time.smallest, time.largest, time.mean.n) == (6 * MS, 5 * MS, 7 * MS, 3)
    assert (cell.n, cell.lost, cell.valid) == (3, 0, True)
    assert "cpu_client" not in cell.estimates
    (whole,) = (title for title in metric_tables(analyse(record(*runs))).values())
    assert whole.title == "Time of the client program, ms"


def test_times_of_exchanges_have_percentiles_and_are_compared() -> None:
    def times(first_s: float) -> str:
        return json.dumps({"times_s": [first_s + number / 1000 for number in range(101)]})

    runs = [
        program(times(0.1 * (1 + cell) + repetition / 1e4), cell=cell, repetition=repetition, part=part)
        for cell, part in enumerate(("slow", "fast"))
        for repetition in range(6)
    ]
    result = analyse(record(*runs))
    time = result.cells[0].estimates["client_time"]
    assert (time.median.n, time.median.units) == (606, 6)
    # Of 606 values in steps of 0.1 ms, six a millisecond: places 302.5 and 574.75 from the first, at 100 ms.
    assert time.median.value == pytest.approx(150.25e6)
    assert time.p95.value == pytest.approx(195.475e6)
    assert [table.title for table in summary_tables(result)] == ["Client's own exchange time, ms"]
    compared = {comparison.metric: comparison.difference.value for comparison in result.comparisons}
    assert compared == {"program_time": 0, "client_time": pytest.approx(100e6)}


def test_seconds_and_messages_are_enough() -> None:
    result = analyse(record(*(program('{"seconds": 4.5, "messages": 50}', repetition=number) for number in range(3))))
    (cell,) = result.cells
    assert cell.estimates["send_time"].mean.value == 90e6
    assert (texts(cell), result.peers[0].functions, result.peers[0].remarks) == ([], [], [])


def test_a_report_may_be_the_last_line_of_what_a_client_prints() -> None:
    result = analyse(record(program('sending\n{"not": "this"}\n{"seconds": 1, "messages": 2}\n')))
    assert result.cells[0].estimates["send_time"].smallest == 0.5e9
    pretty = json.dumps({"seconds": 1, "messages": 4}, indent=2)
    assert analyse(record(program(pretty))).cells[0].estimates["send_time"].smallest == 0.25e9


@pytest.mark.parametrize(
    ("printed", "remark"),
    [
        ({"second": 1, "size": 2}, '"second" is not known; did you mean "seconds"?'),
        ({"seconds": 1, "message": 2}, '"message" is not known; did you mean "messages"?'),
        ({"seconds": 1, "retries": 2}, '"retries" is not known'),
        ({"seconds": "1"}, '"seconds" is "1", not a number above 0'),
        ({"seconds": 0}, '"seconds" is 0, not a number above 0'),
        ({"seconds": 1, "messages": 1.5}, '"messages" is 1.5, not a whole number above 0'),
        ({"seconds": 1, "messages": True}, '"messages" is true, not a whole number above 0'),
        ({"messages": 5}, '"messages" has no meaning without "seconds"'),
        ({"times_s": 1}, '"times_s" is 1, not a list of numbers'),
        ({"times_s": [1, -1, "x"]}, '2 of 3 entries of "times_s" are no numbers from 0 up: -1'),
        ({"times_s": [1, None]}, '1 of 2 entries of "times_s" are null: exchanges without an end'),
        ({"seconds": 1, "functions": 3}, '"functions" is 3, not a list'),
        ({"seconds": 1, "functions": [{"name": "mask", "calls": 0, "own_s": 1}]},
         '"functions"[0] is {"name": "mask", "calls": 0, "own_s": 1}; '
         'it needs a "name", "calls" above 0 and "own_s" from 0 up'),
    ],
)  # fmt: skip
def test_what_is_not_understood_of_a_report_is_a_warning_with_the_key(printed: object, remark: str) -> None:
    result = analyse(record(program(json.dumps(printed)), program(json.dumps(printed), repetition=1)))
    assert texts(result.cells[0]) == [f"what the client printed: {remark} (cells/c000-r00/client.out)"]
    assert (result.peers[0].remarks, result.cells[0].valid) == ([remark], True)
    json.loads(result.to_json())


def test_a_report_that_is_no_json_is_named() -> None:
    (cell,) = analyse(record(program("{'seconds': 4.5, 'messages': 50}\n"))).cells
    why = "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"
    assert texts(cell) == [
        f"what the client printed: {{'seconds': 4.5, 'messages': 50}} is not JSON ({why}) (cells/c000-r00/client.out)"
    ]


@pytest.mark.parametrize(
    "out",
    [
        "", "PING 10.0.0.1", "[]", "3", "null", "[" * 100_000, "{" * 100_000,
        '{"start": {}, "intervals": [], "end": {}}', '{"status": "ok", "version": "1.2"}',
    ],
)  # fmt: skip
def test_what_a_client_prints_for_others_is_its_own_business(out: str) -> None:
    result = analyse(record(program(out)))
    assert (result.peers, texts(result.cells[0])) == ([], [])
    assert list(result.cells[0].estimates) == ["program_time"]
    assert program_tables(result) == []


def test_a_client_that_never_ran_fails_its_cell_and_says_what_is_missing() -> None:
    said = f"{ENDED}: websocket-client is not installed (pip install websocket-client)"
    runs = [program("", cell=cell, part=part, said=said) for cell, part in enumerate(("slow", "fast"))]
    result = analyse(record(*runs))
    assert not result.valid
    assert result.cells[0].reason == f"the client program never succeeded: {said} ({LOG})"
    assert [texts(cell) for cell in result.cells] == [[], []]
    assert [(peer.messages, peer.time_ns, peer.functions, peer.problem) for peer in result.peers] == [
        (0, None, [], said)
    ] * 2
    assert "pip install" in render(result)


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


def test_names_and_versions_are_plain_text() -> None:
    (peer,) = analyse(record(program(report(1, 1, ("a\nb\x1b[1m", 1, 0.5), version="1\x07")))).peers
    assert (peer.version, peer.functions[0].name) == ("1", "ab[1m")
    assert readable("a.py:3(<module>)") == "<module>, a.py:3"
    assert readable("built-in method from_bytes") == "built-in method from_bytes"


def test_other_workloads_have_no_peers() -> None:
    assert analyse(record(run(0, echoes([1, 2, 3])))).peers == []
