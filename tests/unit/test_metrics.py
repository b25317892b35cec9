"""Metrics, statistics and units: one row each, from which everything else follows."""

import json
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from conftest import ROOT
from crosswind.analysis.counters import counters_of
from crosswind.analysis.samples import read_samples
from crosswind.catalog.metrics import METRICS, STATISTICS, Metric, MetricPlace, Per, Statistic, metrics_at, phases_of
from crosswind.catalog.tables import SAMPLES, SPENT
from crosswind.findings.pipeline import analyse
from crosswind.findings.result import result_model, schema_text
from crosswind.report.export import estimates_frame
from crosswind.report.reference import with_tables
from crosswind.report.run_page import render as render_page
from crosswind.report.tables.metrics import metric_tables
from crosswind.stats.quantile import WOODRUFF
from crosswind.text.quantities import RATE, SHARE, SIZE, TIME, UNITS, Unit
from records import MS, echoes, finished, parted, processor_time, record, run, runs
from screens import render as render_text

ADDED_BY_ANALYSIS = {"undisturbed_ns", "setup_ns", "extra_ns", "blocked"}


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_formulas_are_about_columns_that_exist(metric: Metric) -> None:
    columns = set(pl.sql_expr(metric.formula).meta.root_names())
    known = {*SAMPLES.schema, *SPENT.schema, *ADDED_BY_ANALYSIS}
    if metric.per in (Per.MESSAGE, Per.COUNTED):
        known = set(counters_of([]).columns)
    elif metric.per is Per.REPORTED:
        known = {"time_s"}
    assert columns
    assert columns <= known


def test_every_metric_has_its_place() -> None:
    assert sorted(metric.name for place in MetricPlace for metric in metrics_at(place)) == sorted(METRICS)
    assert all(metric.column for metric in [*metrics_at(MetricPlace.WIRE), *metrics_at(MetricPlace.PROCESSOR)])
    assert [metric.name for metric in phases_of("connect")] == [
        "handshake_transport", "handshake_security", "handshake_upgrade",
    ]  # fmt: skip
    assert all(metric.part_of is None or metric.part_of in METRICS for metric in METRICS.values())


def test_times_of_exchanges_wait_for_retransmissions_and_costs_do_not() -> None:
    waits = {name for name, metric in METRICS.items() if metric.is_wait}
    assert {"rtt", "connect", "completion", "transfer_time"} <= waits
    assert not waits & {"goodput", "delayed_share", "blocked_share", "cpu_client", "send_time", "wire_bytes_forward"}


@pytest.mark.parametrize(
    ("name", "workload", "applies"),
    [
        ("rtt", {"kind": "echo"}, True),
        ("rtt", {"kind": "echo", "direction": "echo"}, True),
        ("rtt", {"kind": "echo", "direction": "upload"}, False),
        ("exchange_time", {"kind": "echo", "direction": "download"}, True),
        ("exchange_time", {"kind": "echo"}, False),
        ("rtt", {"kind": "transfer"}, False),
        ("total", {"kind": "echo", "connection": "new"}, True),
        ("total", {"kind": "echo", "connection": "kept"}, False),
        ("response", {"kind": "multiplex"}, True),
        ("transfer_time", {"kind": "transfer", "size_bytes": 1000}, True),
        ("transfer_time", {"kind": "transfer", "duration_ns": 1000}, False),
        ("connect", {"kind": "a workload of tomorrow"}, True),
        ("rtt", {}, False),
    ],
)
def test_a_metric_says_which_workloads_have_it(name: str, workload: dict[str, object], applies: bool) -> None:
    assert METRICS[name].applies(workload) is applies


@pytest.mark.parametrize(
    ("unit", "values", "scale"),
    [
        (TIME, [5e3, 2e6, 3e6], (1e6, "ms")),
        (TIME, [None, 0.0], (1.0, "ns")),
        (TIME, [-2e9], (1e9, "s")),
        (RATE, [2.88e6], (1e6, "Mbit/s")),
        (SHARE, [0.5], (0.01, "%")),
        (SIZE, [5e6], (1.0, "bytes")),
    ],
)
def test_numbers_are_shown_in_the_scale_of_their_middle(
    unit: Unit, values: list[float | None], scale: tuple[float, str]
) -> None:
    assert unit.scale_for(values) == scale


def test_a_unit_is_written_in_one_way_only() -> None:
    scales = [scale for unit in UNITS.values() for scale in unit.scales]
    assert len(scales) == len(set(scales))
    assert all(unit.scales[unit.name] == 1 and set(unit.shown) <= set(unit.scales) for unit in UNITS.values())


def test_the_method_of_a_quantile_is_that_of_its_estimate() -> None:
    assert {statistic.method for statistic in STATISTICS.values() if statistic.quantile is not None} == {WOODRUFF}


def test_the_time_until_a_failure_is_that_of_failures_alone() -> None:
    table = echoes([20 * MS, None, 30 * MS]).with_columns(
        failed_ns=pl.when(pl.col("received_ns").is_null()).then(pl.col("sent_ns") + 900 * MS)
    )
    units = read_samples([run(0, table, parameters=KEPT)], undisturbed_ns=None)
    assert units["failure_time"].values.tolist() == [900 * MS]
    assert units["rtt"].values.tolist() == [20 * MS, 30 * MS]


