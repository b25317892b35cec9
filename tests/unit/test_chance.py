"""Unseen events of a statistic, from the settings and the ledger of its cell."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cell_events import finished
from crosswind.analysis.cells import CellData
from crosswind.analysis.chance import least_of_bursts
from crosswind.analysis.designs import design_of
from crosswind.analysis.estimates import BoundedNumber, estimate_of_cell
from crosswind.analysis.settings import CellSettings
from crosswind.catalog.metrics import METRICS
from crosswind.catalog.path_effect import DirectionEffect, PathEffect
from crosswind.stats.chance import NO_CHANCE, Chance
from crosswind.stats.design import Design, Tail, mean_shortage
from crosswind.stats.effect import of_one
from crosswind.stats.linearised import Linearised
from crosswind.stats.repetitions import Repetitions
from records import MS, echoes, run

LOSSY = DirectionEffect(delay_ns=20 * MS, loss=0.005, loss_after_loss=0.005)
QUIET = DirectionEffect(delay_ns=20 * MS)


def cell(effect: DirectionEffect, lost: Sequence[int], *, messages: int = 10, **workload: Any) -> CellData:
    """A cell. Args: lost: lost packets of each repetition."""
    made = {"kind": "echo", "transport": "tcp", "messages": messages, **workload}
    runs = []
    for at, packets in enumerate(lost):
        end = finished().model_dump(by_alias=True)
        end["ledger"]["forward"] |= {"in": 20, "dropped": {"loss": packets}}
        one = run(0, echoes([40 * MS] * messages), repetition=at, parameters={"workload": made}, end=end)
        runs.append(one)
    both = PathEffect(effect, effect)
    runs = [type(one)(**{**vars(one), "effect": both}) for one in runs]
    units = Repetitions.of([40.0 * MS] * messages * len(lost), [at for at in range(len(lost)) for _ in range(messages)])
    return CellData(0, {}, runs, {"rtt": units})


@pytest.mark.parametrize(
    ("statistic", "more"), [("mean", 240 * MS / 0.99 / 10), (0.5, 240 * MS / 0.99), (0.95, 240 * MS / 0.99)]
)
def test_a_loss_costs_a_timer_of_which_a_mean_has_its_part(statistic: Any, more: float) -> None:
    found = cell(LOSSY, [0, 1, 0, 2]).side("rtt").chance(statistic)
    # One loss moves a mean, and the 95th percentile of ten; five move the median.
    assert (found.touched, found.less) == (0 if statistic == 0.5 else 2, 0.0)
    assert found.more == pytest.approx(more)


def test_as_many_losses_as_move_a_quantile_are_rarer() -> None:
    side = cell(LOSSY, [0, 0, 0]).side("rtt")
    # 20 packets to the server and 60 back, of which one in 200 is lost.
    assert side.chance("mean").share == pytest.approx(80 * 0.005)
    # The median of ten moves when five are late.
    assert side.chance(0.5).share == pytest.approx(
        1 - sum(math.exp(-0.4) * 0.4**k / math.factorial(k) for k in range(5))
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"client": {"name": "firefox"}},  # whoever wrote a program chose its timers
        {"effect": DirectionEffect(delay_ns=20 * MS, loss=0.005, loss_after_loss=0.5)},
        {"effect": DirectionEffect(delay_ns=20 * MS, loss=0.005, loss_after_loss=0.005, random_delay=True)},
    ],
)
def test_what_an_event_costs_is_not_known(changed: dict[str, Any]) -> None:
    effect = changed.pop("effect", LOSSY)
    found = cell(effect, [0, 1, 0], **changed).side("rtt").chance("mean")
    assert math.isinf(found.more)
    assert not found.is_known(3)


def test_nothing_happens_to_datagrams_and_without_losses() -> None:
    for made in (cell(QUIET, [0] * 3), cell(LOSSY, [0, 1, 0], transport="udp")):
        assert made.side("rtt").chance("mean").is_known(3)


@pytest.mark.parametrize(
    ("way", "seconds", "least"),
    [
        # 2 s of 100 s: 60 packets in 10 s meet 0.096 periods, in 100 s 0.67: some periods lie between packets.
        (DirectionEffect(loss=0.02, loss_after_loss=1.0, loss_memory_ns=1_960_000_000), 10, 157),
        (DirectionEffect(loss=0.02, loss_after_loss=1.0, loss_memory_ns=1_960_000_000), 100, 23),
        # 10 ms of 1 s: there are 10 periods, but 0.594 have a packet.
        (DirectionEffect(loss=0.01, loss_after_loss=1.0, loss_memory_ns=9_900_000), 10, 26),
        # 60 packets meet 4.4 periods, but 0.6 losses.
        (DirectionEffect(loss=0.01, loss_after_loss=0.1, loss_memory_ns=100_000_000), 10, 25),
        # By packets: 60 of them, of which 1 % are lost, half of these behind another one.
        (DirectionEffect(loss=0.01, loss_after_loss=0.5), 10, 50),
        (DirectionEffect(loss=0.01, loss_after_loss=0.01), 10, 0),
    ],
)
def test_an_interval_needs_fifteen_loss_bursts_with_packets(way: DirectionEffect, seconds: int, least: int) -> None:
    runs = [run(0, echoes([40 * MS]), end=finished(elapsed_ns=seconds * 1000 * MS).model_dump(by_alias=True))]
    settings = CellSettings.of({"workload": {"kind": "echo", "transport": "udp"}}, PathEffect(way, QUIET))
    assert least_of_bursts(settings, runs) == least


def test_a_claim_about_a_share_with_bursts_rests_on_limits_of_one_percent() -> None:
    bursts = DirectionEffect(loss=0.05, loss_after_loss=1.0, loss_memory_ns=475_000_000)
    runs = [
        run(0, echoes([None if at % 4 == 0 else 40 * MS] * 10), repetition=at, end=end)
        for at, end in enumerate([finished(elapsed_ns=40_000 * MS).model_dump(by_alias=True)] * 40)
    ]
    for way, level in ((bursts, 0.98), (QUIET, 0.95)):
        made = [type(one)(**{**vars(one), "effect": PathEffect(way, QUIET)}) for one in runs]
        data = CellData(0, {}, made, {})
        claim, own = BoundedNumber(data, "lost", "mean").at(0.95), estimate_of_cell(data, "lost", "mean", level=level)
        assert (claim.low, claim.high, claim.level) == (own.low, own.high, 0.95)
        assert own.is_whole


def test_a_difference_of_shares_with_bursts_errs_on_one_side() -> None:
    bursty, plain = (
        of_one(Linearised(0.1, np.linspace(-0.05, 0.05, 21), 2100), design, NO_CHANCE)
        for design in (Design(least=15), Design())
    )
    assert bursty.claim_limit(0.025, upper=True) == pytest.approx(plain.claim_limit(0.01, upper=True))
    assert bursty.p_at_least(0.2) == pytest.approx(plain.p_at_least(0.2) / 0.4)


@pytest.mark.parametrize(
    ("metric", "way", "workload", "flows", "expected"),
    [
        ("goodput", {}, {}, False, (Tail.LIGHT, 0)),
        ("goodput", {}, {"transport": "quic"}, False, (Tail.SKEWED, 15)),
        ("goodput", {"random_delay": True}, {}, False, (Tail.SKEWED, 30)),
        ("connect", {"random_delay": True}, {}, False, (Tail.SKEWED, 5)),
        ("goodput", {"background_bps": 1e6}, {}, False, (Tail.SKEWED, 15)),
        ("goodput", {"manages_queue": True}, {}, False, (Tail.SKEWED, 5)),
        ("fairness", {}, {}, True, (Tail.SKEWED, 5)),
        ("share_of_path", {}, {}, True, (Tail.SKEWED, 5)),
        ("queueing_forward", {}, {}, True, (Tail.SKEWED, 5)),
        ("queueing_forward", {"background_bps": 1e6}, {}, True, (Tail.SKEWED, 100)),
        ("queueing_p99_forward", {}, {}, True, (Tail.SKEWED, 100)),
        ("utilisation_reverse", {}, {}, True, (Tail.SKEWED, 100)),
        ("wire_bytes_reverse", {"background_bps": 1e6}, {}, False, (Tail.SKEWED, 30)),
        ("wire_bytes_reverse", {"loss": 0.01, "loss_after_loss": 0.01}, {"transport": "udp"}, False, (Tail.SKEWED, 5)),
        ("cpu_client", {"loss": 0.01, "loss_after_loss": 0.01}, {}, False, (Tail.LIGHT, 0)),
    ],
)
def test_what_is_left_to_chance_takes_as_many_repetitions_as_real_ones_showed(
    metric: str, way: dict[str, Any], workload: dict[str, Any], flows: bool, expected: tuple[Tail, int]
) -> None:
    made = DirectionEffect(**way)
    settings = CellSettings(
        PathEffect(made, made), {"kind": "transfer", "transport": "tcp", **workload}, 1500, has_flows=flows
    )
    found = design_of(METRICS[metric], settings)
    assert (found.tail, found.least) == expected


def test_where_real_repetitions_showed_how_many_are_enough_no_other_rule_holds() -> None:
    measured = Design(Tail.SKEWED, least=5)
    assert mean_shortage(measured, 5, 5) is None
    short = mean_shortage(measured, 4, 400)
    assert short is not None
    assert short.needed == 5


def test_repetitions_that_are_touched_are_counted_from_those_so_far() -> None:
    assert Chance(touched=3).seen_from(20) == 100
    assert Chance(touched=0).seen_from(20) is None
    assert Chance().seen_from(4) == 15


@pytest.mark.parametrize(("repetitions", "is_bounded"), [(15, False), (20, True)])
def test_a_claim_about_a_quantile_rests_on_the_interval_of_all_exchanges(repetitions: int, is_bounded: bool) -> None:
    # A repetition has 4 or 6 of 100 late: p95 of all is late, the mean of the repetitions' own p95 is not.
    jitter = DirectionEffect(delay_ns=20 * MS, random_delay=True)
    data = cell(jitter, [0] * repetitions, messages=100)
    values = [
        240 * MS if at < (4 if one % 2 else 7) else 40 * MS + at for one in range(repetitions) for at in range(100)
    ]
    units = Repetitions.of(np.array(values, float), np.repeat(np.arange(repetitions), 100))
    made = BoundedNumber(replace(data, samples={"rtt": units}), "rtt", "p95").at(0.95)
    assert (made.high is not None) == is_bounded
    assert made.high is None or made.high == 240 * MS
