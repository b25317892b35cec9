"""Questions that a study declares, from its file to the report, on data whose answer is known: both ways."""

import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.decisions.statement import range_of
from crosswind.execution.planning import presentation
from crosswind.findings.pipeline import analyse
from crosswind.findings.question.chart import answer_chart
from crosswind.findings.question.export import answers_frame
from crosswind.findings.question.fastest import last_lines
from crosswind.findings.question.judge import answers_of
from crosswind.findings.question.result import Answer
from crosswind.findings.question.show import answer_table
from crosswind.findings.question.statement import OF_QUESTION, rounded
from crosswind.findings.question.words import what_of
from crosswind.report.run_page import render as render_html
from crosswind.study.design import Study
from records import MS, context_of, echoes, finished, path, record, runs, transfers
from screens import render

FACTOR = "workload.transport"
SPREAD = (-0.02, 0.01, 0.0, 0.02, -0.01, 0.005, -0.005, 0.015, -0.015, 0.0)
"""By how much the repetitions of a cell are off, as a share of its mean; each cell has them in an order of its own."""


def cell(index: int, mean_ms: float, level: str, *, spread: float = 1.0, repetitions: int = 10, **levels: str):
    """Repetitions of a cell over UDP, of ten echoes each."""
    offsets = np.random.default_rng(index).permutation(SPREAD)[:repetitions] * spread
    rtts = [round(mean_ms * MS * (1 + offset)) for offset in offsets]
    parameters = {"path": path(), "workload": {"kind": "echo", "transport": "udp"}}
    return runs(index, [echoes([rtt] * 10) for rtt in rtts], {FACTOR: level, **levels}, parameters=parameters)


def asked(*levels: str, cells: int = 2, each: dict[str, list[int]] | None = None, **fields: Any) -> dict[str, Any]:
    """A question about the round-trip time of the first `cells` cells, as a plan has it: is the second less?"""
    names = levels or ("a", "b")
    of = each or {name: [at] for at, name in enumerate(names)}
    is_ratio, yes = fields.pop("is_ratio", True), fields.get("yes", "less")
    needed = range_of(yes, fields.get("bound"), is_ratio=is_ratio)
    given = {
        "asks": "Is it so?", "metric": "rtt", "statistic": "mean", "factor": FACTOR, "yes": yes,
        "scale": "ratio" if is_ratio else "difference", "low": needed.low, "high": needed.high,
        "inside": needed.inside, "is_open": needed.is_open,
        "compare": [{"level": name, "cells": of[name]} for name in names], "where": {}, "note": "",
        "cells": list(range(cells)),
    }  # fmt: skip
    return given | fields


def answer_of(question: dict[str, Any], *cells: Any) -> Answer:
    (answer,) = answers_of(context_of(record(*(run for one in cells for run in one), questions=[question])))
    return answer


@pytest.mark.parametrize(
    ("fields", "means_ms", "expected"),
    [
        ({}, (10, 9), "yes"),
        ({}, (10, 11), "no"),
        ({}, (10, 10), "cannot tell"),
        ({"yes": "more"}, (10, 11), "yes"),
        ({"yes": "more"}, (10, 9), "no"),
        ({"yes": "more"}, (10, 10), "cannot tell"),
        ({"yes": "different"}, (10, 11), "yes"),
        ({"yes": "different"}, (10, 9), "yes"),
        ({"yes": "different"}, (10, 10), "cannot tell"),
        # A margin is the smallest difference that matters: what is less by less than that is a no.
        ({"margin": "5%", "bound": 0.05}, (10, 9), "yes"),
        ({"margin": "20%", "bound": 0.20}, (10, 9), "no"),
        ({"margin": "11%", "bound": 0.11}, (10, 9), "cannot tell"),
        ({"margin": "5%", "bound": 0.05}, (10, 10), "no"),
        ({"margin": "5%", "bound": 0.05, "yes": "different"}, (10, 10), "no"),
        ({"margin": "5%", "bound": 0.05, "yes": "different"}, (10, 11), "yes"),
        ({"margin": "5%", "bound": 0.05, "yes": "same"}, (10, 10), "yes"),
        ({"margin": "5%", "bound": 0.05, "yes": "same"}, (10, 11), "no"),
        ({"margin": "5%", "bound": 0.05, "yes": "same"}, (10, 10.5), "cannot tell"),
        ({"is_ratio": False}, (10, 9), "yes"),
        ({"is_ratio": False, "margin": "2ms", "bound": 2e6}, (10, 9), "no"),
        ({"is_ratio": False, "margin": "0.5ms", "bound": 0.5e6}, (10, 9), "yes"),
        ({"statistic": "median"}, (10, 9), "yes"),
        ({"statistic": "median"}, (10, 11), "no"),
    ],
)  # fmt: skip
def test_every_kind_of_question_is_answered_either_way(
    fields: dict[str, Any], means_ms: tuple[float, float], expected: str
) -> None:
    found = answer_of(asked(**fields), cell(0, means_ms[0], "a"), cell(1, means_ms[1], "b"))
    assert found.verdict == expected


