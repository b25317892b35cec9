"""From a record to its result, on records whose answers can be worked out by hand."""

import json
import math
from dataclasses import replace
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from scipy import stats

from crosswind.analysis import analyse
from crosswind.analysis.curves import average_coefficients
from crosswind.analysis.result import Result, schema_text
from crosswind.models.caia import caia
from crosswind.stats import Exponential
from records import COSTS, MS, echoes, finished, parted, path, record, run, runs, table, timed, transfers, waiting

TRANSFER = {"workload": {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}}
KEPT_TCP = {"workload": {"kind": "echo", "transport": "tcp", "connection": "kept"}}
SCHEMA = Path(__file__).parents[2] / "docs" / "result.schema.json"


def test_the_schema_in_the_documentation_is_this_one() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == schema_text()


def test_a_result_keeps_to_its_schema_and_reads_back() -> None:
    result = analyse(record(run(0, echoes([20 * MS, None] * 20), {"path.loss": "5%"})))
    written = json.loads(result.to_json())
    jsonschema.validate(written, json.loads(SCHEMA.read_text(encoding="utf-8")))
    assert Result.model_validate(written) == result
    assert written["schema"] == "crosswind.result/1"
    assert set(written["cells"][0]["ledger"]["forward"]) >= {"in", "delivered", "dropped", "queued"}
    assert set(written["cells"][0]["fidelity"]["delay_error"]) == {"p50", "p99", "max"}


def test_lost_exchanges_are_counted_and_a_mean_is_of_the_others() -> None:
    (cell,) = analyse(record(run(0, echoes([20 * MS] * 30 + [None] * 10)))).cells
    assert (cell.n, cell.lost, cell.outcomes) == (40, 10, {"ok": 30, "timeout": 10})
    assert (cell.loss.value, cell.loss.low, cell.loss.n) == (0.25, None, 40)
    assert cell.loss.reason == "an interval of a share needs 3 repetitions, there is 1: 2 more"
    rtt = cell.estimates["rtt"]
    assert (rtt.mean.n, rtt.median.n, rtt.failed) == (30, 40, 10)
    assert (rtt.mean.value, rtt.median.value) == (20 * MS, 20 * MS)


def test_a_share_of_repetitions_of_one_exchange_is_exactly_binomial() -> None:
    (cell,) = analyse(record(*runs(0, [echoes([20 * MS])] * 30 + [echoes([None])] * 10))).cells
    assert cell.loss.value == 0.25
    assert cell.loss.low == pytest.approx(0.12691, abs=1e-5)  # Clopper-Pearson 10 of 40


def test_quantiles_are_of_all_exchanges_and_end_at_the_timeout() -> None:
    workload = {"kind": "echo", "transport": "udp", "timeout_ns": 5_000 * MS}
    tables = [echoes([(20 + at) * MS] * 90 + [None] * 10) for at in range(20)]
    (cell,) = analyse(record(*runs(0, tables, parameters={"workload": workload}))).cells
    rtt = cell.estimates["rtt"]
    # Of 2000 exchanges 200 timed out: p95 is one of them, the median is not.
    assert (rtt.p95.value, rtt.p95.low, rtt.p95.high) == (None, 5_000 * MS, None)
    assert rtt.p95.reason == "it is an exchange that timed out"
    # The 1000th and 1001st of 1800 answers, 90 of each value from 20 to 39 ms.
    assert rtt.median.value == 31 * MS
    assert rtt.mean.value == pytest.approx(29.5 * MS)
    assert rtt.median.is_whole


def test_repetitions_are_put_together() -> None:
    first = run(0, echoes(range(1 * MS, 101 * MS, MS)), repetition=0, end=finished(packets=100, lost=3))
    second = run(0, echoes(range(101 * MS, 201 * MS, MS)), repetition=1, end=finished(packets=50, lost=2))
    (cell,) = analyse(record(second, first)).cells
    assert (cell.repetitions, cell.n) == (2, 200)
    assert cell.estimates["rtt"].median.value == 100.5 * MS
    assert cell.ledger.forward.in_ == 150
    assert cell.ledger.forward.dropped.loss == 5
    assert cell.ledger.forward.delivered == 145


