"""Statements of documents, from study file to report, on data whose truth is known: both ways."""

import math
import re
from itertools import product
from typing import Any

import numpy as np
import pytest

from crosswind.analysis.designs import design_of
from crosswind.analysis.effects import Predicted, mean_error, over_model
from crosswind.analysis.settings import CellSettings
from crosswind.catalog.metrics import METRICS
from crosswind.errors import StudyError
from crosswind.execution.options import RunOptions
from crosswind.execution.planning import presentation
from crosswind.execution.session import start
from crosswind.findings.pipeline import analyse
from crosswind.findings.question.judge import answers_of
from crosswind.findings.question.result import Answer
from crosswind.findings.question.verdicts import Judged, lines, statements_of, tally_of
from crosswind.findings.threshold.result import ThresholdResult
from crosswind.stats.design import mean_shortage
from crosswind.stats.estimate import Interval
from crosswind.study.design import Study
from effects import effect_of
from records import MS, context_of, echoes, path, record, runs, transfers

FACTOR = "path.loss"
SPREAD = (-0.02, 0.01, 0.0, 0.02, -0.01, 0.005, -0.005, 0.015)
"""By how much the repetitions of a cell are off, as a share of its mean; each cell has them in an order of its own."""


def cell(index: int, mean_ms: float, level: str | None = None, *, spread: float = 1.0, **levels: str):
    """Eight repetitions of a cell over UDP, of five echoes each."""
    offsets = np.random.default_rng(index).permutation(SPREAD) * spread
    rtts = [round(mean_ms * MS * (1 + offset)) for offset in offsets]
    own = levels | ({} if level is None else {FACTOR: level})
    place = path(delay_ns=round(float(levels.get("path.delay", "0ms").removesuffix("ms")) * MS))
    parameters = {"path": place, "workload": {"kind": "echo", "transport": "udp"}}
    return runs(index, [echoes([rtt] * 5) for rtt in rtts], own, parameters=parameters)


def says(cells: int, **fields: Any) -> dict[str, Any]:
    """A statement about the round-trip time of the first `cells` cells, as a plan has it."""
    given = {"asks": "It is so.", "source": "A paper", "metric": "rtt", "yes": "within", "scale": "ratio",
             "factor": FACTOR, "cells": list(range(cells))}  # fmt: skip
    return given | fields


def verdict_of(statement: dict[str, Any], *cells: Any) -> Answer:
    (judged,) = answers_of(context_of(record(*(run for cell in cells for run in cell), questions=[statement])))
    return judged


def of_times(*means_ms: float, spread: float = 1.0) -> list[Any]:
    return [cell(index, mean, f"{index}%", spread=spread) for index, mean in enumerate(means_ms)]


def test_a_model_is_what_the_statistic_is_divided_by() -> None:
    place = path(delay_ns=25 * MS, loss=0.01)
    workload = {"kind": "transfer", "transport": "tcp", "duration_ns": 10**10}
    parameters = {"path": place, "workload": workload, "host": {"congestion_control": "reno"}}
    tables = [transfers([rate]) for rate in np.linspace(2.9e6, 3.1e6, 60)]
    made = runs(0, tables, parameters=parameters)
    statement = says(1, scale="model", factor=None, metric="goodput", model="mathis", low=0.5, high=2.0)
    judged = verdict_of(statement, made)
    (prediction,) = analyse(record(*made, models=["mathis"])).cells[0].models
    assert judged.cases[0].effect.value == pytest.approx(3e6 / prediction.value)
    assert judged.cases[0].violated == prediction.violated
    inside = 0.5 < 3e6 / prediction.value < 2
    assert judged.verdict == ("yes" if inside else "no")
    other = verdict_of(statement | {"metric": "total"}, made)
    assert (other.verdict, other.cases) == ("cannot tell", [])
    assert other.reason == "its cells do not have the metric total"