def test_what_is_the_same_every_time_is_not_left_open() -> None:
    """Of six repetitions without an exception, most are like them: 0.5^6, twice, is below 5 %; of five it is not."""

    def same(repetitions: int, other_ms: float = 10, **fields: Any) -> Answer:
        two = [cell(at, mean, level, spread=0, repetitions=repetitions) for at, (mean, level) in
               enumerate(((10, "a"), (other_ms, "b")))]  # fmt: skip
        return answer_of(asked(**fields), *two)

    found = same(6)
    assert (found.verdict, found.cases[0].constant) == ("no", True)
    assert found.cases[0].exceptions_at_most == pytest.approx(1 - 0.05 ** (1 / 6))
    assert found.sentence == (
        "No: the mean round-trip time with b is the same as with a (10.00 ms) in all 6 repetitions (sign test of 6 "
        "pairs); at most 39.3 % of repetitions may differ, with 95 % confidence."
    )
    assert [same(6, yes=yes).verdict for yes in ("more", "different")] == ["no", "no"]
    assert same(6, yes="same", margin="5%", bound=0.05).verdict == "yes"
    assert (same(5).verdict, same(5).cases[0].needed) == ("cannot tell", 6)
    # A difference that is the same every time is shown in the same way.
    assert (same(6, 9).verdict, same(6, 11).verdict) == ("yes", "no")
    assert same(6, 9, yes="different", margin="20%", bound=0.2).verdict == "no"
    # What lies just at the margin is the same.
    assert same(6, 12.5, yes="same", margin="25%", bound=0.25).verdict == "yes"
    assert same(6, 12.5, yes="different", margin="25%", bound=0.25).verdict == "no"


def test_what_is_the_same_every_time_is_corrected_over_all_cases() -> None:
    """Eight cases, of which seven are a yes: the last one is a no among eight that are not, as Holm's method has it."""

    def mixed(repetitions: int) -> Answer:
        cells = [
            cell(2 * at + side, mean, level, spread=0, repetitions=repetitions, **{"workload.size": str(at)})
            for at, other in enumerate([9.0] * 7 + [10.0])
            for side, (mean, level) in enumerate(((10.0, "a"), (other, "b")))
        ]
        each = {"a": list(range(0, 16, 2)), "b": list(range(1, 16, 2))}
        return answer_of(asked(each=each, cells=16, yes="different", margin="5%", bound=0.05), *cells)

    # 2 * 0.5^9 is below 5 % by 8, 2 * 0.5^8 is not; a yes needs as many.
    few, enough = mixed(8), mixed(9)
    assert [case.verdict for case in few.cases] == ["cannot tell"] * 8
    assert {case.needed for case in few.cases} == {9}
    assert [case.verdict for case in enough.cases] == ["yes"] * 7 + ["no"]


def test_two_repetitions_show_values_and_no_interval() -> None:
    two = cell(0, 10, "a", repetitions=2), cell(1, 9, "b", repetitions=2)
    found = answer_of(asked(), *two)
    assert (found.verdict, found.cases[0].effect.low, found.cases[0].pairs) == ("cannot tell", None, 2)
    assert found.sentence == (
        "Cannot tell from 2 repetitions: the mean round-trip time is 8.865 to 8.910 ms with b and 9.900 to 9.950 ms "
        "with a; it takes at least 3 (--repetitions 3)."
    )
    one = cell(0, 10, "a", repetitions=1), cell(1, 9, "b", repetitions=1)
    assert answer_of(asked(), *one).sentence == (
        "Cannot tell from 1 repetition: the mean round-trip time is 8.865 ms with b and 9.900 ms with a; it takes at "
        "least 3 (--repetitions 3)."
    )


