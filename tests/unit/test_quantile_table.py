"""The table of quantiles beside a chart of distribution functions: the same curves in numbers."""

from dataclasses import replace

from crosswind.analysis.cells import collect
from crosswind.cell.record import RunRecord
from crosswind.findings.pipeline import analyse
from crosswind.report.charts.distributions import drawn_cells
from crosswind.report.run_page import render
from crosswind.report.tables.quantiles import quantile_table
from crosswind.report.tables.table import Table
from records import MS, echoes, record, run, runs


def of_rtt(made: RunRecord) -> Table:
    data = collect(made)
    return quantile_table("rtt", analyse(made).cells, drawn_cells("rtt", data))


def test_each_cell_has_its_quantiles_with_intervals_where_the_design_supports_them() -> None:
    times = [(10 + at) * MS for at in range(100)]
    made = record(
        *runs(0, [echoes(times)] * 20, {"path.loss": "0%"}),
        *runs(1, [echoes(times)] * 2, {"path.loss": "1%"}),
        *runs(2, [echoes(times[:5])], {"path.loss": "2%"}),
    )
    table = of_rtt(made)
    assert table.title == "Quantiles of the curves, ms [95 %]"
    assert table.headings == ["loss", "n", "p5", "p25", "median", "p75", "p95", "p99"]
    # The cell of five messages has no curve.
    assert [row[0] for row in table.rows] == ["0%", "1%"]
    many, few = table.rows
    assert many[4].startswith("59.5")
    assert many[4].endswith("]")
    assert few[4] == "59.50 (in all 2 repetitions)"
    assert (
        "2 repetitions are too few for intervals: p5 needs 20, p25 needs 5, the median needs 5, p75 needs 5, "
        "p95 needs 20 (1%)."
    ) in table.footnotes


def test_quantiles_of_an_exact_cell_are_exact_and_those_that_timed_out_are_bounds() -> None:
    times: list[int | None] = [10 * MS] * 97 + [None] * 3
    parameters = {"workload": {"kind": "echo", "transport": "udp", "timeout_ns": 5000 * MS}}
    exact = replace(run(0, echoes(times[:97]), {"path.loss": "0%"}, parameters=parameters), exact=True)
    lossy = runs(1, [echoes(times)] * 5, {"path.loss": "3%"}, parameters=parameters)
    first, second = of_rtt(record(exact, *lossy)).rows
    assert set(first[2:]) == {"10 exact"}
    assert second[-1] == "over 5\u202f000"


def test_the_page_has_the_table_below_the_chart() -> None:
    made = record(*runs(0, [echoes([(10 + at) * MS for at in range(40)])] * 5, {"path.loss": "0%"}))
    page = render(made, analyse(made))
    assert "<summary>Quantiles of the curves, ms [95 %]</summary>" in page


def test_a_range_that_is_finer_than_what_is_shown_is_no_range() -> None:
    """20.00 (20.00 to 20.00) said nothing."""
    close = record(*runs(0, [echoes([20 * MS + at] * 40) for at in (0, 100)]))
    apart = record(*runs(0, [echoes([20 * MS + at] * 40) for at in (0, MS)]))
    (row,), (other,) = of_rtt(close).rows, of_rtt(apart).rows
    assert row[3] == "20.00 (in all 2 repetitions)"
    assert other[2] == "20.00 (20.00 to 21.00)"
