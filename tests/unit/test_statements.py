"""Statements of documents, from study file to report, on data whose truth is known: both ways."""

import math
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
from crosswind.findings.question.show import statement_tables
from crosswind.findings.threshold.result import ThresholdResult
from crosswind.report.run_page import page_of
from crosswind.report.run_page import render as render_html
from crosswind.stats.design import mean_shortage
from crosswind.stats.estimate import Interval
from crosswind.study.design import Study
from effects import effect_of
from records import MS, context_of, echoes, path, record, runs, timed, transfers
from screens import render

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


def same_every_time(index: int, rtt_ms: float, level: str, repetitions: int):
    """Repetitions that could differ and do not."""
    return runs(index, [echoes([round(rtt_ms * MS)] * 5)] * repetitions, {FACTOR: level})


@pytest.mark.parametrize(
    ("repetitions", "at_least", "expected"),
    [(8, 1.4, "yes"), (8, 1.6, "no"), (6, 1.4, "yes"), (5, 1.4, "cannot tell"), (2, 1.4, "cannot tell")],
)
def test_what_is_the_same_every_time_is_judged_by_how_often_it_was_seen(
    repetitions: int, at_least: float, expected: str
) -> None:
    cells = [same_every_time(index, rtt, f"{index}%", repetitions) for index, rtt in enumerate((20, 30))]
    compare = [{"level": f"{index}%", "cells": [index]} for index in range(2)]
    made = verdict_of(says(2, compare=compare, low=at_least), *cells)
    assert made.verdict == expected
    assert f"1.500 (in all {repetitions} repetitions) times" in made.sentence
    assert (f"{6 - repetitions} more" in made.sentence) == (expected == "cannot tell")


VALUE = {"scale": "value", "factor": None}
SAME, DIFFERENT = {"yes": "same"}, {"yes": "different", "inside": False}
RISES, FALLS = {"yes": "rises", "low": 1, "is_open": True}, {"yes": "falls", "high": 1, "is_open": True}


@pytest.mark.parametrize(
    ("fields", "means_ms", "expected"),
    [
        (VALUE | {"low": 9e6, "high": 11e6}, (10, 10.2), "yes"),
        (VALUE | {"low": 9e6, "high": 11e6}, (10, 12), "no"),
        (VALUE | {"low": 9e6, "high": 11e6}, (10, 11), "cannot tell"),
        ({"low": 2}, (10, 22), "yes"),
        ({"low": 2}, (10, 18), "no"),
        ({"low": 2}, (10, 20), "cannot tell"),
        ({"high": 0.5}, (10, 4), "yes"),
        ({"high": 0.5}, (10, 6), "no"),
        ({"scale": "difference", "low": 4e6, "high": 6e6}, (10, 15), "yes"),
        ({"scale": "difference", "low": 4e6, "high": 6e6}, (15, 10), "no"),
        (SAME | {"low": 0.8, "high": 1.25}, (10, 10.5, 9.8), "yes"),
        (SAME | {"low": 0.8, "high": 1.25}, (10, 10.5, 14), "no"),
        (SAME | {"low": 0.8, "high": 1.25}, (10, 10.5, 12.5), "cannot tell"),
        (SAME | {"scale": "difference", "low": -1e6, "high": 1e6}, (10, 10.5), "yes"),
        (SAME | {"scale": "difference", "low": -1e6, "high": 1e6}, (10, 12), "no"),
        (DIFFERENT | {"low": 0.8, "high": 1.25}, (10, 14, 7), "yes"),
        (DIFFERENT | {"low": 0.8, "high": 1.25}, (10, 14, 13.9), "no"),
        (DIFFERENT | {"low": 0.8, "high": 1.25}, (10, 14, 8), "cannot tell"),
        (RISES, (10, 11, 13), "yes"),
        (RISES, (10, 11, 9), "no"),
        (RISES, (10, 11, 11), "cannot tell"),
        (FALLS, (13, 11, 10), "yes"),
        (FALLS, (9, 11, 10), "no"),
    ],
)
def test_every_number_decides_either_way(fields: dict[str, Any], means_ms: tuple[float, ...], expected: str) -> None:
    assert verdict_of(says(len(means_ms), **fields), *of_times(*means_ms)).verdict == expected