def test_the_figure_of_an_answer_says_what_its_dots_are() -> None:
    made = record(*cell(0, 10, "a"), *cell(1, 9, "b"), questions=[asked()])
    result = analyse(made)
    chart = answer_chart(result.of(Answer)[0], result)
    assert chart is not None
    assert chart.notes == ("Dot: the mean round-trip time. Line: its 95 % interval.",)


def test_a_few_nanoseconds_beside_milliseconds_are_less_than_a_microsecond() -> None:
    made = runs(1, [echoes([nanoseconds] * 5) for nanoseconds in (3, 5)], {FACTOR: "b"})
    assert answer_of(asked(), cell(0, 10, "a", repetitions=2), made).sentence.startswith(
        "Cannot tell from 2 repetitions: the mean round-trip time is less than 1 µs with b and 9.900 to 9.950 ms with a"
    )


def lossy(index: int, rtts_ms: list[float], level: str):
    """A cell over TCP with 5 % loss, whose mean takes 20 repetitions for an interval."""
    parameters = {"path": path(loss=0.05), "workload": {"kind": "echo", "transport": "tcp"}}
    return runs(index, [echoes([round(rtt * MS)] * 10) for rtt in rtts_ms], {FACTOR: level}, parameters=parameters)


def test_without_an_interval_of_the_mean_the_answer_is_about_most_repetitions() -> None:
    """One of eight pairs is far slower, so that the mean is larger; seven of eight are not enough, eight are."""
    slow = lossy(0, [10, 11, 10, 12, 10, 11, 10, 12], "a")
    mostly = answer_of(asked(), slow, lossy(1, [9, 10, 9, 11, 9, 10, 9, 80], "b"))
    assert (mostly.verdict, mostly.cases[0].needed) == ("cannot tell", 12)
    assert mostly.sentence == (
        "Cannot tell: a repetition's mean round-trip time is lower with b than with a in 7 of 8 (sign test); the "
        "median of the ratios is 0.9 [0.9, 6.7]; about 4 more repetitions would decide (--repetitions 12)."
    )
    all_of_them = answer_of(asked(), slow, lossy(1, [9, 10, 9, 11, 9, 10, 9, 11], "b"))
    assert all_of_them.verdict == "yes"
    assert all_of_them.sentence == (
        "Yes, in most repetitions: a repetition's mean round-trip time is lower with b than with a in 8 of 8 (sign "
        "test, p = 0.008); the median of the ratios is 0.905 [0.900, 0.917]."
    )
    many = answer_of(asked(), lossy(0, [10, 11] * 7, "a"), lossy(1, [9, 10] * 7, "b"))
    assert "in 14 of 14 (sign test, p < 0.001)" in (many.sentence or "")
    few = answer_of(asked(), lossy(0, [10, 11, 10], "a"), lossy(1, [9, 10, 9], "b"))
    assert (few.verdict, few.cases[0].needed) == ("cannot tell", 6)
    assert few.sentence.endswith(
        "3 repetitions each, too few for an interval; about 3 more repetitions would decide (--repetitions 6)."
    )


def test_an_answer_about_most_repetitions_says_between_what_they_lie() -> None:
    """The article's tests 1 and 2: from 94 Mbit/s to some three."""

    def flows(index: int, rates: list[float], level: str, loss: float):
        workload = {"kind": "transfer", "transport": "tcp", "duration_ns": 8_000 * MS}
        parameters = {"path": path(loss=loss, rate_bps=10**8), "workload": workload}
        return runs(index, [transfers([rate * 1e6]) for rate in rates], {FACTOR: level}, parameters=parameters)

    slow = [2.88, 3.1, 6.4, 4.2, 2.61, 3.3, 16.1, 5.0]
    found = answer_of(asked(metric="goodput"), flows(0, [94.2] * 8, "a", 0.0), flows(1, slow, "b", 0.1))
    assert found.sentence.startswith(
        "Yes, in most repetitions: a repetition's mean goodput is lower with b (2.6 to 16.1 Mbit/s) than with a "
    )