def test_fidelity_is_that_of_the_worst_repetition() -> None:
    late = finished(valid=False, reasons=["delay error p99 3 ms is over the budget of 1 ms"])
    late["fidelity"]["delay_error_ns"]["p99"] = 3 * MS
    runs = [run(0, echoes([MS] * 10)), run(0, echoes([MS] * 10), repetition=1, end=late)]
    result = analyse(record(*runs))
    (cell,) = result.cells
    assert cell.fidelity.delay_error.p99 == 3 * MS
    assert not cell.fidelity.within_budget
    assert not cell.valid
    assert cell.reason == "repetition 2: delay error p99 3 ms is over the budget of 1 ms"
    assert not result.valid


def test_the_hosts_probes_and_the_kernels_drops_are_kept() -> None:
    def end(client: float, server: float, drops: int):
        made = finished()
        made["fidelity"] |= {
            "probe_starvation": {"client": waiting(client), "server": waiting(server)},
            "kernel_drops": drops,
        }
        return made

    runs = [run(0, echoes([MS] * 10), repetition=at, end=end(0.01, share, 2)) for at, share in enumerate((0.2, 0.3))]
    (cell,) = analyse(record(*runs)).cells
    assert (cell.fidelity.probe_starvation, cell.fidelity.kernel_drops) == (0.3, 4)


def test_attempts_count_what_was_run_again() -> None:
    runs = [run(0, echoes([MS] * 10), repetition=at, attempts=attempts) for at, attempts in enumerate((1, 3))]
    (cell,) = analyse(record(*runs)).cells
    assert (cell.repetitions, cell.attempts) == (2, 4)


def test_a_failed_repetition_makes_its_cell_invalid_and_keeps_the_others() -> None:
    (cell,) = analyse(record(run(0, echoes([MS] * 10)), run(0, None, repetition=1))).cells
    assert not cell.valid
    assert cell.reason == "repetition 2 failed: deadline of 600 s passed (wait)"
    assert cell.estimates["rtt"].median.value == MS


def test_a_cell_of_nothing_but_failure_has_no_numbers() -> None:
    (cell,) = analyse(record(run(0, None))).cells
    assert (cell.n, cell.loss, cell.ledger, cell.fidelity, cell.estimates) == (0, None, None, None, {})


def test_a_direct_path_has_a_ledger_and_no_fidelity() -> None:
    (cell,) = analyse(record(run(0, echoes([MS] * 10), end=finished() | {"fidelity": None}))).cells
    assert cell.fidelity is None
    assert cell.ledger.closed
    assert cell.valid


def test_an_incomplete_run_says_so() -> None:
    result = analyse(record(run(0, echoes([MS] * 10)), planned=3))
    assert (result.complete, result.executed, result.planned) == (False, 1, 3)
    assert result.warnings == ["the run is incomplete: 1 of 3 repetitions were executed"]


def test_a_run_without_cells_is_not_valid() -> None:
    assert not analyse(record(planned=2)).valid


def test_metrics_follow_the_workload() -> None:
    rtts = [20 * MS] * 10

    def metrics(**workload: str) -> set[str]:
        parameters = {"workload": {"kind": "echo", "transport": "tcp", **workload}}
        (cell,) = analyse(record(run(0, echoes(rtts, connect_ns=10 * MS), parameters=parameters))).cells
        return set(cell.estimates) - COSTS

    assert metrics() == {"rtt", "connect"}
    assert metrics(connection="new") == {"rtt", "connect", "total"}
    assert metrics(mode="open") == {"rtt", "connect", "response"}


def test_an_open_loop_counts_the_wait_before_sending() -> None:
    parameters = {"workload": {"kind": "echo", "transport": "udp", "mode": "open"}}
    (cell,) = analyse(record(run(0, echoes([20 * MS] * 10), parameters=parameters))).cells
    assert cell.estimates["response"].median.value == 22 * MS