def of_delays(times_ms: dict[int, float]) -> list[Any]:
    """Cells by the delay each way."""
    return [cell(index, time, **{"path.delay": f"{delay}ms"}) for index, (delay, time) in enumerate(times_ms.items())]


@pytest.mark.parametrize(
    ("scale", "bounds", "times_ms", "effects", "expected"),
    [
        # Time proportional to the square root of the round trip, then to the round trip itself.
        ("exponent", (0.4, 0.6), {1: 10, 4: 20, 16: 40}, [0.5, 0.5], "yes"),
        ("exponent", (0.4, 0.6), {1: 10, 4: 20, 16: 80}, [0.5, 1], "no"),
        # Two round trips and 5 ms, then three round trips.
        ("slope", (1.8e6, 2.2e6), {5: 25, 15: 65, 50: 205}, [2e6, 2e6], "yes"),
        ("slope", (1.8e6, 2.2e6), {5: 30, 15: 90, 50: 300}, [3e6, 3e6], "no"),
    ],
)  # fmt: skip
def test_laws_are_about_neighbouring_levels(
    scale: str, bounds: tuple[float, float], times_ms: dict[int, float], effects: list[float], expected: str
) -> None:
    statement = says(3, scale=scale, factor="path.delay", low=bounds[0], high=bounds[1])
    # In any order of the cells: neighbours are those of the numbers.
    found = verdict_of(statement, *of_delays(times_ms)[::-1])
    assert found.verdict == expected
    assert [case.effect.value for case in found.cases] == pytest.approx(effects, rel=0.02)
    assert [tuple(side.level for side in case.sides) for case in found.cases] == [
        (f"{first}ms", f"{second}ms") for first, second in zip(times_ms, [*times_ms][1:], strict=False)
    ]


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
    other = verdict_of(statement | {"metric": "transfer_time_app"}, made)
    assert (other.verdict, other.cases) == ("cannot tell", [])
    assert other.reason == "its cells do not have the metric transfer_time_app"


@pytest.mark.parametrize(("most", "expected"), [(0.2, "yes"), (0.1, "no"), (0.15, "cannot tell")])
def test_the_error_of_a_model_is_its_mean_over_cells(most: float, expected: str) -> None:
    predicted_s = 8 * 256_000 / 6e6  # without loss the curve is the time of the link
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 256_000}
    parameters = {"path": path(rate_bps=6_000_000), "workload": workload}
    cells = []
    for index, over in enumerate((1.1, 0.8)):
        times = [round(1e9 * predicted_s / over * (1 + 0.2 * offset)) for offset in SPREAD]
        cells += runs(index, [timed([time]) for time in times], {FACTOR: f"{index}%"}, parameters=parameters)
    statement = says(2, scale="model-error", factor=None, metric="transfer_time", model="caia", high=most)
    judged = verdict_of(statement, cells)
    (case,) = judged.cases
    assert judged.verdict == expected
    # 10 % and 20 %, in whichever direction.
    assert case.effect.value == pytest.approx(0.15, abs=0.002)
    assert case.cells == [0, 1]
    assert "over 2 cells what caia predicts of mean transfer time on the wire is off by 0.1" in judged.sentence


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


def test_groups_are_otherwise_equal_and_levels_are_in_the_order_of_the_statement() -> None:
    cells = [
        cell(2 * at + side, mean, f"{side}%", **{"workload.size": size})
        for at, size in enumerate(("1", "50"))
        for side, mean in enumerate((10, 20))
    ]
    compare = [{"level": "1%", "cells": [1, 3]}, {"level": "0%", "cells": [0, 2]}]
    found = verdict_of(says(4, high=0.6, compare=compare), *cells)
    assert found.verdict == "yes"
    assert [(*(side.level for side in case.sides), case.fixed, case.cells) for case in found.cases] == [
        ("1%", "0%", {"workload.size": "1"}, [1, 0]), ("1%", "0%", {"workload.size": "50"}, [3, 2]),
    ]  # fmt: skip


