"""The emulator in the kernel of virtual time beside the one in a process: the same packets, with the same fate, at the same time."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from linux.lab import Object, ms
from virtual.lab import VirtualCells, VirtualRun

WAIT_NS = 3
"""By how much the two may differ for each wait: a process reads the kernel's clock more often, and a reading takes 1 ns."""

DELAY: Object = {"delay_ns": ms(10)}
RATE: Object = {**DELAY, "rate_bps": 10_000_000, "queue": {"packets": 20}}
EVERYTHING: Object = {
    **DELAY,
    "rate_bps": 20_000_000,
    "loss": 0.05,
    "duplicate": 0.05,
    "corrupt": 0.05,
    "jitter_ns": ms(1),
}


def both(cells: VirtualCells, workload: Object, **sections: Object) -> tuple[VirtualRun, VirtualRun]:
    """A cell in which a process carries the packets, and the same in which the kernel does."""
    host = sections.pop("host", {})
    process, kernel = (
        cells.run(workload, host={**host, "emulator": emulator}, **sections) for emulator in ("process", "kernel")
    )
    assert process.finished.fidelity is not None and kernel.finished.fidelity is not None
    assert (process.finished.fidelity.in_kernel, kernel.finished.fidelity.in_kernel) == (False, True)
    assert process.result["ledger"]["closed"] and kernel.result["ledger"]["closed"]
    return process, kernel


def until_the_last_exchange(ran: VirtualRun) -> pl.DataFrame:
    """Its packets in their order. How a connection is closed depends on which of two hosts comes first at one instant."""
    last_ns = ran.samples()["received_ns"].max()
    return ran.packets().filter(pl.col("in_ns") < last_ns).sort("direction", "index", "copy")


@pytest.mark.parametrize(
    ("workload", "direction"),
    [
        ({"kind": "echo", "transport": "tcp", "messages": 50}, RATE),
        ({"kind": "echo", "transport": "tcp", "messages": 50}, EVERYTHING),
        ({"kind": "echo", "transport": "udp", "messages": 50, "timeout_ns": ms(200)}, EVERYTHING),
        ({"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000, "direction": "download"}, RATE),
    ],
)
def test_both_carry_the_same_packets_at_the_same_time(cells: VirtualCells, workload: Object, direction: Object) -> None:
    tables = [until_the_last_exchange(ran) for ran in both(cells, workload, forward=direction, reverse=direction)]
    times = [name for name in tables[0].columns if name.endswith("_ns")]
    process, kernel = (table.drop(times) for table in tables)
    assert process.height > 100
    assert_frame_equal(process, kernel)
    for name in times:
        process_ns, kernel_ns = (table[name].cast(pl.Int64) for table in tables)
        assert process_ns.is_null().equals(kernel_ns.is_null()), name
        earlier_ns = (process_ns - kernel_ns).drop_nulls()
        assert earlier_ns.is_between(-WAIT_NS, WAIT_NS * process.height).all(), (name, earlier_ns.min(), earlier_ns.max())
