"""From a record to its result, on records whose answers can be worked out by hand."""

import json
from pathlib import Path

import jsonschema
import numpy as np
import pytest

from crosswind.analysis import analyse
from crosswind.result import Result, schema_text
from records import MS, echoes, finished, record, run, table, transfers

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


def test_lost_exchanges_are_counted_and_leave_no_trace_in_the_times() -> None:
    (cell,) = analyse(record(run(0, echoes([20 * MS] * 30 + [None] * 10)))).cells
    assert (cell.n, cell.lost, cell.outcomes) == (40, 10, {"ok": 30, "timeout": 10})
    assert cell.loss.value == 0.25
    assert cell.loss.low == pytest.approx(0.12691, abs=1e-5)  # Clopper-Pearson 10 of 40
    assert cell.estimates["rtt"].mean.n == 30
    assert cell.estimates["rtt"].median.value == 20 * MS


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
        return set(cell.estimates)

    assert metrics() == {"rtt", "connect"}
    assert metrics(connection="new") == {"rtt", "connect", "total"}
    assert metrics(mode="open") == {"rtt", "connect", "response"}


def test_an_open_loop_counts_the_wait_before_sending() -> None:
    parameters = {"workload": {"kind": "echo", "transport": "udp", "mode": "open"}}
    (cell,) = analyse(record(run(0, echoes([20 * MS] * 10), parameters=parameters))).cells
    assert cell.estimates["response"].median.value == 22 * MS


def test_transfers_count_as_independent_whatever_their_connection_number() -> None:
    (cell,) = analyse(record(run(0, transfers([8e6, 9e6, 10e6]), parameters=TRANSFER))).cells
    goodput = cell.estimates["goodput"]
    assert goodput.unit == "bit/s"
    assert goodput.mean.value == 9e6
    assert goodput.mean.method == "Student's t"
    assert goodput.mean.high - 9e6 == pytest.approx(4.302653 * 1e6 / np.sqrt(3), rel=1e-6)
    assert cell.estimates["transfer_time"].smallest == 7_999 * MS


def test_a_transfer_by_duration_has_no_transfer_time() -> None:
    parameters = {"workload": {"kind": "transfer", "transport": "tcp", "duration_ns": 8_000 * MS}}
    (cell,) = analyse(record(run(0, transfers([8e6]), parameters=parameters))).cells
    assert set(cell.estimates) == {"goodput", "connect"}


def test_what_is_not_supported_is_null_with_a_reason() -> None:
    (cell,) = analyse(record(run(0, echoes([MS] * 5)))).cells
    rtt = cell.estimates["rtt"]
    assert (rtt.median.value, rtt.median.low, rtt.median.n) == (None, None, 5)
    assert rtt.median.reason == "not enough samples: the median at 95% needs 6, there are 5"
    assert "needs 24 exchanges on a kept connection" in rtt.mean.reason
    assert (rtt.smallest, rtt.largest) == (MS, MS)


def test_no_mean_of_retransmitted_times_at_a_quarter_loss() -> None:
    path = {"forward": {"loss": 0.3}, "reverse": {"loss": 0.0}}
    rtts = [(20 + index % 7) * MS for index in range(100)]

    def mean(transport: str):
        parameters = {"path": path, "workload": {"kind": "echo", "transport": transport}}
        return analyse(record(run(0, echoes(rtts), parameters=parameters))).cells[0].estimates["rtt"].mean

    assert "without a finite variance" in mean("tcp").reason
    assert mean("udp").value is not None


def test_alike_neighbours_widen_a_quantiles_interval() -> None:
    rtts = [(20 + index) * MS for index in range(200)]

    def median(order: list[int]):
        return analyse(record(run(0, echoes([rtts[at] for at in order])))).cells[0].estimates["rtt"].median

    drifting, shuffled = median(list(range(200))), median([(at * 77) % 200 for at in range(200)])
    assert shuffled.method == "order statistics (exact binomial)"
    assert drifting.method.startswith("order statistics (binomial, ")
    assert drifting.value == shuffled.value
    assert drifting.low < shuffled.low < shuffled.high < drifting.high