def test_where_cells_are_missing_or_too_few_nobody_can_tell() -> None:
    compare = [{"level": "0%", "cells": [0]}, {"level": "9%", "cells": []}]
    missing = verdict_of(says(1, low=1, compare=compare), cell(0, 10, "0%"))
    assert (missing.verdict, missing.cases, missing.reason) == (
        "cannot tell", [], "this run has no cell with path.loss 9%",
    )  # fmt: skip
    nowhere = verdict_of(says(0, low=1, where={"path.delay": "9ms"}), cell(0, 10, "0%"))
    assert nowhere.reason == "this run has no cell with path.delay 9ms"
    alone = verdict_of(says(1, **RISES), cell(0, 10, "0%"))
    assert alone.reason == "this run has no two cells that differ in path.loss alone"
    few = verdict_of(says(2, low=1), cell(0, 10, "0%")[:2], cell(1, 30, "1%")[:2])
    assert (few.verdict, few.cases[0].effect.low) == ("cannot tell", None)
    assert few.cases[0].effect.reason == "an interval of a mean needs 3 repetitions, there are 2: 1 more"
    lost = runs(1, [echoes([None] * 5)] * 3, {FACTOR: "1%"})
    none = verdict_of(says(2, low=1), cell(0, 10, "0%"), lost)
    assert none.verdict == "cannot tell"
    assert "mean round-trip time has no number" in none.sentence


@pytest.mark.parametrize(("most", "expected"), [(0.3, "yes"), (0.02, "no"), (0.1, "cannot tell")])
def test_the_share_of_exchanges_lost_is_a_number_of_a_cell(most: float, expected: str) -> None:
    """Each of 20 repetitions of ten exchanges loses one."""
    lost = runs(0, [echoes([10 * MS] * 9 + [None])] * 20)
    made = verdict_of(says(1, **VALUE, metric="lost", high=most), lost)
    assert (made.verdict, made.cases[0].effect.value) == (expected, 0.1)
    nothing = verdict_of(says(1, **VALUE, metric="lost", high=most), runs(0, [None] * 3))
    assert (nothing.verdict, nothing.cases[0].effect.reason) == ("cannot tell", "there is no exchange")


@pytest.mark.parametrize(("fields", "expected"), [({"high": 0}, "no"), ({"low": 0}, "yes")])
def test_every_ratio_is_above_0(fields: dict[str, float], expected: str) -> None:
    assert verdict_of(says(2, **fields), *of_times(10, 11)).verdict == expected


def test_medians_are_compared_as_medians() -> None:
    tables = [[echoes([time * MS] * 9 + [900 * MS] * 2) for _ in range(6)] for time in (10, 10)]
    tables[1] = [echoes([10 * MS + at] * 9 + [100 * MS] * 2) for at in range(6)]
    both = [runs(at, tables[at], {FACTOR: f"{at}%"}) for at in (0, 1)]
    found = verdict_of(says(2, **SAME, statistic="median", low=0.9, high=1.1), *both)
    assert (found.verdict, found.statistic) == ("yes", "median")
    assert verdict_of(says(2, **SAME, low=0.9, high=1.1), *both).verdict == "no"


def test_a_statement_is_a_sentence_everywhere() -> None:
    made = record(*(run for one in of_times(10, 40) for run in one), questions=[says(2, low=2.0, high=3.0)])
    result = analyse(made)
    assert "The document's statement does not hold." in [line.text for line in page_of(result).lines]
    said = result.of(Answer)[0].sentence
    assert said.startswith("Does not hold: “It is so”: mean round-trip time with loss 1% is 4.0")
    assert said.endswith("] times that with 0%; the statement needs 2 to 3.")
    verdicts, comparisons = statement_tables(result)
    assert verdicts.rows == [["Does not hold", said.removeprefix("Does not hold: "), "A paper"]]
    assert [row[:3] + row[4:] for row in comparisons.rows] == [["It is so.", "–", "1% / 0%", "2 to 3", "does not hold"]]
    assert "Does not hold: “It is so”" in " ".join(render(result).split())
    assert "Every comparison of the statements" in render_html(made, result)


def test_the_sentence_names_the_case_that_decides() -> None:
    cells = of_times(10, 11, 16, 30)
    said = verdict_of(says(4, **SAME, low=0.5, high=2.0), *cells).sentence
    # 30 / 10 is farthest out, before 30 / 11.
    assert "with loss 3% is 3.0" in said
    assert "(of 6 comparisons 4 bear it out, 2 contradict it)" in said
    said = verdict_of(says(3, **SAME, low=0.5, high=2.0), *of_times(10, 11, 30)).sentence
    assert "(of 3 comparisons 1 bears it out, 2 contradict it)" in said


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


