"""Rates, queues and schedules: every packet at its nanosecond."""

import polars as pl
import pytest

from linux.lab import ms
from virtual.lab import ADDED_NS, VirtualCells


@pytest.mark.parametrize(("count", "occupied"), [("ip", 1028), ("ethernet", 1028 + 38)])
def test_a_burst_overflows_a_queue_of_five_packets_exactly(cells: VirtualCells, count: str, occupied: int) -> None:
    link = {"rate_bps": 1_000_000, "queue": {"packets": 5}, "delay_ns": ms(1), "count": count}
    workload = {"kind": "echo", "transport": "udp", "mode": "open", "messages": 60, "size_bytes": 1000}
    ran = cells.run({**workload, "rate_per_s": 100_000, "timeout_ns": ms(500)}, forward=link)
    packets = ran.packets("forward")
    # All are there within 0.6 ms, before the first has been sent: one is under way, five wait, and no other fits.
    assert packets["in_ns"][-1] - packets["in_ns"][0] < occupied * 8000
    assert packets["cause"].to_list() == [None] * 6 + ["queue"] * 54
    # 8000 ns a byte at 1 Mbit/s, one after the other.
    first_ns = packets["in_ns"][0] + ms(1)
    assert packets["due_ns"].to_list()[:6] == [first_ns + place * occupied * 8000 for place in range(1, 7)]
    assert ran.result["samples"]["lost"] == 54
    waited_ns = 5 * occupied * 8000 - (packets["in_ns"][5] - packets["in_ns"][0])
    assert ran.result["queueing_ns"]["forward"]["max"] == waited_ns


@pytest.mark.parametrize(("rate", "connections"), [(700.0, 1), (1000.0, 3)])
@pytest.mark.parametrize("transport", ["tcp", "udp", "http1", "http2", "http3", "websocket", "quic", "quic-datagram"])
def test_an_open_loop_sends_on_the_grid(cells: VirtualCells, transport: str, rate: float, connections: int) -> None:
    workload = {"kind": "echo", "transport": transport, "mode": "open", "rate_per_s": rate, "messages": 150}
    ran = cells.run({**workload, "connections": connections, "size_bytes": 100}, forward={"delay_ns": ms(5)})
    samples = ran.samples().sort("exchange")
    assert samples["outcome"].to_list() == ["ok"] * 150
    for connection in range(connections):
        own = samples.filter(pl.col("connection") == connection)
        offsets = [int(number * (1e9 / rate)) for number in own["exchange"]]
        assert (own["intended_ns"] - own["intended_ns"][0]).to_list() == [at - offsets[0] for at in offsets]
    late_ns = samples["sent_ns"] - samples["intended_ns"]
    assert 0 <= late_ns.min() <= late_ns.max() <= ADDED_NS  # type: ignore[operator]