@pytest.mark.parametrize(
    ("at_most", "said"), [(25, ", with at_most = 25 raised in the study's [[repetitions]]"), (26, "")]
)
def test_a_limit_of_the_study_is_named_where_more_repetitions_would_decide(at_most: int, said: str) -> None:
    text = f"""
study.repetitions = 10
path.delay = "10ms"
workload = {{ kind = "echo", transport = ["tcp", "udp"] }}
[[question]]
asks = "Is it so?"
metric = "rtt"
factor = "workload.transport"
compare = ["tcp", "udp"]
yes = "less"
[[repetitions]]
where = {{ "workload.transport" = "udp" }}
at_most = {at_most}
[[repetitions]]
where = {{}}
at_most = 100
"""
    shown = presentation(Study.from_toml(text, name="limited"))
    two = [*cell(0, 10, "tcp"), *cell(1, 9.9, "udp")]
    result = analyse(record(*two, questions=shown["asked"]["question"], limits=shown["limits"]))
    (answer,) = result.of(Answer)
    assert answer.sentence.endswith(f"about 16 more repetitions would decide (--repetitions 26{said}).")
    assert last_lines(result)[0].endswith(f"; --repetitions 26{said} would decide")


def test_how_many_more_repetitions_would_tell() -> None:
    found = answer_of(asked(), cell(0, 10, "a"), cell(1, 9.9, "b"))
    assert found.verdict == "cannot tell"
    (case,) = found.cases
    assert case.needed is not None
    more = rounded(case.needed - 10)
    assert found.sentence.endswith(
        f", 10 repetitions each; about {more} more repetitions would decide (--repetitions {10 + more})."
    )
    # With as many, most runs of the same kind show it: 80 % by design; 9 or fewer of 20 have a probability of 0.1 %.
    rng = np.random.default_rng(3)
    differences = 10 * MS * (1 + 0.0125 * rng.standard_normal((2, 20, case.needed)))
    shown = 0
    for at in range(20):
        both = [
            runs(index, [echoes([round(rtt * scale)] * 10) for rtt in differences[index, at]], {FACTOR: level})
            for index, (scale, level) in enumerate(((1.0, "a"), (0.99, "b")))
        ]
        shown += answer_of(asked(), *both).verdict == "yes"
    assert shown > 9


@pytest.mark.parametrize(
    ("repetitions", "said"), [(3, 3), (20, 20), (21, 25), (38, 40), (51, 60), (187, 190), (201, 250)]
)
def test_a_number_of_repetitions_is_as_exact_as_it_is_known(repetitions: int, said: int) -> None:
    assert rounded(repetitions) == said


LOST = {"metric": "lost", "is_ratio": False}


def failing(index: int, level: str, shares: list[int], **levels: str):
    """Repetitions of ten echoes, of which so many time out."""
    tables = [echoes([None] * lost + [10 * MS + at] * (10 - lost)) for at, lost in enumerate(shares)]
    return runs(index, tables, {FACTOR: level, **levels})


def test_shares_are_compared_in_percentage_points() -> None:
    found = answer_of(asked(**LOST, yes="more"), cell(0, 10, "a"), failing(1, "b", [2, 3, 1, 2, 4, 2, 3, 2, 1, 3]))
    assert (found.verdict, found.cases[0].effect.value) == ("yes", pytest.approx(0.23))
    said = found.sentence
    assert said.startswith(
        "Yes: the share of exchanges that failed with b is 23 [13, 33] percentage points higher than"
    )
    assert said.endswith(" with a (23 % against 0 %), 10 repetitions each.")
    none = answer_of(asked(**LOST, yes="more"), cell(0, 10, "a"), cell(1, 9, "b"))
    assert (none.verdict, none.cases[0].constant) == ("no", True)


def test_a_mean_is_without_the_exchanges_that_failed_and_says_so() -> None:
    found = answer_of(asked(), cell(0, 10, "a"), failing(1, "b", [1] * 10))
    assert ", 10 repetitions each, without the exchanges that failed (10 with b)" in found.sentence
    by_median = answer_of(asked(statistic="median"), cell(0, 10, "a"), failing(1, "b", [1] * 10))
    assert "failed" not in by_median.sentence


