"""Claims of equivalence and the share of delayed exchanges, from study file to report."""

import math
from typing import Any

import numpy as np
import pytest

from crosswind.analysis import analyse, collect
from crosswind.analysis.asked import asked_of
from crosswind.analysis.equivalences import equivalences_of
from crosswind.analysis.estimates import estimate_of_cell
from crosswind.errors import StudyError
from crosswind.execution.planning import presentation
from crosswind.report import estimates_frame
from crosswind.report.html import render as render_html
from crosswind.report.tables.equivalences import equivalence_tables
from crosswind.report.tables.metrics import metric_table
from crosswind.report.text.headline import sentences, tally
from crosswind.report.text.terminal import render
from crosswind.stats import TooFewSamples, clopper_pearson
from crosswind.study.design import Study
from records import MS, echoes, finished, path, record, run, runs

CLOSED = {"workload": {"kind": "echo", "transport": "tcp", "mode": "closed"}}
CLAIM: dict[str, Any] = {
    "title": "Does size delay?", "metric": "delayed_share", "factor": "workload.size", "margin": "4%", "where": {},
    "note": "Why four.", "is_ratio": False, "bound": 0.04, "cells": [0, 1, 2, 3],
}  # fmt: skip


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
    made = record(*cell(0, 380, "1"), *cell(1, 382, "50"), *cell(2, 1462, "4kB"), *cell(3, 3, "1", "5%", n=10),
                  *cell(4, 380, "9"), equivalences=[CLAIM])  # fmt: skip
    (claim,) = analyse(made).equivalences
    assert (claim.scale, claim.unit, claim.low, claim.high, claim.margin) == ("difference", "1", -0.04, 0.04, "4%")
    found = {(pair.reference, pair.other): pair for pair in claim.pairs}
    # Cell 3 stands alone at its loss, and the claim says nothing of cell 4.
    assert {names: pair.verdict for names, pair in found.items()} == {
        ("1", "50"): "equivalent", ("1", "4kB"): "differs", ("50", "4kB"): "differs",
    }  # fmt: skip
    same = found["1", "50"]
    assert same.effect.value == pytest.approx(0.001)
    assert (same.effect.n, same.effect.level) == (4000, 0.9)
    assert same.effect.method == "Student's t over repetitions, paired by repetition"
    assert -0.04 < same.effect.low < 0.001 < same.effect.high < 0.04
    # Holm: the smallest of three times 3.
    assert same.p_holm == pytest.approx(3 * same.p)
    assert (same.fixed, same.reference_cell, same.other_cell) == ({"path.loss": "0%"}, 0, 1)
    beyond = sorted((pair.p_beyond, pair.p_beyond_holm) for pair in claim.pairs)
    assert beyond[0][1] == pytest.approx(3 * beyond[0][0])


def test_too_few_exchanges_cannot_tell() -> None:
    made = record(*cell(0, 13, "1", n=60), *cell(1, 12, "50", n=60), equivalences=[CLAIM | {"bound": 0.02}])
    (pair,) = analyse(made).equivalences[0].pairs
    assert (pair.verdict, pair.effect.value, pair.effect.n) == ("cannot tell", pytest.approx(-1 / 60), 120)
    assert pair.p_holm > 0.05


def test_a_mean_that_cannot_be_estimated_cannot_tell_either() -> None:
    claim = CLAIM | {"metric": "rtt", "margin": "25%", "is_ratio": True, "bound": 0.25}
    other = runs(
        1, [echoes([20 * MS]), echoes([30 * MS])], {"path.loss": "0%", "workload.size": "50"}, parameters=CLOSED
    )
    made = record(*cell(0, 0, "1", n=10)[:2], *other, equivalences=[claim])
    (found,) = analyse(made).equivalences
    (pair,) = found.pairs
    assert (pair.verdict, pair.p, pair.p_holm) == ("cannot tell", None, None)
    assert pair.effect.reason == "an interval of a mean needs 3 repetitions, there are 2: 1 more"
    assert "1 without an interval" in equivalence_tables(analyse(made))[0].footnotes[-1]


ALIKE = CLAIM | {"metric": "rtt", "margin": "25%", "is_ratio": True, "bound": 0.25}


def alike(repetitions: int, *factors: float):
    """Cells that are so many times as slow as the first one in every repetition, though repetitions differ."""
    return [
        made
        for index, factor in enumerate(factors)
        for made in runs(
            index,
            [echoes([round((20 + at) * factor * MS)] * 10) for at in range(repetitions)],
            {"path.loss": "0%", "workload.size": str(index)},
            parameters=CLOSED,
        )
    ]


