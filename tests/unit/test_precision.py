"""How long to measure: what a study asks for, which cells go on, and the plan that grows."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import crosswind
from conftest import GOOD_END
from coverage.jumps import Jumps
from coverage.jumps import ended as ended_runs
from crosswind.analysis.precision import PrecisionRule, precision_of, why_unreachable
from crosswind.catalog.path_effect import DirectionEffect, PathEffect
from crosswind.catalog.precision import CellPrecision, Ended
from crosswind.errors import StudyError
from crosswind.execution.growth import further_cells
from crosswind.execution.planning import precision as precision_json
from crosswind.report.text.precision import precision_text
from crosswind.stats.design import SKEWED_EVENTS, SKEWED_UNITS
from crosswind.stats.sequential import repeated_interval
from crosswind.store.directory import Store
from crosswind.store.plan import write_plan
from crosswind.study.plan import Plan
from crosswind.study.precision import look_schedule
from records import MS, echoes, finished, run
from runs import change_sealed, echo_samples, new_run, planned_cell
from study_texts import ECHO, study

LOOKS = look_schedule(5, 40)


def asked(
    target: str = "5%", *, bound: float = 0.05, is_relative: bool = True, statistic: str = "mean", **changes: Any
) -> dict[str, Any]:
    """What a manifest has as `precision`, of cell 0."""
    wanted = {"metric": "rtt", "statistic": statistic, "target": target, "is_relative": is_relative, "bound": bound}
    looks = {"cells": [0], "repetitions": list(changes.get("looks", LOOKS))}
    return {"seed": 1, "targets": [{**wanted, "cells": [0]}], "looks": [looks]}


def rule_after(means_ms: Sequence[float | None], given: Mapping[str, Any], **changes: Any) -> PrecisionRule:
    """A rule that has seen repetitions of ten echoes each; None: nothing succeeded."""
    rule = PrecisionRule(given)
    for repetition, mean_ms in enumerate(means_ms):
        rtts = [None if mean_ms is None else round((mean_ms + x) * MS) for x in np.linspace(-1, 1, 10)]
        rule.add(run(0, echoes(rtts), repetition=repetition, **changes))
    return rule


def only(rule: PrecisionRule) -> CellPrecision:
    (state,) = rule.state()
    return state


# What a study asks for


def test_a_study_says_after_how_many_repetitions_its_cells_are_looked_at() -> None:
    text = ECHO + '[study]\nrepetitions = 8\nrepetitions_max = 20\n[path]\nloss = ["0%", "5%"]\n'
    text += '[[precision]]\nmetric = "rtt"\nstatistic = "median"\ntarget = "2ms"\nwhere = { "path.loss" = "5%" }\n'
    found = study(text)
    assert precision_json(found) == {
        "seed": 1,
        "targets": [
            {"metric": "rtt", "statistic": "median", "is_relative": False, "bound": 2e6, "target": "2ms", "cells": [1]}
        ],
        "looks": [{"cells": [1], "repetitions": [8, 10, 12, 15, 18, 20]}],
    }
    # The other cell is run as often as the study says.
    assert [item.cell.index for item in Plan.of(found)].count(0) == 8


def test_without_a_metric_it_is_the_main_one_of_each_workload() -> None:
    text = '[[precision]]\ntarget = "5%"\n[[part]]\nname = "a"\n[part.workload]\nkind = "echo"\n'
    text += '[[part]]\nname = "b"\n[part.workload]\nkind = "transfer"\nsize = "1MB"\n'
    found = precision_json(study(text))
    assert found is not None
    assert [(target["metric"], target["cells"]) for target in found["targets"]] == [("rtt", [0]), ("total", [1])]


def test_looks_begin_with_five_repetitions_and_follow_at_a_quarter_more() -> None:
    assert look_schedule(5, 40) == (5, 6, 7, 8, 10, 12, 15, 18, 22, 27, 33, 40)
    assert look_schedule(5, 3) == (3,)
    assert study(ECHO + '[[precision]]\ntarget = "5%"\n').looks_of(next(study(ECHO).cells()))[-1] == 100
    limited = ECHO + '[[precision]]\ntarget = "5%"\n[[repetitions]]\nwhere = { "workload.size" = 7 }\nat_most = 6\n'
    limited = limited.replace('kind = "echo"\n', 'kind = "echo"\nsize = [1, 7]\n')
    assert [study(limited).looks_of(cell)[-1] for cell in study(limited).cells()] == [100, 6]


def test_precision_is_part_of_what_is_measured() -> None:
    plain, precise = study(ECHO), study(ECHO + '[[precision]]\ntarget = "5%"\n')
    assert plain.digest() != precise.digest()
    assert plain.with_precision("5%").digest() == precise.digest()


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ('[[precision]]\ntarget = "5"\n', 'my.toml:4: precision[1].target: "5" is not a precision', '"5%" of it'),
        ('[[precision]]\ntarget = "100%"\n', '"100%" is not a precision', "below 100 %"),
        ('[[precision]]\ntarget = "0ms"\n', '"0ms" is not a precision', "above 0"),
        ('[[precision]]\ntarget = "5mbit"\n', '"5mbit" is not a precision', "ns, us, ms"),
        ('[[precision]]\nmetric = "rrt"\ntarget = "5%"\n', '"rrt" is not a metric', 'did you mean "rtt"?'),
        ('[[precision]]\nmetric = "goodput"\ntarget = "5%"\n', "no cell has the metric goodput", "this workload"),
        ('[[precision]]\nmetric = "delayed_share"\ntarget = "5%"\n', "depends on the others", "another metric"),
        ('[[precision]]\nstatistic = "max"\ntarget = "5%"\n', '"max" is not a statistic', "median, mean, p95, p99"),
        (
            '[[precision]]\nmetric = "cpu_client"\nstatistic = "p95"\ntarget = "5%"\n',
            "cpu_client has one value a repetition",
            'statistic = "mean"',
        ),
        ('[[precision]]\ntarget = "5%"\n[study]\nrepetitions_max = 4\n', "fewer than the 5 of the first", "at least 5"),
        ("[study]\nrepetitions_max = 9\n", "study.repetitions_max has no effect", "--precision 5%"),
        ("[[precision]]\n", "precision[1].target", "write target"),
    ],
)
def test_mistakes_name_their_place(text: str, message: str, hint: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(ECHO + text)
    assert message in caught.value.message
    assert hint in (caught.value.hint or "")


@pytest.mark.parametrize(
    ("statistic", "workload", "loss", "message"),
    [
        ("p95", {"kind": "echo", "transport": "tcp", "messages": 99}, 0.0, "needs 100 exchanges for that, and has 99"),
        ("mean", {"kind": "echo", "transport": "tcp", "messages": 9}, 0.25, "no finite variance"),
        ("mean", {"kind": "connect", "transport": "tcp"}, 0.0, "a cell of kind connect has none"),
        ("p95", {"kind": "echo", "transport": "tcp", "messages": 100}, 0.25, None),
        ("mean", {"kind": "echo", "transport": "udp", "messages": 9}, 0.25, None),
    ],
)
def test_what_no_repetition_could_ever_show_is_refused(
    statistic: str, workload: dict[str, Any], loss: float, message: str | None
) -> None:
    cell = ({"workload": workload}, PathEffect(DirectionEffect(loss=loss, loss_after_loss=loss)))
    reason = why_unreachable(asked(statistic=statistic), {0: cell})
    assert (reason is None) == (message is None)
    assert message is None or message in (reason or "")


@pytest.mark.parametrize(
    ("effect", "is_refused"),
    [
        # A tenth is lost, and of retransmissions a fifth, or a half.
        (DirectionEffect(loss=0.1, loss_after_loss=0.2), False),
        (DirectionEffect(loss=0.1, loss_after_loss=0.5), True),
        # The burst is over before a retransmission is sent, 20 ms later, or it is not.
        (DirectionEffect(loss=0.1, loss_after_loss=1.0, loss_memory_ns=5 * MS, delay_ns=20 * MS), False),
        (DirectionEffect(loss=0.1, loss_after_loss=1.0, loss_memory_ns=500 * MS, delay_ns=20 * MS), True),
    ],
)
def test_bursts_that_lose_a_quarter_of_all_retransmissions_leave_no_mean(
    effect: DirectionEffect, is_refused: bool
) -> None:
    cell = ({"workload": {"kind": "echo", "transport": "tcp", "messages": 9}}, PathEffect(effect))
    assert (why_unreachable(asked(statistic="mean"), {0: cell}) is not None) == is_refused


# Which cells go on


def test_a_cell_goes_on_half_way_to_where_it_will_probably_end() -> None:
    rule = rule_after([20, 25, 15, 30, 22], asked(looks=look_schedule(5, 400)))
    state = only(rule)
    expected = repeated_interval(np.array([20, 25, 15, 30, 22]) * MS, 0, look_schedule(5, 400), is_positive=True)
    assert (state.low, state.high) == pytest.approx((expected.low, expected.high), rel=1e-6)
    assert (state.ended, state.units, state.wanted) == (None, 5, pytest.approx(0.05 * 22.4 * MS))
    assert state.likely is not None
    (count,) = rule.next_counts().values()
    assert 5 < count <= (5 + state.likely) // 2
    assert count in look_schedule(5, 400)


def test_before_the_first_look_and_between_looks_nothing_is_judged() -> None:
    assert only(rule_after([20, 20, 20, 20], asked())).value is None
    nine = only(rule_after([20, 25, 15, 30, 22, 21, 22, 23, 90], asked()))
    assert nine.units == 8


def test_a_cell_ends_when_its_interval_is_narrow_enough() -> None:
    rule = rule_after([20, 20.1, 19.9, 20.05, 19.95], asked())
    assert (only(rule).ended, rule.next_counts()) == (Ended.PRECISION, {})
    assert "precision reached" in precision_text(only(rule))


def test_a_cell_ends_when_it_was_run_as_often_as_it_may_be() -> None:
    rule = rule_after([20, 25, 15, 30, 22, 40], asked(looks=[5, 6]))
    assert (only(rule).ended, rule.next_counts()) == (Ended.CAP, {})
    assert "most repetitions reached" in precision_text(only(rule))


def test_an_exact_cell_ends_after_one_repetition() -> None:
    rule = PrecisionRule(asked())
    one = run(0, echoes([20 * MS] * 3))
    rule.add(type(one)(**{**vars(one), "exact": True}))
    assert (only(rule).ended, only(rule).value, rule.next_counts()) == (Ended.EXACT, 20 * MS, {})


def test_a_cell_without_values_ends_and_says_why() -> None:
    rule = rule_after([20, 21, None, 20, 22], asked())
    assert (only(rule).ended, only(rule).reason) == (Ended.NO_VALUE, "no exchange of a repetition has a value")
    assert rule.next_counts() == {}


LOSSY = {"workload": {"kind": "echo", "transport": "tcp"}, "path": {"forward": {"loss": 0.1}}}


def test_a_mean_that_losses_make_unsure_goes_on_to_the_repetitions_that_its_design_takes() -> None:
    """Ten exchanges a repetition and 10 % loss: at least one delayed exchange in each."""
    least = max(SKEWED_UNITS, SKEWED_EVENTS)
    looks, close = look_schedule(5, 100), [20, 20.1, 19.9, 20.05, 19.95]
    end = next(n for n in looks if n >= least)
    state = only(rule_after(close, asked(looks=looks), parameters=LOSSY))
    assert (state.least, state.ended, state.likely) == (least, None, end)
    assert f"uncertain below {least}" in precision_text(state)
    enough = only(rule_after((close * 20)[:end], asked(looks=looks), parameters=LOSSY))
    assert (enough.units, enough.ended) == (end, Ended.PRECISION)
    # Losses may yet come more often than so far.
    open_ = only(rule_after(close, asked(looks=look_schedule(5, least - 1)), parameters=LOSSY))
    assert (open_.ended, open_.likely) == (None, None)


def test_a_mean_that_takes_more_repetitions_by_design_than_there_may_be_has_no_interval() -> None:
    """Five exchanges on the machine's clock: fifty of them that something else delays take a hundred repetitions."""
    machine = {"workload": {"kind": "echo", "transport": "udp"}, "host": {"clock": "real"}}
    hopeless = only(rule_after([20.0, 20.1, 19.9, 20.05, 19.95], asked(), parameters=machine))
    assert hopeless.ended is Ended.NO_VALUE
    assert hopeless.reason == "its interval takes 50 repetitions by design, and 40 are the most"


