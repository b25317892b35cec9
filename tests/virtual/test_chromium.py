"""Chromium as a client in virtual time: the browser computes in no time, and what it measures is exact to its clock."""

import functools

import pytest

import crosswind
from conftest import missing, requires_binary
from crosswind.execution.virtual import VirtualCell
from crosswind.peers.registry import PEERS
from virtual.conftest import requires_kernel

CLOCK_NS = 5_000
"""In what `performance.now()` counts: a difference of two of its times is off by so much at most."""


@pytest.fixture(scope="module", autouse=True)
def _everything_is_there() -> None:
    requires_kernel()
    requires_binary()
    lack = PEERS["chromium"].missing("socketio-webtransport")
    if lack is not None:
        missing(f"{lack.problem}: {lack.hint}")


@functools.cache
def echo(transport: str, attempt: int = 1) -> VirtualCell:
    """Ten echoes over 10 ms there and back. Args: attempt: which of several equal ones."""
    workload = {"kind": "echo", "transport": transport, "messages": 10, "client": "chromium", "timeout": "10s"}
    return crosswind.virtual({"delay": "5ms"}, workload=workload)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("transport", "setup_round_trips"),
    # TCP and the upgrade; QUIC and the session.
    [("websocket", 2), ("webtransport", 2)],
)
def test_round_trips_are_those_of_the_path(transport: str, setup_round_trips: int) -> None:
    samples = echo(transport).samples
    assert samples["outcome"].to_list() == ["ok"] * 10
    times_ns = (samples["received_ns"] - samples["sent_ns"]).to_list()
    assert all(abs(time_ns - 10_000_000) <= CLOCK_NS for time_ns in times_ns), times_ns
    # Setting up waits for the processes of the browser as well, whose timers tick in milliseconds.
    assert (samples["connect_ns"][0] + CLOCK_NS) // 10_000_000 == setup_round_trips


@pytest.mark.timeout(600)
def test_a_cell_repeats_bit_for_bit() -> None:
    first, second = echo("websocket"), echo("websocket", attempt=2)
    assert first.samples.equals(second.samples)
    assert first.packets.equals(second.packets)


@pytest.mark.timeout(600)
def test_a_cell_lasts_as_long_as_its_round_trips() -> None:
    # 30 s after its start Chromium reads CLOCK_MONOTONIC_COARSE until that has moved, which takes a tick.
    workload = {"kind": "echo", "transport": "websocket", "messages": 90, "client": "chromium", "timeout": "10s"}
    samples = crosswind.virtual({"delay": "400ms"}, workload=workload).samples
    assert samples["outcome"].to_list() == ["ok"] * 90
    times_ns = (samples["received_ns"] - samples["sent_ns"]).to_list()
    assert all(abs(time_ns - 800_000_000) <= CLOCK_NS for time_ns in times_ns), times_ns
    assert samples["received_ns"].max() - samples["sent_ns"].min() >= 72_000_000_000 - CLOCK_NS
