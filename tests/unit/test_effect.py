"""What follows from a path's effect: losses that depend on each other, and what models and designs say of them."""

import math
import random

import pytest

from crosswind import models
from crosswind.analysis.settings import CellSettings
from crosswind.catalog.path_effect import DirectionEffect, PathEffect

BURSTY = DirectionEffect(loss=0.1, loss_after_loss=0.75)
"""Bursts of four packets in the mean, with 36 between them."""

ECHO = {"workload": {"kind": "echo", "transport": "tcp"}}


def test_independent_losses_tell_nothing_of_each_other() -> None:
    way = DirectionEffect(loss=0.1, loss_after_loss=0.1)
    assert not way.is_clustered
    assert way.loss_after_delivery == pytest.approx(0.1)
    assert way.loss_after(0) == 0.1
    assert DirectionEffect(loss=1.0, loss_after_loss=1.0).loss_after_delivery == 1.0


def test_where_losses_come_together_fewer_exchanges_have_one() -> None:
    # One message at a time, each sent again until it arrives, over a chain of bursts of four packets.
    chance, lost, delayed = random.Random(1), False, 0
    for _ in range(100_000):
        first = True
        while True:
            lost = chance.random() < (0.75 if lost else 0.25 * 0.1 / 0.9)
            delayed += lost and first
            first = False
            if not lost:
                break
    share = BURSTY.loss_after_delivery
    assert delayed / 100_000 == pytest.approx(share, abs=4 * math.sqrt(share / 100_000))
    settings = CellSettings.of(ECHO, PathEffect(BURSTY))
    assert settings.delayed_share == pytest.approx(share)
    assert settings.repeated_loss == 0.75


def test_a_transfer_of_some_packets_meets_a_burst_less_often() -> None:
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 30_000}
    settings = CellSettings.of({"workload": workload}, PathEffect(BURSTY))
    assert settings.delayed_share == pytest.approx(1 - (1 - 0.1 * 0.25 / 0.9) ** 20)


def test_a_burst_in_time_is_over_when_its_memory_is() -> None:
    way = DirectionEffect(loss=0.1, loss_after_loss=1.0, loss_memory_ns=5_000_000)
    assert way.loss_after(0) == 1.0
    assert way.loss_after(5_000_000) == pytest.approx(0.1 + 0.9 / math.e)
    assert way.loss_after(200_000_000) == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("effect", "said"),
    [
        (DirectionEffect(loss=0.01, loss_after_loss=0.5), "losses depend on each other"),
        (DirectionEffect(loss=0.01, loss_after_loss=0.0), "losses depend on each other"),
        (DirectionEffect(loss=0.01, loss_after_loss=0.01, random_delay=True), "delays differ at random"),
        (DirectionEffect(loss=0.01, loss_after_loss=0.01, reorders=True), "packets overtake each other"),
        (DirectionEffect(loss=0.01, loss_after_loss=0.01), None),
    ],
)
def test_models_say_what_they_do_not_know_of(effect: DirectionEffect, said: str | None) -> None:
    cell = {"workload": {"kind": "transfer", "transport": "tcp"}, "host": {"congestion_control": "reno"}}
    way = DirectionEffect(**{**vars(effect), "delay_ns": 10_000_000})
    prediction = models.predict("mathis", cell, PathEffect(way, DirectionEffect(delay_ns=10_000_000)))
    assert prediction is not None
    notes = " ".join(prediction.violated)
    assert said in notes if said else not any(word in notes for word in ("depend", "differ", "overtake"))


def test_a_loss_by_time_that_loses_all_of_a_burst_is_forgotten_a_round_trip_later() -> None:
    way = DirectionEffect(loss=0.02, loss_after_loss=1.0, loss_memory_ns=1_000_000)
    assert way.loss_after_delivery == 0.0
    assert way.loss_after_delivery_by(40_000_000) == pytest.approx(0.02)