def lossy_rule(losses: Sequence[int], *, statistic: str = "mean") -> PrecisionRule:
    """A cell with 1 % loss: 100 echoes per repetition, all of 20 ms. Args: losses: lost packets of each repetition."""
    rule = PrecisionRule(asked(statistic=statistic, looks=look_schedule(5, 100)))
    workload = {"kind": "echo", "transport": "tcp", "messages": 100}
    way = {"loss": 0.01, "delay_ns": 10 * MS}
    given = {"workload": workload, "path": {"forward": way, "reverse": way}}
    for repetition, lost in enumerate(losses):
        rtts = [20 * MS + at for at in range(100)]
        rtts[0] += repetition
        end = finished(packets=100)
        end["ledger"]["forward"]["dropped"] = {"loss": lost}
        rule.add(run(0, echoes(rtts), repetition=repetition, parameters=given, end=end))
    return rule


def test_what_no_repetition_has_shown_belongs_to_the_interval() -> None:
    """A lost packet costs a timer of 220 ms, more where it is lost again; of a mean of 100 exchanges a hundredth."""
    cost_ns = 220 * MS / (1 - 2 * 0.01) / 100
    state = only(lossy_rule([0] * 5))
    assert state.half_width == pytest.approx((1 - 0.025 ** (1 / 5)) * cost_ns / 2, rel=0.01)
    assert (state.ended, state.least) == (None, 50)


