"""A run whose exchanges failed says so, with the cause and its first error, in every report."""

import json
from typing import Any

import pytest

from crosswind.analysis.result import CellResult, Result
from crosswind.cell.record import CellRun
from crosswind.findings.pipeline import analyse
from crosswind.report.page import Tone
from crosswind.report.run_page import render as render_page
from crosswind.report.tables.outcomes import outcome_tables
from crosswind.report.tables.trust import trust_tables
from crosswind.report.text.format import scale_of_metric
from crosswind.report.text.headline import headline_sentences, verdict
from records import MS, counts_of, echoes, finished, record, run, table, texts
from screens import render as render_text

EXPIRED = "cannot connect: the certificate has expired"
ALL_FAILED = f"no exchange succeeded: 30 x certificate ({EXPIRED})"


def exchanges(*outcomes: str) -> Any:
    """Samples of echoes that ended in these ways, each answered after 20 ms where it went well."""
    count = len(outcomes)
    sent = [index * 1000 * MS for index in range(count)]
    return table(
        count,
        connection=[0] * count,
        intended_ns=sent,
        sent_ns=sent,
        received_ns=[at + 20 * MS if how == "ok" else None for at, how in zip(sent, outcomes, strict=True)],
        outcome=list(outcomes),
    )


def repetition(
    *outcomes: str, errors: dict[str, str] | None = None, number: int = 0, cell: int = 0, **end: Any
) -> CellRun:
    """A repetition whose cell counted its failures. errors: the first one of each cause."""
    samples = exchanges(*outcomes)
    ended = finished() | {"samples": counts_of(samples, errors)} | end
    return run(cell, samples, {"t": f"cell {cell}"}, repetition=number, end=ended)


def cell_of(*runs: CellRun) -> CellResult:
    (cell,) = analyse(record(*runs)).cells
    return cell


def failures_of(cell: CellResult) -> list[tuple[str, int, str | None]]:
    return [(failures.outcome, failures.count, failures.first_error) for failures in cell.failures]


def test_failures_are_added_up_by_cause_with_the_first_error_of_all() -> None:
    first = repetition("ok", "timeout", "reset", errors={"reset": "connection reset by peer"})
    second = repetition("ok", "timeout", "timeout", errors={"timeout": "no answer within 1 s"}, number=1)
    cell = cell_of(second, first)
    assert failures_of(cell) == [("timeout", 3, "no answer within 1 s"), ("reset", 1, "connection reset by peer")]
    assert (cell.n, cell.lost, cell.outcomes) == (6, 4, {"ok": 2, "timeout": 3, "reset": 1})
    assert cell.valid


def test_a_cell_in_which_no_exchange_succeeded_is_not_valid() -> None:
    cell = cell_of(repetition(*["certificate"] * 30, errors={"certificate": EXPIRED}))
    assert (cell.valid, cell.reason) == (False, ALL_FAILED)
    runs = [repetition("timeout", *["reset"] * number, number=number) for number in range(3)]
    assert cell_of(*runs).reason == "no exchange succeeded: 3 x reset, 3 x timeout"


def test_a_repetition_without_success_among_others_is_data_with_a_warning() -> None:
    runs = [repetition("ok"), *(repetition("timeout", number=number) for number in (1, 2))]
    cell = cell_of(*runs)
    assert (cell.valid, cell.reason) == (True, None)
    assert texts(cell) == ["repetitions 2 and 3: no exchange succeeded: 2 x timeout"]


def test_a_cell_of_which_more_than_half_failed_has_a_warning() -> None:
    failed = cell_of(repetition("ok", "timeout", "reset", errors={"reset": "connection reset by peer"}))
    assert texts(failed) == ["2 of 3 exchanges failed: 1 x reset (connection reset by peer), 1 x timeout"]
    assert texts(cell_of(repetition("ok", "timeout"))) == []


def test_a_reason_that_many_repetitions_share_is_given_once() -> None:
    late = {"valid": False, "reasons": ["late"]}
    runs = [repetition("ok", number=number, **late) for number in range(3)]
    assert cell_of(*runs).reason == "repetitions 1 to 3: late"
    two = [repetition("ok", number=number, **late) for number in (0, 2)]
    mixed = cell_of(*two, repetition("ok", number=1, valid=False, reasons=["later"]))
    assert mixed.reason == "repetitions 1 and 3: late; repetition 2: later"


