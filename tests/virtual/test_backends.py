"""The two backends that emulate, cell by cell: Crosswind's emulator, and netem in namespaces between the hosts.

netem draws its losses from its own generator, so that they cannot agree packet by packet. All else has to.
"""

from typing import Any

import pytest
import scipy.stats

import crosswind
from crosswind.errors import StudyError
from crosswind.execution.virtual import VirtualCell
from linux.lab import ms
from virtual.lab import VirtualCells

TIMERS_NS = 2_000
"""Each of netem's stages ends its wait up to 0.5 us late (a high-resolution timer fires at the end of its slot). Two
stages each way make 2 us of a round trip. The emulator, a process, waits for one timer and takes at most as long."""


def over(backend: str, path: dict[str, Any], workload: dict[str, Any]) -> VirtualCell:
    cell = crosswind.virtual({**path, "backend": backend}, workload=workload)
    assert cell.result.valid, cell.result.reasons
    assert cell.result.ledger is not None
    assert cell.result.ledger.closed
    return cell


def over_both(path: dict[str, Any], workload: dict[str, Any]) -> tuple[VirtualCell, VirtualCell]:
    return over("tun", path, workload), over("netem", path, workload)


def times(cell: VirtualCell) -> list[int]:
    assert cell.samples["outcome"].unique().to_list() == ["ok"]
    return (cell.samples["received_ns"] - cell.samples["sent_ns"]).to_list()


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
@pytest.mark.parametrize("transport", ["udp", "tcp", "quic", "websocket"])
def test_round_trips_are_the_same_to_the_microsecond(transport: str, family: str) -> None:
    # Nanoseconds decide whether QUIC acknowledges once more, which on a link others wait for.
    link = {} if transport == "quic" else {"rate": "20mbit"}
    path = {"family": family, "forward": {"delay": "10ms", **link}, "reverse": {"delay": "3ms"}}
    workload = {"kind": "echo", "transport": transport, "messages": 30, "size": 1000}
    ours, netem = over_both(path, workload)
    # The first exchange may carry what the handshake has left.
    for ours_ns, netem_ns in zip(times(ours)[1:], times(netem)[1:], strict=True):
        assert ours_ns == pytest.approx(netem_ns, abs=TIMERS_NS)
        assert netem_ns > 13_000_000
    for side in ("forward", "reverse"):
        ours_side, netem_side = (getattr(cell.result.ledger, side) for cell in (ours, netem))
        if transport != "quic":
            assert (netem_side.in_, netem_side.in_bytes) == (ours_side.in_, ours_side.in_bytes)
        assert netem_side.delivered_bytes == netem_side.in_bytes


@pytest.mark.parametrize(
    "link",
    [
        {"rate": "10mbit", "queue": "20p"},
        {"rate": "10mbit", "queue": "30kB"},
        {"rate": "10mbit", "queue": "20p", "count": "ethernet"},
        {"rate": "10mbit", "queue": "30kB", "count": "ethernet"},
    ],
)
def test_a_transfer_through_a_queue_takes_as_long_and_loses_as_much(link: dict[str, str]) -> None:
    path = {"delay": "10ms", "forward": link}
    workload = {"kind": "transfer", "transport": "tcp", "size": "2MB"}
    ours, netem = over_both(path, workload)
    assert times(ours)[0] == pytest.approx(times(netem)[0], rel=0.002)
    ours_drops, netem_drops = (cell.result.ledger.forward.dropped["queue"] for cell in (ours, netem))  # type: ignore[union-attr]
    assert ours_drops > 0
    assert netem_drops == pytest.approx(ours_drops, rel=0.05)


def test_hops_follow_each_other_in_both_directions(cells: VirtualCells) -> None:
    wifi = {"delay_ns": ms(2), "rate_bps": 50_000_000}
    dsl = {"delay_ns": ms(8), "rate_bps": 10_000_000}
    hops = [{"name": "wifi", "forward": wifi, "reverse": wifi}, {"name": "dsl", "forward": dsl, "reverse": dsl}]
    workload = {"kind": "echo", "transport": "udp", "messages": 10, "size_bytes": 1000}
    files = {"packets": False, "capture": False}
    ours, netem = (cells.run(workload, hops=hops, backend=backend, files=files) for backend in ("tun", "netem"))
    for name in ("sent_ns", "received_ns"):
        for ours_ns, netem_ns in zip(ours.samples()[name], netem.samples()[name], strict=True):
            assert ours_ns - netem_ns == pytest.approx(0, abs=20 * TIMERS_NS)
    assert netem.finished.netem is not None
    assert [qdisc.stage for qdisc in netem.finished.netem.reverse] == [0, 1, 2, 3]


@pytest.mark.parametrize("loss", [0.01, 0.05, 0.3])
def test_losses_are_those_of_the_probability(loss: float) -> None:
    path = {"forward": {"loss": loss}, "reverse": {"loss": loss / 2}}
    workload = {"kind": "echo", "transport": "udp", "messages": 5000, "timeout": "10ms"}
    for cell in over_both(path, workload):
        ledger = cell.result.ledger
        assert ledger is not None
        for side, probability in ((ledger.forward, loss), (ledger.reverse, loss / 2)):
            # 99.99 % of samples of so many packets.
            low, high = scipy.stats.binom.interval(0.9999, side.in_, probability)
            assert low <= side.dropped["loss"] <= high
            assert side.in_ == side.delivered + side.dropped["loss"]


def test_the_result_says_what_the_kernel_was_asked_and_has_counted() -> None:
    path = {"forward": {"delay": "5ms", "rate": "8mbit", "queue": "30p", "loss": "10%"}}
    cell = over("netem", path, {"kind": "echo", "transport": "udp", "messages": 1000, "timeout": "50ms"})
    assert cell.result.netem is not None
    assert cell.result.ledger is not None
    loss, link, delay = (qdisc.model_dump() for qdisc in cell.result.netem.forward)
    assert (loss["loss"], link["rate_bytes_per_s"], link["limit_packets"]) == (pytest.approx(0.1), 1_000_000, 31)
    assert (delay["delay_ns"], [qdisc["stage"] for qdisc in (loss, link, delay)]) == (5_000_000, [0, 0, 1])
    forward = cell.result.ledger.forward
    assert (loss["counters"]["sent"], loss["counters"]["dropped"]) == (forward.delivered, forward.dropped["loss"])
    assert delay["counters"]["sent_bytes"] == forward.delivered_bytes
    assert cell.result.netem.reverse == ()


def test_what_netem_cannot_do_is_refused_at_once() -> None:
    path = {"backend": "netem", "forward": {"link_mtu": 1400}, "reverse": {"rate": "1001bit", "mtu_black_hole": True}}
    with pytest.raises(StudyError) as refused:
        crosswind.virtual(path, workload={"kind": "echo", "transport": "udp"})
    text = str(refused.value)
    assert all(key in text for key in ("forward.link_mtu", "reverse.rate", "reverse.mtu_black_hole")), text
    assert "use the backend tun" in str(refused.value.hint)
