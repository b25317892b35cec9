"""The two backends that emulate, cell by cell: Crosswind's emulator, and netem in namespaces between the hosts.

netem draws its losses from its own generator, so that they cannot agree packet by packet. All else has to.
"""

import itertools
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest
import scipy.stats

import crosswind
from crosswind.errors import StudyError
from crosswind.execution.virtual import VirtualCell
from linux.lab import Object, ms
from virtual.lab import VirtualCells, VirtualRun
from virtual.paced import Paced, Traffic

FloatArray = npt.NDArray[np.float64]

BACKENDS = ("tun", "netem")

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


def test_every_fifth_packet_overtakes_the_same() -> None:
    path = {"forward": {"delay": "10ms", "reorder_gap": 5}, "reverse": {"delay": "3ms"}}
    ours, netem = over_both(path, {"kind": "echo", "transport": "udp", "messages": 40})
    assert [round(time / 1e6) for time in times(ours)] == [13, 13, 13, 13, 3] * 8
    for ours_ns, netem_ns in zip(times(ours), times(netem), strict=True):
        assert ours_ns == pytest.approx(netem_ns, abs=TIMERS_NS)


@pytest.mark.parametrize(
    "link",
    [
        {"queue": "50ms"},
        {"queue": "50p", "discipline": "head_drop"},
        {"queue": "50p", "burst": "20kB"},
        {"queue": "50kB", "burst": "20kB", "peak_rate": "20mbit"},
        {"rate": "8000001bit", "queue": "50p"},
        {"rate": "7999996bit", "queue": "50kB"},
    ],
    ids=lambda link: " ".join(map(str, link.values())),
)
def test_a_queue_drops_as_many_of_the_same_packets(paced: Paced, link: dict[str, str]) -> None:
    ours, netem = (
        paced.over({"backend": backend, "forward": {"rate": "8mbit", **link}}, Traffic()) for backend in BACKENDS
    )
    assert len(ours[0].dropped) > 1000
    # The bucket and the wire hold up to one packet more or less than the link, once for each time that the queue fills.
    assert len(netem[0].dropped) == pytest.approx(len(ours[0].dropped), abs=2)
    for fates, result in (ours, netem):
        ledger = result.ledger.forward  # type: ignore[union-attr]
        assert ledger.dropped["queue"] == len(fates.dropped) == ledger.in_ - ledger.delivered
    # When the last packet came through, the same number had to.
    assert netem[0].took_ns[-1] == pytest.approx(ours[0].took_ns[-1], abs=3_000_000)


@pytest.mark.parametrize("discipline", ["codel", "fq_codel", "pie", "cake"])
def test_disciplines_drop_and_mark_alike(paced: Paced, discipline: str) -> None:
    queue = {} if discipline == "cake" else {"queue": "10000p"}
    path = {"forward": {"rate": "8mbit", "discipline": discipline, **queue}}
    ours, netem = (paced.over({**path, "backend": backend}, Traffic(4)) for backend in BACKENDS)
    for fates, result in (ours, netem):
        ledger = result.ledger.forward  # type: ignore[union-attr]
        assert (ledger.dropped["aqm"], ledger.dropped["queue"]) == (len(fates.dropped), 0)
        assert ledger.marked == len(fates.marked) > 0
    # Which packet a discipline acts on depends on nanoseconds and on draws, and the packet's flow decides whether it is
    # dropped or marked. Over six orders of these packets the ratio of the sums had a standard deviation of 0.06 (CoDel,
    # FQ-CoDel), and that of the drops alone 0.1.
    by_netem, by_ours = (len(fates.dropped) + len(fates.marked) for fates, _ in (netem, ours))
    assert by_netem == pytest.approx(by_ours, rel=0.2)


def test_red_drops_alike_where_the_link_is_never_idle(paced: Paced) -> None:
    red = {"discipline": "red", "queue": "10MB", "red_min": "20kB", "red_max": "200kB", "red_probability": 0.5}
    path = {"forward": {"rate": "8mbit", **red, "red_weight": 1 / 128}}
    overload = Traffic(4, ((6000, 150),))
    ours, netem = (paced.over({**path, "backend": backend}, overload)[0] for backend in BACKENDS)
    assert len(netem.dropped) == pytest.approx(len(ours.dropped), rel=0.05)
    assert len(netem.marked) == pytest.approx(len(ours.marked), rel=0.1)


