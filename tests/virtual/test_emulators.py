"""The emulator in the kernel of virtual time beside the one in a process: the same packets, fates and times."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from linux.lab import Object, ms
from virtual.lab import VirtualCells, VirtualRun

LATER_NS = 1000
"""By how much the two may differ after a hundred waits: a process reads the kernel's clock more often, 1 ns each,
and a timer fires up to 0.5 us late."""

DELAY: Object = {"delay_ns": ms(10)}
RATE: Object = {**DELAY, "rate_bps": 10_000_000, "queue": {"packets": 20}}
IN_BOTH: tuple[Object, ...] = ({"emulator": "process"}, {"emulator": "kernel"})
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
    process, kernel = (cells.run(workload, host=host, **sections) for host in IN_BOTH)
    assert process.finished.fidelity is not None and kernel.finished.fidelity is not None
    assert (process.finished.fidelity.in_kernel, kernel.finished.fidelity.in_kernel) == (False, True)
    assert process.result["ledger"]["closed"] and kernel.result["ledger"]["closed"]
    return process, kernel


def until_the_last_exchange(ran: VirtualRun) -> pl.DataFrame:
    """Its packets. How a connection is closed depends on which of two hosts comes first at one instant."""
    last_ns = ran.samples()["received_ns"].max()
    return ran.packets().filter(pl.col("in_ns") < last_ns).sort("direction", "index", "copy")


@pytest.mark.parametrize(
    ("workload", "direction"),
    [
        ({"kind": "echo", "transport": "tcp", "messages": 50}, RATE),
        ({"kind": "echo", "transport": "tcp", "messages": 50}, EVERYTHING),
        ({"kind": "echo", "transport": "udp", "messages": 60, "timeout_ns": ms(200)}, EVERYTHING),
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
        apart_ns = (process_ns - kernel_ns).drop_nulls().abs().max()
        assert apart_ns is None or apart_ns <= LATER_NS, (name, apart_ns)


def test_packets_of_bursts_have_the_fate_of_their_index(cells: VirtualCells) -> None:
    # Where several are due at one instant, the kernel hands them over in one go: acknowledgements may differ.
    burst = {**DELAY, "loss": 0.02, "duplicate": 0.02}
    workload: Object = {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000, "direction": "download"}
    process, kernel = both(cells, workload, forward=burst, reverse=burst)
    fates = [
        ran.packets().select("direction", "index", "copy", "verdict").filter(pl.col("verdict") != "queued")
        for ran in (process, kernel)
    ]
    shared = fates[0].join(fates[1], on=["direction", "index", "copy"], suffix="_in_kernel")
    assert shared.filter(pl.col("verdict") != "delivered").height > 5
    assert shared["verdict"].equals(shared["verdict_in_kernel"])
    late_ns = [(ran.packets()["out_ns"] - ran.packets()["due_ns"]).drop_nulls() for ran in (process, kernel)]
    assert max(late.max() for late in late_ns) <= 1000