@pytest.mark.parametrize(
    ("losses", "statistic", "ended", "likely", "says"),
    [
        ([0] * 5, "mean", None, 51, "uncertain below 50 repetitions"),
        ([1] * 5, "mean", None, 15, "uncertain below 15 repetitions"),
        ([1] * 15, "mean", Ended.PRECISION, None, "precision reached"),
        # Fewer than five losses leave the p95 of a hundred as it is, and show nothing of more.
        ([2] * 33, "p95", None, None, "losses can have moved it in 0 of 33 repetitions, 15 such are needed"),
        ([2] * 100, "p95", Ended.CAP, None, "20 %"),
        ([6] * 15, "p95", Ended.PRECISION, None, "in all of 15 repetitions"),
        # Nobody loses fifty of two hundred packets at 1 %: nothing moves a median.
        ([2] * 10, "median", Ended.PRECISION, None, "in all of 10 repetitions"),
    ],
)
def test_a_cell_that_loses_packets_ends_when_losses_have_shown_what_they_do(
    losses: Sequence[int], statistic: str, ended: Ended | None, likely: int | None, says: str
) -> None:
    state = only(lossy_rule(losses, statistic=statistic))
    assert (state.ended, state.likely) == (ended, likely)
    assert says in precision_text(state)
    assert (state.reason is None) == (ended is Ended.PRECISION)