def test_a_quantile_needs_its_messages_in_each_repetition() -> None:
    two = cell(0, 10, "a"), cell(1, 9, "b")
    found = answer_of(asked(statistic="p95"), *two)
    assert (found.verdict, found.cases[0].effect.value) == ("cannot tell", None)
    assert found.sentence == "Cannot tell: to compare p95, each repetition needs 100 messages, one has 10."
    rng = np.random.default_rng(1)
    many = [
        runs(at, [echoes([round(MS * rng.normal(mean, 0.1)) for _ in range(100)]) for _ in range(6)], {FACTOR: level})
        for at, (mean, level) in enumerate(((10, "a"), (9, "b")))
    ]
    found = answer_of(asked(statistic="p95"), *many)
    assert found.verdict == "yes"
    assert found.sentence.startswith("Yes: the p95 round-trip time with b is 0.90")


def test_where_nothing_succeeded_nobody_can_tell() -> None:
    lost = runs(1, [echoes([None] * 5)] * 10, {FACTOR: "b"})
    found = answer_of(asked(), cell(0, 10, "a"), lost)
    assert (found.verdict, found.sentence) == ("cannot tell", "Cannot tell: no exchange succeeded with b.")
    both = answer_of(asked(), runs(0, [echoes([None] * 5)] * 10, {FACTOR: "a"}), lost)
    assert both.sentence == "Cannot tell: no exchange succeeded."
    failed = runs(1, [None] * 3, {FACTOR: "b"})  # type: ignore[list-item]
    assert answer_of(asked(), cell(0, 10, "a"), failed).verdict == "cannot tell"


def exact(index: int, rtt_ms: float, level: str):
    """An exact cell over TCP: one repetition that would come out the same every time."""
    made = runs(index, [echoes([round(rtt_ms * MS)] * 10)], {FACTOR: level})
    return [replace(one, exact=True) for one in made]


@pytest.mark.parametrize(
    ("other_ms", "fields", "expected", "said"),
    [
        (9, {}, "yes", "Yes: the mean round-trip time with b is exactly 0.9 times that with a (9 ms against "
         "10 ms); both are exact."),
        (11, {}, "no", "No: the mean round-trip time with b is exactly 1.1 times"),
        (10, {}, "no", "No: the mean round-trip time with b is the same as with a (10 ms); both are exact."),
        (10, {"yes": "different"}, "no", "No: the mean"),
        (9.9, {"margin": "5%", "bound": 0.05}, "no", "No: the mean round-trip time with b is exactly 0.99 times "
         "that with a (9.9 ms against 10 ms), less than the 5 % that matters; both are exact."),
        (9.9, {"margin": "5%", "bound": 0.05, "yes": "same"}, "yes", "Yes: the mean"),
    ],
)  # fmt: skip
def test_exact_cells_are_compared_as_numbers(other_ms: float, fields: dict[str, Any], expected: str, said: str) -> None:
    found = answer_of(asked(**fields), exact(0, 10, "a"), exact(1, other_ms, "b"))
    (case,) = found.cases
    assert (found.verdict, case.p_yes, case.p_no, case.needed) == (expected, None, None, None)
    assert found.sentence.startswith(said)


def test_an_exact_cell_beside_a_random_one_is_a_constant() -> None:
    found = answer_of(asked(), exact(0, 10, "a"), cell(1, 9, "b"))
    assert found.verdict == "yes"
    assert found.sentence.endswith("; one is exact, the other from 10 repetitions.")


def three_sizes(last_ms: float = 10.0) -> list[Any]:
    """Three sizes, of which b is faster in two, and as given in the last."""
    return [
        cell(2 * at + side, mean, level, **{"workload.size": str(at)})
        for at, other in enumerate((9.0, 9.2, last_ms))
        for side, (mean, level) in enumerate(((10.0, "a"), (other, "b")))
    ]


THREE = {"each": {"a": [0, 2, 4], "b": [1, 3, 5]}, "cells": 6}