def test_the_limits_of_a_mean_error_are_what_the_intervals_of_the_cells_allow() -> None:
    def of(value: float, low: float | None, high: float | None, method: str = "m") -> Interval:
        return Interval(
            value=value, low=low, high=high, n=8, level=0.95, method=method, reason="few" if high is None else None
        )

    def ends(*measured: Interval, predicted: float = 1.0) -> tuple[float | None, float | None]:
        made = mean_error(measured, [Predicted(predicted, predicted, predicted)] * len(measured))
        return made.low, made.high

    one = Predicted(1.0, 1.0, 1.0)
    # 1 / 0.8 - 1 and 1 / 0.5 - 1; an interval that holds the prediction allows no error at all.
    assert ends(of(0.6, 0.5, 0.8)) == pytest.approx((0.25, 1.0))
    assert ends(of(1.5, 0.8, 2.0)) == pytest.approx((0.0, 0.5))
    assert ends(of(0.6, 0.5, 0.8), of(1.5, 0.8, 2.0)) == pytest.approx((0.125, 0.75))
    # What lasts 2 s at least is off by a half at least, and by less than the whole.
    assert ends(of(3.0, 2.0, None)) == pytest.approx((0.5, 1.0))
    # What lasts 0.5 s at least may be the second that was predicted, or be off by as much as 1.
    assert ends(of(3.0, 0.5, None)) == pytest.approx((0.0, 1.0))
    assert mean_error([of(3.0, None, None)], [one]).high is None
    exact = mean_error([of(0.8, None, None, "exact"), of(1.25, None, None, "exact")], [one, one])
    assert (exact.is_exact, exact.value) == (True, pytest.approx((0.25 + 0.2) / 2))


def test_the_limits_of_a_simulated_mean_widen_what_is_compared_with_it() -> None:
    measured = Interval(value=1.0, low=0.8, high=1.2, n=8, level=0.95, method="m", units=8)
    ratio = over_model(measured, Predicted(1.0, 0.9, 1.1))
    assert (ratio.value, ratio.low, ratio.high) == pytest.approx((1.0, 0.8 / 1.1, 1.2 / 0.9))
    error = mean_error([measured], [Predicted(2.0, 1.8, 2.4)])
    assert (error.value, error.low, error.high) == pytest.approx((1.0, 0.5, 2.0))
    exact = Interval(value=1.0, low=None, high=None, n=8, level=0.95, method="exact", units=8)
    ratio = over_model(exact, Predicted(1.0, 0.9, 1.1))
    assert not ratio.is_exact
    assert (ratio.low, ratio.high) == pytest.approx((1 / 1.1, 1 / 0.9))
    unknown = over_model(measured, Predicted(1.0, 0.0, math.inf))
    assert (unknown.low, unknown.high) == (None, None)
    assert "too few" in unknown.reason


STUDY = """
title = "A study"
[path]
loss = ["0%", "5%"]
delay = ["0ms", "5ms"]
[workload]
kind = "echo"
size = [1, 50]
[[question]]
source = "A paper"
says = "So it is."
metric = "rtt"
"""


def test_an_unknown_model_of_a_statement_is_refused_before_anything_runs() -> None:
    study = Study.from_toml(STUDY + 'scale = "model"\nmodel = "mathi"\nat_most = 1\n', name="s")
    with pytest.raises(StudyError, match=r'question\[1\]\.model: "mathi" is not a model'):
        start(study, RunOptions())


@pytest.mark.parametrize(
    ("workload", "share"),
    [
        ({"kind": "echo", "transport": "tcp"}, 0.02),
        ({"kind": "echo", "transport": "udp"}, 0),
        ({"kind": "transfer", "transport": "tcp", "size_bytes": 1000}, 0.02),
        ({"kind": "transfer", "transport": "tcp", "size_bytes": 6000}, 1 - 0.98**4),
        ({"kind": "transfer", "transport": "tcp", "duration_ns": 1}, 1),
        (
            {"kind": "page", "transport": "http2", "html_bytes": 3000, "scripts_bytes": 0, "images_bytes": 3000},
            1 - 0.98**4,
        ),
        ({"kind": "page", "transport": "http2"}, 1 - 0.98**424),
    ],
)
def test_nearly_every_transfer_of_many_packets_loses_one(workload: dict[str, Any], share: float) -> None:
    cell = {"path": path(loss=0.02), "workload": workload}
    settings = CellSettings.of(cell, effect_of(cell))
    assert settings.delayed_share == pytest.approx(share)