def test_repetitions_of_one_transfer_have_students_t() -> None:
    (cell,) = analyse(record(*runs(0, [transfers([rate]) for rate in (8e6, 9e6, 10e6)], parameters=TRANSFER))).cells
    goodput = cell.estimates["goodput"]
    assert goodput.unit == "bit/s"
    assert goodput.mean.value == 9e6
    assert goodput.mean.method == "Student's t over repetitions"
    assert goodput.mean.high - 9e6 == pytest.approx(4.302653 * 1e6 / np.sqrt(3), rel=1e-6)
    assert cell.estimates["transfer_time"].smallest == 7_999 * MS


def test_a_transfer_by_duration_has_no_transfer_time() -> None:
    parameters = {"workload": {"kind": "transfer", "transport": "tcp", "duration_ns": 8_000 * MS}}
    (cell,) = analyse(record(run(0, transfers([8e6]), parameters=parameters))).cells
    assert set(cell.estimates) == {"goodput", "connect", *COSTS}


def test_what_is_not_supported_has_no_interval_and_a_reason() -> None:
    (cell,) = analyse(record(*runs(0, [echoes([MS] * 5), echoes([3 * MS] * 5)]))).cells
    rtt = cell.estimates["rtt"]
    assert (rtt.mean.value, rtt.mean.low, rtt.mean.high, rtt.mean.n, rtt.mean.units) == (2 * MS, None, None, 10, 2)
    assert rtt.mean.reason == "an interval of a mean needs 3 repetitions, there are 2: 1 more"
    assert rtt.mean.spread == (MS, 3 * MS)
    assert (rtt.median.value, rtt.median.spread) == (2 * MS, (MS, 3 * MS))
    assert rtt.p99.reason == "an interval of p99 needs 400 repetitions, there are 2: 398 more"
    assert (rtt.smallest, rtt.largest) == (MS, 3 * MS)


def test_the_mean_of_a_wait_under_loss_is_a_bound_until_its_design_supports_an_interval() -> None:
    rng = np.random.default_rng(3)

    def mean(repetitions: int, transport: str = "tcp", loss: float = 0.05):
        parameters = {"path": path(loss=loss), "workload": {"kind": "echo", "transport": transport}}
        tables = [echoes([round(x) for x in rng.exponential(20 * MS, 100)]) for _ in range(repetitions)]
        return analyse(record(*runs(0, tables, parameters=parameters))).cells[0].estimates["rtt"].mean

    few = mean(8)
    assert few.low < few.value
    assert few.high is None
    assert few.reason == "an interval of a mean where losses delay exchanges needs 20 repetitions, there are 8: 12 more"
    assert mean(20).is_whole
    assert mean(20, loss=0.001).reason.endswith("needs 500 repetitions, there are 20: 480 more")
    assert mean(20, loss=0.2).reason.endswith("needs 100 repetitions, there are 20: 80 more")
    # A datagram that is lost delays nothing.
    assert mean(8, "udp").is_whole


def test_no_mean_of_retransmitted_times_at_a_quarter_loss() -> None:
    path = {"forward": {"loss": 0.3}, "reverse": {"loss": 0.0}}
    rtts = [(20 + index % 7) * MS for index in range(100)]

    def mean(transport: str):
        parameters = {"path": path, "workload": {"kind": "echo", "transport": transport}}
        return analyse(record(run(0, echoes(rtts), parameters=parameters))).cells[0].estimates["rtt"].mean

    assert "without a finite variance" in mean("tcp").reason
    assert mean("udp").value is not None


def compared_rates(seeds: tuple[int, int] = (1, 1)):
    """Cells of two factors, of which loss halves the rate. seeds: of the first two cells, and of the others."""
    rng = np.random.default_rng(1)
    shared = rng.normal(0, 1e6, 12)

    def noisy(cell: int, middle: float, loss: str, cc: str):
        rates = middle + shared + rng.normal(0, 0.1e6, 12)
        seed = seeds[0 if cell < 2 else 1]
        made = runs(cell, [transfers([rate]) for rate in rates], {"loss": loss, "cc": cc}, parameters=TRANSFER)
        return [replace(each, parameters={**TRANSFER, "seed": seed + at}) for at, each in enumerate(made)]

    cells = [
        *noisy(0, 20e6, "0%", "reno"), *noisy(1, 10e6, "5%", "reno"),
        *noisy(2, 20e6, "0%", "cubic"), *noisy(3, 10e6, "5%", "cubic"),
    ]  # fmt: skip
    return [comparison for comparison in analyse(record(*cells)).comparisons if comparison.metric == "goodput"]


