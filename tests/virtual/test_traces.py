"""Recorded networks, replayed to the hosts' kernels in virtual time."""

from pathlib import Path

import polars as pl

from conftest import requires
from linux.lab import Object, ms
from virtual.lab import VirtualCells


def test_the_chain_of_mahimahis_own_test_has_the_round_trip_that_it_asks_for(cells: VirtualCells) -> None:
    """Ten shells of 10 ms and a link of one packet a millisecond: `ping` has to take 200 to 220 ms there."""
    trace = {"delivery_trace": [1]}
    near, far = ({"delay_ns": ms(10)}, {"delay_ns": ms(10)})
    hops = [{"name": f"delay{number}", "forward": near, "reverse": far} for number in range(10)]
    hops.insert(2, {"name": "link", "forward": trace, "reverse": trace})
    ping = [requires("ping"), "-n", "-c", "1", "{server}"]
    ran = cells.run({"kind": "program", "client": ping}, hops=hops)
    (there,), (back,) = (ran.packets(way)["due_ns"] - ran.packets(way)["in_ns"] for way in ("forward", "reverse"))
    # 100 ms of delay, and up to a millisecond until the next opportunity.
    assert ms(100) < there <= ms(101)
    assert ms(100) < back <= ms(101)
    assert "1 packets transmitted, 1 received" in ran.text("client.out")


def test_a_transfer_takes_no_more_than_a_trace_delivers(cells: VirtualCells, tmp_path: Path) -> None:
    # One packet a ms for 50 ms, and one at the end of 99 ms.
    trace = tmp_path / "link"
    trace.write_text("".join(f"{at}\n" for at in [*range(1, 51), 99]))
    data: Object = {"delivery_trace": {"file": str(trace)}, "delay_ns": ms(5)}
    ran = cells.run({"kind": "transfer", "transport": "tcp", "size_bytes": 300_000}, forward=data)
    delivered = ran.packets("forward").filter(pl.col("verdict") == "delivered")
    left = delivered.select(at=(pl.col("due_ns") - ms(5) - pl.col("in_ns").min()) / 1e6, size=pl.col("size_bytes"))
    passed = left.sort("at").with_columns(pl.col("size").cum_sum())
    for at, size in passed.rows():
        turns, rest = divmod(round(at), 99)
        # A packet may have begun in the opportunity before, so that only sums have a bound.
        assert size <= 1500 * (turns * 51 + min(rest, 50))
    # Nothing passes where the trace has nothing: between 50 and 99 ms of each turn.
    turn = left["at"].cast(pl.Float64) % 99
    assert not turn.is_between(50.001, 98.999).any()


def test_a_table_of_rates_is_the_rate_of_the_link(cells: VirtualCells, tmp_path: Path) -> None:
    trace = tmp_path / "rates.csv"
    trace.write_text("time,rate\n0,8\n1,1\n2,8\n")
    changes = [{"trace": str(trace), "of": "forward"}]
    ran = cells.run({"kind": "transfer", "transport": "tcp", "size_bytes": 1_500_000}, changes=changes)
    packets = ran.packets("forward").filter(pl.col("verdict") == "delivered")
    since = packets.select(at=(pl.col("due_ns") - pl.col("in_ns").min()) / 1e9, size=pl.col("size_bytes"))
    second = since.group_by(pl.col("at").cast(pl.Int64)).agg(pl.col("size").sum()).sort("at")
    carried = dict(second.iter_rows())
    # 1 MB in the first second but for the handshake, 125 kB in the second, to a packet.
    assert 980_000 <= carried[0] <= 1_000_000
    assert abs(carried[1] - 125_000) <= 1500


def test_single_messages_take_light_deliveries_and_bursts_those_of_the_busy_link(
    cells: VirtualCells, tmp_path: Path
) -> None:
    light = tmp_path / "light"
    light.write_text("0 20 0 5\n60000 20 0\n")
    forward: Object = {"delivery_trace": [500]}
    changes = [{"trace": str(light), "of": "forward"}]
    echo = {"kind": "echo", "transport": "udp", "messages": 5}
    ran = cells.run(echo, forward=forward, changes=changes)
    took = ran.packets("forward")["due_ns"] - ran.packets("forward")["in_ns"]
    # Each begins a burst of its own, in which it is first: the base delay alone.
    assert took.to_list() == [ms(20)] * 5
    ran = cells.run({"kind": "transfer", "transport": "tcp", "size_bytes": 20_000}, forward=forward, changes=changes)
    packets = ran.packets("forward").filter(pl.col("size_bytes") > 1000).sort("due_ns")
    waited = ((packets["due_ns"] - packets["in_ns"]) / 1e6).to_list()
    # Two of the first window are light; what is beyond waits for the busy link, which delivers twice a second.
    assert waited[:2] == [20.0, 25.0]
    assert min(waited[2:]) > 100