def test_a_transfer_of_many_packets_has_a_handshake_of_few() -> None:
    """With 1 % of loss each way a SYN is rarely lost, whatever comes after it."""
    cell = {"path": path(loss=0.01), "workload": {"kind": "transfer", "transport": "tcp", "size_bytes": 400_000}}
    settings = CellSettings.of(cell, effect_of(cell))
    rates = {name: design_of(METRICS[name], settings).rate for name in ("transfer_time", "connect")}
    assert rates == {"transfer_time": pytest.approx(1 - 0.99**267), "connect": 0.01}
    # 50 lost packets are to be expected of 500 repetitions of 10 connections.
    short = mean_shortage(design_of(METRICS["handshake_transport"], settings), 20, 200)
    assert short is not None
    assert short.needed == 500


LITTLE = """[[question]]
source = "A paper"
says = "Loss matters little."
metric = "rtt"
factor = "path.loss"
yes = "same"
margin = "25%"
"""
DECLARED = f"""
[path]
delay = ["15ms", "50ms"]
loss = ["0%", "1%"]
[workload]
kind = "echo"
{LITTLE}[[question]]
asks = "Does loss matter?"
metric = "rtt"
factor = "path.loss"
yes = "same"
margin = "25%"
[[threshold]]
fail_if = "mean(rtt) > 25ms"
[quick]
"path.delay" = ["15ms"]
"""


def of_asked(asked: dict[str, Any], *cells: Any) -> tuple[Answer, Answer, ThresholdResult]:
    """What became of the statement, of the question, and of the threshold of DECLARED."""
    asked_for = {"questions": asked["question"], "thresholds": asked["threshold"]}
    result = analyse(record(*(run for cell in cells for run in cell), **asked_for))
    return (*result.of(Answer), *result.of(ThresholdResult))


def test_what_was_declared_of_more_cells_than_the_run_has_is_not_shown() -> None:
    """A quick variant without one of two delays: what its cells bear out is not shown; what contradicts it is."""
    quick = presentation(Study.from_toml(DECLARED, name="some").quick())["asked"]
    missing = [tuple(one["missing"]) for kind in ("question", "threshold") for one in quick[kind]]
    # A question has the levels that it compares, and is answered of the cells that there are.
    assert missing == [("path.delay 50ms",), (), ("path.delay 50ms",)]
    statement, question, threshold = of_asked(quick, *of_times(20.0, 20.5))
    absent = "this run has no cell with path.delay 50ms, but one without --quick has"
    assert [one.verdict for one in (statement, question, threshold)] == ["cannot tell", "yes", "inconclusive"]
    assert {case.verdict for case in (*statement.cases, *question.cases)} == {"yes"}
    assert statement.sentence.startswith("Cannot tell: Loss matters little. Mean round-trip time with loss 1% is")
    assert statement.sentence.endswith(f"; the statement needs 0.8 to 1.25; what was run agrees; {absent}.")
    assert tally_of([Judged([statement])]) == (
        "The document's statement is inconclusive: it holds in all cells of this run; others are missing."
    )
    assert threshold.sentence.endswith(f"; {absent}.")
    statement, question, threshold = of_asked(quick, *of_times(20.0, 40.0))
    assert [one.verdict for one in (statement, question, threshold)] == ["no", "no", "fail"]
    assert tally_of([Judged([statement])]) == "The document's statement does not hold."
    # Levels that --set has replaced are in no other run of the study.
    (other,) = presentation(Study.from_toml(DECLARED, name="some").with_overrides({"path.delay": "9ms"}))["asked"][
        "threshold"
    ]
    assert (other["missing"], other["is_quick"]) == (["path.delay 15ms", "path.delay 50ms"], False)
    # The whole study has all that it was declared for, until a cell of it is not executed.
    whole = presentation(Study.from_toml(DECLARED, name="some"))["asked"]
    assert not any(one.get("missing") for of in whole.values() for one in of)
    statement, _, _ = of_asked(whole, *of_times(20.0, 20.5))
    assert (statement.verdict, statement.reason) == ("cannot tell", "2 of its 4 cells were not executed")