JITTER = {"delay": "30ms", "jitter": "7ms"}


@pytest.mark.parametrize("distribution", ["uniform", "normal", "pareto"])
def test_jitter_has_one_distribution(paced: Paced, distribution: str) -> None:
    delay, apart = {**JITTER, "jitter_distribution": distribution}, Traffic(phases=((1000, 2),))
    alike = [paced.over({"backend": backend, "forward": delay}, apart)[0] for backend in BACKENDS]
    # Few are held back by others. A fixed sample: the same seed gives the same times, so this holds or it does not.
    assert scipy.stats.ks_2samp(*(fates.took_ns for fates in alike)).pvalue > 0.001


@pytest.mark.parametrize("backend", BACKENDS)
def test_jitter_keeps_the_order_unless_it_may_not(paced: Paced, backend: str) -> None:
    close = Traffic(phases=((500, 150),))
    kept, mixed = (
        paced.over({"backend": backend, "forward": {**JITTER, "reorder": reorder}}, close)[0].arrived
        for reorder in (False, True)
    )
    assert list(kept) == sorted(kept)
    assert list(mixed) != sorted(mixed)
    assert sorted(mixed) == list(range(500))


GILBERT_ELLIOTT = {"loss_enter": 0.03, "loss_leave": 0.25, "loss_in_bad": 0.8, "loss_in_good": 0.01}
FOUR_STATES = {"loss_p13": 0.05, "loss_p31": 0.4, "loss_p32": 0.2, "loss_p23": 0.5, "loss_p14": 0.02}


@pytest.mark.parametrize(
    ("settings", "rows", "loss"),
    [
        ({"loss": 0.05, "loss_burst": 4}, [[1 - 0.25 / 19, 0.25 / 19], [0.25, 0.75]], [0, 1]),
        (GILBERT_ELLIOTT, [[0.97, 0.03], [0.25, 0.75]], [0.01, 0.8]),
        (FOUR_STATES, [[0.93, 0, 0.05, 0.02], [0, 0.5, 0.5, 0], [0.4, 0.2, 0.4, 0], [1, 0, 0, 0]], [0, 0, 1, 1]),
    ],
    ids=["burst", "gemodel", "state"],
)
def test_bursts_of_losses_are_those_of_the_chain(
    settings: dict[str, float], rows: list[list[float]], loss: list[float]
) -> None:
    packets = 5000
    shares, deviations = chain_of(np.array(rows), np.array(loss), packets)
    workload = {"kind": "echo", "transport": "udp", "messages": packets, "timeout": "10ms"}
    for cell in over_both({"forward": settings}, workload):
        lost = (cell.samples.sort("exchange")["outcome"] != "ok").to_numpy()
        assert cell.result.ledger.forward.dropped["loss"] == lost.sum()  # type: ignore[union-attr]
        assert lost.mean() == pytest.approx(shares[0], abs=4 * deviations[0])
        assert (lost[1:] & lost[:-1]).mean() == pytest.approx(shares[1], abs=4 * deviations[1])