def failed_run() -> tuple[Any, Result]:
    """Two cells: one in which two of ten exchanges failed, one in which all thirty did."""
    errors = {"certificate": EXPIRED}
    made = record(
        repetition(*["ok"] * 8, "timeout", "timeout", errors={"timeout": "no answer within 1 s"}),
        repetition(*["certificate"] * 30, errors=errors, cell=1),
    )
    return made, analyse(made)


def test_the_terminal_names_causes_and_first_errors() -> None:
    _, result = failed_run()
    text = render_text(result, width=200, everything=True)
    assert "✗ 1 of 2 cells is invalid: cell 1: no exchange succeeded: 30 x certificate" in text
    assert "40 exchanges, 32 of them failed: 30 with an untrusted certificate, 2 timed out." in text
    assert f"First error of certificate: {EXPIRED} (cell 1)" in text
    assert "First error of timeout: no answer within 1 s (cell 0)" in text
    assert f"invalid: {ALL_FAILED} (cell 1)" in text


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        ("timeout", "3 exchanges, 2 of them timed out."),
        ("refused", "3 exchanges, 2 of them were refused."),
        ("certificate", "3 exchanges, 2 of them failed with an untrusted certificate."),
        ("unheard of", "3 exchanges, 2 of them failed: 2 unheard of."),
    ],
)
def test_where_all_fail_alike_one_number_says_it(outcome: str, said: str) -> None:
    assert said in headline_sentences(analyse(record(repetition("ok", outcome, outcome))))[1]


def test_the_page_shows_them_and_marks_the_cell() -> None:
    made, result = failed_run()
    page = render_page(made, result)
    assert '<div class="banner bad">1 of 2 cells is invalid: cell 1:' in page
    assert f"First error of certificate: {EXPIRED} (cell 1)" in page
    lost = page[page.index("<h2>Exchanges lost, by cause</h2>") :]
    assert '<tr class="marked"><th scope="row" class="word">cell 1</th>' in lost[: lost.index("</table>")]


def test_the_table_has_a_row_for_each_cell_and_the_json_its_causes() -> None:
    _, result = failed_run()
    (lost,) = outcome_tables(result)
    assert lost.headings == ["cell", "n", "lost", "share, 95 %", "causes"]
    assert [(row[0], row[2], row[4]) for row in lost.rows] == [
        ("cell 0", "2", "2 timed out"), ("cell 1", "30", "30 with an untrusted certificate"),
    ]  # fmt: skip
    assert lost.marked == {1}
    assert trust_tables(result)[0].rows[1][1] == "INVALID"
    assert json.loads(result.to_json())["cells"][1]["failures"] == [
        {"outcome": "certificate", "count": 30, "first_error": EXPIRED}
    ]


def test_a_run_without_failures_has_no_such_table() -> None:
    result = analyse(record(repetition("ok", "ok")))
    assert outcome_tables(result) == []
    assert headline_sentences(result)[1:] == ["1 cell, 1 repetition, 2 exchanges, none of them failed.", "Clock: real."]
    assert verdict(result).tone is Tone.GOOD


def test_many_failures_are_said_first() -> None:
    many = [repetition("ok", "timeout", "timeout", cell=0)]
    assert verdict(analyse(record(*many))).text.startswith("2 of 3 exchanges failed. Every packet is accounted for")
    two = verdict(analyse(record(*many, repetition("ok", cell=1))))
    assert two.tone is Tone.DOUBTFUL
    assert two.text.startswith("More than half of all exchanges failed in 1 of 2 cells. ")
    assert verdict(analyse(record(repetition("ok", "timeout")))).text.startswith("Every packet")


def test_where_most_timed_out_the_unit_is_that_of_the_timeout() -> None:
    """The mean of those that succeeded is 0 ns on a path without delay: a timeout of 1 s is not 1 000 000 000."""
    made = record(run(0, echoes([0, None, None])))
    assert scale_of_metric("rtt", analyse(made).cells) == (1e9, "s")


def test_a_run_in_which_nothing_was_tried_counts_no_exchange() -> None:
    said = headline_sentences(analyse(record(run(0, None))))
    assert "1 cell, 1 repetition, no exchange: repetitions that failed entirely have none." in said
