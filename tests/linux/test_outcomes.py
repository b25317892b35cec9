"""How exchanges end, counted by cause, and what a cell is worth in which none succeeded."""

import polars as pl
import pytest

from linux.lab import Ended, Lab, Object, ms


def finished(ended: Ended) -> Object:
    """The `finished` event of a cell that ran, be its result valid or not."""
    assert (ended.status, ended.err, ended.names) == (0, "", ["started", "ready", "finished"]), ended.out
    return ended.events[-1]


@pytest.mark.parametrize(
    ("workload", "rows", "first_error"),
    [
        ({"kind": "echo", "transport": "tcp", "connection": "new", "messages": 3}, 3, "cannot connect: timed out"),
        ({"kind": "echo", "transport": "udp", "messages": 4}, 4, "cannot receive: timed out"),
        ({"kind": "connect", "transport": "quic", "count": 2}, 2, "cannot connect: timed out"),
        ({"kind": "page", "transport": "http2", "count": 1}, 1, "timed out"),
        ({"kind": "multiplex", "transport": "websocket", "messages": 5}, 5, "timed out"),
        (
            {"kind": "echo", "transport": "udp", "messages": 6, "mode": "open", "rate_per_s": 1000},
            6,
            "cannot receive: no reply came within 0.1 s",
        ),
    ],
    ids=lambda value: f"{value['kind']}-{value['transport']}" if isinstance(value, dict) else "",
)
def test_a_cell_in_which_nothing_succeeded_is_not_valid_and_says_why(
    lab: Lab, workload: Object, rows: int, first_error: str
) -> None:
    ended = lab.run({**workload, "timeout_ns": ms(100)}, forward={"loss": 1.0})
    result = finished(ended)
    (outcome,) = result["samples"]["outcomes"]
    assert first_error in outcome["first_error"]
    assert result["samples"] == {"rows": rows, "ok": 0, "lost": rows, "outcomes": [outcome]}
    assert (outcome["outcome"], outcome["count"]) == ("timeout", rows)
    assert (result["valid"], result["ledger"]["closed"]) == (False, True)
    assert result["reasons"] == [f"no exchange succeeded: {rows} x timeout ({outcome['first_error']})"]
    assert set(pl.read_ipc(ended.directory / "samples.arrow")["outcome"]) == {"timeout"}


def test_losses_among_successes_are_counted_and_the_cell_is_valid(lab: Lab) -> None:
    workload = {"kind": "echo", "transport": "udp", "messages": 200, "mode": "open", "rate_per_s": 2000}
    ended = lab.run({**workload, "timeout_ns": ms(200)}, seed=4, forward={"loss": 0.2})
    lost = ended.book("forward")["dropped"]["loss"]
    first_error = "cannot receive: no reply came within 0.2 s"
    assert ended.result["samples"] == {
        "rows": 200,
        "ok": 200 - lost,
        "lost": lost,
        "outcomes": [{"outcome": "timeout", "count": lost, "first_error": first_error}],
    }
    assert 0 < lost < 200


def test_a_cell_without_failures_counts_none(lab: Lab) -> None:
    result = lab.run({"kind": "connect", "transport": "tls", "count": 2}).result
    assert result["samples"] == {"rows": 2, "ok": 2, "lost": 0, "outcomes": []}
    assert result["program"] is None


@pytest.mark.parametrize(
    ("script", "program"),
    [
        ("exit 0", {"exit_code": 0, "signal": None}),
        ("exit 3", {"exit_code": 3, "signal": None}),
        ("kill -TERM $$", {"exit_code": None, "signal": 15}),
    ],
)
def test_how_the_client_program_ended_is_a_field_of_the_result(lab: Lab, script: str, program: Object) -> None:
    result = lab.run({"kind": "program", "client": ["sh", "-c", script]}).result
    assert result["program"] == program
    assert result["warnings"] == []
    assert result["samples"] == {"rows": 0, "ok": 0, "lost": 0, "outcomes": []}