def chain_of(rows: FloatArray, loss: FloatArray, packets: int) -> tuple[list[float], list[float]]:
    """What a Markov chain loses of so many packets: their share, and that of those lost right behind a lost one.

    Returns: the two means, and their standard deviations.
    """
    states = [(state, *fates) for state in range(len(loss)) for fates in itertools.product((0, 1), repeat=2)]

    def probability(before: tuple[int, ...], after: tuple[int, ...]) -> float:
        lost = loss[after[0]] if after[2] else 1 - loss[after[0]]
        return float(rows[before[0], after[0]] * lost * (before[2] == after[1]))

    # A state of the chain, and the fates of the last two packets.
    step = np.array([[probability(before, after) for after in states] for before in states])
    values, vectors = np.linalg.eig(step.T)
    steady = np.real(vectors[:, np.argmin(abs(values - 1))])
    steady = steady / steady.sum()
    # The sum of all covariances, by the fundamental matrix (Kemeny and Snell, Finite Markov Chains, theorem 4.6.1).
    fundamental = np.linalg.inv(np.eye(len(states)) - step + np.outer(np.ones(len(states)), steady))
    shares, deviations = [], []
    for function in (lambda _, last: last, lambda before, last: before & last):
        hits = np.array([function(*fates) for _, *fates in states], dtype=float)
        centred = hits - steady @ hits
        shares.append(float(steady @ hits))
        deviations.append(float(np.sqrt(steady @ (centred * (2 * fundamental @ centred - centred)) / packets)))
    return shares, deviations


def test_copies_and_flipped_bits_are_as_many_as_was_asked() -> None:
    workload = {"kind": "echo", "transport": "udp", "messages": 3000, "size": 100, "timeout": "10ms"}
    path = {"forward": {"duplicate": "10%", "delay": "1ms"}, "reverse": {"corrupt": "10%", "rate": "100mbit"}}
    for cell in over_both(path, workload):
        ledger = cell.result.ledger
        assert ledger is not None
        low, high = scipy.stats.binom.interval(0.9999, ledger.forward.in_, 0.1)
        assert low <= ledger.forward.duplicated <= high
        assert ledger.forward.delivered == ledger.forward.in_ + ledger.forward.duplicated == ledger.reverse.in_
        assert ledger.reverse.delivered == ledger.reverse.in_


@pytest.mark.parametrize("backend", ["tun", "netem"])
def test_who_gets_a_packet_with_a_flipped_bit_drops_it(backend: str) -> None:
    workload = {"kind": "echo", "transport": "udp", "messages": 2000, "size": 100, "timeout": "10ms"}
    cell = over(backend, {"forward": {"corrupt": "10%"}}, workload)
    # netem flips bits of the frame, and nothing checks the sender's hardware address: 6 bytes of 14 + 128.
    probability = 0.1 * (1 if backend == "tun" else 136 / 142)
    low, high = scipy.stats.binom.interval(0.9999, 2000, probability)
    assert low <= 2000 - cell.result.samples.ok <= high


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_a_smaller_mtu_is_told_or_not(family: str) -> None:
    forward: dict[str, Any] = {"delay": "10ms", "link_mtu": 1400}
    path = {"family": family, "forward": forward, "reverse": {"delay": "3ms"}}
    for cell in over_both(path, {"kind": "transfer", "transport": "tcp", "size": "200kB"}):
        to_server, to_client = cell.result.ledger.forward, cell.result.ledger.reverse  # type: ignore[union-attr]
        # The first ten segments; all others are small enough.
        assert (to_server.dropped["mtu"], to_server.icmp, to_client.in_ - to_client.delivered) == (10, 10, 0)
        assert to_server.delivered_bytes >= 200_000
    forward["mtu_black_hole"] = True
    ours, netem = over_both(path, {"kind": "transfer", "transport": "tcp", "size": "200kB", "timeout": "3s"})
    ledgers = [cell.result.ledger.forward for cell in (ours, netem)]  # type: ignore[union-attr]
    assert ledgers[0] == ledgers[1]
    assert (ledgers[0].icmp, ledgers[0].dropped["mtu"] > 10) == (0, True)


