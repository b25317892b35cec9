"""A run whose exchanges failed says so, with the cause and its first error, in every report."""

import json
from typing import Any

from crosswind.analysis.result import Result
from crosswind.cell.record import CellRun
from crosswind.findings.pipeline import analyse
from crosswind.report.run_page import render as render_page
from crosswind.report.tables.outcomes import outcome_tables
from crosswind.report.tables.trust import trust_tables
from records import MS, counts_of, finished, record, run, table

EXPIRED = "cannot connect: the certificate has expired"


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


def failed_run() -> tuple[Any, Result]:
    """Two cells: one in which two of ten exchanges failed, one in which all thirty did."""
    errors = {"certificate": EXPIRED}
    made = record(
        repetition(*["ok"] * 8, "timeout", "timeout", errors={"timeout": "no answer within 1 s"}),
        repetition(*["certificate"] * 30, errors=errors, cell=1),
    )
    return made, analyse(made)


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
