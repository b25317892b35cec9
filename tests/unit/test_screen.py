"""The last screen of a run: the columns that matter at 80 columns, and the worst and the best of many cells."""

import re
from collections.abc import Sequence
from typing import Any

import pytest

from crosswind.analysis.result import Result
from crosswind.cell.record import CellRun
from crosswind.findings.pipeline import analyse
from crosswind.report.tables.cut import cut_to
from crosswind.report.tables.metrics import metric_tables
from crosswind.report.tables.summary import summary_tables
from crosswind.report.text.headline import doubts_of
from crosswind.report.text.terminal import SCREEN_LINES
from records import MS, echoes, finished, record, run, transfers
from screens import render

TRANSPORT = {"workload": {"kind": "transfer", "transport": "tcp", "duration_ns": 8_000 * MS}}


def cell(
    number: int, *, rtt_ms: int, levels: dict[str, str] | None = None, warnings: Sequence[str] = (), **end: Any
) -> CellRun:
    """A cell of one repetition, all of whose round trips take as long. warnings: texts of those that it printed."""
    end["warnings"] = [{"name": "odd", "text": text, "hint": None} for text in warnings]
    own = {"path.delay": f"{rtt_ms}ms", "workload.transport": "udp"} if levels is None else levels
    return run(number, echoes([rtt_ms * MS] * 20), own, end=finished() | end)


def many(count: int = 144, **end: Any) -> Result:
    """Cells whose round trips take 1 ms, 2 ms and so on, in an order of the plan that is not that of their times."""
    return analyse(record(*(cell(number, rtt_ms=1 + (number * 89) % count, **end) for number in range(count))))