def test_levels_are_compared_with_the_first_one_in_otherwise_equal_cells() -> None:
    found = compared_rates()
    assert [(comparison.factor, comparison.reference_cell, comparison.other_cell) for comparison in found] == [
        ("loss", 0, 1),
        ("loss", 2, 3),
        ("cc", 0, 2),
        ("cc", 1, 3),
    ]
    assert [comparison.verdict for comparison in found] == [
        "smaller",
        "smaller",
        "no difference shown",
        "no difference shown",
    ]
    assert found[0].ratio.low < 0.5 < found[0].ratio.high
    assert found[0].cliffs_delta.value == -1
    assert -1 < found[0].cliffs_delta.high < 0
    # Benjamini and Hochberg: the largest of p-values stays as it is, and every one is at most four times larger.
    assert max(each.p_adjusted for each in found) == pytest.approx(max(each.p for each in found))
    assert all(each.p <= each.p_adjusted <= 4 * each.p for each in found)
    assert found[0].fixed == {"cc": "reno"}


def test_repetitions_with_the_same_seeds_are_compared_in_pairs() -> None:
    paired, apart = compared_rates()[2], compared_rates(seeds=(1, 100))[2]
    assert (paired.paired, paired.pairs, apart.paired) == (True, 12, False)
    assert paired.difference.method == "Student's t over repetitions, paired by repetition"
    assert apart.difference.method == "Welch's t over repetitions"
    # What repetitions have in common is ten times larger than what they have not.
    width = [made.difference.high - made.difference.low for made in (paired, apart)]
    assert width[1] > 5 * width[0]


def test_one_sample_each_compares_to_nothing() -> None:
    cells = [run(index, transfers([1e6]), {"loss": f"{index}%"}, parameters=TRANSFER) for index in (0, 1)]
    (found,) = [comparison for comparison in analyse(record(*cells)).comparisons if comparison.metric == "goodput"]
    assert found.verdict == "not enough repetitions"
    assert (found.p, found.p_adjusted, found.difference.low) == (None, None, None)


PUBLISHED = {"source": "Table 1", "metric": "rtt", "unit": "ms", "levels": {"path.delay": "10ms"}, "mean": 20.0}


def published(entry: dict, rtts: list[int], **changes):
    tables = [echoes(part) for part in parted(rtts, 5)] if len(rtts) >= 30 else [echoes(rtts)]
    made = runs(0, tables, {"path.delay": "10 ms"})
    (found,) = analyse(record(*made, published=[entry], **changes)).published
    return found


def test_a_published_number_inside_our_interval() -> None:
    found = published(PUBLISHED, [20 * MS - 500 + 20 * index for index in range(50)])
    assert (found.theirs, found.unit, found.cell, found.inside) == (20 * MS, "ns", 0, True)
    assert found.remark == "theirs lies in our interval"
    assert found.ratio == pytest.approx(1, abs=1e-5)


def test_a_published_number_outside_our_interval_with_and_without_its_own() -> None:
    rtts = [30 * MS + index for index in range(50)]
    assert published(PUBLISHED, rtts).remark == "outside our interval; ours is 1.5 times theirs"
    assert published(PUBLISHED | {"ci": 11.0}, rtts).remark == "the intervals overlap; ours is 1.5 times theirs"


def test_a_published_number_without_one_of_ours() -> None:
    assert published(PUBLISHED, [20 * MS] * 3).remark == (
        "ours is as much as theirs; an interval of a mean needs 3 repetitions, there is 1: 2 more"
    )
    assert published(PUBLISHED | {"metric": "goodput"}, [20 * MS] * 30).remark == "this cell has no such metric"
    missing = published(PUBLISHED | {"levels": {"path.delay": "30ms"}}, [20 * MS] * 30)
    assert (missing.cell, missing.remark) == (None, "no cell of this run has these levels")


