"""Cells in which nothing is left to chance: one repetition, no interval, and comparisons that say so."""

import math
from dataclasses import replace
from typing import Any

import pytest

from crosswind.analysis.result import LevelComparison
from crosswind.cell.record import CellRun
from crosswind.findings.fit.result import Fit
from crosswind.findings.pipeline import analyse
from crosswind.findings.published.judge import PublishedResult
from crosswind.findings.question.result import Answer
from crosswind.findings.question.show import answer_table
from crosswind.report.export import estimates_frame, samples_frame
from crosswind.report.run_page import render as render_html
from crosswind.report.tables.comparisons import comparison_tables
from crosswind.report.tables.costs import processor_tables
from crosswind.report.tables.metrics import metric_table
from crosswind.report.tables.trust import trust_tables
from crosswind.report.text.format import interval
from crosswind.report.text.headline import headline_sentences
from crosswind.stats.differences import Side, difference, ratio
from crosswind.stats.effect import estimate_of
from crosswind.stats.estimate import EXACT, Interval, TooFewSamples
from crosswind.stats.repetitions import Repetitions
from records import MS, echoes, finished, parted, record, run, runs, timed
from screens import render

VIRTUAL_END: dict[str, Any] = {
    **finished(),
    "virtual_time": True,
    "cpu": None,
    "fidelity": {**finished()["fidelity"], "starvation": None, "probe_starvation": None},
    "versions": {"crosswind_cell": "0.1.0", "kernel": "6.12.90"},
}
NOISY = [20 * MS + (7919 * at % 1000) for at in range(400)]
ALIKE: dict[str, Any] = {
    "asks": "Alike?", "metric": "rtt", "factor": "path.delay", "yes": "same", "scale": "difference", "margin": "5 ms",
    "bound": 5.0 * MS, "low": -5.0 * MS, "high": 5.0 * MS, "cells": [0, 1],
}  # fmt: skip


def exact(cell: int, rtts: list[int], delay: str = "10ms", **changes: Any) -> CellRun:
    """The one repetition of an exact cell."""
    return replace(run(cell, echoes(rtts), {"path.delay": delay}, end=VIRTUAL_END, **changes), exact=True)


def noisy(cell: int, rtts: list[int], delay: str = "20ms") -> list[CellRun]:
    """Ten repetitions on the real clock."""
    return runs(cell, [echoes(part) for part in parted(rtts, 10)], {"path.delay": delay})


def side(*values: float, is_exact: bool = False) -> Side:
    """A cell of repetitions of one value each."""
    return Side(Repetitions.of(values), exact=is_exact)


def estimate(value: float, *, method: str = EXACT) -> Interval:
    return Interval(value=value, low=None, high=None, n=3, level=0.95, method=method)


def compared(*cells: CellRun) -> LevelComparison:
    return next(made for made in analyse(record(*cells)).comparisons if made.metric == "rtt")


def test_the_numbers_of_an_exact_cell_have_no_interval() -> None:
    (cell,) = analyse(record(exact(0, [20 * MS, 21 * MS, 25 * MS]))).cells
    rtt = cell.estimates["rtt"]
    assert (cell.exact, cell.clock, cell.kernel) == (True, "virtual", "6.12.90")
    assert [rtt.statistic(name).value for name in ("median", "mean")] == [21 * MS, 22 * MS]
    for name in ("median", "mean", "p95", "p99"):
        made = rtt.statistic(name)
        assert (made.low, made.high, made.n, made.method, made.reason) == (None, None, 3, EXACT, None)
        assert made.is_exact
    assert cell.loss is not None
    assert (cell.loss.value, cell.loss.low, cell.loss.method) == (0, None, EXACT)


def test_a_sentence_says_exactly_before_the_number() -> None:
    said = headline_sentences(analyse(record(exact(0, [20 * MS, 21 * MS, 25 * MS]))))
    assert said[0] == "Median round-trip time: exactly 21 ms."


def test_a_cell_of_one_sample_is_exact_too() -> None:
    moved = replace(run(0, timed([MS]), parameters={"workload": {"kind": "transfer"}}, end=VIRTUAL_END), exact=True)
    (cell,) = analyse(record(moved)).cells
    assert (cell.estimates["transfer_time"].mean.value, cell.estimates["transfer_time"].mean.n) == (MS, 1)


