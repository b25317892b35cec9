"""Levels compared by other statistics than the mean: the median beside it, and what a study or a program asks for."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from crosswind.analysis.cells import collect
from crosswind.analysis.comparisons import compare_levels
from crosswind.analysis.result import LevelComparison
from crosswind.api.runs import Run
from crosswind.cell.record import CellRun
from crosswind.errors import StudyError, UsageError
from crosswind.execution.planning import presentation
from crosswind.findings.pipeline import analyse
from crosswind.findings.question.result import Answer
from crosswind.report.tables.comparisons import comparison_tables
from crosswind.report.text.exploration import exploration
from crosswind.stats.estimate import MOST
from crosswind.stats.multiplicity import benjamini_hochberg
from crosswind.study.design import Study
from records import MS, echoes, record, run, runs

UNITS = 8


def cells(slow: int = 5, messages: int = 20, *, loss: float = 0.0) -> list[CellRun]:
    """Two cells with the same seeds, whose medians are 20 and 21 ms; in the other one some messages take 1 s more."""
    made: list[CellRun] = []
    parameters: dict[str, Any] = {
        "workload": {"kind": "echo", "transport": "tcp"},
        "path": {way: {"loss": loss} for way in ("forward", "reverse")},
    }
    for cell in (0, 1):
        late = slow * cell
        tables = [
            echoes([(20 + cell) * MS + at * 1000 + cell * at * at * 100] * (messages - late) + [1000 * MS] * late)
            for at in range(UNITS)
        ]
        made += runs(cell, tables, {"path.loss": f"{cell}%"}, parameters=parameters)
    return made


def rtt(found: Sequence[LevelComparison]) -> LevelComparison:
    (one,) = [comparison for comparison in found if comparison.metric == "rtt"]
    return one


def test_the_median_stands_beside_the_mean_with_its_own_interval_and_test() -> None:
    found = rtt(analyse(record(*cells())).comparisons)
    assert list(found.statistics) == ["median"]
    median = found.by("median")
    assert median is not None
    # The medians of repetition r are 20 ms + r us, and 21 ms + r us + r^2 / 10 us.
    differences = MS + 100.0 * np.arange(UNITS) ** 2
    low, high = stats.ttest_1samp(differences, 0).confidence_interval(0.95)
    assert median.difference.value == pytest.approx(differences.mean())
    assert (median.difference.low, median.difference.high) == pytest.approx((low, high))
    assert median.difference.method == "Student's t over repetitions, paired by repetition"
    assert median.p == pytest.approx(stats.ttest_1samp(differences, 0).pvalue)
    assert median.ratio.value == pytest.approx(np.mean(20e6 + 1000 * np.arange(UNITS) + differences) / 20_003_500)
    # A quarter of the messages makes the mean differ by more than 200 ms.
    assert found.difference.value is not None
    assert found.difference.value > 200 * MS


def test_p_values_are_corrected_over_means_and_medians_together() -> None:
    found = rtt(analyse(record(*cells())).comparisons)
    effects = [found, *found.statistics.values()]
    assert [made.p_adjusted for made in effects] == benjamini_hochberg([made.p or 0.0 for made in effects])
    assert [made.verdict for made in effects] == ["larger", "larger"]


def test_where_repetitions_are_too_short_for_a_median_there_is_a_reason() -> None:
    median = rtt(analyse(record(*cells(1, messages=9))).comparisons).by("median")
    assert median is not None
    assert (median.difference.value, median.p, median.verdict) == (None, None, "not enough repetitions")
    assert median.difference.reason == "to compare the median, each repetition needs 10 messages, one has 9"


def test_where_losses_delay_exchanges_signs_tell_before_there_is_an_interval() -> None:
    found = rtt(analyse(record(*cells(loss=0.01))).comparisons)
    median = found.by("median")
    assert median is not None
    for made, what in ((found, "a mean"), (median, "a difference of the median")):
        assert made.difference.low is None
        assert f"an interval of {what} where losses delay exchanges needs" in str(made.difference.reason)
        assert (made.p, made.below, made.above, made.verdict) == (2 / 2**8, 0, 8, "larger in most repetitions")


@pytest.mark.parametrize(
    ("clock", "high", "verdict"), [("virtual", True, "larger"), ("real", False, "larger in most repetitions")]
)
def test_on_the_machines_clock_a_cell_without_loss_is_skewed(clock: str, high: bool, verdict: str) -> None:
    """Its noise is. Eight repetitions of twenty are fewer than 500 exchanges, of which a tenth is taken to be late."""
    made = [replace(one, parameters={**one.parameters, "host": {"clock": clock}}) for one in cells()]
    result = analyse(record(*made))
    assert {cell.estimates["rtt"].mean.high is not None for cell in result.cells} == {high}
    assert rtt(result.comparisons).verdict == verdict


def test_a_run_can_be_asked_for_p95_and_for_the_mean_alone() -> None:
    data = collect(record(*cells(messages=200)))
    found = rtt(compare_levels(data, level=0.95, statistics=["p95", "mean"]))
    assert list(found.statistics) == ["p95"]
    # Of 200 messages the five slow ones lie beyond p95.
    assert found.statistics["p95"].difference.value == pytest.approx(MS + 100 * np.mean(np.arange(UNITS) ** 2))
    assert rtt(compare_levels(data, level=0.95, statistics=[])).statistics == {}


def test_exact_cells_stay_exact_however_few_messages_they_have() -> None:
    times = ([20 * MS, 21 * MS, 40 * MS], [30 * MS, 42 * MS, 99 * MS])
    made = [replace(run(cell, echoes(own), {"path.loss": f"{cell}%"}), exact=True) for cell, own in enumerate(times)]
    found = rtt(analyse(record(*made)).comparisons)
    median = found.by("median")
    assert median is not None
    assert (median.difference.value, median.difference.method, median.p) == (21 * MS, "exact", None)
    assert (median.ratio.value, median.verdict) == (pytest.approx(2), "larger")


def test_medians_that_are_the_same_in_every_repetition_are_no_want_of_repetitions() -> None:
    made = [
        one
        for cell in (0, 1)
        for one in runs(
            cell, [echoes([20 * MS] * 12 + [900 * MS] * at) for at in range(cell, cell + 6)], {"n": str(cell)}
        )
    ]
    median = rtt(analyse(record(*made)).comparisons).by("median")
    assert median is not None
    assert (median.difference.value, median.p, median.verdict) == (0, None, "no difference shown")
    assert (median.difference.method, median.difference.reason) == (MOST, None)


@pytest.mark.parametrize(
    ("repetitions", "p", "verdict"),
    [
        (3, None, "not enough repetitions"),
        (5, None, "not enough repetitions"),
        (6, 2 / 2**6, "smaller in most repetitions"),
        (12, 2 / 2**12, "smaller in most repetitions"),
    ],
)
def test_a_difference_that_is_the_same_in_every_repetition_has_a_sign_test(
    repetitions: int, p: float | None, verdict: str
) -> None:
    def own(cell: int, at: int) -> list[int]:
        return [20 * MS - 4 * cell] * 12 + [900 * MS + 7 * (3 * at + cell) ** 2] * 2

    made = [
        one
        for cell in (0, 1)
        for one in runs(cell, [echoes(own(cell, at)) for at in range(repetitions)], {"workload.transport": str(cell)})
    ]
    result = analyse(record(*made))
    median = rtt(result.comparisons).by("median")
    assert median is not None
    assert (median.difference.value, median.p, median.verdict) == (-4, p, verdict)
    assert (median.difference.low, median.difference.high) == ((-4, -4) if p else (None, None))
    said = [sentence for sentence in exploration(result) if sentence.startswith("Round-trip time: ")]
    assert [sentence.partition(";")[0].rstrip(".") for sentence in said] == ["Round-trip time: 1 is as fast as 0"]


def test_a_repetition_in_which_all_timed_out_is_no_traceback() -> None:
    made = cells()
    made[-1] = runs(1, [echoes([None] * 20)] * UNITS, made[-1].levels, parameters=made[-1].parameters)[-1]
    found = rtt(analyse(record(*made)).comparisons)
    assert found.difference.reason == "in a repetition of one of the cells no exchange succeeded"
    assert (found.p, found.pairs, found.verdict) == (None, 0, "not enough repetitions")


class OfRecord(Run):
    """A run whose record is not on a disk."""

    def __init__(self, *made: CellRun) -> None:
        self._made = record(*made)

    def record(self, cells: Any = None) -> Any:
        return self._made


def test_a_program_asks_for_statistics() -> None:
    made = OfRecord(*cells(messages=200))
    assert made.compare().filter(metric="rtt")["statistic"].to_list() == ["mean", "median"]
    asked = made.compare("p95", "trimmed_mean").filter(metric="rtt")
    assert asked["statistic"].to_list() == ["p95", "trimmed_mean"]
    assert asked["cliffs_delta"].to_list() == [None, None]
    with pytest.raises(UsageError, match="there is no statistic 'mode'"):
        made.compare("mode")


STUDY = """
[path]
loss = ["0%", "1%"]
delay = "10ms"
[workload]
kind = "echo"
transport = "tcp"
[report]
compare_by = ["p95"]
[[question]]
asks = "Alike?"
metric = "rtt"
statistic = "median"
factor = "path.loss"
yes = "same"
margin = "10%"
"""


def test_a_study_asks_for_statistics() -> None:
    shown = presentation(Study.from_toml(STUDY, name="study"))
    assert shown["compare_by"] == ["p95"]
    found = analyse(record(*cells(), questions=shown["asked"]["question"], compare_by=tuple(shown["compare_by"])))
    assert list(rtt(found.comparisons).statistics) == ["p95"]
    (answer,) = found.of(Answer)
    # By their means the cells differ tenfold, by their medians by 5 %.
    assert (answer.statistic, answer.verdict) == ("median", "yes")
    assert answer.cases[0].effect.value == pytest.approx(1.05, abs=0.001)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('statistic = "median"', 'statistic = "mode"', "mode"),
        ('compare_by = ["p95"]', 'compare_by = ["mode"]', "mode"),
        ('metric = "rtt"', 'metric = "completion"', "completion has no median in a repetition"),
    ],
)
def test_a_statistic_that_there_is_not_is_named(old: str, new: str, message: str) -> None:
    with pytest.raises(StudyError, match=message):
        Study.from_toml(STUDY.replace(old, new), name="study")


def test_a_ratio_that_is_shown_as_1_says_by_how_much_it_is_larger() -> None:
    def own(cell: int, at: int) -> list[int]:
        return [20 * MS + 100 * at + cell * (40 + at % 3)] * 12

    made = [
        one
        for cell in (0, 1)
        for one in runs(cell, [echoes(own(cell, at)) for at in range(9)], {"workload.transport": str(cell)})
    ]
    result = analyse(record(*made))
    assert rtt(result.comparisons).verdict == "larger"
    (table,) = comparison_tables(result)
    assert [cell for cell in table.rows[0] if "larger" in cell] == ["larger by 41 ns"] * 2
    assert "Round-trip time: 1 is as fast as 0." in exploration(result)