def stored(text: str) -> dict[str, Any]:
    """The statement of a study, as a plan has it."""
    study = Study.from_toml(STUDY + text + "\n", name="s")
    assert Study.from_toml(study.to_toml(), name="s").canonical() == study.canonical()
    assert study.digest() == Study.from_toml(STUDY.partition("[[")[0], name="s").digest()
    (statement,) = presentation(study)["asked"]["question"]
    return statement


RATIO = 'scale = "ratio"\nfactor = "path.loss"\n'


def test_a_statement_knows_its_cells_and_its_range() -> None:
    more = 'compare = ["0.05", 0]\nat_least = 0.5\nat_most = "2"\nwhere = { "workload.size" = 50 }'
    statement = stored(RATIO + more)
    # delay 0: loss 0 %: cells 0, 1 (1 and 50 bytes), loss 5 %: 2, 3; delay 5 ms: 4 to 7.
    assert statement["cells"] == [1, 3, 5, 7]
    assert statement["compare"] == [{"level": "0.05", "cells": [3, 7]}, {"level": "0", "cells": [1, 5]}]
    assert (statement["low"], statement["high"], statement["scale"]) == (0.5, 2, "ratio")
    assert stored('at_most = "5ms"')["high"] == 5e6
    assert stored('scale = "slope"\nfactor = "path.delay"\nat_least = 0\nat_most = "2.5ms"')["low"] == 0
    margin = stored('yes = "different"\nfactor = "path.loss"\nmargin = "25%"')
    assert (margin["low"], margin["high"], margin["inside"]) == (0.8, 1.25, False)
    assert stored('yes = "same"\nfactor = "path.loss"\nmargin = "5ms"')["low"] == -5e6
    falls = stored('yes = "falls"\nfactor = "path.loss"')
    assert (falls["low"], falls["high"], falls["is_open"], falls["source"]) == (None, 1, True, "A paper")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('scale = "roughly"', "question[1].scale: "),
        (RATIO[:16] + "at_least = 1", "question[1].factor: is missing"),
        (RATIO + "at_least = 1", "question[1].compare: compare has no level, and a comparison takes two"),
        (RATIO + 'yes = "within"\ncompare = ["0%", "5%"]', "question[1].at_least: within needs at_least"),
        (RATIO + 'compare = ["0%", "5%"]\nat_most = 1\nmargin = "5%"', "question[1].margin: within has no margin"),
        (RATIO + 'compare = ["0%", "5%"]\nat_most = "5ms"', 'question[1].at_most: "5ms" is not a bound of this number'),
        (RATIO + 'compare = ["0%", "5%"]\nat_least = 2\nat_most = 1', "question[1].at_most: at_least 2 is more"),
        (RATIO + 'compare = ["0%", "5 apples"]\nat_most = 1', 'question[1].compare[2]: "5 apples"'),
        (RATIO + 'compare = ["0%", "5%"]\nat_most = 1\nwhere = { "path.loss" = "0%" }', "question[1].where: path.loss"),
        (RATIO + 'compare = ["0%", "5%"]\nat_most = 1\nmodel = "mathis"', "question[1].model: the scale ratio has no"),
        ('scale = "model"\nat_most = 1', "question[1].model: the scale model needs a model"),
        ('scale = "value"\nat_most = "5ms"\nfactor = "path.loss"', "question[1].factor: the scale value is of single"),
        ('scale = "value"\nat_most = "5"', 'question[1].at_most: "5" is not a bound of this number'),
        ('yes = "rises"\nfactor = "path.loss"\nat_least = 1', "question[1].at_least: rises has no at_least"),
        ('scale = "slope"\nfactor = "path.family"\nat_most = "1ms"', "question[1].factor: the levels of path.family"),
        ('yes = "same"\nfactor = "path.loss"', "question[1].margin: whether two levels are the same takes a margin"),
        ('yes = "rises"\nfactor = "path.los"', 'question[1].factor: "path.los" is not a factor'),
        ('asks = "Is it so?"\nat_most = "5ms"', "question[1].asks: a statement of a document has says, and no asks"),
    ],
)  # fmt: skip
def test_mistakes_in_a_statement(text: str, message: str) -> None:
    with pytest.raises(StudyError) as caught:
        stored(text)
    assert message in caught.value.message


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