def test_two_exact_cells_differ_exactly() -> None:
    made = compared(exact(0, [20 * MS] * 3), exact(1, [40 * MS] * 3, "20ms"))
    assert (made.difference.value, made.ratio.value) == (20 * MS, pytest.approx(2))
    assert made.difference.is_exact
    assert made.ratio.is_exact
    assert (made.p, made.p_adjusted, made.verdict) == (None, None, "larger")
    assert compared(exact(0, [40 * MS]), exact(1, [20 * MS], "20ms")).verdict == "smaller"
    assert compared(exact(0, [20 * MS]), exact(1, [20 * MS], "20ms")).verdict == "equal"


def test_beside_an_exact_cell_the_interval_is_that_of_the_other_alone() -> None:
    made = compared(exact(0, [15 * MS] * 3), *noisy(1, NOISY))
    (cell,) = analyse(record(*noisy(1, NOISY))).cells
    mean = cell.estimates["rtt"].mean
    assert mean.value is not None
    assert made.difference.value == pytest.approx(mean.value - 15 * MS)
    assert made.difference.low is not None
    assert made.difference.low < made.difference.value
    assert made.difference.high - made.difference.low == pytest.approx(mean.high - mean.low)
    assert made.difference.method == "Student's t over repetitions, against an exact number"
    assert made.verdict == "larger"
    assert made.cliffs_delta.reason == "one of the cells is exact: compare the values"


def test_a_constant_beside_few_samples_leaves_their_student_interval() -> None:
    few = side(10.0, 12.0, 14.0, 16.0)
    made = difference(side(10.0, is_exact=True), few)
    assert (made.value, made.freedom) == (3.0, 3)
    error = math.sqrt(20 / 3 / 4)
    assert made.limits(0.95) == pytest.approx((3 - 3.182446 * error, 3 + 3.182446 * error))
    turned = difference(few, side(10.0, is_exact=True))
    assert turned.limits(0.95) == pytest.approx((-3 - 3.182446 * error, -3 + 3.182446 * error))
    assert estimate_of(turned, level=0.95).n == 5


def test_a_ratio_to_an_exact_zero_is_refused() -> None:
    with pytest.raises(TooFewSamples, match="above 0"):
        ratio(side(0.0, is_exact=True), side(1.0, is_exact=True))


@pytest.mark.parametrize(("other", "verdict"), [(24, "yes"), (25, "yes"), (26, "no")])
def test_a_question_about_exact_cells_is_answered_without_a_test(other: int, verdict: str) -> None:
    cells = [exact(0, [20 * MS]), exact(1, [other * MS], "20ms"), exact(2, [20 * MS], "30ms")]
    (alone,) = analyse(record(*cells[:2], questions=[ALIKE])).of(Answer)
    (case,) = alone.cases
    assert (case.p_yes, case.p_no, case.needed, case.verdict, alone.verdict) == (None, None, None, verdict, verdict)
    (answer,) = analyse(record(*cells, questions=[ALIKE | {"cells": [0, 1, 2]}])).of(Answer)
    assert answer_table(answer).rows[0][1:] == [
        "20ms − 10ms", f"{other - 20} ms exact", "−5 to 5 ms", "exact", "–", verdict, "–",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("ci", "more"),
    [
        (None, ""),
        (2.5, ", within their interval"),
        (0.5, ", outside their interval"),
        (16.5, "; their interval reaches below 0, where no such number is"),
    ],
)
def test_a_published_number_beside_an_exact_one(ci: float | None, more: str) -> None:
    number = {"source": "s", "metric": "rtt", "unit": "ms", "levels": {}, "mean": 16.0, "ci": ci, "cells": [0]}
    (found,) = analyse(record(exact(0, [18 * MS]), published=[number])).of(PublishedResult)
    (made,) = found.numbers
    assert (made.remark, made.inside) == (f"ours is exact, 1.12 times theirs{more}", None)


def test_shares_of_exact_cells_are_exact() -> None:
    closed = {"workload": {"kind": "echo", "transport": "tcp", "mode": "closed"}}
    alike = {**ALIKE, "metric": "delayed_share", "margin": "4%", "bound": 0.04, "low": -0.04, "high": 0.04}
    cells = [exact(at, [20 * MS] * 30, f"{at}ms", parameters=closed) for at in range(2)]
    result = analyse(record(*cells, questions=[alike]))
    assert result.cells[0].estimates["delayed_share"].mean.is_exact
    assert [answer.verdict for answer in result.of(Answer)] == ["yes"]


def test_an_exact_number_is_written_with_six_digits_and_the_word() -> None:
    assert interval(estimate(20_006_437), 1e6) == "20.0064 exact"
    assert interval(estimate(0.0)) == "0 exact"


