"""Fits to transfers whose truth is known: a formula's own times with a known scatter."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

from crosswind.analysis.model_fit import FitError, fit_models
from crosswind.models.fitting import FORMS, Cells, MeasuredCells, compare, fit
from crosswind.models.situation import Situation
from effects import situation
from records import path, record, run, timed

TRUTH = {
    "transfer": [0.5, 2.0, 3.0, 0.8],
    "pftk-kappa": [0.4],
    "exponential": [0.05, 2.0, 15.0, 1.0],
    "power-law": [0.2, 0.9, 0.15, 0.5, 0.6],
}


def cells() -> list[Situation]:
    paths = [
        {"delay_ns": delay_ms * 1_000_000, "loss": loss, "rate_bps": rate}
        for delay_ms in (15, 50)
        for loss in (0.01, 0.03, 0.1)
        for rate in (1_500_000, 25_000_000)
    ]
    workload = {"kind": "transfer", "transport": "tcp"}
    return [
        situation({
            "path": {"forward": way, "reverse": way},
            "host": {"profile": "freebsd-8"},
            "workload": workload | {"size_bytes": size},
        })
        for way in paths
        for size in (15_000, 256_000, 1_000_000)
    ]  # fmt: skip


def measured(name: str, scatter: float, repetitions: int = 10, seed: int = 1) -> MeasuredCells:
    known = Cells.of(cells())
    means = FORMS[name].times(known, np.array(TRUTH[name]))
    random = np.random.default_rng(seed)
    return MeasuredCells(known, tuple(mean * random.lognormal(0, scatter, repetitions) for mean in means))


@pytest.mark.parametrize("name", list(FORMS))
def test_without_scatter_the_truth_is_found(name: str) -> None:
    found = fit(FORMS[name], measured(name, 0.0), intervals=False, alone=True)
    assert found.values.tolist() == pytest.approx(TRUTH[name], rel=1e-3, abs=1e-3)
    assert found.at_bound == ()
    assert found.untold == ()


def test_coefficients_that_the_cells_do_not_tell_are_named() -> None:
    """Of cells of one size an exponential has two coefficients alone: b and c, each a sum of two."""
    whole = measured("exponential", 0.0)
    same = whole.chosen(np.flatnonzero(whole.cells.size == 256_000))
    assert fit(FORMS["exponential"], same, intervals=False).untold == ("b0", "b1", "c0", "c1")
    assert fit(FORMS["transfer"], same, intervals=False).untold == ()


@pytest.mark.parametrize("name", ["exponential", "power-law"])
def test_intervals_hold_the_truth_and_the_value(name: str) -> None:
    found = fit(FORMS[name], measured(name, 0.3))
    low, high = found.limits
    assert (low <= found.values).all() and (found.values <= high).all()
    assert (low < high).all()
    inside = (low <= TRUTH[name]) & (np.array(TRUTH[name]) <= high)
    assert inside.sum() >= len(TRUTH[name]) - 1  # 95 % each: one of five may miss


def test_what_the_cells_do_not_tell_is_as_simulated_transfers_have_it() -> None:
    """Ten cells of one size, loss, rate and round trip tell one coefficient at most."""
    form, same = FORMS["transfer"], Cells.of([cells()[1]] * 10)
    expected = same.simulated[0]
    assert expected.tolist() == pytest.approx([0.859, 1.924, 3.014, 0.475])  # Reno's, of docs/models.md
    as_expected = MeasuredCells(same, tuple(np.full(20, time) for time in form.times(same, expected)))
    assert fit(form, as_expected, intervals=False).values.tolist() == pytest.approx(expected.tolist(), rel=1e-3)
    # Cells of many kinds tell them, so that what was expected counts less.
    told = fit(form, measured("transfer", 0.0), intervals=False)
    assert told.values[0] == pytest.approx(TRUTH["transfer"][0], rel=0.02)  # what was expected is 1.7 times as much
    far = np.abs(np.array(TRUTH["transfer"]) - expected)
    off = np.abs(told.values - TRUTH["transfer"])
    assert (off < far)[far > 0.05].all()  # all but timeout_power, which is as expected


@pytest.mark.parametrize("name", ["pftk-kappa", "power-law"])
def test_limits_are_as_wide_as_fits_without_a_cell_and_without_a_repetition_differ(name: str) -> None:
    own, form = measured(name, 0.2, repetitions=20), FORMS[name]
    off = np.random.default_rng(2).lognormal(0, 0.05, len(own))
    own = MeasuredCells(own.cells, tuple(times * by for times, by in zip(own.seconds, off, strict=True)))

    def error(without: list[MeasuredCells]) -> np.ndarray:
        """The delete-one jackknife's standard error."""
        values = np.array([fit(form, rest, intervals=False).values for rest in without])
        return np.sqrt((len(without) - 1) * values.var(axis=0))

    count, repetitions = len(own), own.seconds[0].size
    of_cells = error([own.chosen(np.delete(np.arange(count), cell)) for cell in range(count)])
    of_repetitions = error(
        [MeasuredCells(own.cells, tuple(np.delete(times, at) for times in own.seconds)) for at in range(repetitions)]
    )
    tails = [stats.t.ppf(0.975, n) for n in (count - len(form.coefficients), repetitions - 1)]
    expected = 2 * np.hypot(tails[0] * of_cells, tails[1] * of_repetitions)
    found = np.ptp(fit(form, own).limits, axis=0)
    assert (found / expected > 0.9).all() and (found / expected < 1.25).all()