DECLARED = """
[path]
delay = ["15ms", "50ms"]
loss = ["0%", "1%"]
[workload]
kind = "echo"
[[question]]
source = "A paper"
says = "Loss matters little."
metric = "rtt"
factor = "path.loss"
yes = "same"
margin = "25%"
[[question]]
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
    assert statement.sentence.startswith("Cannot tell: “Loss matters little”: mean round-trip time with loss 1% is")
    assert statement.sentence.endswith(f"; the statement needs 0.8 to 1.25; {absent}.")
    assert threshold.sentence.endswith(f"; {absent}.")
    statement, question, threshold = of_asked(quick, *of_times(20.0, 40.0))
    assert [one.verdict for one in (statement, question, threshold)] == ["no", "no", "fail"]
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


def test_a_question_whose_level_is_not_in_the_run_is_not_answered() -> None:
    compare = [{"level": f"{level}%", "cells": cells} for level, cells in ((0, [0]), (1, [1]), (5, []))]
    asked = says(2, asks="Is it slower?", source="", yes="more", low=1.0, is_open=True, compare=compare)
    answer = verdict_of(asked, *of_times(20.0, 40.0))
    assert (answer.verdict, answer.cases[0].verdict) == ("cannot tell", "yes")
    assert answer.sentence.startswith(
        "Cannot tell: this run has no cell with path.loss 5%; of the others: yes: the mean round-trip time with loss 1%"
    )


def test_statements_of_a_document_are_corrected_together() -> None:
    """Six pairs alike show one statement, with 2 * 0.5^6; two of a document take seven, by Holm's method."""

    def judged(repetitions: int, *sources: str, at_least: float = 1.4) -> list[Answer]:
        cells = [same_every_time(index, rtt, f"{index}%", repetitions) for index, rtt in enumerate((20, 30))]
        # The first one is just what the cells do; all others are never shown: 1.5 is the ratio itself.
        asked = [says(2, low=at_least if at == 0 else 1.6, source=source) for at, source in enumerate(sources)]
        return analyse(record(*(run for cell in cells for run in cell), questions=asked)).of(Answer)

    def verdicts(*args: Any, **fields: Any) -> list[str]:
        return [answer.verdict for answer in judged(*args, **fields)]

    # The second one is a no, and the first a yes: each kind of verdict among two.
    assert verdicts(6, "Paper, table 1", "Paper, table 2") == ["cannot tell", "cannot tell"]
    assert verdicts(7, "Paper, table 1", "Paper, table 2") == ["yes", "no"]
    # Documents do not count for each other, nor the questions of the study.
    assert verdicts(6, "Paper, table 1", "Another, table 2") == ["yes", "no"]
    assert verdicts(6, "Paper, table 1", "") == ["yes", "no"]
    open_, _ = judged(6, "Paper, table 1", "Paper, table 2")
    assert [case.needed for case in open_.cases] == [7]
    assert open_.cases[0].p_yes == pytest.approx(2 * 0.5**6)
    assert open_.sentence.endswith(
        "; by itself it would hold, but not among all statements of its document; about 1 more repetition would decide "
        "(--repetitions 7)."
    )


def test_a_statement_among_many_is_contradicted_only_beyond_doubt() -> None:
    """A statement of many cases needs each at 5 % for a yes; for a no its smallest p-value stands among all of them."""

    def judged(*means_ms: float, repetitions: int) -> Answer:
        cells = [same_every_time(index, mean, f"{index}%", repetitions) for index, mean in enumerate(means_ms)]
        return verdict_of(says(len(cells), **SAME, low=0.8, high=1.25), *cells)

    # Six pairs of levels, each alike in all repetitions: 2 * 0.5^6 is enough for a yes.
    assert judged(20, 20, 20, 20, repetitions=6).verdict == "yes"
    # A no among six takes 6 * 2 * 0.5^8 < 5 %.
    apart = judged(20, 20, 20, 40, repetitions=7)
    assert (apart.verdict, {case.verdict for case in apart.cases}) == ("cannot tell", {"yes", "cannot tell"})
    assert {case.needed for case in apart.cases} == {None, 8}
    assert judged(20, 20, 20, 40, repetitions=8).verdict == "no"
