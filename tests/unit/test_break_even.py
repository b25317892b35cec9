"""Break-even: the set of places along a factor at which two levels may take the same."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf, log
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cells import checked
from crosswind.errors import StudyError
from crosswind.execution.planning import presentation
from crosswind.findings.break_even.judge import Band, stretches_of
from crosswind.findings.break_even.result import BreakEven
from crosswind.findings.break_even.sentence import break_even_sentence
from crosswind.findings.break_even.show import break_even_table
from crosswind.findings.pipeline import analyse
from records import MS, echoes, path, record, runs
from study_texts import ECHO, study

DELAYS = ("0ms", "20ms", "40ms")
STUDY = (
    '[path]\ndelay = ["0ms", "20ms", "40ms"]\n' + ECHO + 'transport = ["tcp", "quic"]\n'
    '[[break_even]]\nasks = "From where on?"\nmetric = "rtt"\nfactor = "workload.transport"\n'
    'compare = ["tcp", "quic"]\nover = "path.delay"\n'
)
SPREAD = (-0.02, 0.01, 0.0, 0.02, -0.01, 0.005, -0.005, 0.015)


def measured(ratios: Sequence[float], wobble: float, but: int | None = None) -> BreakEven:
    """tcp takes 100 ms at each delay, quic `ratios` times as long. Its eight repetitions vary by `wobble`.

    Args: but: a cell that was not run.
    """
    (asked,) = presentation(study(STUDY))["asked"]["break_even"]
    every: list[Any] = []
    for number, (delay, ratio) in enumerate(zip(DELAYS, ratios, strict=True)):
        for transport, factor in (("tcp", 1.0), ("quic", ratio)):
            of_quic = transport == "quic"
            times = [factor * (1 + (wobble * offset if of_quic else 0.0)) for offset in SPREAD]
            levels = {"path.delay": delay, "workload.transport": transport}
            values = [echoes([round(100 * MS * time)] * 10) for time in times]
            cell = number * 2 + of_quic
            workload = {"kind": "echo", "transport": transport, "timeout_ns": 1000 * MS}
            parameters = {"workload": workload, "path": path(delay_ns=number * 10 * MS)}
            every.extend(runs(cell, values, levels, parameters=parameters) if cell != but else [])
    (found,) = analyse(record(*every, break_evens=[asked])).of(BreakEven)
    return found


def test_the_place_of_break_even_lies_where_the_band_holds_1() -> None:
    found = measured((0.5, 0.8, 1.25), 1)
    (group,) = found.groups
    assert [stretch.less for stretch in group.stretches] == ["other", "unknown", "reference"]
    middle = group.stretches[1]
    assert 20 < middle.low < middle.high < 40
    # The logarithm of the ratio falls on a straight line from 0.8 to 1.25 = 1 / 0.8: the middle.
    assert group.crossings == [pytest.approx(30, abs=0.2)]
    assert found.sentence.startswith("Mean round-trip time: break-even at 29.9 [29.1, 30.9] ms there and back: ")
    assert found.sentence.endswith("quic is faster below, tcp above.")
    rows = break_even_table(found).rows
    assert [(row[1], row[-1]) for row in rows] == [
        ("0 ms there and back", "quic is faster"),
        ("20 ms there and back", "quic is faster"),
        ("40 ms there and back", "tcp is faster"),
    ]


def test_a_level_that_is_faster_everywhere_leaves_the_set_empty() -> None:
    found = measured((0.5, 0.6, 0.9), 1)
    assert [stretch.less for stretch in found.groups[0].stretches] == ["other"]
    assert found.sentence == "Mean round-trip time: quic is faster from 0 to 40 ms there and back throughout."


def test_places_that_cannot_be_told_reach_the_end_of_what_was_run() -> None:
    found = measured((0.5, 1.01, 0.99), 8)
    decided, unknown = found.groups[0].stretches
    assert (decided.less, unknown.less, unknown.high) == ("other", "unknown", 40)
    assert 0 < decided.high == unknown.low < 20
    assert "; cannot tell from there on (1.01 [0.83, 1.15] times at 40 ms)." in found.sentence


def test_a_rate_is_better_where_there_is_more_of_it() -> None:
    found = measured((0.5, 0.8, 1.25), 1).model_copy(update={"metric": "goodput"})
    assert break_even_sentence(found).startswith("Mean goodput: break-even at 29.9 ")
    assert "tcp is faster below, quic above" in break_even_sentence(found)


def test_cells_that_were_not_run_are_counted() -> None:
    assert measured((0.5, 0.6, 0.9), 1, but=5).sentence == (
        "Mean round-trip time: quic is faster from 0 to 20 ms there and back throughout; "
        "1 cell without a number left out."
    )


def kinds(bands: Sequence[Band]) -> list[tuple[float, float, str]]:
    return [(stretch.low, stretch.high, stretch.less) for stretch in stretches_of(bands)]


def test_a_set_may_have_two_pieces() -> None:
    bands = [Band(x, 0.0, low, high) for x, low, high in ((0, -1, 1), (1, 1, 2), (2, 1, 2), (3, -1, 1))]
    assert kinds(bands) == [(0, 0.5, "unknown"), (0.5, 2.5, "reference"), (2.5, 3, "unknown")]


def test_an_unknown_limit_is_infinite() -> None:
    bands = [Band(0, -1.0, -2.0, -0.5), Band(1, None, -inf, inf), Band(2, 1.0, 0.5, 2.0)]
    assert kinds(bands) == [(0, 0, "other"), (0, 2, "unknown"), (2, 2, "reference")]


def test_exact_numbers_say_nothing_of_the_line_between_them() -> None:
    exact = [Band(x, value, value, value, exact=True) for x, value in enumerate((-1.0, -0.5, 1.0, 0.0, 0.0, -1.0))]
    assert kinds(exact) == [
        (0, 1, "other"), (1, 2, "unknown"), (2, 3, "reference"), (3, 4, "same"), (4, 5, "other"),
    ]  # fmt: skip


@given(st.lists(st.tuples(st.floats(-3, 3), st.floats(0.001, 2), st.floats(0.001, 2)), min_size=2, max_size=8))
def test_a_place_is_in_the_set_if_its_own_interval_holds_1(shapes: list[tuple[float, float, float]]) -> None:
    bands = [Band(float(x), value, value - low, value + high) for x, (value, low, high) in enumerate(shapes)]
    stretches = stretches_of(bands)
    assert (stretches[0].low, stretches[-1].high) == (bands[0].x, bands[-1].x)
    for one, other in pairwise(stretches):
        assert one.high == other.low
        assert one.less != other.less
    for band in bands:
        assert any(each.low <= band.x <= each.high and each.less == band.less for each in stretches)


def test_a_known_crossing_of_straight_lines() -> None:
    bands = [Band(0, log(0.5), log(0.4), log(0.6)), Band(10, log(2), log(1.6), log(2.5))]
    _, (low, high, less), _ = kinds(bands)
    assert less == "unknown"
    assert low == pytest.approx(10 * log(0.6) / (log(0.6) - log(2.5)))
    assert high == pytest.approx(10 * log(0.4) / (log(0.4) - log(1.6)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('over = "path.delay"', 'over = "host.congestion_control"', "the levels of host.congestion_control are no num"),
        ('compare = ["tcp", "quic"]', 'compare = ["tcp"]', "compare has 1 level, and a break-even takes two"),
        ('compare = ["tcp", "quic"]', 'compare = ["tcp", "tcp"]', "tcp is compared with itself"),
        ('compare = ["tcp", "quic"]', 'compare = ["tcp", "tls"]', "no cell has workload.transport = tls"),
        ('metric = "rtt"', 'metric = "delayed_share"', "delayed_share may be 0 or less, of which there is no ratio"),
        ('"From where on?"', '"From where on."', '"From where on." is not a question'),
        ('delay = ["0ms", "20ms", "40ms"]', 'delay = "0ms"', "workload.transport = tcp has fewer than two levels of"),
    ],
)
def test_a_mistake_is_named(old: str, new: str, message: str) -> None:
    assert old in STUDY
    with pytest.raises(StudyError, match=message.replace(".", r"\.")):
        checked(study(STUDY.replace(old, new)))