OPEN = f"""
[path]
loss = ["0%", "1%"]
[host]
congestion_control = ["cubic", "reno"]
[workload]
kind = "echo"
{LITTLE}"""
CHOICE = """
[[question.choice]]
given = "{0}"
reason = "The paper does not name it."
where = {{ "host.congestion_control" = "{0}" }}
"""


@pytest.mark.parametrize(
    ("cubic_ms", "reno_ms", "verdict", "line"),
    [
        (20.5, 20.5, "yes", None),
        (40.0, 40.0, "no", "Does not hold: Loss matters little. Not with cubic (2."),
        (20.5, 40.0, "depends", "Depends: Loss matters little. Holds with cubic (1.025"),
        (40.0, 20.5, "depends", "Depends: Loss matters little. Holds with reno (1.025"),
    ],
)
def test_a_statement_has_a_verdict_for_each_choice_that_its_document_leaves_open(
    cubic_ms: float, reno_ms: float, verdict: str, line: str | None
) -> None:
    study = Study.from_toml(OPEN + CHOICE.format("cubic") + CHOICE.format("reno"), name="some")
    asked = presentation(study)["asked"]["question"]
    assert [(each["choice"], each["cells"]) for each in asked] == [("cubic", [0, 2]), ("reno", [1, 3])]
    times = zip((20.0, 20.0, cubic_ms, reno_ms), product(("0%", "1%"), ("cubic", "reno")), strict=True)
    cells = [
        cell(at, mean, loss, **{"host.congestion_control": control}) for at, (mean, (loss, control)) in enumerate(times)
    ]
    answers = analyse(record(*(run for own in cells for run in own), questions=asked)).of(Answer)
    (judged,) = statements_of(answers)
    assert judged.verdict == verdict
    assert list(lines([judged])) == ([] if line is None else [judged.line])
    assert line is None or (judged.line.startswith(line) and judged.line.endswith("(2 of 2 choices run)."))
    assert " with cubic: Loss matters little. " in str(answers[0].sentence)
    assert (
        tally_of([judged])
        == {
            "yes": "The document's statement holds.",
            "no": "The document's statement does not hold.",
            "depends": "The document's statement depends on choices left open.",
        }[verdict]
    )


def test_choices_that_say_nothing_are_mistakes() -> None:
    own = OPEN.replace('source = "A paper"', "").replace("says =", "asks =").replace("little.", "little?")
    for text, message in [
        (own + CHOICE.format("cubic"), "question[1].choice: a study's own question leaves nothing open"),
        (OPEN + 5 * CHOICE.format("cubic"), "question[1].choice: a statement has at most 4 choices"),
        (OPEN + 2 * CHOICE.format("cubic"), 'question[1].choice[2].given: "cubic" is there twice'),
        (OPEN + CHOICE.format("cubic").replace('"cubic"', '" "', 1), 'question[1].choice[1].given: " " is not a text'),
        (OPEN + CHOICE.format("cubic").replace("where", "metric = 'foo'\n#"), 'question[1].choice[1].metric: "foo"'),
        (
            OPEN + 'where = { "host.congestion_control" = "reno" }\n' + CHOICE.format("cubic"),
            "question[1].choice[1].where: host.congestion_control is set by the statement",
        ),
        (OPEN + CHOICE.format("cubic").replace("reason", "because"), "question[1].choice[1].reason: is missing"),
    ]:
        with pytest.raises(StudyError, match=re.escape(message)):
            Study.from_toml(text, name="some")