def test_repetitions_that_all_cells_share_make_a_coefficient_less_sure() -> None:
    """Where every tenth repetition is slow everywhere, means err together, which scatter from cell to cell hides."""
    own = measured("pftk-kappa", 0.0, repetitions=20)
    slow = np.where(np.arange(20) % 10, 1.0, 4.0)
    alike = MeasuredCells(own.cells, tuple(times * slow for times in own.seconds))
    apart = MeasuredCells(own.cells, tuple(times * np.roll(slow, at) for at, times in enumerate(own.seconds)))
    widths = [np.ptp(fit(FORMS["pftk-kappa"], of).limits) for of in (alike, apart)]
    assert widths[0] > 3 * widths[1]


def test_a_coefficient_that_is_never_below_0_is_as_far_from_its_limits_by_a_factor() -> None:
    """Of an exact formula of whose cells every other one is slower, limits are symmetric in logarithms."""
    own = measured("exponential", 0.0)
    off = MeasuredCells(
        own.cells, tuple(times * (1.01 if at % 2 else 1 / 1.01) for at, times in enumerate(own.seconds))
    )
    found = fit(FORMS["exponential"], off)
    low, high = found.limits
    assert low[1] * high[1] == pytest.approx(found.values[1] ** 2)  # b1
    assert low[2] + high[2] == pytest.approx(2 * found.values[2])  # c0, which may be 0


def test_a_coefficient_that_the_data_push_to_its_bound_is_said_to_be_there() -> None:
    own = measured("pftk-kappa", 0.0)
    slow = MeasuredCells(own.cells, tuple(times * 50 for times in own.seconds))
    assert fit(FORMS["pftk-kappa"], slow, intervals=False).at_bound == ("kappa",)


def test_held_out_errors_are_those_of_fits_without_the_cell() -> None:
    # One cell is ten times too slow. Power laws through all cells bend towards it; without it they fit the rest.
    own = measured("power-law", 0.0)
    wrong = MeasuredCells(own.cells, (own.seconds[0] * 10, *own.seconds[1:]))
    loss = [f"{100 * p:g}%" for p in own.cells.path.loss]
    made = compare(FORMS["power-law"], wrong, {"loss": loss, "same": ["x"] * len(loss)}, intervals=False)
    assert made.held_out[0] == pytest.approx(1 / 10 - 1, abs=1e-3)
    assert abs(made.errors[0]) < abs(made.held_out[0])
    levels = {level.level: level for level in made.levels}
    assert list(levels) == ["1%", "3%", "10%"]  # one level of "same" says nothing
    assert levels["1%"].cells == 12
    assert levels["1%"].held_out == pytest.approx(0, abs=1e-3)  # 11 of the 12 are exact
    assert levels["3%"].held_out > 1e-3  # the wrong cell is in that fit


def test_too_few_cells_are_refused() -> None:
    few = measured("transfer", 0.0).chosen(np.arange(4))
    with pytest.raises(ValueError, match="4 coefficients and 4 cells"):
        fit(FORMS["transfer"], few)