def test_tables_say_exact_in_the_place_of_an_interval_and_of_p() -> None:
    result = analyse(record(exact(0, [20 * MS] * 3), exact(1, [40 * MS] * 3, "20ms")))
    table = metric_table("rtt", result)
    assert table.rows[0][:4] == ["10ms", "3", "0", "20 exact"]
    assert any(note.endswith("every repetition gives the same result.") for note in table.footnotes)
    (comparisons,) = comparison_tables(result)
    assert comparisons.rows[0][-2:] == ["exact", "larger"]
    text = " ".join(render(result, width=100).split())
    assert "Median round-trip time: 20.00 ms (delay 10ms) to 40.00 ms (delay 20ms) in 2 cells." in text


def test_the_page_draws_exact_cells_beside_others() -> None:
    figure = {"title": "By delay", "metric": "rtt", "x": "path.delay", "cells": [0, 1]}
    made = record(exact(0, [20 * MS] * 3), *noisy(1, NOISY), figures=[figure])
    page = render_html(made, analyse(made))
    assert '20 <span class="beside">exact</span>' in page
    assert "Clock: virtual in 1 of 2 cells, on Linux 6.12.90" in page


def test_the_run_says_which_clock_its_cells_had() -> None:
    assert "Clock: real." in headline_sentences(analyse(record(*noisy(0, NOISY))))
    virtual = run(0, echoes(NOISY), end=VIRTUAL_END)
    said = headline_sentences(analyse(record(virtual)))
    clock = "Clock: virtual, on Linux 6.12.90; processor time and waits for processors are not measured."
    assert said[2] == clock
    assert not any(sentence.startswith("Exact") for sentence in said)
    said = headline_sentences(analyse(record(exact(0, [MS]), *noisy(1, NOISY))))
    assert said[3] == "Exact: 1 of 2 cells: without randomness, every repetition gives the same result."


def test_a_cell_without_a_result_has_the_clock_that_it_was_asked_to_have() -> None:
    parameters = {"workload": {"kind": "echo"}, "host": {"clock": "virtual"}}
    (cell,) = analyse(record(run(0, None, parameters=parameters))).cells
    assert (cell.clock, cell.kernel, cell.exact) == ("virtual", None, False)


def test_exports_have_the_clock() -> None:
    frame = estimates_frame(analyse(record(exact(0, [MS]), *noisy(1, NOISY))))
    assert dict(frame.select("cell", "clock").unique().iter_rows()) == {0: "virtual", 1: "real"}
    assert set(frame.filter(cell=0)["method"]) == {EXACT}
    samples = samples_frame(record(exact(0, [MS]), *noisy(1, NOISY)))
    assert dict(samples.select("cell", "clock").unique().iter_rows()) == {0: "virtual", 1: "real"}


def test_what_virtual_time_does_not_measure_is_said_to_be_so() -> None:
    measured = {**finished(), "cpu": {"client_ns": 1000, "server_ns": 2000, "emulator_ns": 1}}
    others = [run(1, echoes(NOISY), {"path.delay": "20ms"}, end=measured, repetition=at) for at in range(3)]
    result = analyse(record(exact(0, [MS]), *others))
    assert not {"cpu_client", "cpu_server"} & set(result.cells[0].estimates)
    (processor,) = processor_tables(result)
    assert processor.rows[0][-2:] == ["not measured", "not measured"]
    (trust,) = trust_tables(result)
    column = trust.headings.index("hosts waited")
    assert trust.rows[0][column] == "not measured"
    assert trust.rows[1][column] != "not measured"
    assert processor_tables(analyse(record(exact(0, [MS])))) == []


def test_fits_take_exact_cells_as_they_are() -> None:
    parameters = {"workload": {"kind": "echo", "transport": "tcp"}}
    first = replace(
        run(0, echoes([20 * MS] * 30), {"path.loss": "0%"}, end=VIRTUAL_END, parameters=parameters), exact=True
    )
    others = [
        run(
            number,
            echoes([round((20 + 3 * 2 ** (loss / 5)) * MS) + (at * 7919 + again * 31) % MS for at in range(30)]),
            {"path.loss": f"{loss}%"},
            repetition=again,
            parameters={**parameters, "path": {"forward": {"loss": loss / 100}, "reverse": {"loss": loss / 100}}},
        )
        for number, loss in enumerate((5, 10, 15), start=1)
        for again in range(4)
    ]
    fit = {
        "title": "f", "model": "caia-exponential", "metric": "rtt", "x": "path.loss", "by": "workload.size",
        "over": "workload.transport", "where": {}, "note": None, "published": [], "cells": [0, 1, 2, 3],
    }  # fmt: skip
    (made,) = analyse(record(first, *others, fits=[fit])).of(Fit)
    reason = made.rows[0].c.reason or ""
    assert "repetitions of each cell" not in reason