def numbers_of(text: str) -> list[str]:
    """The main numbers, a line each, from the title to the next empty line."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("Round-trip time, ms"))
    return lines[start : lines.index("", start)]


def test_many_cells_are_the_worst_and_the_best_on_one_screen() -> None:
    text = render(many())
    lines = text.splitlines()
    assert len(lines) <= SCREEN_LINES + 3
    assert max(map(len, lines)) <= 80
    title, heading, *rows = numbers_of(text)
    found = re.fullmatch(r"Round-trip time, ms: the (\d+) worst and the (\d+) best of 144 cells", title)
    assert found is not None
    worst, best = int(found[1]), int(found[2])
    assert re.split("  +", heading) == [
        "delay", "transport", "n", "lost", "median", "mean", "p95", "verdict",
    ]  # fmt: skip
    medians = [row.split()[4] for row in rows if not row.startswith("…")]
    expected = [*range(144, 144 - worst, -1), *range(best, 0, -1)]
    assert [float(median) for median in medians] == expected
    assert (rows[worst], worst - best) in (("…", 0), ("…", 1))


def test_every_cell_is_there_where_everything_is_asked_for_and_the_screen_comes_last() -> None:
    text = render(many(), everything=True)
    assert len([line for line in text.splitlines() if re.match(r"\d+ms ", line)]) >= 144
    assert text.index("Round-trip time, ms\n") < text.index("\nA title\n") < text.index("\n…")
    assert text.count("Every packet is accounted for") == 1


def test_what_matters_stays_at_80_columns_and_the_rest_is_named() -> None:
    long = {"part": "x" * 20, "path.loss": "0.01%", "workload.transport": "socketio-webtransport"}
    runs = [cell(number, rtt_ms=20 + number, levels={**long, "path.delay": f"{number}ms"}) for number in range(3)]
    text = render(analyse(record(*runs)))
    _, heading, *rows, left_out = numbers_of(text)
    assert heading.split()[-5:] == ["n", "lost", "median", "p95", "verdict"]
    assert [row.split()[-5:] for row in rows] == [
        ["20", "0", f"{20 + n}.00", f"{20 + n}.00", "valid"] for n in range(3)
    ]
    assert rows[2].startswith("xxxxxx…xxxxxxx · 0.01% · socketi…ansport · 2ms  ")
    assert left_out == "  Left out at this width: mean."


def test_a_rate_is_worst_where_it_is_lowest_and_a_cell_without_success_is_worse() -> None:
    cells = [
        run(number, transfers([1e6 * (1 + number)]), {"path.loss": f"{number}%"}, parameters=TRANSPORT)
        for number in range(6)
    ]
    failed = run(6, None, {"path.loss": "6%"}, parameters=TRANSPORT)
    (table,) = cut_to(summary_tables(analyse(record(*cells, failed))), 5)
    assert [row[0] for row in table.rows] == ["6%", "0%", "…", "4%", "5%"]
    assert (table.rows[0][-1], sorted(table.marked)) == ("INVALID", [0])


def test_the_rows_of_two_workloads_share_the_screen() -> None:
    echo = [cell(number, rtt_ms=10 + number) for number in range(50)]
    transfer = [
        run(50 + number, transfers([1e6 * (1 + number)]), {"path.loss": f"{number}%"}, parameters=TRANSPORT)
        for number in range(3)
    ]
    tables = cut_to(summary_tables(analyse(record(*echo, *transfer))), 13)
    assert [(table.title.partition(",")[0], len(table.rows)) for table in tables] == [
        ("Round-trip time", 10), ("Goodput", 3),
    ]  # fmt: skip


def test_the_main_numbers_are_of_what_the_study_asks_for() -> None:
    parameters = {"workload": {"kind": "transfer", "transport": "tcp"}}
    made = [run(at, transfers([1e6 * (1 + at)]), {"path.loss": f"{at}%"}, parameters=parameters) for at in range(2)]
    question = {
        "asks": "Is it so?", "metric": "transfer_time", "statistic": "mean", "factor": "path.loss", "yes": "more",
        "scale": "ratio", "low": 1.0, "is_open": True,
        "compare": [{"level": f"{at}%", "cells": [at]} for at in range(2)], "cells": [0, 1],
    }  # fmt: skip
    titles = [
        [table.title for table in summary_tables(analyse(record(*made, questions=asked)))] for asked in ([], [question])
    ]
    assert titles == [["Goodput, Mbit/s"], ["Transfer time on the wire, s"]]
    asked = analyse(record(*made, questions=[question]))
    assert next(iter(metric_tables(asked))) == "transfer_time"


def test_doubts_name_their_cells_and_each_is_said_once() -> None:
    result = many(5, warnings=["the clock was set"])
    assert [doubt.text for doubt in doubts_of(result)] == [
        "warning: the clock was set (1ms · udp, 5ms · udp, 4ms · udp and 2 more)"
    ]
    (invalid,) = doubts_of(analyse(record(cell(0, rtt_ms=1, valid=False, reasons=["late"]), cell(1, rtt_ms=2))))
    assert invalid.text == "invalid: repetition 1: late (1ms · udp)"


def test_what_differs_in_its_counts_alone_is_said_once() -> None:
    said = [
        ["the profile rests on only 31 stacks: send more messages", "2 of 10 connections were set up in full"],
        ["the profile rests on only 1978 stacks: send more messages", "3 of 10 connections were set up in full"],
        ["the profile rests on only 40 stacks: send more messages", "repetitions 1 to 3: the program ended"],
        ["repetitions 2 to 5: the program ended", "status 2: the program ended", "status 3: the program ended"],
    ]
    runs = [cell(at, rtt_ms=1, levels={"path.loss": f"{at}%"}, warnings=texts) for at, texts in enumerate(said)]
    assert [doubt.text for doubt in doubts_of(analyse(record(*runs)))] == [
        "warning: the profile rests on only 31 to 1\u202f978 stacks: send more messages (0%, 1%, 2%)",
        "warning: 2 to 3 of 10 connections were set up in full (0%, 1%)",
        "warning: repetitions 1 to 3: the program ended (2%)",
        "warning: repetitions 2 to 5: the program ended (3%)",
        "warning: status 2: the program ended (3%)",
        "warning: status 3: the program ended (3%)",
    ]


def test_a_run_of_one_cell_does_not_name_it() -> None:
    alone = analyse(record(cell(0, rtt_ms=1, levels={}, warnings=["the clock was set"], valid=False, reasons=["late"])))
    assert [doubt.text for doubt in doubts_of(alone)] == ["warning: the clock was set"]
    assert render(alone).count("repetition 1: late") == 1
    assert "the only cell" not in render(alone, everything=True)


@pytest.mark.parametrize("cells", [1, 5, 40])
def test_many_doubts_leave_room_and_are_counted(cells: int) -> None:
    runs = [cell(number, rtt_ms=1 + number, warnings=[f"warning number {number}"]) for number in range(cells)]
    text = render(analyse(record(*runs)))
    assert len(text.splitlines()) <= SCREEN_LINES + 3
    said = [line for line in text.splitlines() if line.startswith("warning: ")]
    assert len(said) == min(cells, 8)
    assert ("… and 32 more" in text) == (cells == 40)