@pytest.mark.parametrize(("repetitions", "ended"), [(12, None), (15, Ended.PRECISION)])
def test_on_the_machines_clock_fifteen_repetitions_show_what_may_delay(repetitions: int, ended: Ended | None) -> None:
    machine = {"workload": {"kind": "echo", "transport": "udp"}, "host": {"clock": "real"}}
    means_ms = [20 + 0.01 * (at % 3) for at in range(repetitions)]
    state = only(rule_after(means_ms, asked(statistic="median"), parameters=machine))
    assert (state.ended, state.likely) == (ended, None if ended else 15)
    assert ended or "below 15 repetitions rare delays may be missing" in precision_text(state)


def test_a_share_of_jumps_is_covered_where_a_precision_is_reached() -> None:
    """At 93 % of 200 runs, fewer than 174 come once in a thousand times. Limits of the values alone cover 6 to 41 %."""
    for share, cost in ((0.01, 0.5), (0.03, 0.25), (0.1, 0.5)):
        tally, unreached = ended_runs(Jumps(share, cost, 0.05), trials=200, seed=1, known=cost)
        alone, _ = ended_runs(Jumps(share, cost, 0.05), trials=200, seed=1, known=None)
        assert (unreached, tally.covered >= 174, alone.covered < 100) == (0, True, True)


def test_of_two_precisions_a_cell_goes_on_until_both_are_reached() -> None:
    given = asked()
    given["targets"].append({**given["targets"][0], "target": "90%", "bound": 0.9})
    states = rule_after([20, 25, 15, 30, 22], given).state()
    assert [(state.is_reached, state.ended) for state in states] == [(False, None), (True, None)]


# The plan that grows


def test_further_repetitions_have_the_seeds_of_their_blocks() -> None:
    text = ECHO + "[study]\nrepetitions = 7\nseed = 5\n[path]\nloss = ['0%', '5%', '6%']\n"
    whole = {item.key: item for item in Plan.of(study(text))}
    plan = [
        planned_cell(
            item.cell.index, key=item.key, repetition=item.repetition, block=item.block, seed=item.seed,
            order=item.order, parameters={"id": item.key, "seed": item.seed},
        )
        for item in whole.values()
        if item.repetition < 5
    ]  # fmt: skip
    added = further_cells(plan, {0: 7, 2: 6}, seed=5)
    assert [planned.order for planned in added] == [15, 16, 17]
    assert {planned.key for planned in added} == {"c000-r05", "c002-r05", "c000-r06"}
    for planned in added:
        item = whole[planned.key]
        assert (planned.seed, planned.block, planned.repetition) == (item.seed, item.block, item.repetition)
        assert (planned.parameters["id"], planned.parameters["seed"]) == (item.key, item.seed)
    order = [item.key for item in whole.values() if item.key in {planned.key for planned in added}]
    assert [planned.key for planned in added] == order