def test_each_hop_says_what_it_dropped_and_marked(cells: VirtualCells) -> None:
    lossy: Object = {"delay_ns": ms(2), "loss": 0.01}
    dsl: Object = {"delay_ns": ms(8), "rate_bps": 2_000_000, "discipline": "codel"}
    hops = [{"name": "wifi", "forward": lossy}, {"name": "dsl", "forward": dsl, "reverse": {"delay_ns": ms(8)}}]
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 3_000_000}
    tun, netem = (
        cells.run(workload, host={"ecn": True}, hops=hops, backend=backend, files={"packets": backend == "tun"})
        for backend in BACKENDS
    )
    for ran in (tun, netem):
        assert ran.finished.ledger is not None
        forward = ran.finished.ledger.forward
        wifi, far = forward.hops
        assert (wifi.dropped["loss"], wifi.marked) == (forward.dropped["loss"], 0)
        assert (far.dropped["loss"], far.dropped["aqm"], far.marked) == (0, forward.dropped["aqm"], forward.marked)
        assert min(wifi.dropped["loss"], far.marked) > 3
    packets, ledger = tun.packets("forward"), tun.finished.ledger
    assert set(packets.filter(pl.col("verdict") == "dropped")["hop"]) == {0}
    assert ledger is not None
    assert packets.filter(pl.col("marked") == 1)["hop"].to_list() == [1] * ledger.forward.marked
    assert packets.filter((pl.col("verdict") == "delivered") & (pl.col("marked") == 0))["hop"].null_count() > 1000


def changing_path(cells: VirtualCells, workload: Object, **path: Any) -> list[VirtualRun]:
    files = {"packets": False, "capture": False}
    return [cells.run(workload, backend=backend, files=files, **path) for backend in BACKENDS]


def test_the_kernel_is_told_of_changes_when_they_are_due(cells: VirtualCells) -> None:
    workload = {"kind": "echo", "transport": "udp", "mode": "open", "rate_per_s": 200, "messages": 60}
    both = {"delay_ns": ms(5)}
    changes = [
        {"start_ns": ms(98), "for_ns": ms(50), "forward": {"loss": 1.0}},
        # Messages that are sent in the last 20 ms of it would be overtaken by those behind it.
        {"start_ns": ms(203), "for_ns": ms(50), "every_ns": ms(1000), "forward": {"delay_ns": ms(25)}},
    ]
    ours, netem = changing_path(cells, workload, forward=both, reverse=both, changes=changes)
    outcomes = [ran.samples().sort("exchange")["outcome"].to_list() for ran in (ours, netem)]
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].count("timeout") == 10
    times_of = [(ran.samples()["received_ns"] - ran.samples()["sent_ns"]).drop_nulls() for ran in (ours, netem)]
    assert max(times_of[0]) >= ms(30)
    assert list(times_of[1]) == pytest.approx(list(times_of[0]), abs=TIMERS_NS)
    assert netem.finished.netem is not None
    done = netem.finished.netem.changes
    assert [change.due_ns for change in done[:4]] == [ms(98), ms(148), ms(203), ms(253)]
    # A timer fires up to 0.5 us late, and each of two calls of a loop takes up to 1 us.
    assert max(change.late_ns for change in done) < 2_500


def test_a_rate_that_changes_costs_no_more_than_the_packet_on_the_wire(cells: VirtualCells) -> None:
    slow: Object = {"start_ns": ms(300), "for_ns": ms(200), "every_ns": ms(400), "forward": {"rate_bps": 2_000_000}}
    forward = {"rate_bps": 10_000_000, "delay_ns": ms(1), "queue": {"bytes": 50_000}}
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 1_300_000}
    ours, netem = changing_path(cells, workload, forward=forward, reverse={"delay_ns": ms(1)}, changes=[slow])
    took = [(ran.samples()["received_ns"] - ran.samples()["sent_ns"]).item() for ran in (ours, netem)]
    assert netem.finished.netem is not None
    changes = netem.finished.netem.changes
    assert len(changes) > 5
    # 1500 bytes take 6 ms at 2 Mbit/s. What the kernel has begun to send ends at the rate at which it began.
    assert took[1] == pytest.approx(took[0], abs=len(changes) * ms(6))


def test_what_netem_cannot_do_is_refused_at_once() -> None:
    path = {"backend": "netem", "forward": {"lose": [7]}, "reverse": {"rate": "1mbit", "discipline": "dualpi2"}}
    with pytest.raises(StudyError) as refused:
        crosswind.virtual(path, workload={"kind": "echo", "transport": "udp"})
    text = str(refused.value)
    assert all(key in text for key in ("forward.lose (", "reverse.discipline (", "reverse.dualpi2_step")), text
    assert "use the backend tun" in str(refused.value.hint)