def test_a_published_level_may_be_a_fixed_setting_of_the_study() -> None:
    entry = PUBLISHED | {"levels": {"path.delay": "10ms", "path.family": "ipv6"}}
    rtts = [20 * MS + index for index in range(50)]
    assert published(entry, rtts, study={"path": {"family": "ipv6"}}).cell == 0
    assert published(entry, rtts, study={"path": {"family": "ipv4"}}).cell is None


def test_the_plan_says_which_cells_a_published_number_belongs_to() -> None:
    entry = PUBLISHED | {"levels": {"path.delay": "written otherwise"}, "cells": [0]}
    rtts = [20 * MS + index for index in range(50)]
    assert published(entry, rtts).cell == 0
    assert published(PUBLISHED | {"cells": []}, rtts).cell is None


def test_an_unknown_unit_is_named() -> None:
    with pytest.raises(ValueError, match="unknown unit 'furlong'"):
        published(PUBLISHED | {"unit": "furlong"}, [20 * MS] * 30)


def test_a_model_beside_its_measurement() -> None:
    parameters = TRANSFER | {"path": {"forward": {"loss": 0.01}}, "host": {"congestion_control": "reno"}}
    tables = [transfers([rate] * 250, connect_ns=10 * MS) for rate in np.linspace(10e6, 13e6, 21)]
    result = analyse(record(*runs(0, tables, parameters=parameters), models=["mathis-c1"]))
    (model,) = result.cells[0].models
    assert model.value == pytest.approx(
        8 * 1448 / 0.01 / 0.1
    )  # the measured connection set-up stands for the round trip
    assert model.ratio == pytest.approx(11.5e6 / model.value)
    assert model.inside is True
    assert any("stands for it" in note for note in model.notes)


def test_the_same_record_gives_the_same_result() -> None:
    def made() -> str:
        rtts = [20 * MS + (index * 7919) % 1000 for index in range(100)]
        return analyse(record(run(0, echoes(rtts), parameters=KEPT_TCP))).to_json()

    assert made() == made()


def test_a_program_workload_has_no_samples_and_is_valid() -> None:
    parameters = {"workload": {"kind": "program", "client": ["iperf3"]}}
    (cell,) = analyse(record(run(0, table(0), parameters=parameters))).cells
    assert cell.valid
    assert (cell.n, cell.estimates) == (0, {})


def drawn(runs: list, **figure):
    asked = {"title": "Figure 1", "metric": "transfer_time", "x": "path.loss", "where": {}, "models": []} | figure
    asked = {"cells": [repetition.cell for repetition in runs]} | asked
    return analyse(record(*runs, figures=[asked])).figures


def transfer(
    cell: int, levels: dict[str, str], wire_ns: list[int], size: int = 1_000_000, repetition: int = 0, **changes
):
    parameters = {"path": path(**changes), "workload": {"kind": "transfer", "transport": "tcp", "size_bytes": size}}
    return run(cell, timed(wire_ns, size=size), levels, repetition=repetition, parameters=parameters)


@pytest.mark.parametrize(
    ("key", "settings", "places", "unit"),
    [
        ("path.loss", [{"loss": 0.0}, {"loss": 0.07}, {"loss": 0.1}], [0, 7, 10], "%"),
        ("path.forward.loss", [{"loss": 0.0}, {"loss": 0.02}], [0, 2], "%"),
        ("path.delay", [{"delay_ns": 0}, {"delay_ns": 15 * MS}], [0, 30], "ms"),
        ("path.reverse.delay", [{"delay_ns": 0}, {"delay_ns": 15 * MS}], [0, 15], "ms"),
        ("path.rate", [{"rate_bps": 1_500_000}, {"rate_bps": 25_000_000}], [1.5, 25], "Mbit/s"),
        ("path.rate", [{"rate_bps": 1_500_000}, {"rate_bps": None}], [0, 1], None),
        ("workload.size", [{"size": 5_000}, {"size": 20_000_000}], [5_000, 20_000_000], "bytes"),
        ("path.queue", [{}, {}, {}], [0, 1, 2], None),
        ("part", [{}, {}], [0, 1], None),
    ],
)
def test_points_stand_at_the_numbers_of_their_cells(key: str, settings: list, places: list, unit: str | None) -> None:
    cells = [
        transfer(index, {key: f"level {index}"}, [MS, 2 * MS, 3 * MS], **changes)
        for index, changes in enumerate(settings)
    ]
    (figure,) = drawn(cells, x=key)
    assert [point.x for point in figure.points] == places
    assert [point.x_text for point in figure.points] == [f"level {index}" for index in range(len(places))]
    assert (figure.x, figure.x_unit, figure.unit) == (key, unit, "ns")