@pytest.mark.parametrize(
    ("last_ms", "verdict", "said"),
    [
        (9.1, "yes", "Yes, in all 3 cases (size 0; size 1; size 2): the mean round-trip time with b is "
         "0.900 to 0.920 times that with a (9.00 to 9.20 against 10.0 ms), 10 repetitions each."),
        (12.0, "mixed", "Yes in 2 of 3 cases (size 0; size 1), no in 1 (size 2): the mean round-trip time with b is "
         "0.900 to 1.200 times that with a (9.0 to 12.0 against 10.0 ms), 10 repetitions each."),
        (9.95, "mixed", "Yes in 2 of 3 cases (size 0; size 1), cannot tell in 1 (size 2): the mean round-trip time "
         "with b is 0.900 to 0.995 times that with a (9.00 to 9.95 against 10.0 ms), 10 repetitions each; where it "
         "cannot tell, about "),
    ],
)  # fmt: skip
def test_of_several_cases_the_answer_counts(last_ms: float, verdict: str, said: str) -> None:
    found = answer_of(asked(**THREE), *three_sizes(last_ms))
    assert found.verdict == verdict
    assert found.sentence.startswith(said)
    table = answer_table(found)
    assert table is not None
    assert [row[0] for row in table.rows] == ["size 0", "size 1", "size 2"]
    assert table.rows[0][1:4] == ["10.00 ms", "9.00 ms", "0.900 [0.890, 0.910]"]
    assert table.rows[0][-2] == "yes"


def test_several_levels_are_compared_with_the_reference() -> None:
    question = asked("a", "b", "c", cells=3)
    found = answer_of(question, cell(0, 10, "a"), cell(1, 9, "b"), cell(2, 11, "c"))
    assert [(case.sides[1].level, case.verdict) for case in found.cases] == [("b", "yes"), ("c", "no")]
    assert found.sentence.startswith(
        "Yes in 1 of 2 cases (b), no in 1 (c): the mean round-trip time with b or c is 0.900 to 1.100 times that with a"
    )


def test_questions_are_corrected_for_each_other() -> None:
    """What one question answers by itself is not sure enough among forty."""
    both = cell(0, 10, "a"), cell(1, 9.86, "b")
    alone = answer_of(asked(), *both)
    assert alone.verdict == "yes"
    made = record(*(run for one in both for run in one), questions=[asked()] * 40)
    together = analyse(made).of(Answer)
    assert {answer.verdict for answer in together} == {"cannot tell"}
    assert together[0].cases[0].p_yes == pytest.approx(min(1.0, 40 * (alone.cases[0].p_yes or 0)))


@pytest.mark.parametrize(
    ("question", "why"),
    [
        (asked("a", "c", each={"a": [0], "c": []}), "this run has no cell with workload.transport c"),
        (asked(cells=0, each={"a": [], "b": []}, where={"path.loss": "9%"}), "this run has no cell with path.loss 9%"),
        (asked("a", "b", each={"a": [7], "b": [8]}, cells=9), "none of its cells was executed"),
        (asked(metric="goodput"), "its cells do not have the metric goodput"),
        (asked("a", "b", each={"a": [0], "b": [2]}, cells=3),
         "this run has no two cells that differ in workload.transport alone"),
    ],
)  # fmt: skip
def test_what_a_run_does_not_have_is_said(question: dict[str, Any], why: str) -> None:
    cells = cell(0, 10, "a"), cell(1, 9, "b"), cell(2, 9, "b", **{"workload.size": "5"})
    made = record(*(run for one in cells for run in one), questions=[question])
    result = analyse(made)
    assert (result.of(Answer)[0].verdict, result.of(Answer)[0].reason) == ("cannot tell", why)
    said = " ".join(render(result).split())
    assert f"Not answered by this run: “Is it so?” ({why})." in said
    assert "Median round-trip time" in said  # what a run without questions says
    assert why in render_html(made, result)


