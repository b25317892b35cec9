"""Exchanges that time out are data, counted by cause."""

import pytest

from linux.lab import Object, ms
from virtual.lab import VirtualCells


@pytest.mark.parametrize(
    ("workload", "rows", "first_error", "waits"),
    [
        ({"kind": "echo", "transport": "tcp", "connection": "new", "messages": 3}, 3, "cannot connect: timed out", 3),
        ({"kind": "echo", "transport": "udp", "messages": 4}, 4, "cannot receive: timed out", 4),
        ({"kind": "connect", "transport": "quic", "count": 2}, 2, "cannot connect: timed out", 2),
        ({"kind": "page", "transport": "http2", "count": 1}, 1, "timed out", 1),
        ({"kind": "multiplex", "transport": "websocket", "messages": 5}, 5, "timed out", 1),
        (
            {"kind": "echo", "transport": "udp", "messages": 6, "mode": "open", "rate_per_s": 1000},
            6,
            "cannot receive: no reply came within 30 s",
            1,
        ),
    ],
    ids=lambda value: f"{value['kind']}-{value['transport']}" if isinstance(value, dict) else "",
)
def test_a_cell_in_which_nothing_succeeded_counts_its_failures(
    cells: VirtualCells, workload: Object, rows: int, first_error: str, waits: int
) -> None:
    ran = cells.run({**workload, "timeout_ns": ms(30_000)}, forward={"loss": 1.0}, deadline_ns=ms(600_000))
    result = ran.ended.model_dump(mode="json")
    (outcome,) = result["samples"]["outcomes"]
    assert first_error in outcome["first_error"]
    assert result["samples"] == {"rows": rows, "ok": 0, "lost": rows, "outcomes": [outcome]}
    assert (outcome["outcome"], outcome["count"]) == ("timeout", rows)
    # As many timeouts as follow each other, and little besides.
    assert result["elapsed_ns"] // ms(30_000) == waits
    assert (result["valid"], result["ledger"]["closed"]) == (True, True)


def test_losses_among_successes_are_counted_and_the_cell_is_valid(cells: VirtualCells) -> None:
    workload = {"kind": "echo", "transport": "udp", "messages": 200, "mode": "open", "rate_per_s": 2000}
    ran = cells.run({**workload, "timeout_ns": ms(200)}, seed=4, forward={"loss": 0.2})
    lost = ran.book("forward")["dropped"]["loss"]
    first_error = "cannot receive: no reply came within 0.2 s"
    assert ran.result["samples"] == {
        "rows": 200,
        "ok": 200 - lost,
        "lost": lost,
        "outcomes": [{"outcome": "timeout", "count": lost, "first_error": first_error}],
    }
    assert 0 < lost < 200