def transfers(cell: int, size: int, loss: float, **changes):
    """A repetition of three transfers that take a time to the power law's liking."""
    rate = changes.get("rate_bps", 6_000_000)
    parameters = {
        "path": path(loss=loss, rate_bps=rate, delay_ns=10_000_000),
        "workload": {"kind": "transfer", "transport": "tcp", "size_bytes": size},
        "host": {"profile": changes.get("profile", "linux")},
    }
    base = 1e9 * (size / 1e6) ** 0.9 * max(loss, 0.001) ** 0.5
    times = [round(base * factor) for factor in (0.9, 1.0, 1.1)]
    return run(cell, timed(times, size=size), {"path.loss": f"{loss:.0%}"}, parameters=parameters)


def test_a_run_is_fitted_and_the_best_model_comes_first() -> None:
    levels = [(size, loss) for size in (15_000, 64_000, 256_000) for loss in (0.0, 0.02, 0.05, 0.1)]
    found = fit_models(
        record(*(transfers(index, *level) for index, level in enumerate(levels))), ["exponential", "power-law"]
    )
    assert (found.cells, found.left_out) == (9, {"without loss": 3})
    best, other = found.fits
    assert best.model == "power-law"
    assert best.held_out_median < 0.02 < other.held_out_median
    told = [part for made in found.fits for part in made.coefficients if part.value is not None]
    assert {part.name for part in told} >= {"segments", "loss"}
    assert all(part.reason for part in told)  # of one repetition a cell there is no interval
    assert {level.factor for level in best.levels} == {"size", "loss"}


def test_each_congestion_control_is_fitted_by_itself() -> None:
    levels = [(size, loss) for size in (15_000, 64_000, 256_000) for loss in (0.02, 0.05, 0.1)]
    reno = [transfers(index, *level, profile="freebsd-8") for index, level in enumerate(levels)]
    cubic = [transfers(10 + index, *level) for index, level in enumerate(levels)]
    found = fit_models(record(*reno, *cubic), ["power-law"])
    assert [(made.congestion_control, made.cells) for made in found.fits] == [("reno", 9), ("cubic", 9)]
    few = fit_models(record(*reno, *cubic[:3]), ["power-law"])
    assert [made.congestion_control for made in few.fits] == ["reno"]
    assert few.left_out == {"under cubic, too few cells": 3}
    assert few.cells == 9


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        ([], "there are too few cells to fit to"),
        ([transfers(index, 64_000, 0.0) for index in range(9)], "9 without loss"),
        ([transfers(index, 64_000, 0.05, rate_bps=None) for index in range(9)], "a link without a rate"),
        ([transfers(index, 64_000, 0.6) for index in range(9)], "half of the packets"),
        ([run(0, None)], "1 of other workloads than tcp transfers"),
    ],
)
def test_a_run_that_cannot_be_fitted_to_says_why(runs: list, why: str) -> None:
    with pytest.raises(FitError, match=why) as caught:
        fit_models(record(*runs))
    assert "a fit needs 8 cells" in caught.value.hint


def test_a_cell_with_one_repetition_is_as_uncertain_as_the_others_usually_are() -> None:
    own = measured("power-law", 0.3)
    alone = replace(own, seconds=(own.seconds[0][:1], *own.seconds[1:]))
    assert alone.errors[0] == pytest.approx(np.median(alone.errors[1:]))
    assert (MeasuredCells(own.cells, tuple(times[:1] for times in own.seconds)).errors == 0.1).all()


def test_a_lucky_cell_has_the_weight_of_its_like() -> None:
    # One cell's repetitions are all the same: its own error is 0, but not what cells like it are known to.
    own = measured("power-law", 0.3)
    lucky = replace(own, seconds=(np.full(10, own.seconds[0].min()), *own.seconds[1:]))
    assert lucky.errors[0] == 0
    assert lucky.usual_errors[0] > 0.5 * own.usual_errors[0]
    few = lucky.chosen(np.arange(9))
    assert few.usual_errors.tolist() == pytest.approx([np.median(few.errors)] * 9)


def test_a_fit_to_simulated_times_does_not_look_at_the_measured_ones() -> None:
    levels = [(size, loss) for size in (15_000, 64_000, 100_000) for loss in (0.02, 0.05, 0.1)]
    runs = [transfers(index, *level) for index, level in enumerate(levels)]
    slower = [replace(one, samples=one.samples.with_columns(wire_ns=one.samples["wire_ns"] * 7)) for one in runs]
    first, second = (fit_models(record(*these), ["pftk-kappa"], simulated=True).fits[0] for these in (runs, slower))
    assert first.coefficients == second.coefficients
    assert fit_models(record(*slower), ["pftk-kappa"]).fits[0].fitted_median > 2 * first.fitted_median