def test_terminal_page_json_and_frame_open_with_the_answer() -> None:
    question = asked(asks="Is b faster than a?", note="A remark on it.")
    made = record(*cell(0, 10, "a"), *cell(1, 9, "b"), questions=[question])
    result = analyse(made)
    lines = render(result).splitlines()
    assert lines[2] == "Is b faster than a?"
    assert lines[3].startswith("  Yes: the mean round-trip time with b is 0.900 [0.890, 0.910] times")
    page = render_html(made, result)
    assert page.index("Is b faster than a?") < page.index("<strong>Yes</strong>: the mean") < page.index("2 cells, 20")
    assert "A remark on it." in page
    assert page.index("<strong>Yes</strong>: the mean") < page.index('id="chart-0"') < page.index("2 cells, 20")
    assert page.count("<strong>Yes</strong>") == 1
    (answer,) = json.loads(result.to_json())["answers"]
    assert answer["sentence"] == result.of(Answer)[0].sentence
    frame = answers_frame(result)
    assert frame.select("asks", "answer", "verdict", "reference", "other", "repetitions").row(0) == (
        "Is b faster than a?", "yes", "yes", "a", "b", 10,
    )  # fmt: skip
    assert frame["effect"].item() == pytest.approx(0.9)


def test_the_figure_that_a_study_names_shows_the_answer() -> None:
    figure = {
        "title": "By connection",
        "metric": "rtt",
        "x": "workload.connection",
        "series": FACTOR,
        "cells": [0, 1, 2, 3],
    }
    cells = [
        cell(2 * at + side, mean + at, level, **{"workload.connection": ("kept", "new")[at]})
        for at in (0, 1)
        for side, (mean, level) in enumerate(((10, "a"), (9, "b")))
    ]
    question = asked(each={"a": [0, 2], "b": [1, 3]}, cells=4, figure="By connection")
    made = record(*(run for one in cells for run in one), questions=[question], figures=[figure])
    page = render_html(made, analyse(made))
    assert page.count("By connection</figcaption>") == 1
    assert page.index("By connection</figcaption>") < page.index("<h2>Round-trip time")
    assert "<h2>Figures</h2>" not in page


REPETITIONS = st.lists(
    st.none() | st.lists(st.sampled_from([None, 1, 1, 5, 9]), min_size=1, max_size=12), min_size=1, max_size=5
)
QUESTIONS = st.fixed_dictionaries({
    "yes": st.sampled_from(["less", "more", "different"]),
    "statistic": st.sampled_from(["mean", "median", "p95", "trimmed_mean"]),
    "metric": st.sampled_from(["rtt", "lost", "goodput", "head_of_line", "delayed_share"]),
    "is_ratio": st.booleans(),
    "bound": st.sampled_from([None, 0.05]),
})  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(REPETITIONS, REPETITIONS, QUESTIONS)
def test_whatever_was_measured_a_question_is_answered_in_a_sentence(
    a: list[list[int | None] | None], b: list[list[int | None] | None], fields: dict[str, Any]
) -> None:
    """Round trips of some repetitions of two cells, ms; None: a timeout, or a repetition that failed."""
    tables = [
        [None if own is None else echoes([None if rtt is None else rtt * MS for rtt in own]) for own in side]
        for side in (a, b)
    ]
    fields["is_ratio"] = fields["is_ratio"] and fields["metric"] == "rtt"
    margin = {"margin": "5%"} if fields["bound"] else {}
    if fields["metric"] != "rtt" and fields["statistic"] != "mean":
        fields["statistic"] = "mean"
    question = asked(**fields, **margin)
    cells = [*runs(0, tables[0], {FACTOR: "a"}), *runs(1, tables[1], {FACTOR: "b"})]
    result = analyse(record(*cells, questions=[question]))
    (answer,) = result.of(Answer)
    said = answer.sentence
    assert said.endswith(".")
    assert said.startswith(tuple(OF_QUESTION.values()))
    assert "None" not in said
    assert "nan" not in said
    assert min(len(a), len(b)) >= 3 or answer.verdict == "cannot tell"
    assert "Is it so?" in render(result)


def test_an_answer_from_cells_that_are_not_valid_says_so() -> None:
    late = finished(valid=False, reasons=["delay error p99 3 ms is over the budget of 1 ms"])
    rtts = [9 * MS + at for at in range(10)]
    doubtful = runs(1, [echoes([rtt] * 10) for rtt in rtts], {FACTOR: "b"}, end=late)
    found = answer_of(asked(), cell(0, 10, "a"), doubtful)
    assert not found.cases[0].sides[1].valid
    assert found.sentence.endswith(", 10 repetitions each; it has invalid cells.")