def test_what_a_session_added_to_the_plan_and_died_before_it_said_so_is_decided_anew(tmp_path: Path) -> None:
    place = tmp_path / "run"
    with new_run(place, 1, precision=asked()) as store:
        before = (place / "manifest.json").read_bytes()
        store.extend_plan([planned_cell(0, key="c000-r01", repetition=1)])
    (place / "manifest.json").write_bytes(before)
    assert len(Store.read(place).plan) == 1
    with Store.resume(place) as store:
        assert (store.manifest.planned, len(store.plan)) == (1, 1)
        assert store.manifest.precision == asked()
    assert (place / "plan.jsonl").stat().st_size == store.manifest.plan.size_bytes


def test_repetitions_that_are_all_the_same_have_no_interval_until_a_sign_test_says_so_of_most() -> None:
    """The first look at 5 of at most 40 has a tail of more than 0.5^10, and of less than 0.5^8."""
    state = only(rule_after([20.0] * 5, asked()))
    assert (state.value, state.low, state.high, state.ended, state.likely) == (20 * MS, None, None, None, 10)
    assert precision_text(state) == (
        "mean(rtt) 20 ms: the same in all 5 repetitions, which says little below 10 (asked: ± 5 %), probably 10 in all"
    )
    done = only(rule_after([20.0] * 10, asked()))
    assert (done.low, done.high, done.ended) == (20 * MS, 20 * MS, Ended.PRECISION)
    assert precision_text(done) == "mean(rtt) 20 ms in all of 10 repetitions (asked: ± 5 %), precision reached"


CELL = """
import shutil
start()
shutil.copy(f"{samples}/{{cell['seed'] % 64}}.arrow", cell['output']['directory'] + '/samples.arrow')
finish(samples={{'rows': 20, 'ok': 20, 'lost': 0, 'outcomes': []}})
"""
"""Repetitions with the same seed come out the same; there are 64 of them."""


@pytest.fixture
def measured(
    fake_cell: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Callable[[float, str], crosswind.Run]:
    """Runs a study of two cells with a made-up cell whose repetitions spread by so many milliseconds."""
    samples = tmp_path / "samples"
    samples.mkdir()

    def measure(spread_ms: float, head: str) -> crosswind.Run:
        for number, shift_ms in enumerate(np.random.default_rng(1).normal(0, spread_ms, 64)):
            later = pl.col("received_ns") + round(shift_ms * MS)
            echo_samples(20).with_columns(later).write_ipc(samples / f"{number}.arrow")
        monkeypatch.setenv("CROSSWIND_CELL", str(fake_cell(GOOD_END + CELL.format(samples=samples))))
        text = ECHO + head + '[path]\nloss = ["0%", "1%"]\n'
        text = text.replace('kind = "echo"', 'kind = "echo"\ntransport = "udp"\nmessages = 20')
        return crosswind.run(study(text), output=tmp_path / f"run-{spread_ms}")

    return measure


def test_a_run_goes_on_until_it_is_precise(measured: Callable[[float, str], crosswind.Run]) -> None:
    done = measured(3.0, '[[precision]]\ntarget = "1.5ms"\n')
    states = precision_of(done.record())
    assert [state.ended for state in states] == [Ended.PRECISION] * 2
    assert all(state.half_width is not None and state.half_width <= 1.5 * MS for state in states)
    assert done.planned == sum(state.units for state in states) > 10
    assert done.valid
    # A run that is precise stays as it is.
    again = crosswind.resume(done.directory)
    assert again.planned == done.planned


def test_a_run_ends_at_its_cap_and_goes_on_from_there_if_it_was_cut(
    measured: Callable[[float, str], crosswind.Run],
) -> None:
    # A mean of so few exchanges has no interval by design, on the machine's clock.
    wanted = 'metric = "rtt"\nstatistic = "median"\ntarget = "0.1%"'
    done = measured(3.0, f"[[precision]]\n{wanted}\n[study]\nrepetitions_max = 12\n")
    assert [state.ended for state in precision_of(done.record())] == [Ended.CAP] * 2
    assert done.planned == 24
    # As if it had been interrupted after the first look.
    plan = (done.directory / "plan.jsonl").read_bytes()
    checksum = write_plan(done.directory, Store.read(done.directory).plan[:10]).as_json()
    change_sealed(done.directory / "manifest.json", plan=checksum, planned=10, status="interrupted")
    assert crosswind.resume(done.directory).planned == 24
    assert (done.directory / "plan.jsonl").read_bytes() == plan
