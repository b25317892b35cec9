"""The emulator in the kernel of virtual time beside the one in a process: the same packets, fates and times."""

import polars as pl
import pytest
from polars.testing import assert_frame_equal

from crosswind.catalog import catalog
from linux.lab import Object, ms
from virtual.lab import VirtualCells, VirtualRun

LATER_NS = 3000
"""By how much the two may differ after a hundred waits: a process reads the kernel's clock more often, 1 ns each,
and a timer fires up to 0.5 us late."""

DELAY: Object = {"delay_ns": ms(10)}
LINK: Object = {**DELAY, "rate_bps": 1_000_000, "queue": {"packets": 20}}
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
OF_ELEMENTS: dict[str, Object] = {
    "mtu": {**DELAY, "link_mtu_bytes": 900},
    "loss": {**DELAY, "loss": 0.2, "loss_burst": 3},
    "hold": {**DELAY, "hold": [3, 50, 51], "hold_time_ns": ms(20)},
    "duplicate": {**DELAY, "duplicate": 0.2},
    "corrupt": {**DELAY, "corrupt": 0.2},
    "background": {**LINK, "background_rate_bps": 500_000, "background_arrivals": "poisson"},
    "link": {**LINK, "burst_bytes": 5000, "peak_rate_bps": 2_000_000, "link_cells": "atm"},
    "slots": {**DELAY, "grant_period_ns": ms(7), "grant_bytes": 3000},
    "light_deliveries": {**DELAY, "light_deliveries": [3, 9], "delivery_trace": [5, 6, 40]},
    "deliveries": {**DELAY, "delivery_trace": [4, 11, 13]},
    "delay": {**DELAY, "jitter_ns": ms(5), "jitter_distribution": "normal", "reorder": True},
}
DISCIPLINES = ("head_drop", "red", "codel", "fq_codel", "pie", "dualpi2", "cake")
DOWNLOAD: Object = {"kind": "transfer", "transport": "tcp", "size_bytes": 1_000_000, "direction": "download"}
WORKLOADS: tuple[Object, ...] = (
    DOWNLOAD,
    {"kind": "multiplex", "transport": "quic", "streams": 4, "messages": 80, "rate_per_s": 100},
    {"kind": "page", "transport": "http2", "count": 2},
)


def both(cells: VirtualCells, workload: Object, **sections: Object) -> tuple[VirtualRun, VirtualRun]:
    """A cell in which a process carries the packets, and the same in which the kernel does."""
    process, kernel = (cells.run(workload, host=host, **sections) for host in IN_BOTH)
    assert process.finished.fidelity is not None and kernel.finished.fidelity is not None
    assert (process.finished.fidelity.in_kernel, kernel.finished.fidelity.in_kernel) == (False, True)
    assert process.result["ledger"]["closed"] and kernel.result["ledger"]["closed"]
    return process, kernel


def until_the_last_exchange(ran: VirtualRun) -> pl.DataFrame:
    """Its packets. How a connection is closed depends on which of two hosts comes first at one instant."""
    last_ns = ran.samples().select(pl.coalesce("received_ns", "sent_ns")).max().item()
    packets = ran.packets()
    return packets.filter(pl.col("in_ns") < last_ns).sort("direction", "index", "copy")


def assert_alike(runs: tuple[VirtualRun, VirtualRun]) -> pl.DataFrame:
    """Asserts that the packets of both are the same, at the same time; returns them."""
    tables = [until_the_last_exchange(ran) for ran in runs]
    times = [name for name in tables[0].columns if name.endswith("_ns")]
    process, kernel = (table.drop(times) for table in tables)
    assert_frame_equal(process, kernel)
    for name in times:
        process_ns, kernel_ns = (table[name].cast(pl.Int64) for table in tables)
        assert process_ns.is_null().equals(kernel_ns.is_null()), name
        apart_ns = (process_ns - kernel_ns).drop_nulls().abs().max()
        assert apart_ns is None or apart_ns <= LATER_NS, (name, apart_ns)
    return tables[1]


def test_every_element_is_compared() -> None:
    assert OF_ELEMENTS.keys() == {element.name for element in catalog().elements}
    (discipline,) = (key for key in catalog().direction.keys if key.name == "discipline")
    assert {"fifo", *DISCIPLINES} == set(discipline.choices)


@pytest.mark.parametrize(
    "direction", [*OF_ELEMENTS.values(), *({**LINK, "discipline": name} for name in DISCIPLINES), EVERYTHING]
)
def test_every_element_does_the_same_in_both(cells: VirtualCells, direction: Object) -> None:
    # 1.65 Mbit/s, one message after the other whatever becomes of them: each in a packet of its own.
    workload: Object = {
        "kind": "echo",
        "transport": "udp",
        "messages": 200,
        "size_bytes": 1000,
        "mode": "open",
        "rate_per_s": 200,
        "timeout_ns": ms(300),
    }
    assert assert_alike(both(cells, workload, forward=direction, reverse=direction)).height > 100


@pytest.mark.parametrize("transport", catalog().transports)
def test_every_transport_gets_the_same_in_both(cells: VirtualCells, transport: str) -> None:
    workload: Object = {"kind": "echo", "transport": transport, "messages": 50}
    # With loss, several packets of QUIC are due at one instant.
    direction = EVERYTHING if transport == "tcp" else RATE
    assert assert_alike(both(cells, workload, forward=direction, reverse=direction)).height >= 100


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: str(workload["kind"]))
def test_every_workload_gets_the_same_in_both(cells: VirtualCells, workload: Object) -> None:
    assert assert_alike(both(cells, workload, forward=RATE, reverse=RATE)).height > 100


@pytest.mark.parametrize("transport", ["tcp", "http3"])
def test_packets_of_bursts_have_the_fate_of_their_index(cells: VirtualCells, transport: str) -> None:
    # Where several are due at one instant, the kernel hands them over in one go: acknowledgements may differ.
    burst = {**DELAY, "loss": 0.02, "duplicate": 0.02}
    process, kernel = both(cells, {**DOWNLOAD, "transport": transport}, forward=burst, reverse=burst)
    fates = [
        ran.packets().select("direction", "index", "copy", "verdict").filter(pl.col("verdict") != "queued")
        for ran in (process, kernel)
    ]
    shared = fates[0].join(fates[1], on=["direction", "index", "copy"], suffix="_in_kernel")
    assert shared.filter(pl.col("verdict") != "delivered").height > 5
    assert shared["verdict"].equals(shared["verdict_in_kernel"])
    late_ns = [(ran.packets()["out_ns"] - ran.packets()["due_ns"]).drop_nulls() for ran in (process, kernel)]
    assert max(late.max() for late in late_ns) <= 1000
