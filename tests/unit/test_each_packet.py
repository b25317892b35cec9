"""The design of single losses: its packets, its plan, and what it refuses."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.analysis.disturbed import Disturbance, weights_of
from crosswind.api.each_packet import disturbing_each
from crosswind.catalog.disturbed import Disturbed
from crosswind.errors import StudyError
from crosswind.execution.each_packet import sampled, sampled_pairs
from crosswind.execution.planning import presentation
from crosswind.findings.each_packet.curve import loss_curve
from crosswind.store.plan import Block, StoredPlan, extend_plan, repetition_of, write_plan
from crosswind.study.design import Study
from fixture_types import Crosswind
from records import run
from runs import planned_cell
from study_texts import ECHO, study

VIRTUAL = '[host]\nclock = "virtual"\n'


def test_every_packet_is_lost_in_a_repetition_of_its_own_in_the_plan_and_read_back(tmp_path: Path) -> None:
    clean = planned_cell(0, parameters={"path": {"forward": {"delay_ns": 5}, "reverse": {}}, "seed": 0, "id": ""})
    write_plan(tmp_path, [clean])
    stored = StoredPlan((tmp_path / "plan.jsonl").read_bytes().splitlines())
    lost = sampled({"forward": 2, "reverse": 1}, 10)
    assert lost == [("forward", 0), ("forward", 1), ("reverse", 0)]
    disturbed = [*(Disturbed((packet,)) for packet in lost), Disturbed((lost[0], lost[2])), Disturbed((lost[1],), 500)]
    added = [
        repetition_of(clean, f"c000-r0{at}", at, Block(at, at, clean.seed, one)) for at, one in enumerate(disturbed, 1)
    ]
    extend_plan(tmp_path, stored, added)
    plan = StoredPlan((tmp_path / "plan.jsonl").read_bytes().splitlines())
    assert [planned.disturbed for planned in plan] == [None, *disturbed]
    assert [planned.parameters["path"] for planned in plan][1:] == [
        {"forward": {"delay_ns": 5, "lose": [0]}, "reverse": {}},
        {"forward": {"delay_ns": 5, "lose": [1]}, "reverse": {}},
        {"forward": {"delay_ns": 5}, "reverse": {"lose": [0]}},
        {"forward": {"delay_ns": 5, "lose": [0]}, "reverse": {"lose": [0]}},
        {"forward": {"delay_ns": 5, "hold": [1], "hold_time_ns": 500}, "reverse": {}},
    ]
    # The cell stands in the file once.
    assert len(plan.kinds) == 1
    assert list(plan)[1:] == added


@given(st.integers(0, 5000), st.integers(0, 5000), st.integers(1, 3000))
def test_a_sample_has_the_ends_of_both_directions_and_packets_at_equal_distances_between(
    forward: int, reverse: int, most: int
) -> None:
    packets = {"forward": forward, "reverse": reverse}
    lost = sampled(packets, most)
    assert len(lost) == len(set(lost))
    if forward + reverse <= most:
        assert len(lost) == forward + reverse
    assert len(lost) <= max(most, 10) + 5
    for direction, count in packets.items():
        indexes = [index for way, index in lost if way == direction]
        assert all(0 <= index < count for index in indexes)
        assert bool(indexes) == bool(count)
        gaps = [after - before for before, after in itertools.pairwise(indexes)]
        assert all(gap >= 1 for gap in gaps)
        edge = max(2, len(indexes) // 4)
        if 2 * edge < len(indexes):
            assert (indexes[0], indexes[-1]) == (0, count - 1)
            assert set(gaps[: edge - 1] + gaps[len(gaps) - edge + 1 :]) <= {1}
        between = gaps[edge : len(gaps) - edge]
        assert max(between, default=1) - min(between, default=1) <= 1
        assert sum(weights_of(indexes, count)) == count * bool(indexes)


def test_a_study_with_each_packet_is_kept_and_measures_something_else() -> None:
    plain = study(ECHO)
    made = disturbing_each(plain, loss=True)
    assert presentation(made)["asked"]["each_packet"] == [
        {"most": 2000, "pairs": 64, "hold_ns": None, "note": "", "cells": [0]}
    ]
    assert Study.from_canonical(made.canonical()).findings["each_packet"]
    own = study(VIRTUAL + ECHO + "[[each_packet]]\n")
    assert own.digest() != study(VIRTUAL + ECHO).digest()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[path]\nloss = "1%"\n', "path.loss is set beside it"),
        ("[path]\nforward.lose = [3]\n", "path.forward.lose is set beside it"),
        ('[[path.hop]]\nname = "air"\nbit_error_rate = 1e-6\n', "path.hop.air.bit_error_rate is set beside it"),
        ('[path]\nnetwork = "4g"\ncorrupt = "1%"\n', "path.corrupt is set beside it"),
        ('[path]\nnetwork = "ladder-3"\n', "the loss of network ladder-3 is set beside it"),
        ('[path]\nbackend = "netem"\n', "path.backend netem cannot pick one packet"),
        ("", "a packet costs the same every time in virtual time alone"),
    ],
)
def test_a_cell_that_cannot_lose_one_packet_alone_is_refused_with_the_place(text: str, said: str) -> None:
    clock = VIRTUAL if text else ""
    with pytest.raises(StudyError, match=rf"^my.toml:\d+: each_packet\[1\]: .*{said}"):
        study(clock + text + ECHO + "[[each_packet]]\n")


def test_the_command_line_refuses_each_packet_beside_loss_and_on_the_machines_clock(crosswind: Crosswind) -> None:
    words = ("plan", "echo", "--each-loss")
    held = crosswind("plan", "echo", "--each-hold", "soon")[2]
    assert held.startswith("error: --each-hold: ") and "hint: " in held
    assert "held back by 10s at most" in crosswind("plan", "echo", "--each-hold", "1min")[2]
    assert "0 holds no packet back" in crosswind("plan", "echo", "--each-hold", "0ms")[2]
    assert (
        "path.forward.hold is set beside it"
        in crosswind("plan", "echo", "--each-hold", "1ms", "--forward-hold", "3", "--forward-hold-time", "1ms")[2]
    )
    assert crosswind("plan", "echo", "--each-hold", "1ms", "--loss", "1%")[0] == 0
    assert "path.loss is set beside it" in crosswind(*words, "--loss", "1%")[2]
    assert "a precision is set beside it" in crosswind(*words, "--precision", "5%")[2]
    assert crosswind(*words, "--to", "192.0.2.1")[2].startswith("error: --each-loss emulates the path, and --to ")
    assert crosswind(*words, "--clock", "real")[2].startswith("error: --each-loss runs in virtual time")


@given(st.lists(st.sampled_from([0.0, 50.0, 66.0, 250.0, 1000.0]), min_size=5, max_size=8).filter(any), st.booleans())
def test_the_mean_over_the_rate_of_loss_is_within_the_limits_of_its_curve(adds: list[float], doubles: bool) -> None:
    """Every set of losses has a cost: the sum of theirs, or twice the largest beside another."""

    def cost(lost: tuple[int, ...]) -> float:
        own = sorted((adds[index] for index in lost), reverse=True)
        return sum(own) + (own[0] if doubles and len(own) > 1 else 0.0)

    def disturbance(*lost: int) -> Disturbance:
        packets = tuple(("forward", index) for index in lost)
        return Disturbance(run(0, None), packets, 1e6 * cost(lost), 0.0, 0.0, 0, 0, len(adds), 1.0)

    def mean(rate: float) -> float:
        total = 0.0
        for lost in itertools.chain.from_iterable(
            itertools.combinations(range(len(adds)), n) for n in range(len(adds) + 1)
        ):
            total += rate ** len(lost) * (1 - rate) ** (len(adds) - len(lost)) * cost(lost)
        return 75e6 + 1e6 * total

    singles = [disturbance(index) for index in range(len(adds))]
    pairs = [disturbance(*pair) for pair in itertools.combinations(range(len(adds)), 2)]
    alone, both = (loss_curve(75e6, 1, singles, of_two, level=0.95) for of_two in ([], pairs))
    assert alone is not None and both is not None
    for curve in (alone, both):
        for point in curve.points:
            assert point.low_ns - 1 <= mean(point.rate) <= point.high_ns + 1
        slope = 1e6 * sum(adds)
        added = mean(curve.line_to) - 75e6
        assert curve.line_to * slope == pytest.approx(added, rel=0.101)
    assert both.points[-1].rate > alone.points[-1].rate
    assert (both.pairs, both.all_pairs) == (len(pairs), len(pairs))


def test_pairs_are_all_of_few_and_some_of_many_and_of_packets_sent_again() -> None:
    packets = {"forward": 2, "reverse": 1}
    sent = {("forward", 0): {"forward": 3, "reverse": 1}, ("forward", 1): packets, ("reverse", 0): packets}
    every = sampled_pairs(packets, sent, 100, seed=1)
    assert every == [
        (("forward", 0), ("forward", 1)),
        (("forward", 0), ("reverse", 0)),
        (("forward", 1), ("reverse", 0)),
        (("forward", 0), ("forward", 2)),
    ]
    some = sampled_pairs(packets, sent, 3, seed=1)
    assert len(set(some)) == 3 and set(some) < set(every)