@pytest.mark.parametrize(
    ("metric", "statistic", "words"),
    [
        ("page_load", "median", "median page load time"),
        ("rtt", "p95", "p95 round-trip time"),
        ("handshake_transport", "mean", "mean TCP handshake"),
        ("delayed_share", "mean", "share of exchanges delayed"),
        ("lost", "mean", "share of exchanges that failed"),
        ("cpu_client", "mean", "client's processor time for each message"),
    ],
)
def test_what_is_compared_in_words(metric: str, statistic: str, words: str) -> None:
    found = answer_of(asked(metric=metric, statistic=statistic), cell(0, 10, "a"), cell(1, 9, "b"))
    assert what_of(found) == words


def test_the_terminal_leaves_no_question_out() -> None:
    """What has no room in full is its verdict alone; with every table above the screen all are whole."""
    questions = [asked(asks=f"Is it so, as question {number} of them all asks?") for number in range(1, 9)]
    result = analyse(record(*cell(0, 10, "a"), *cell(1, 9, "b"), questions=questions))
    lines = render(result).splitlines()
    assert [line for line in lines if line.startswith("Is it so")] == [question["asks"] for question in questions]
    assert lines.count("  Yes.") == 6
    assert sum(line.startswith("  Yes: the mean round-trip time") for line in lines) == 2
    assert "  Yes." not in render(result, everything=True).splitlines()


@pytest.mark.parametrize(("repetitions", "verdict", "needed"), [(5, "cannot tell", 6), (6, "yes", None)])
def test_two_values_again_and_again_take_six_repetitions(repetitions: int, verdict: str, needed: int | None) -> None:
    """The second is 1 or 2 ms less every time, which Student's t takes for enough from three repetitions on."""
    levels = ({FACTOR: "a"}, {FACTOR: "b"})
    slow = runs(0, [echoes([10 * MS] * 10)] * repetitions, levels[0])
    fast = runs(1, [echoes([(9 - at % 2) * MS] * 10) for at in range(repetitions)], levels[1])
    (case,) = answer_of(asked(is_ratio=False), slow, fast).cases
    assert (case.verdict, case.needed) == (verdict, needed)


def last_line(question: dict[str, Any], *cells: Any) -> str:
    (line,) = last_lines(analyse(record(*(run for one in cells for run in one), questions=[question])))
    return line


def test_a_run_ends_with_how_many_times_as_fast_one_level_is() -> None:
    # The pairs' ratios spread; the inverse of 8 to 10 is 1.25, and its limits are inverted and swapped.
    faster = last_line(asked(), cell(0, 10, "a"), cell(1, 8, "b"))
    slower = last_line(asked(), cell(0, 8, "a"), cell(1, 10, "b"))
    value, low, high = (float(number) for number in re.findall(r"[\d.]+", faster)[:3])
    assert (faster.split()[0], slower.split()[0]) == ("b", "a")
    assert faster.endswith("times as fast as a") and slower.endswith("times as fast as b")
    assert 1.2 < low < value < high < 1.3
    assert value == pytest.approx(1.25, abs=0.01)


def test_what_is_the_same_every_time_is_as_fast_in_the_last_line() -> None:
    equal = last_line(asked(), *(cell(at, 10, level, spread=0) for at, level in enumerate("ab")))
    assert equal == "b is as fast as a (in all 10 repetitions)"
    few = last_line(asked(), *(cell(at, 10, level, spread=0, repetitions=5) for at, level in enumerate("ab")))
    assert few == (
        "b is as fast as a (in all 5 repetitions), but this run is inconclusive; --repetitions 6 would decide"
    )


def test_a_last_line_says_what_would_decide() -> None:
    line = last_line(asked(), cell(0, 10, "a"), cell(1, 9.995, "b"))
    assert re.fullmatch(r".*, but this run is inconclusive; --repetitions \d+ would decide", line), line


def test_differences_have_no_last_line() -> None:
    question = asked(is_ratio=False)
    runs_of_both = (*cell(0, 10, "a"), *cell(1, 8, "b"))
    assert last_lines(analyse(record(*runs_of_both, questions=[question]))) == []