def test_one_overridden_direction_leaves_the_other_to_vary() -> None:
    cells = [transfer(index, {"path.loss": f"{index}%"}, [MS] * 3, loss=index / 100) for index in (0, 1, 2)]
    for cell in cells:
        cell.parameters["path"] = {**cell.parameters["path"], "forward": {"loss": 0.05}}
    (figure,) = drawn(cells)
    assert [point.x for point in figure.points] == [0, 1, 2]


def test_a_point_is_the_mean_and_names_its_statistic() -> None:
    cells = [
        *(transfer(0, {"path.loss": "0%"}, [at * MS], repetition=at) for at in (1, 2, 3)),
        transfer(1, {"path.loss": "1%"}, [5 * MS], loss=0.01),
        run(2, table(0), {"path.loss": "2%"}, parameters=TRANSFER | {"path": path(loss=0.02)}),
    ]
    (figure,) = drawn(cells)
    known, alone = figure.points
    assert (known.statistic, known.estimate.value, known.estimate.is_whole) == ("mean", 2 * MS, True)
    assert (alone.estimate.value, alone.estimate.low, alone.observed) == (5 * MS, None, (5 * MS, 5 * MS))
    assert alone.estimate.reason.startswith("an interval of a mean where losses delay exchanges needs")
    assert figure.absent == [2]


def test_where_no_mean_can_be_estimated_the_median_is_drawn() -> None:
    rtts = [(20 + index % 7) * MS for index in range(100)]
    cells = [
        run(index, echoes(rtts), {"path.loss": f"{loss:.0%}"}, parameters={**KEPT_TCP, "path": path(loss=loss)})
        for index, loss in enumerate((0.1, 0.3))
    ]
    (figure,) = drawn(cells, metric="rtt")
    assert [point.statistic for point in figure.points] == ["mean", "median"]
    assert figure.points[1].estimate.value == 23 * MS


def test_a_figure_along_which_nothing_varies_is_left_out() -> None:
    cells = [transfer(index, {"path.loss": "5%"}, [MS] * 3, loss=0.05) for index in (0, 1)]
    assert drawn(cells) == []
    assert drawn([]) == []


def test_series_are_levels_and_more_where_cells_would_share_a_place() -> None:
    cells = []
    for delay in ("0ms", "30ms"):
        for rate in ("1mbit", "2mbit"):
            for loss in (0.0, 0.1):
                levels = {"path.loss": f"{loss:.0%}", "path.rate": rate, "path.delay": delay}
                cells.append(transfer(len(cells), levels, [MS] * 3, loss=loss))
    (some,) = drawn(cells, series="path.rate", cells=[0, 1, 2, 3])
    assert {point.series for point in some.points} == {"1mbit", "2mbit"}
    (all_of_them,) = drawn(cells, series="path.rate")
    assert {point.series for point in all_of_them.points} == {
        "1mbit · 0ms", "2mbit · 0ms", "1mbit · 30ms", "2mbit · 30ms",
    }  # fmt: skip
    (plain,) = drawn(cells, cells=[0, 1])
    assert {point.series for point in plain.points} == {None}


def test_models_and_published_numbers_stand_beside_the_points() -> None:
    losses = (0.0, 0.05)
    cells = [
        transfer(index, {"path.loss": f"{loss:.0%}"}, [MS] * 3, loss=loss, rate_bps=6_000_000)
        for index, loss in enumerate(losses)
    ]
    asked = {
        "title": "F",
        "metric": "transfer_time",
        "x": "path.loss",
        "models": ["caia", "slow_start"],
        "cells": [0, 1],
    }
    theirs = PUBLISHED | {"metric": "transfer_time", "unit": "s", "mean": 1.25, "ci": 0.25, "cells": [1]}
    (figure,) = analyse(record(*cells, figures=[asked], published=[theirs])).figures
    curve, least = figure.curves
    assert (curve.model, curve.series, curve.xs) == ("caia", None, [0, 5])
    assert least.model == "slow-start" and least.ys[0] == least.ys[1]  # with loss, the least time
    assert curve.ys == pytest.approx([caia(1_000_000, 6e6, loss) * 1e9 for loss in losses])
    bare, point = figure.points
    assert bare.published == []
    (beside,) = point.published
    assert (beside.source, beside.value, beside.ci) == ("Table 1", 1.25e9, 0.25e9)


