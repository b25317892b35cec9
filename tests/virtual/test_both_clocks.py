"""The same cell on the machine's clock and in virtual time: the same seed loses the same packets.

Whether a packet is lost depends on its index in its direction, and on nothing else. So both clocks lose the same
packets of the same traffic; where the machine's noise makes the traffic another, packets of one index have one fate.
"""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from chance import lost_packets
from conftest import requires_cell
from linux.lab import DIRECTIONS, CellOutput, Lab, Object, ms
from virtual.lab import VirtualCells

SEED = 1
LOSS = 0.1
PATH: Object = {direction: {"delay_ns": ms(5), "loss": LOSS} for direction in DIRECTIONS}
# Whether a packet that is not lost still arrives before the cell ends depends on the machine.
SAME = ["direction", "index", "size_bytes", "payload_bytes", "protocol", "cause"]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A place to run cells on the machine's clock."""
    (tmp_path / "real").mkdir()
    lab = Lab(requires_cell(), tmp_path / "real")
    yield lab
    lab.stop()


def test_datagrams_in_an_open_loop_have_the_same_packets_and_the_same_losses(lab: Lab, cells: VirtualCells) -> None:
    # Nothing waits for an answer, so that the traffic is the same whatever happens to it.
    workload = {"kind": "echo", "transport": "udp", "mode": "open", "messages": 300, "rate_per_s": 1000}
    cell = {"workload": {**workload, "timeout_ns": ms(500)}, "seed": SEED, **PATH}
    real, virtual = lab.run(**cell), cells.run(**cell)
    assert virtual.packets().select(SAME).equals(real.packets().select(SAME))
    # So the same exchanges fail: those whose request or reply was lost. A machine may be slow besides.
    requests, replies = virtual.dropped("forward"), virtual.dropped("reverse")
    answered = [number for number in range(300) if number not in requests]
    lost = {*requests, *(answered[index] for index in replies)}
    assert len(lost) == len(requests) + len(replies) > len(requests) > 0
    assert unanswered(virtual) == lost
    assert unanswered(real) >= lost


def unanswered(ran: CellOutput) -> set[int]:
    """The numbers of the exchanges that timed out."""
    return set(ran.samples().filter(pl.col("outcome") == "timeout")["exchange"])


@pytest.mark.parametrize("transport", ["tcp", "http2", "websocket", "quic"])
def test_a_packet_of_an_index_has_the_same_fate_on_both_clocks(lab: Lab, cells: VirtualCells, transport: str) -> None:
    cell = {"workload": {"kind": "echo", "transport": transport, "messages": 40}, "seed": SEED, **PATH}
    real, virtual = lab.run(**cell), cells.run(**cell)
    for direction in DIRECTIONS:
        counts = [len(ran.packets(direction)) for ran in (real, virtual)]
        # The generator, worked out a second time, says which packets are lost: those, and no others.
        for ran, count in zip((real, virtual), counts, strict=True):
            assert ran.dropped(direction) == lost_packets(SEED, direction, LOSS, count)
        both_saw = min(counts)
        lost = [[index for index in ran.dropped(direction) if index < both_saw] for ran in (real, virtual)]
        assert lost[0] == lost[1] != []
