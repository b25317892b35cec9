"""What stands where in the figures of a run."""

import pytest

from crosswind.findings.figure.judge import Figure
from crosswind.findings.pipeline import analyse
from records import MS, path, record, run, timed


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
