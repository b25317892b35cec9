"""From a record to its result, on records whose answers can be worked out by hand."""

import json
from dataclasses import replace

import jsonschema
import numpy as np
import pytest

from crosswind.findings.pipeline import analyse
from crosswind.findings.result import result_model, schema_text
from records import COSTS, MS, echoes, finished, path, record, run, runs, table, transfers

TRANSFER = {"workload": {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}}
KEPT_TCP = {"workload": {"kind": "echo", "transport": "tcp", "connection": "kept"}}


def test_a_result_keeps_to_its_schema_and_reads_back() -> None:
    result = analyse(record(run(0, echoes([20 * MS, None] * 20), {"path.loss": "5%"})))
    written = json.loads(result.to_json())
    jsonschema.validate(written, json.loads(schema_text()))
    assert result_model().model_validate(written) == result
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


def test_cells_on_the_clocks_of_several_machines_are_warned_of() -> None:
    runs = [run(0, echoes([MS] * 10), repetition=number) for number in range(2)]
    there = [replace(each, machine=name) for each, name in zip(runs, ("a", "b"), strict=True)]
    (warning,) = analyse(record(*there)).warnings
    assert (warning.name, warning.text) == (
        "machines",
        "cells on the machine's clock were measured on 2 machines: a, b",
    )
    assert analyse(record(*(replace(each, machine="a") for each in runs))).warnings == []


def test_metrics_follow_the_workload() -> None:
    rtts = [20 * MS] * 10

    def metrics(**workload: str) -> set[str]:
        parameters = {"workload": {"kind": "echo", "transport": "tcp", **workload}}
        (cell,) = analyse(record(run(0, echoes(rtts, connect_ns=10 * MS), parameters=parameters))).cells
        return set(cell.estimates) - COSTS

    assert metrics() == {"rtt", "connect"}
    assert metrics(connection="new") == {"rtt", "connect", "total"}
    assert metrics(mode="open") == {"rtt", "connect", "response"}


def test_over_udp_a_connection_and_an_exchange_take_the_exchange_alone() -> None:
    parameters = {"workload": {"kind": "echo", "transport": "udp", "connection": "new"}}
    (cell,) = analyse(record(run(0, echoes([20 * MS] * 10), parameters=parameters))).cells
    assert cell.estimates["total"].median.value == 20 * MS
    assert "connect" not in cell.estimates


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
    assert few.reason == "an interval of a mean where losses delay exchanges needs 10 repetitions, there are 8: 2 more"
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
    assert any("is used instead" in note for note in model.notes)


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
