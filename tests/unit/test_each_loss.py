"""The design of single losses: its packets, its plan, and what it refuses."""

import itertools
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.analysis.losses import weights_of
from crosswind.api.each_loss import losing_each
from crosswind.errors import StudyError
from crosswind.execution.each_loss import sampled
from crosswind.execution.planning import presentation
from crosswind.store.plan import Block, StoredPlan, extend_plan, repetition_of, write_plan
from crosswind.study.design import Study
from fixture_types import Crosswind
from runs import planned_cell
from study_texts import ECHO, study

VIRTUAL = '[host]\nclock = "virtual"\n'


def test_every_packet_is_lost_in_a_repetition_of_its_own_in_the_plan_and_read_back(tmp_path: Path) -> None:
    clean = planned_cell(0, parameters={"path": {"forward": {"delay_ns": 5}, "reverse": {}}, "seed": 0, "id": ""})
    write_plan(tmp_path, [clean])
    stored = StoredPlan((tmp_path / "plan.jsonl").read_bytes().splitlines())
    lost = sampled({"forward": 2, "reverse": 1}, 10)
    assert lost == [("forward", 0), ("forward", 1), ("reverse", 0)]
    added = [
        repetition_of(clean, f"c000-r0{at}", at, Block(at, at, clean.seed, packet)) for at, packet in enumerate(lost, 1)
    ]
    extend_plan(tmp_path, stored, added)
    plan = StoredPlan((tmp_path / "plan.jsonl").read_bytes().splitlines())
    assert [planned.lost for planned in plan] == [None, *lost]
    assert [planned.parameters["path"] for planned in plan][1:] == [
        {"forward": {"delay_ns": 5, "lose": [0]}, "reverse": {}},
        {"forward": {"delay_ns": 5, "lose": [1]}, "reverse": {}},
        {"forward": {"delay_ns": 5}, "reverse": {"lose": [0]}},
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
    assert len(lost) <= max(most, 2) + 1
    for direction, count in packets.items():
        indexes = [index for way, index in lost if way == direction]
        assert all(0 <= index < count for index in indexes)
        assert bool(indexes) == bool(count)
        gaps = [after - before for before, after in itertools.pairwise(indexes)]
        assert all(gap >= 1 for gap in gaps)
        edge = len(indexes) // 4
        if edge:
            assert (indexes[0], indexes[-1]) == (0, count - 1)
            assert set(gaps[: edge - 1] + gaps[len(gaps) - edge + 1 :]) <= {1}
        between = gaps[edge : len(gaps) - edge]
        assert max(between, default=1) - min(between, default=1) <= 1
        assert sum(weights_of(indexes, count)) == count * bool(indexes)


def test_a_study_with_each_loss_is_kept_and_measures_something_else() -> None:
    plain = study(ECHO)
    made = losing_each(plain)
    assert presentation(made)["asked"]["each_loss"] == [{"most": 2000, "note": "", "cells": [0]}]
    assert Study.from_canonical(made.canonical()).findings["each_loss"]
    own = study(VIRTUAL + ECHO + "[[each_loss]]\n")
    assert own.digest() != study(VIRTUAL + ECHO).digest()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[path]\nloss = "1%"\n', "path.loss is set beside it"),
        ("[path]\nforward.lose = [3]\n", "path.forward.lose is set beside it"),
        ('[[path.hop]]\nname = "air"\nbit_error_rate = 1e-6\n', "path.hop.air.bit_error_rate is set beside it"),
        ('[path]\nbackend = "netem"\n', "path.backend netem cannot lose one packet of its choice"),
        ("", "costs the same every time in virtual time alone"),
    ],
)
def test_a_cell_that_cannot_lose_one_packet_alone_is_refused_with_the_place(text: str, said: str) -> None:
    clock = VIRTUAL if text else ""
    with pytest.raises(StudyError, match=rf"^my.toml:\d+: each_loss\[1\]: .*{said}"):
        study(clock + text + ECHO + "[[each_loss]]\n")


def test_the_command_line_refuses_each_loss_beside_loss_and_on_the_machines_clock(crosswind: Crosswind) -> None:
    words = ("plan", "echo", "--each-loss")
    assert "path.loss is set beside it" in crosswind(*words, "--loss", "1%")[2]
    assert "a precision is set beside it" in crosswind(*words, "--precision", "5%")[2]
    assert crosswind(*words, "--to", "192.0.2.1")[2].startswith("error: --each-loss emulates the path, and --to ")
    assert crosswind(*words, "--clock", "real")[2].startswith("error: --each-loss runs in virtual time")
