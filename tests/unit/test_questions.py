"""Questions that a study declares, from its file to the report, on data whose answer is known: both ways."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.decisions.statement import range_of
from crosswind.execution.planning import presentation
from crosswind.findings.pipeline import analyse
from crosswind.findings.question.fastest import last_lines
from crosswind.findings.question.judge import answers_of
from crosswind.findings.question.result import Answer
from crosswind.findings.question.statement import OF_QUESTION, rounded
from crosswind.findings.question.words import what_of
from crosswind.study.design import Study
from records import MS, context_of, echoes, path, record, runs
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
    assert last_lines(result)[0].endswith(f" (inconclusive; --repetitions 26{said} would decide)")


@pytest.mark.parametrize(
    ("repetitions", "said"), [(3, 3), (20, 20), (21, 25), (38, 40), (51, 60), (187, 190), (201, 250)]
)
def test_a_number_of_repetitions_is_as_exact_as_it_is_known(repetitions: int, said: int) -> None:
    assert rounded(repetitions) == said


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
