"""What stands where in the figures of a run."""

import pytest

from crosswind.findings.figure.judge import Figure
from crosswind.findings.pipeline import analyse
from crosswind.models.caia import caia
from records import MS, echoes, path, record, run, table, timed

KEPT_TCP = {"workload": {"kind": "echo", "transport": "tcp", "connection": "kept"}}
PUBLISHED = {"source": "Table 1", "metric": "rtt", "unit": "ms", "levels": {"path.delay": "10ms"}, "mean": 20.0}
TRANSFER = {"workload": {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000}}


def drawn(runs: list, **figure):
    asked = {"title": "Figure 1", "metric": "transfer_time", "x": "path.loss", "where": {}, "models": []} | figure
    asked = {"cells": [repetition.cell for repetition in runs]} | asked
    return analyse(record(*runs, figures=[asked])).of(Figure)


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
    (figure,) = analyse(record(*cells, figures=[asked], published=[theirs])).of(Figure)
    curve, least = figure.curves
    assert (curve.model, curve.series, curve.xs) == ("caia", None, [0, 5])
    assert least.model == "slow-start" and least.ys[0] == least.ys[1]  # with loss, the least time
    assert curve.ys == pytest.approx([caia(1_000_000, 6e6, loss) * 1e9 for loss in losses])
    bare, point = figure.points
    assert bare.published == []
    (beside,) = point.published
    assert (beside.source, beside.value, beside.ci) == ("Table 1", 1.25e9, 0.25e9)


LOSSES = (0.0, 0.01, 0.02, 0.05, 0.08, 0.1)
