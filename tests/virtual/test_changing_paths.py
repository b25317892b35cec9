"""Paths of several hops and paths that change over time, on the hosts' kernels in virtual time."""

import polars as pl
import pytest

from crosswind import virtual
from crosswind.errors import StudyError
from linux.lab import Object, ms
from virtual.lab import ADDED_NS, VirtualCells

ONE_MS = ms(1)


def hop(name: str, delay_ms: int, **settings: object) -> Object:
    both = {"delay_ns": ms(delay_ms), **settings}
    return {"name": name, "forward": both, "reverse": both}


ECHO = {"kind": "echo", "transport": "udp", "mode": "open", "rate": "10/s", "messages": 4}
HOPS = [{"name": "wifi", "delay": "2ms"}, {"name": "line", "delay": "8ms"}]


def test_a_call_from_python_takes_the_hops_and_the_changes_of_a_study() -> None:
    # Messages are sent at 1, 101, 201 and 301 ms: both ways of the third fall into the change.
    slower = {"hop": "line", "start": "150ms", "for": "100ms", "delay": "20ms"}
    cell = virtual({}, workload=ECHO, hops=HOPS, changes=[slower])
    took = (cell.samples["received_ns"] - cell.samples["sent_ns"]).to_list()
    for took_ns, expected_ms in zip(took, [20, 20, 44, 20], strict=True):
        assert 0 <= took_ns - ms(expected_ms) <= ADDED_NS


@pytest.mark.parametrize(
    ("path", "changes", "message"),
    [
        ({}, [{"hop": "lin", "start": "1s", "delay": "20ms"}], "path.at.1.hop lin is no hop"),
        ({"delay": "1ms"}, [], "path.delay does not say which hop it is of"),
    ],
)
def test_mistakes_in_them_are_those_of_a_study(path: Object, changes: list[Object], message: str) -> None:
    with pytest.raises(StudyError, match=message):
        virtual(path, workload=ECHO, hops=HOPS, changes=changes)


def test_an_outage_loses_the_messages_that_are_sent_in_it(cells: VirtualCells) -> None:
    outage = {"start_ns": ms(100), "for_ns": ms(50), "hop": "far", "forward": {"loss": 1.0}}
    path: Object = {"hops": [hop("near", 3), hop("far", 4)], "changes": [outage]}
    workload = {
        "kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 200, "messages": 40, "timeout_ns": ms(400),
    }  # fmt: skip
    ran = cells.run(workload, **path)
    samples = ran.samples()
    took = samples.filter(pl.col("outcome") == "ok").select(pl.col("received_ns") - pl.col("sent_ns")).to_series()
    # Two hops there and back are 14 ms.
    assert took.is_between(ms(14), ms(14) + ADDED_NS).all()
    # A message every 5 ms reaches the far hop 3 ms later: 20 to 29 do so between 100 and 150 ms, and the 19th after 98.
    lost = samples.with_row_index().filter(pl.col("outcome") != "ok")["index"].to_list()
    assert lost == list(range(20, 30)), lost
    dropped = ran.packets("forward").filter(pl.col("verdict") == "dropped")
    assert dropped.height == 10
    assert ran.finished.ledger is not None
    assert ran.finished.ledger.closed


def test_a_transfer_goes_on_at_the_rate_that_the_link_has_then(cells: VirtualCells) -> None:
    # 10 Mbit/s for a second, then 1 Mbit/s: 1.25 MB pass in the first second, and 125 kB in each one after it.
    path: Object = {
        "forward": {"rate_bps": 10_000_000, "delay_ns": ONE_MS, "queue": {"packets": 2000}},
        "reverse": {"delay_ns": ONE_MS},
        "changes": [{"start_ns": ms(1000), "forward": {"rate_bps": 1_000_000}}],
    }
    ran = cells.run({"kind": "transfer", "transport": "tcp", "size_bytes": 1_300_000}, **path)
    packets = ran.packets("forward").filter(pl.col("verdict") == "delivered")
    origin = packets["in_ns"].min()
    assert isinstance(origin, int)
    passed = packets.filter(pl.col("due_ns") - ONE_MS - origin <= ms(1000))["size_bytes"].sum()
    # The handshake's three round trips leave the link idle for 6 ms or less, and one packet is on the wire at the end.
    assert 1_250_000 - 6 * 1250 - 1500 <= passed <= 1_250_000
    last = packets["due_ns"].max()
    assert isinstance(last, int)
    rest = packets["size_bytes"].sum() - passed
    expected = ms(1000) + rest * 8 * 1000
    # What was on the wire at the change took part of its time before it.
    assert abs(last - ONE_MS - origin - expected) <= 1500 * 8 * 1000