def test_levels_are_compared_with_the_first_one_in_otherwise_equal_cells() -> None:
    rng = np.random.default_rng(1)

    def noisy(middle: int):
        return transfers(rng.normal(middle, 0.1e6, 12))

    cells = [
        run(0, noisy(10_000_000), {"loss": "0%", "cc": "reno"}, parameters=TRANSFER),
        run(1, noisy(5_000_000), {"loss": "5%", "cc": "reno"}, parameters=TRANSFER),
        run(2, noisy(10_000_000), {"loss": "0%", "cc": "cubic"}, parameters=TRANSFER),
        run(3, noisy(5_000_000), {"loss": "5%", "cc": "cubic"}, parameters=TRANSFER),
    ]
    found = [one for one in analyse(record(*cells)).comparisons if one.metric == "goodput"]
    assert [(one.factor, one.reference_cell, one.other_cell) for one in found] == [
        ("loss", 0, 1),
        ("loss", 2, 3),
        ("cc", 0, 2),
        ("cc", 1, 3),
    ]
    assert [one.verdict for one in found] == ["smaller", "smaller", "no difference shown", "no difference shown"]
    assert found[0].ratio.low < 0.5 < found[0].ratio.high or found[0].ratio.value == pytest.approx(0.5, rel=0.02)
    assert found[0].cliffs_delta.value == -1
    assert found[0].p_holm == pytest.approx(min(1, max(2 * min(found[0].p, found[1].p), found[0].p)), rel=1e-9)
    assert found[0].fixed == {"cc": "reno"}


def test_one_sample_each_compares_to_nothing() -> None:
    cells = [run(index, transfers([1e6]), {"loss": f"{index}%"}, parameters=TRANSFER) for index in (0, 1)]
    (found,) = [one for one in analyse(record(*cells)).comparisons if one.metric == "goodput"]
    assert found.verdict == "not enough samples"
    assert (found.p, found.p_holm, found.difference.value) == (None, None, None)


PUBLISHED = {"source": "Table 1", "metric": "rtt", "unit": "ms", "levels": {"path.delay": "10ms"}, "mean": 20.0}


def published(entry: dict, rtts: list[int], **changes):
    cell = run(0, echoes(rtts), {"path.delay": "10 ms"})
    (found,) = analyse(record(cell, published=[entry], **changes)).published
    return found


def test_a_published_figure_inside_ours() -> None:
    found = published(PUBLISHED, [20 * MS - 500 + 20 * index for index in range(50)])
    assert (found.theirs, found.unit, found.cell, found.inside) == (20 * MS, "ns", 0, True)
    assert found.remark == "theirs lies in our interval"
    assert found.ratio == pytest.approx(1, abs=1e-5)


def test_a_published_figure_outside_ours_with_and_without_its_interval() -> None:
    rtts = [30 * MS + index for index in range(50)]
    assert published(PUBLISHED, rtts).remark == "outside our interval; ours is 1.5 times theirs"
    assert published(PUBLISHED | {"ci": 11.0}, rtts).remark == "the intervals overlap; ours is 1.5 times theirs"


def test_a_published_figure_without_ours() -> None:
    assert published(PUBLISHED, [20 * MS] * 3).remark.startswith("not enough samples")
    assert published(PUBLISHED | {"metric": "goodput"}, [20 * MS] * 30).remark == "this cell has no such metric"
    missing = published(PUBLISHED | {"levels": {"path.delay": "30ms"}}, [20 * MS] * 30)
    assert (missing.cell, missing.remark) == (None, "no cell of this run has these levels")


def test_a_published_level_may_be_a_fixed_setting_of_the_study() -> None:
    entry = PUBLISHED | {"levels": {"path.delay": "10ms", "path.family": "ipv6"}}
    rtts = [20 * MS + index for index in range(50)]
    assert published(entry, rtts, study={"path": {"family": "ipv6"}}).cell == 0
    assert published(entry, rtts, study={"path": {"family": "ipv4"}}).cell is None


def test_an_unknown_unit_is_named() -> None:
    with pytest.raises(ValueError, match="unknown unit 'furlong'"):
        published(PUBLISHED | {"unit": "furlong"}, [20 * MS] * 30)


def test_a_model_beside_its_measurement() -> None:
    parameters = TRANSFER | {"path": {"forward": {"loss": 0.01}}, "host": {"congestion_control": "reno"}}
    rates = [12e6, 13e6, 14e6]
    result = analyse(record(run(0, transfers(rates, connect_ns=10 * MS), parameters=parameters), models=["mathis-c1"]))
    (model,) = result.cells[0].models
    assert model.value == pytest.approx(
        8 * 1448 / 0.01 / 0.1
    )  # the measured connection set-up stands for the round trip
    assert model.ratio == pytest.approx(13e6 / model.value)
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