LOSSES = (0.0, 0.01, 0.02, 0.05, 0.08, 0.1)


def curve_cells(a: float, b: float, c: float, *, first: int = 0, rate: str = "6mbit", noise: float = 0.0, **changes):
    """Cells of one size and rate whose repetitions lie on t = a + b e^(c p), or about it."""
    repetitions, losses = changes.get("repetitions", 4), changes.get("losses", LOSSES)
    rng = np.random.default_rng(first + 1)
    runs = []
    for index, loss in enumerate(losses):
        levels = {"path.loss": f"{loss:.0%}", "path.rate": rate, "workload.size": changes.get("size", "1MB")}
        parameters = TRANSFER | {"path": path(loss=loss)}
        for at in range(repetitions):
            seconds = a + b * math.exp(c * loss) + noise * float(rng.normal())
            samples = timed([round(1e9 * seconds)])
            runs.append(run(first + index, samples, levels, repetition=at, parameters=parameters))
    return runs


def fitted(*runs, published: tuple = ()):
    asked = {
        "title": "Table II", "model": "caia-exponential", "metric": "transfer_time", "x": "path.loss",
        "by": "workload.size", "over": "path.rate", "cells": sorted({repetition.cell for repetition in runs}),
        "published": published,
    }  # fmt: skip
    (fit,) = analyse(record(*runs, fits=[asked])).fits
    return fit


def test_a_fit_recovers_the_coefficients_of_exact_data() -> None:
    fit = fitted(*curve_cells(1.0, 0.6, 27.0, repetitions=60))
    (row,) = fit.rows
    assert (row.level, fit.unit, row.shape) == ("1MB", "s", "exponential")
    assert (row.a.value, row.b.value, row.c.value) == pytest.approx((1.0, 0.6, 27.0), rel=1e-6)
    # Repetitions that are all alike leave nothing to resample.
    assert (row.c.low, row.c.high) == pytest.approx((27.0, 27.0), rel=1e-6)
    assert row.c.n == 360
    assert row.r_squared == pytest.approx(1)


def test_a_coefficient_has_an_interval_where_the_means_of_its_cells_have_one() -> None:
    (row,) = fitted(*curve_cells(1.0, 0.6, 27.0)).rows
    assert (row.c.value, row.c.low, row.c.high) == (pytest.approx(27.0, rel=1e-6), None, None)
    assert row.c.reason == (
        "a coefficient has an interval where the means of its cells have one: an interval of a mean where losses delay "
        "exchanges needs 51 repetitions, there are 4: 47 more"
    )


def test_limits_of_few_repetitions_are_as_much_further_away_as_students_t() -> None:
    fits = Exponential(*(np.full(1, 10.0) for _ in range(3)), np.array([False]), *(np.ones(1) for _ in range(3)))
    drawn = 10 + np.arange(-499, 500) / 1000
    again = Exponential(drawn, drawn, drawn, np.zeros(999, dtype=bool), *(np.ones(999) for _ in range(3)))
    made = average_coefficients([fits], [again], 30, 0.95, units=5)["c"]
    wider = stats.t.ppf(0.975, 4) / stats.norm.ppf(0.975)
    assert (made.low, made.high) == pytest.approx((10 - wider * 0.47405, 10 + wider * 0.47405))


