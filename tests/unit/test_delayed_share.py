"""The share of delayed exchanges, and whether it is the same at all levels, from study file to report."""

from typing import Any

import pytest

from crosswind.analysis.cells import collect
from crosswind.analysis.estimates import estimate_of_cell
from crosswind.findings.pipeline import analyse
from crosswind.findings.question.result import Answer
from crosswind.report.export import estimates_frame
from crosswind.report.run_page import render as render_html
from crosswind.report.tables.metrics import metric_table
from crosswind.stats.estimate import TooFewSamples
from crosswind.stats.share import OF_SHARES, clopper_pearson
from records import MS, echoes, finished, path, record, run, runs
from screens import render

CLOSED = {"workload": {"kind": "echo", "transport": "tcp", "mode": "closed"}}
SAME: dict[str, Any] = {
    "asks": "Do all sizes delay alike?", "metric": "delayed_share", "factor": "workload.size", "yes": "same",
    "scale": "difference", "margin": "4%", "bound": 0.04, "low": -0.04, "high": 0.04, "cells": [0, 1, 2, 3],
    "note": "Why four.",
}  # fmt: skip
ALIKE = SAME | {
    "metric": "rtt", "margin": "25%", "scale": "ratio", "bound": 0.25, "low": 0.8, "high": 1.25, "note": "",
}  # fmt: skip


def answer_of(question: dict[str, Any], *cells: Any) -> Answer:
    """The answer from some cells. Args: cells: the repetitions of each."""
    (answer,) = analyse(record(*(run for cell in cells for run in cell), questions=[question])).of(Answer)
    return answer


def verdicts_of(answer: Answer) -> dict[tuple[str, ...], str]:
    """The verdict on each two levels."""
    return {tuple(side.level for side in case.sides): case.verdict for case in answer.cases}