@pytest.mark.parametrize(
    ("repetitions", "factors", "verdicts", "needed"),
    [
        # Alone 5 repetitions of one-sided 0.5^5.
        (5, (1, 1), ["equivalent"], [None]),
        (4, (1, 1), ["cannot tell"], [5]),
        (2, (1, 1), ["cannot tell"], [5]),
        # And 6 of two-sided 2 * 0.5^6.
        (6, (1, 2), ["differs"], [None]),
        (5, (1, 2), ["cannot tell"], [6]),
        # Three pairs: 3 * 0.5^6 is below 5 %, 3 * 0.5^5 is not.
        (6, (1, 1, 1), ["equivalent"] * 3, [None] * 3),
        (5, (1, 1, 1), ["cannot tell"] * 3, [6] * 3),
        # The one that is equivalent stands among three that are not, the first of two that differ too: 2 * 3 * 0.5^7.
        (7, (1, 1, 2), ["equivalent", "differs", "differs"], [None] * 3),
        (6, (1, 1, 2), ["equivalent", "cannot tell", "cannot tell"], [None, 7, 7]),
        # Just at the margin no number of repetitions tells.
        (100, (1, 1.25), ["cannot tell"], [None]),
        (100, (1.25, 1), ["cannot tell"], [None]),
    ],
)  # fmt: skip
def test_levels_that_are_alike_in_every_repetition_are_judged_by_how_often_it_was_seen(
    repetitions: int, factors: tuple[float, ...], verdicts: list[str], needed: list[int | None]
) -> None:
    (claim,) = analyse(record(*alike(repetitions, *factors), equivalences=[ALIKE])).equivalences
    assert [pair.verdict for pair in claim.pairs] == verdicts
    assert [pair.needed for pair in claim.pairs] == needed
    assert all(pair.constant for pair in claim.pairs)
    assert claim.pairs[0].exceptions_at_most == pytest.approx(1 - 0.05 ** (1 / repetitions))


def test_tables_say_that_most_repetitions_are_meant_and_what_would_decide() -> None:
    (table,) = equivalence_tables(analyse(record(*alike(5, 1, 1, 1), equivalences=[ALIKE])))
    assert table.rows[0][3:] == ["1.000 (in all 5 repetitions)", "0.094", "cannot tell"]
    assert table.footnotes[-1] == (
        "3 pairs of levels with the same effect in all 5 repetitions: without spread, no mean can be tested. A sign "
        "test of 5 pairs judges most repetitions; at most 45.1 % of them have another effect, with 95 % confidence. An "
        "inconclusive pair needs 1 more repetition, with the correction for all claims."
    )
    (table,) = equivalence_tables(analyse(record(*alike(7, 1, 1.25), equivalences=[ALIKE])))
    assert table.footnotes[-1].endswith("No number of repetitions decides an effect just at the margin.")


def test_a_family_of_pairs_with_and_without_spread_seldom_has_a_wrong_verdict() -> None:
    """Four levels: half of the repetitions of the second are 1.6 times as slow, so that it is not equivalent to any.

    The others differ by a little noise or not at all. 120 runs; a wrong "equivalent" in 5 % of them, and three
    standard errors of it.
    """
    rng = np.random.default_rng(11)
    wrong = 0
    for _ in range(120):
        slow = np.where(rng.integers(0, 2, 8) == 1, 1.6, 1.0)
        levels = [np.ones(8), slow, np.ones(8), 1 + 0.001 * rng.standard_normal(8)]
        cells = [
            made
            for index, factors in enumerate(levels)
            for made in runs(
                index,
                [echoes([round(20 * MS * factor)] * 2) for factor in factors],
                {"path.loss": "0%", "workload.size": str(index)},
                parameters=CLOSED,
            )
        ]
        (claim,) = equivalences_of(asked_of(made := record(*cells, equivalences=[ALIKE])).equivalences, collect(made))
        wrong += any(pair.verdict == "equivalent" and "1" in (pair.reference, pair.other) for pair in claim.pairs)
    assert wrong <= 120 * 0.05 + 3 * math.sqrt(120 * 0.05 * 0.95)


def test_ratios_of_means_are_held_against_a_ratio() -> None:
    claim = CLAIM | {"metric": "rtt", "margin": "25%", "is_ratio": True, "bound": 0.25}
    cells = [cell(0, 200, "1"), cell(1, 202, "50"), cell(2, 200, "100", rtt=60 * MS)]
    (found,) = analyse(record(*(each for made in cells for each in made), equivalences=[claim])).equivalences
    assert (found.scale, found.unit, found.low, found.high) == ("ratio", "1", 0.8, 1.25)
    # 20 + 20 ms on average, 20 + 20.2, and 60 + 20.
    assert [pair.verdict for pair in found.pairs] == ["equivalent", "differs", "differs"]
    ratios = [40.2 / 40, 80 / 40, 80 / 40.2]
    # The quick ones take up to 9 us more, which no ratio shows at 1e-3.
    assert [pair.effect.value for pair in found.pairs] == pytest.approx(ratios, rel=1e-3)


def test_a_claim_whose_factor_does_not_vary_is_left_out() -> None:
    assert analyse(record(*cell(0, 10, "1"), *cell(1, 10, "1", "5%"), equivalences=[CLAIM])).equivalences == []


