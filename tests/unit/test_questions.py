"""Questions that a study declares, from its file to the report, on data whose answer is known: both ways."""

from typing import Any

import numpy as np
import pytest

from crosswind.analysis import analyse
from crosswind.analysis.result import Answer
from crosswind.report.text.answers import answer_sentence, rounded
from records import MS, echoes, path, record, runs

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
    given = {
        "asks": "Is it so?", "metric": "rtt", "statistic": "mean", "factor": FACTOR, "yes": "less", "is_ratio": True,
        "compare": [{"level": name, "cells": of[name]} for name in names], "where": {}, "note": "",
        "cells": list(range(cells)),
    }  # fmt: skip
    return given | fields


def answer_of(question: dict[str, Any], *cells: Any) -> Answer:
    (answer,) = analyse(record(*(run for one in cells for run in one), questions=[question])).answers
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
    assert answer_sentence(found) == (
        "No: the mean round-trip time with b is the same as with a (10.00 ms) in all 6 repetitions; at most 39.3 % of "
        "repetitions may differ, with 95 % confidence."
    )
    assert [same(6, yes=yes).verdict for yes in ("more", "different")] == ["no", "no"]
    assert same(6, yes="same", margin="5%", bound=0.05).verdict == "yes"
    assert (same(5).verdict, same(5).cases[0].needed) == ("cannot tell", 6)
    # A difference that is the same every time is shown in the same way.
    assert (same(6, 9).verdict, same(6, 11).verdict) == ("yes", "no")
    assert same(6, 9, yes="different", margin="20%", bound=0.2).verdict == "no"


def test_two_repetitions_show_values_and_no_interval() -> None:
    two = cell(0, 10, "a", repetitions=2), cell(1, 9, "b", repetitions=2)
    found = answer_of(asked(), *two)
    assert (found.verdict, found.cases[0].effect.low, found.cases[0].pairs) == ("cannot tell", None, 2)
    assert answer_sentence(found) == (
        "Cannot tell from 2 repetitions: the mean round-trip time is 8.865 to 8.910 ms with b and 9.900 to 9.950 ms "
        "with a; it takes 3 at least."
    )
    one = cell(0, 10, "a", repetitions=1), cell(1, 9, "b", repetitions=1)
    assert answer_sentence(answer_of(asked(), *one)) == (
        "Cannot tell from 1 repetition: the mean round-trip time is 8.865 ms with b and 9.900 ms with a; it takes 3 "
        "at least."
    )


def test_how_many_more_repetitions_would_tell() -> None:
    found = answer_of(asked(), cell(0, 10, "a"), cell(1, 9.9, "b"))
    assert found.verdict == "cannot tell"
    (case,) = found.cases
    assert case.needed is not None
    assert answer_sentence(found).endswith(f", 10 repetitions each; about {rounded(case.needed - 10)} more would.")
    # With as many, most runs of the same kind show it: 80 % by design, and more than half of 40 are almost certain.
    rng = np.random.default_rng(3)
    differences = 10 * MS * (1 + 0.0125 * rng.standard_normal((2, 40, case.needed)))
    shown = 0
    for at in range(40):
        both = [
            runs(index, [echoes([round(rtt * scale)] * 10) for rtt in differences[index, at]], {FACTOR: level})
            for index, (scale, level) in enumerate(((1.0, "a"), (0.99, "b")))
        ]
        shown += answer_of(asked(), *both).verdict == "yes"
    assert shown > 20


@pytest.mark.parametrize(
    ("repetitions", "said"), [(3, 3), (20, 20), (21, 25), (38, 40), (51, 60), (187, 190), (201, 250)]
)
def test_a_number_of_repetitions_is_as_exact_as_it_is_known(repetitions: int, said: int) -> None:
    assert rounded(repetitions) == said