def cell(index: int, delayed: int, size: str, loss: str = "0%", *, n: int = 2000, rtt: int = 20 * MS):
    """Echoes of a cell in ten repetitions, of which so many are late: in the first ones one more where it does not
    divide."""
    late = [delayed // 10 + (at < delayed % 10) for at in range(10)]
    tables = [echoes([rtt + 200 * MS] * many + [rtt + at * 1000] * (n // 10 - many)) for at, many in enumerate(late)]
    return runs(index, tables, {"path.loss": loss, "workload.size": size}, parameters=CLOSED)


def delayed_of(rtts: list[int | None]):
    (made,) = analyse(record(*runs(0, [echoes([rtt]) for rtt in rtts], parameters=CLOSED))).cells
    return made.estimates["delayed_share"]


def test_delayed_is_nine_tenths_beyond_the_shortest() -> None:
    # Shortest 10 ms: late above 19 ms. What was lost is no exchange that was answered.
    found = delayed_of([10 * MS, 19 * MS, 19 * MS + 1, 20 * MS, None] * 20)
    assert (found.mean.value, found.mean.n) == (0.5, 80)
    # Every repetition is one exchange.
    assert (found.mean.low, found.mean.high) == pytest.approx(clopper_pearson(40, 80))
    assert found.mean.method == "Clopper-Pearson (exact binomial)"
    assert (found.median.value, found.median.reason) == (None, "a share has a mean alone")
    assert (found.smallest, found.largest) == (0, 1)


def test_on_a_path_without_delay_the_machine_may_take_two_milliseconds() -> None:
    assert delayed_of([MS // 10, 2_100_000, 2_100_001, 25 * MS] * 10).mean.value == 0.5


@pytest.mark.parametrize(("delayed", "share"), [(0, 0), (1900, 0.95)])
def test_where_most_are_delayed_the_shortest_is_still_the_measure(delayed: int, share: float) -> None:
    (made,) = analyse(record(*cell(0, delayed, "1"))).cells
    assert made.estimates["delayed_share"].mean.value == share


def test_the_shortest_is_that_of_all_repetitions() -> None:
    made = runs(0, [echoes([rtt] * 30) for rtt in (10 * MS, 30 * MS)], parameters=CLOSED)
    assert analyse(record(*made)).cells[0].estimates["delayed_share"].mean.value == 0.5


def test_the_shortest_is_that_of_cells_that_differ_in_loss_alone() -> None:
    def waiting(index: int, rtt: int, **ways: Any):
        return run(index, echoes([rtt] * 30), parameters=CLOSED | {"path": path(**ways)})

    # Under loss every exchange waited; on the longer path none did, and its own shortest counts.
    cells = [waiting(0, 20 * MS, delay_ns=10 * MS), waiting(1, 60 * MS, delay_ns=10 * MS, loss=0.2),
             waiting(2, 60 * MS, delay_ns=30 * MS, loss=0.2)]  # fmt: skip
    shares = [cell.estimates["delayed_share"].mean.value for cell in analyse(record(*cells)).cells]
    assert shares == [0, 1, 0]


def lossy(rtts: list[int], *, clock: str, size: int = 16_000, rate_bps: int | None = None, **workload: Any):
    """A cell with 5 % of loss in each direction of a path of 20 ms, alone in its run."""
    parameters = {
        "path": path(loss=0.05, delay_ns=10 * MS, rate_bps=rate_bps),
        "host": {"clock": clock},
        "workload": CLOSED["workload"] | {"size_bytes": size} | workload,
    }
    finish = finished() | {"virtual_time": clock == "virtual"}
    (found,) = collect(record(run(0, echoes(rtts), parameters=parameters, end=finish)))
    return found


def test_in_virtual_time_the_path_says_what_an_exchange_takes_that_nothing_delays() -> None:
    # Under loss every message of 11 packets waits: the shortest of them is one that was delayed as well.
    made = lossy([40 * MS] * 20, clock="virtual")
    assert (made.undisturbed_ns, made.samples["delayed_share"].values.mean()) == (20 * MS, 1)
    # On a link of 8 Mbit/s 16 000 bytes and the 40 of 11 headers take 16.44 ms each way: late after 1.9 * 52.88 ms.
    made = lossy([100_472_000, 100_472_001], clock="virtual", rate_bps=8_000_000)
    assert made.undisturbed_ns == pytest.approx(52.88 * MS)
    assert made.samples["delayed_share"].values.tolist() == [0, 1]
    # An upload has an answer of one byte: 16.44 and 0.041 ms.
    upload = lossy([40 * MS], clock="virtual", rate_bps=8_000_000, direction="upload")
    assert upload.undisturbed_ns == pytest.approx((20 + 16.44 + 0.041) * MS)


@pytest.mark.parametrize(
    "other",
    [
        {"clock": "real"},
        {"clock": "real", "size": 1001},  # two packets of some transports
        {"clock": "virtual", "connection": "new"},  # whose window is too small for the message
        {"clock": "virtual", "size": 70_000},
        {"clock": "virtual", "connections": 2},  # which share the link
    ],
)
def test_where_nothing_says_what_an_undisturbed_exchange_takes_there_is_no_share(other: dict[str, Any]) -> None:
    found = lossy([40 * MS] * 100, **other)
    assert "delayed_share" not in found.samples
    assert "add a cell without loss" in estimate_of_cell(found, "delayed_share", "mean", level=0.95).reason
    with pytest.raises(TooFewSamples, match="add a cell without loss"):
        found.side("delayed_share")


def test_of_many_messages_of_one_packet_the_shortest_lost_nothing() -> None:
    # All of n lose one of two packets each way with (1 - 0.95^4)^n: below 1 in 1000 from 5 on.
    assert lossy([21 * MS] * 4, clock="real", size=100).undisturbed_ns is None
    assert lossy([21 * MS] * 4 + [60 * MS], clock="real", size=100).undisturbed_ns == 21 * MS
    assert lossy([21 * MS], clock="real", transport="udp").undisturbed_ns == 21 * MS  # a datagram is never late


@pytest.mark.parametrize("workload", [{"mode": "open"}, {"kind": "transfer"}, {"kind": "multiplex"}])
def test_only_an_echo_in_a_closed_loop_is_delayed(workload: dict[str, str]) -> None:
    parameters = {"workload": CLOSED["workload"] | workload}
    (made,) = analyse(record(run(0, echoes([MS] * 30), parameters=parameters))).cells
    assert "delayed_share" not in made.estimates


def test_every_pair_of_levels_gets_a_verdict_at_each_loss() -> None:
    cells = [cell(0, 380, "1"), cell(1, 382, "50"), cell(2, 1462, "4kB"), cell(3, 3, "1", "5%", n=10),
             cell(4, 380, "9")]  # fmt: skip
    answer = answer_of(SAME, *cells)
    assert (answer.verdict, answer.unit, answer.low, answer.high, answer.margin) == ("mixed", "1", -0.04, 0.04, "4%")
    # Cell 3 stands alone at its loss, and the question says nothing of cell 4.
    assert verdicts_of(answer) == {("1", "50"): "yes", ("1", "4kB"): "no", ("50", "4kB"): "no"}
    same, first, second = answer.cases
    assert same.effect.value == pytest.approx(0.001)
    assert (same.effect.n, same.effect.level) == (4000, 0.95)
    assert same.effect.method == "Student's t over repetitions, paired by repetition"
    assert -0.04 < same.effect.low < 0.001 < same.effect.high < 0.04
    assert (same.fixed, same.cells) == ({"path.loss": "0%"}, [0, 1])
    # Holm: the smallest of three times 3, for each kind of answer.
    alone = answer_of(SAME | {"cells": [0, 1]}, *cells).cases[0]
    assert same.p_yes == pytest.approx(3 * alone.p_yes)
    alone = answer_of(SAME | {"cells": [0, 2]}, *cells).cases[0]
    assert first.p_no == pytest.approx(3 * alone.p_no)
    # These two differ by the same in every repetition, and have the limits of both shares.
    assert (second.p_no, second.effect.method) == (None, OF_SHARES)


def test_too_few_exchanges_cannot_tell() -> None:
    close = SAME | {"margin": "2%", "bound": 0.02, "low": -0.02, "high": 0.02}
    (case,) = answer_of(close, cell(0, 13, "1", n=60), cell(1, 12, "50", n=60)).cases
    assert (case.verdict, case.effect.value, case.effect.n) == ("cannot tell", pytest.approx(-1 / 60), 120)
    assert case.p_yes > 0.05


@pytest.mark.parametrize(("repetitions", "verdict"), [(2, "cannot tell"), (24, "cannot tell"), (200, "yes")])
def test_none_of_few_is_not_the_same_as_none_of_few(repetitions: int, verdict: str) -> None:
    """None of 24 may be up to 1 - 0.025^(1/24) = 14.3 %, whatever does not spread in the samples."""
    cells = [
        runs(index, [echoes([20 * MS])] * repetitions, {"path.loss": "0%", "workload.size": size}, parameters=CLOSED)
        for index, size in enumerate(("1", "50"))
    ]
    (case,) = answer_of(SAME | {"cells": [0, 1]}, *cells).cases
    assert (case.verdict, case.effect.value, case.constant) == (verdict, 0, False)
    edge = 1 - 0.025 ** (1 / repetitions)
    assert (case.effect.low, case.effect.high) == ((None, None) if repetitions < 3 else pytest.approx((-edge, edge)))
    # More of the same would be narrower, and by itself is no reason for "no".
    assert case.needed is None or case.needed > repetitions


def test_a_mean_that_cannot_be_estimated_cannot_tell_either() -> None:
    levels = {"path.loss": "0%", "workload.size": "50"}
    other = runs(1, [echoes([20 * MS]), echoes([30 * MS])], levels, parameters=CLOSED)
    answer = answer_of(ALIKE, cell(0, 0, "1", n=10)[:2], other)
    (case,) = answer.cases
    assert case.verdict == "cannot tell"
    assert case.effect.reason == "an interval of a mean needs 3 repetitions, there are 2: 1 more"


def alike(repetitions: int, *factors: float) -> list[Any]:
    """Cells that are so many times as slow as the first one in every repetition, though repetitions differ."""
    return [
        runs(
            index,
            [echoes([round((20 + at) * factor * MS)] * 10) for at in range(repetitions)],
            {"path.loss": "0%", "workload.size": str(index)},
            parameters=CLOSED,
        )
        for index, factor in enumerate(factors)
    ]


@pytest.mark.parametrize(
    ("repetitions", "factors", "verdicts", "needed"),
    [
        # Alone 6 repetitions of two-sided 2 * 0.5^6, for either answer.
        (6, (1, 1), ["yes"], [None]),
        (5, (1, 1), ["cannot tell"], [6]),
        (2, (1, 1), ["cannot tell"], [6]),
        (6, (1, 2), ["no"], [None]),
        (5, (1, 2), ["cannot tell"], [6]),
        # Three pairs: 3 * 2 * 0.5^7 is below 5 %, 3 * 2 * 0.5^6 is not.
        (7, (1, 1, 1), ["yes"] * 3, [None] * 3),
        (6, (1, 1, 1), ["cannot tell"] * 3, [7] * 3),
        # The one that is the same stands among three that are not, the first of two that differ too.
        (7, (1, 1, 2), ["yes", "no", "no"], [None] * 3),
        (6, (1, 1, 2), ["cannot tell"] * 3, [7] * 3),
        # What differs by the margin differs by no more.
        (6, (1, 1.25), ["yes"], [None]),
        (6, (1.25, 1), ["yes"], [None]),
    ],
)  # fmt: skip
def test_levels_that_are_alike_in_every_repetition_are_judged_by_how_often_it_was_seen(
    repetitions: int, factors: tuple[float, ...], verdicts: list[str], needed: list[int | None]
) -> None:
    answer = answer_of(ALIKE, *alike(repetitions, *factors))
    assert [case.verdict for case in answer.cases] == verdicts
    assert [case.needed for case in answer.cases] == needed
    assert all(case.constant for case in answer.cases)
    assert answer.cases[0].exceptions_at_most == pytest.approx(1 - 0.05 ** (1 / repetitions))


def test_ratios_of_means_are_held_against_a_ratio() -> None:
    answer = answer_of(ALIKE, cell(0, 200, "1"), cell(1, 202, "50"), cell(2, 200, "100", rtt=60 * MS))
    # 20 + 20 ms on average, 20 + 20.2, and 60 + 20.
    assert [case.verdict for case in answer.cases] == ["yes", "no", "no"]
    ratios = [40.2 / 40, 80 / 40, 80 / 40.2]
    # The quick ones take up to 9 us more, which no ratio shows at 1e-3.
    assert [case.effect.value for case in answer.cases] == pytest.approx(ratios, rel=1e-3)


def test_whether_levels_are_the_same_is_in_every_report() -> None:
    made = record(*cell(0, 380, "1"), *cell(1, 382, "50"), *cell(2, 381, "99"), questions=[SAME | {"cells": [0, 1, 2]}])
    result = analyse(made)
    (answer,) = result.of(Answer)
    assert answer.sentence.startswith("Yes: share of exchanges delayed with size 50 less that with 1 is 0.1 [")
    assert answer.sentence.endswith(
        "] percentage points. A yes needs −4 to 4 percentage points (of 3 comparisons 3 bear it out)."
    )
    page = render_html(made, result)
    for said in ("Do all sizes delay alike?", "Why four.", "50 − 1"):
        assert said in page
    assert "Do all sizes delay alike?" in render(result, everything=True)
    # A study that asks nothing of it has the share in its page and files, not on the terminal.
    plain = analyse(record(*cell(0, 380, "1")))
    assert "Share of exchanges delayed" not in render(plain, everything=True)
    assert "Share of exchanges delayed, %" in render(result, everything=True)
    assert metric_table("delayed_share", plain).headings[-1] == "mean [95 %]"
    assert metric_table("delayed_share", plain).footnotes == [
        "Mean: Clopper-Pearson, of the effective number of trials over repetitions."
    ]
    assert estimates_frame(plain).filter(metric="delayed_share", statistic="mean")["value"].to_list() == [0.19]