KEPT = {"workload": {"kind": "echo", "transport": "tcp"}}
RTTS = [20 * MS + 1000 * (index * 37 % 100) for index in range(100)]


def two_cells() -> tuple:
    tables = [echoes(part) for part in parted(RTTS, 5)]
    cells = [runs(index, tables, {"path.loss": f"{index}%"}, parameters=KEPT) for index in (0, 1)]
    made = record(*cells[0], *cells[1])
    return made, analyse(made)


def test_a_new_metric_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Metric(
        "toy", "Toy time", TIME, "Twice the round trip.", "2 * (received_ns - sent_ns)",
        workloads={"echo": {}}, compared_in=("echo",),
    )  # fmt: skip
    monkeypatch.setitem(METRICS, "toy", toy)
    made, result = two_cells()
    estimate = result.cells[0].estimates["toy"]
    assert (estimate.unit, estimate.median.value) == ("ns", 2 * result.cells[0].estimates["rtt"].median.value)
    assert estimate.median.n == 100
    assert [comparison.metric for comparison in result.comparisons] == ["rtt", "toy"]
    assert "Toy time, ms" in render_text(result, everything=True)
    page = render_page(made, result)
    assert "<h2>Toy time, ms</h2>" in page
    assert "Twice the round trip." in page
    rows = estimates_frame(result).filter(metric="toy")
    assert rows["statistic"].unique(maintain_order=True).to_list() == list(STATISTICS)
    assert json.loads(result.to_json())["cells"][1]["estimates"]["toy"]["unit"] == "ns"
    assert "| `toy` | echo | ns | exchange |" in with_tables("<!-- table: metrics -->\n<!-- end -->")


def test_a_new_metric_of_what_was_counted_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    toy = Metric(
        "toy", "Both processors", TIME, "Both hosts.", "(cpu_client_ns + cpu_server_ns) / messages",
        per=Per.MESSAGE, place=MetricPlace.PROCESSOR, column="both",
    )  # fmt: skip
    monkeypatch.setitem(METRICS, "toy", toy)
    end = finished() | {"cpu": processor_time(100, 300)}
    result = analyse(record(*(run(0, echoes(RTTS), repetition=at, parameters=KEPT, end=end) for at in (0, 1))))
    assert result.cells[0].estimates["toy"].mean.value == 4
    assert "toy" not in metric_tables(result)
    assert "both" in render_text(result, width=200, everything=True)


def test_a_new_statistic_is_one_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(STATISTICS, "p90", Statistic("p90", "a toy", 0.9, WOODRUFF))
    made, result = two_cells()
    estimate = result.cells[0].estimates["rtt"].statistic("p90")
    assert estimate.value == pytest.approx(20 * MS + 89_100)
    written = json.loads(result.to_json())
    assert written["cells"][0]["estimates"]["rtt"]["p90"]["n"] == 100
    assert result_model().model_validate(written) == result
    assert "p90" in json.loads(schema_text())["$defs"]["MetricEstimates"]["properties"]
    assert "p90 [95 %]" in render_text(result, width=200, everything=True)
    assert "p90 [95 %]" in render_page(made, result)
    assert estimates_frame(result).filter(metric="rtt", statistic="p90").height == 2


def test_the_tables_in_the_documentation_are_those_of_the_rows() -> None:
    page = (ROOT / "docs" / "result.md").read_text(encoding="utf-8")
    assert with_tables(page) == page, "make reference"
    assert page.count("<!-- table: ") == 13


@pytest.mark.parametrize(
    ("module", "light"),
    [
        ("crosswind.catalog.metrics", ("pydantic", "numpy", "polars", "scipy", "altair", "rich")),
        ("crosswind.models", ("pydantic", "numpy", "polars", "scipy", "altair", "rich")),
        ("crosswind.report.text.format", ("pydantic", "numpy", "polars", "scipy", "altair", "rich")),
        ("crosswind.analysis.result", ("numpy", "polars", "scipy", "altair", "rich")),
        ("crosswind.report.text.terminal", ("altair", "vl_convert")),
    ],
)
def test_a_module_imports_only_what_it_needs(module: str, light: tuple[str, ...]) -> None:
    code = f"import sys, {module}; print(sorted(set({light!r}) & set(sys.modules)))"
    place = {"PYTHONPATH": str(Path(ROOT) / "python")}
    ended = subprocess.run([sys.executable, "-c", code], env=place, capture_output=True, text=True, check=True)
    assert ended.stdout == "[]\n"


@pytest.mark.parametrize(
    ("unit", "number", "name", "amount"),
    [
        (TIME, "1.5", "ms", 1_500_000.0),
        (TIME, "0", "", 0.0),
        (TIME, "0", "parsecs", None),
        (TIME, "3", "", None),
        (SHARE, "2", "%", 0.02),
        (SHARE, "0.5", "", 0.5),
    ],
)
def test_a_written_amount_is_in_the_unit_of_results(unit: Unit, number: str, name: str, amount: float | None) -> None:
    assert unit.amount(number, name) == (None if amount is None else pytest.approx(amount))
