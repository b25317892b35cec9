"""Errors of models over cells, on cells whose errors are known, and what the report says of them."""

import pytest

from crosswind.analysis.predictions import MORE_DROPPED
from crosswind.findings.pipeline import analyse
from crosswind.models.caia import caia
from crosswind.report.tables.models import model_error_tables, model_tables
from records import MS, finished, path, record, run, timed

SIZE, RATE = 1_000_000, 6_000_000


def measured(cell: int, loss: float, factor: float, repetition: int = 0):
    """A repetition that takes so many times what the CAIA exponential predicts."""
    wire_ns = round(1e9 * factor * float(caia(SIZE, RATE, loss)))
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": SIZE}
    return run(
        cell,
        timed([wire_ns], size=SIZE),
        {"path.loss": f"{loss:.0%}"},
        repetition=repetition,
        parameters={"path": path(loss=loss, rate_bps=RATE), "workload": workload},
    )


def test_errors_are_of_predicted_over_measured() -> None:
    # Measured twice, 0.8 times and 1.25 times the prediction: predicted / measured is .5, 1.25 and .8.
    cells = [measured(0, 0.02, 2.0), measured(1, 0.05, 0.8), measured(2, 0.1, 1.25)]
    (errors,) = analyse(record(*cells, models=["caia"])).model_errors
    assert (errors.model, errors.metric, errors.lossy, errors.cells) == ("caia", "transfer_time", True, 3)
    assert errors.median == pytest.approx(0.25, abs=1e-8)
    assert errors.mean == pytest.approx((0.5 + 0.25 + 0.2) / 3, abs=1e-8)
    assert (errors.worst, errors.worst_cell) == (pytest.approx(0.5, abs=1e-8), 0)
    assert errors.bias == pytest.approx(-0.2, abs=1e-8)
    assert errors.measured is None
    assert errors.outside == 0  # connecting took 1 ms, the formula's round trip


def test_cells_without_loss_are_apart() -> None:
    cells = [measured(index, loss, 1.0) for index, loss in enumerate((0.0, 0.0, 0.02, 0.05))]
    found = analyse(record(*cells, models=["caia"])).model_errors
    assert [(errors.lossy, errors.cells) for errors in found] == [(True, 2), (False, 2)]


def test_the_error_of_what_was_measured_stands_beside() -> None:
    # Repetitions of 0.9 and 1.1: their mean has a standard error of 0.1.
    cells = [measured(cell, 0.02, factor, rep) for cell in (0, 1) for rep, factor in enumerate((0.9, 1.1))]
    (errors,) = analyse(record(*cells, models=["caia"])).model_errors
    assert errors.median == pytest.approx(0, abs=1e-8)
    assert errors.measured == pytest.approx(0.1, rel=1e-6)


def test_one_cell_has_no_distribution_of_errors() -> None:
    assert analyse(record(measured(0, 0.02, 1.0), models=["caia"])).model_errors == []
    assert model_error_tables(analyse(record(measured(0, 0.02, 1.0)))) == []


def test_the_table_names_the_worst_cell() -> None:
    result = analyse(record(measured(0, 0.02, 1.0), measured(1, 0.05, 0.8), models=["caia"]))
    (table,) = model_error_tables(result)
    (row,) = table.rows
    assert row[:7] == ["CAIA exponential", "with", "2", "12.5 %", "12.5 %", "25.0 %", "+12.5 %"]
    assert "5%" in row[-1]


@pytest.mark.parametrize(
    ("queue", "dropped", "warned"), [(0, "2 %", False), (17, "3.7 %", False), (18, "3.8 %", True), (180, "20 %", True)]
)
def test_what_the_queue_dropped_stands_beside_the_loss_that_a_model_knows(
    queue: int, dropped: str, warned: bool
) -> None:
    # Of 1000 packets 20 are to be lost at random, give or take four times 4.4.
    end = finished(packets=1000, lost=20)
    end["ledger"]["forward"] = {
        **end["ledger"]["forward"],
        "dropped": {"loss": 20, "queue": queue, "device": 0},
        "delivered": 980 - queue,
    }
    workload = {"kind": "transfer", "transport": "tcp", "duration_ns": 1000 * MS, "direction": "upload"}
    parameters = {"path": path(loss=0.02, delay_ns=15 * MS), "workload": workload}
    result = analyse(record(run(0, timed([1000 * MS]), parameters=parameters, end=end), models=["mathis"]))
    (prediction,) = result.cells[0].models
    assert prediction.dropped == pytest.approx((20 + queue) / 1000)
    assert (MORE_DROPPED in prediction.notes) is warned
    (table,) = model_tables(result)
    row = dict(zip((column.heading for column in table.columns), table.rows[0], strict=True))
    assert (row["loss"], row["dropped"]) == ("2 %", dropped)