def test_a_tally_names_only_what_there_is() -> None:
    made = record(
        *cell(0, 200, "1"), *cell(1, 202, "50"), *cell(2, 400, "100"), equivalences=[CLAIM | {"cells": [0, 1, 2]}]
    )
    (claim,) = analyse(made).equivalences
    assert tally(claim) == "1 of 3 pairs of levels of size is equivalent within ±4 percentage points; 2 differ by more"


def test_claims_are_in_every_report() -> None:
    made = record(*cell(0, 380, "1"), *cell(1, 382, "50"), equivalences=[CLAIM | {"cells": [0, 1]}])
    result = analyse(made)
    said = "the pair of levels of size is equivalent within ±4 percentage points"
    assert f"Does size delay? {said[0].upper()}{said[1:]}." in sentences(result)
    (table,) = equivalence_tables(result)
    assert table.headings == [
        "at",
        "size",
        "n",
        "difference of shares, percentage points [90 %]",
        "p (Holm)",
        "verdict",
    ]
    (row,) = table.rows
    assert (row[:3], row[-1]) == (["0%", "50 against 1", "4\u202f000"], "equivalent")
    assert row[3].startswith("0.1 [")
    assert table.footnotes[:2] == [f"Share of exchanges delayed: {said}.", "Why four."]
    for text in (render(result, everything=True), render_html(made, result)):
        assert "Does size delay?" in text
        assert "equivalent" in text
    # A study that claims nothing of it has the share in its page and files, not on the terminal.
    plain = analyse(record(*cell(0, 380, "1")))
    assert "Share of exchanges delayed" not in render(plain, everything=True)
    assert "Share of exchanges delayed, %" in render(result, everything=True)
    assert metric_table("delayed_share", plain).headings[-1] == "mean [95 %]"
    assert metric_table("delayed_share", plain).footnotes == [
        "Mean: Clopper-Pearson, of the effective number of trials over repetitions."
    ]
    assert estimates_frame(plain).filter(metric="delayed_share", statistic="mean")["value"].to_list() == [0.19]


STUDY = """
title = "A study"
[path]
loss = ["0%", "5%"]
[workload]
kind = "echo"
size = [1, 50]
[[equivalence]]
title = "Size"
factor = "workload.size"
where = { "path.loss" = 0.05 }
"""


def claim_of(metric: str, margin: str) -> dict[str, Any]:
    text = f'{STUDY}metric = "{metric}"\nmargin = "{margin}"\n'
    study = Study.from_toml(text, name="s")
    assert Study.from_toml(study.to_toml(), name="s").canonical() == study.canonical()
    assert study.digest() == Study.from_toml(STUDY.partition("[[")[0], name="s").digest()
    (claim,) = presentation(study)["equivalences"]
    return claim


@pytest.mark.parametrize(
    ("metric", "margin", "is_ratio", "bound"),
    [
        ("rtt", "5ms", False, 5e6),
        ("rtt", "0.25 s", False, 0.25e9),
        ("rtt", "25%", True, 0.25),
        ("wire_bytes_forward", "1.5kB", False, 1500),
        ("wire_packets_forward", "10 %", True, 0.1),
        ("delayed_share", "4%", False, 0.04),
        ("delayed_share", "0.04", False, 0.04),
    ],
)
def test_a_margin_is_a_quantity_or_a_ratio(metric: str, margin: str, is_ratio: bool, bound: float) -> None:
    claim = claim_of(metric, margin)
    assert (claim["is_ratio"], claim["bound"], claim["margin"]) == (is_ratio, pytest.approx(bound), margin)
    assert (claim["cells"], claim["where"], claim["factor"]) == ([2, 3], {"path.loss": "0.05"}, "workload.size")


@pytest.mark.parametrize("margin", ["", "5", "ms", "-5ms", "5 apples", "0ms", "1e3ms", "5%%"])
def test_texts_that_are_no_margin(margin: str) -> None:
    with pytest.raises(StudyError, match=r"^s:\d+: equivalence\[1\]\.margin: .* (a|no) margin$"):
        claim_of("rtt", margin)


def test_a_margin_of_a_share_is_less_than_all() -> None:
    with pytest.raises(StudyError, match='"100%" is not a margin'):
        claim_of("delayed_share", "100%")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"workload.size"\n', '"workload.sizes"\n', 'equivalence[1].factor: "workload.sizes" is not a factor\'s key'),
        ('"path.loss" = 0.05', '"workload.size" = 1', "equivalence[1].where: workload.size has one value only"),
        ("metric", "metrics", "equivalence[1].metric: is missing"),
    ],
)
def test_mistakes_in_a_claim(old: str, new: str, message: str) -> None:
    text = f'{STUDY}metric = "rtt"\nmargin = "5ms"\n'.replace(old, new)
    with pytest.raises(StudyError) as caught:
        Study.from_toml(text, name="s")
    assert message in caught.value.message