def test_b_and_c_are_averaged_over_the_link_rates_and_set_beside_theirs() -> None:
    theirs = {"source": "Table II", "level": "1 MB", "b": 0.5, "c": 26.0, "cells": [0, 6]}
    slow = curve_cells(1.0, 0.6, 28.0, noise=0.01, rate="6mbit", repetitions=60)
    fast = curve_cells(0.5, 0.4, 26.0, noise=0.01, first=6, rate="15mbit", repetitions=60)
    (row,) = fitted(*slow, *fast, published=(theirs,)).rows
    assert [curve.level for curve in row.series] == ["6mbit", "15mbit"]
    for key in ("a", "b", "c"):
        each = [getattr(curve, key) for curve in row.series]
        found = getattr(row, key)
        assert found.value == pytest.approx((each[0].value + each[1].value) / 2)
        assert found.low < found.value < found.high
        assert found.high - found.low < max(coefficient.high - coefficient.low for coefficient in each)
    (beside,) = row.published
    assert (beside.b_ratio, beside.c_ratio) == pytest.approx((row.b.value / 0.5, row.c.value / 26))
    assert (beside.b_inside, beside.c_inside) == (
        row.b.low <= 0.5 <= row.b.high,
        row.c.low <= 26 <= row.c.high,
    )


def test_each_size_has_a_row_and_its_own_published_coefficients() -> None:
    theirs = ({"source": "S", "level": "5kB", "b": 0.04, "c": 21.0},)
    small = curve_cells(0.1, 0.04, 21, first=6, size="5kB", repetitions=60)
    fit = fitted(*curve_cells(1, 0.6, 27), *small, published=theirs)
    assert [(row.level, len(row.published)) for row in fit.rows] == [("1MB", 0), ("5kB", 1)]
    assert fit.rows[1].published[0].b_inside is not None


def empty_cell(cell: int):
    levels = {"path.rate": "6mbit", "workload.size": "1MB"}
    return run(cell, table(0), levels, parameters=TRANSFER | {"path": path(loss=0.1)})


@pytest.mark.parametrize(
    ("runs", "reason"),
    [
        (curve_cells(1, 0.6, 27, losses=(0.0, 0.02, 0.05)), "an exponential needs 4, there are 3"),
        (curve_cells(1, 0.6, 27, repetitions=2), "an interval needs 3 repetitions of each cell, one has 2"),
        ([*curve_cells(1, 0.6, 27)[:-4], empty_cell(5)], "1 of 6 cells have no samples"),
        (curve_cells(1, 0.6, 27) + curve_cells(1, 0.6, 27, first=6), "cells of the same loss differ"),
        (curve_cells(1, 0.0, 27), "the times are the same at every loss"),
    ],
)  # fmt: skip
def test_a_fit_is_refused_with_its_reason(runs: list, reason: str) -> None:
    (row,) = fitted(*runs).rows
    for coefficient in (row.a, row.b, row.c):
        assert (coefficient.value, coefficient.low, coefficient.high) == (None, None, None)
        assert reason in coefficient.reason
    assert (row.r_squared, row.shape) == (None, None)


def test_one_curve_that_cannot_be_fitted_refuses_the_average_and_is_named() -> None:
    some = curve_cells(1, 0.6, 27)
    few = curve_cells(1, 0.6, 27, first=6, rate="15mbit", losses=(0.0, 0.02, 0.05))
    (row,) = fitted(*some, *few).rows
    assert row.c.reason == "15mbit: not enough places: an exponential needs 4, there are 3"
    assert row.series[0].c.value == pytest.approx(27, rel=1e-6)


def test_a_straight_line_is_called_so_and_has_no_b() -> None:
    runs = curve_cells(1.0, 0.0, 0.0, noise=0.02, repetitions=60)
    for repetition in runs:
        loss = repetition.parameters["path"]["forward"]["loss"]
        longer = repetition.samples.with_columns(wire_ns=repetition.samples["wire_ns"] + round(10e9 * loss))
        object.__setattr__(repetition, "samples", longer)
    (row,) = fitted(*runs).rows
    assert row.shape != "exponential"
    assert row.c.low < 0 < row.c.high
    assert row.b.reason == "c may be 0: the curve is then a straight line, for which a and b are not defined"


def test_a_step_bounds_no_c() -> None:
    (row,) = fitted(*curve_cells(1.0, 1e-9, 207.0)).rows  # 16 ms at 8 %, 1 s at 10 %
    assert row.c.reason.startswith("the samples do not bound c")
