"""Queue disciplines beside the kernel's own, in the same guests, for the same packets; and what TCP makes of marks.

The kernel's discipline stands behind a token bucket (tbf), and ours before a link with the same burst: both take a
packet from the queue as soon as the one before has gone, and keep it until there are tokens for it. The kernel's timers
are up to half a microsecond late, CoDel's clock ticks every 1.024 us, and its root is one step of Newton's method at
each drop (50 ms in place of 70.7 ms after the second): numbers of drops and marks have to be alike, not the packets.
PIE and RED draw from the guest's randomness. CAKE has a shaper of its own and better roots: packets are compared one by
one, and flows where the kernel draws nothing.

A token bucket never asks RED for a packet while none waits. So the kernel's RED does not learn there that the link is
idle: after an overload its mean queue falls with each arrival, and without arrivals not at all. Ours falls with time.
They are compared where the link is never idle.
"""

import sys

import numpy as np
import numpy.typing as npt
import polars as pl
import pytest

from captures import tshark
from crosswind.cell.guests import Template
from linux.lab import Object, ms
from virtual.lab import VirtualCells, VirtualRun, between_hosts
from virtual.paced import PACKET_BYTES, Fates, Paced, Traffic, fates

ETHERNET = 14
"""The kernel counts the bytes of the Ethernet header, we the IP packet."""

QUEUE = """
ip netns exec a tc qdisc add dev v root handle 1: tbf rate 8mbit burst 2000 limit 100000000
ip netns exec a tc qdisc add dev v parent 1: handle 2: $1
"""

SHAPER = """
ip netns exec a tc qdisc add dev v root $1
"""

OVERLOAD = Traffic(phases=((8000, 200),))
"""The queue is never empty."""


def by_kernel(
    template: Template,
    paced: Paced,
    qdisc: str,
    traffic: Traffic,
    seed: int = 1,
    *,
    setup: str = QUEUE,
    size: int = PACKET_BYTES - ETHERNET,
) -> Fates:
    arguments = " ".join(paced.arguments(traffic, size))
    script = f"""
    ip netns exec b {sys.executable} -u {paced.server} &
    sleep 1
    ip netns exec a {sys.executable} {paced.client} 10.0.0.2 {arguments}
    wait
    """
    return fates(between_hosts(template, setup + script, qdisc, seed=seed), traffic)


def by_path(paced: Paced, settings: Object, traffic: Traffic, seed: int = 1) -> Fates:
    return paced.over({"forward": {"rate": "8mbit", "burst": 2000, **settings}}, traffic, seed=seed)[0]


@pytest.mark.parametrize("discipline", ["codel", "fq_codel"])
def test_codel_drops_and_marks_as_many_as_the_kernels(template: Template, paced: Paced, discipline: str) -> None:
    theirs = by_kernel(template, paced, f"{discipline} limit 10000 target 5ms interval 100ms ecn", Traffic(4))
    ours = by_path(paced, {"discipline": discipline, "queue": "10000p"}, Traffic(4))
    # A packet's flow decides whether it is dropped or marked, and nanoseconds which packet it is (test_backends.py).
    acted = [len(fates.dropped) + len(fates.marked) for fates in (theirs, ours)]
    assert acted[1] == pytest.approx(acted[0], rel=0.2)
    assert all(min(len(fates.dropped), len(fates.marked)) > 100 for fates in (theirs, ours))


def test_codel_drops_as_many_as_the_kernels(template: Template, paced: Paced) -> None:
    theirs = by_kernel(template, paced, "codel limit 10000 target 5ms interval 100ms ecn", Traffic())
    ours = by_path(paced, {"discipline": "codel", "queue": "10000p"}, Traffic())
    assert len(ours.dropped) == pytest.approx(len(theirs.dropped), rel=0.05)


def test_codel_begins_with_the_packet_of_the_kernels(template: Template, paced: Paced) -> None:
    # A packet leaves every 1 ms. Where one leaves just when an interval of 100 ms ends, RFC 8289 drops it, and the
    # kernel only if its clock has ticked: in 7 of 12 guests that began 83 us apart. With 100.5 ms all 12 agree.
    traffic = Traffic(phases=((300, 150),))
    theirs = by_kernel(template, paced, "codel limit 10000 target 4.8ms interval 100.5ms ecn", traffic)
    codel = {"discipline": "codel", "queue_target": "4.8ms", "queue_interval": "100.5ms"}
    ours = by_path(paced, codel, traffic)
    # Until the second drop nobody needs a root.
    assert sorted(ours.dropped)[:2] == sorted(theirs.dropped)[:2]


def test_pie_drops_as_many_as_the_kernels(template: Template, paced: Paced) -> None:
    qdisc = "pie limit 10000 target 15ms tupdate 15ms ecn"
    seeds = range(1, 4)
    theirs = [len(by_kernel(template, paced, qdisc, Traffic(4), seed).dropped) for seed in seeds]
    ours = [len(by_path(paced, {"discipline": "pie", "queue": "10000p"}, Traffic(4), seed).dropped) for seed in seeds]
    assert sum(ours) == pytest.approx(sum(theirs), rel=0.05)


def test_red_keeps_the_mean_queue_where_the_kernels_does(template: Template, paced: Paced) -> None:
    thresholds = "min 20000 max 200000 probability 0.5"
    # Of these numbers tc makes a weight of 1/128.
    qdisc = f"red limit 10000000 {thresholds} avpkt 1000 burst 60 bandwidth 8mbit harddrop ecn"
    settings = {"discipline": "red", "queue": "10MB", "red_min": "20kB", "red_max": "200kB", "red_probability": 0.5}
    theirs = by_kernel(template, paced, qdisc, OVERLOAD)
    ours = by_path(paced, {**settings, "red_weight": 1 / 128}, OVERLOAD)
    # The overload decides how many have to go, the rule where the mean queue is when so many do.
    assert len(ours.dropped) == pytest.approx(len(theirs.dropped), rel=0.02)
    means = [np.array_split(np.array(fates.took_ns[1500:]) / 1e6, 20) for fates in (theirs, ours)]
    batches = [[batch.mean() for batch in of] for of in means]
    # Over a batch of 200 packets the mean queue forgets itself (weight 1/128), so that their means are independent.
    error_ms = np.sqrt(sum(np.var(of, ddof=1) / len(of) for of in batches))
    assert np.mean(batches[1]) == pytest.approx(np.mean(batches[0]), abs=4 * error_ms)
    assert error_ms < 3


def by_cake(template: Template, paced: Paced, cake: str, traffic: Traffic) -> Fates:
    # With an overhead the kernel counts the IP packet. Its limit is of memory, which we do not count.
    cake = f"cake bandwidth 8mbit memlimit 100mb overhead 0 {cake}"
    return by_kernel(template, paced, cake, traffic, setup=SHAPER, size=PACKET_BYTES)


def by_our_cake(paced: Paced, settings: Object, traffic: Traffic) -> Fates:
    path = {"forward": {"rate": "8mbit", "discipline": "cake", "queue": "100MB", **settings}}
    return paced.over(path, traffic)[0]


def test_cake_treats_each_packet_as_the_kernels(template: Template, paced: Paced) -> None:
    traffic = Traffic(phases=((1000, 150), (300, 20), (200, 105)))
    theirs = by_cake(template, paced, "besteffort flows overhead 40 atm", traffic)
    settings: Object = {"cake_tins": "besteffort", "cake_isolation": "flows", "link_overhead": 40, "link_cells": "atm"}
    ours = by_our_cake(paced, settings, traffic)
    # The kernel's roots are not exact: late in an overload it drops the packet before or behind ours.
    assert len(theirs.dropped) > 30
    assert sorted(ours.dropped) == pytest.approx(sorted(theirs.dropped), abs=1)
    # The kernel lets a packet go when ours begins to transmit it, which takes 22 cells of 53 us. A sleep of the sender
    # ends up to 50 us late (its timer slack), and then the packets behind wait for so much longer.
    took = dict(zip(theirs.arrived, theirs.took_ns, strict=True))
    added = [
        ours_took - took[number] for number, ours_took in zip(ours.arrived, ours.took_ns, strict=True) if number in took
    ]
    assert added == pytest.approx([22 * 53_000] * len(added), abs=51_000)
    assert np.median(added) == pytest.approx(22 * 53_000, abs=10)


def waits_ms(fates: Fates, of: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """What packets took in the mean, for each value of `of`."""
    took = pl.DataFrame({"of": of[list(fates.arrived)], "ms": np.array(fates.took_ns) / 1e6})
    return took.group_by("of").agg(pl.col("ms").mean()).sort("of")["ms"].to_numpy()


@pytest.mark.parametrize("tins", ["diffserv3", "diffserv4", "diffserv8"])
def test_cake_sorts_every_codepoint_into_the_tin_of_the_kernels(template: Template, paced: Paced, tins: str) -> None:
    traffic = Traffic(64, ((1500, 300),), tuple(range(64)))
    theirs = by_cake(template, paced, f"{tins} flows", traffic)
    ours = by_our_cake(paced, {"cake_tins": tins, "cake_isolation": "flows"}, traffic)
    assert len(ours.dropped | ours.marked) == pytest.approx(len(theirs.dropped | theirs.marked), abs=3)
    # A drop more or less lets a flow wait for a turn less or more.
    took = [waits_ms(fates, traffic.flow_of()) for fates in (ours, theirs)]
    assert took[0] - 1 == pytest.approx(took[1], abs=10)
    assert np.mean(np.abs(took[0] - 1 - took[1]) < 2) > 0.95


@pytest.mark.parametrize("isolation", ["dual_srchost", "triple_isolate"])
def test_cake_shares_among_hosts_as_the_kernels(template: Template, paced: Paced, isolation: str) -> None:
    traffic = Traffic(7, ((1500, 300),), hosts=3)
    theirs = by_cake(template, paced, f"besteffort {isolation.replace('_', '-')}", traffic)
    ours = by_our_cake(paced, {"cake_tins": "besteffort", "cake_isolation": isolation}, traffic)
    # The kernel rounds a host's share at random.
    assert len(ours.dropped) == pytest.approx(len(theirs.dropped), rel=0.02)
    assert len(ours.marked) == pytest.approx(len(theirs.marked), rel=0.02)
    took = [waits_ms(fates, traffic.flow_of() % traffic.hosts) for fates in (ours, theirs)]
    assert took[0] - 1 == pytest.approx(took[1], rel=0.02)


def test_cake_drops_at_random_what_fills_its_memory_as_the_kernels(template: Template, paced: Paced) -> None:
    packets, traffic = 100, Traffic(4, ((3000, 300),))
    # A packet of this size takes 2304 bytes of the kernel's memory.
    cake = f"cake bandwidth 8mbit besteffort flows overhead 0 memlimit {packets * 2304 + 1000}"
    theirs = by_kernel(template, paced, cake, traffic, setup=SHAPER, size=PACKET_BYTES)
    ours = by_our_cake(paced, {"queue": f"{packets}p", "cake_tins": "besteffort", "cake_isolation": "flows"}, traffic)
    # The link is never idle: what it takes is not random, what waits is.
    assert len(ours.dropped) == pytest.approx(len(theirs.dropped), rel=0.005)
    assert len(ours.marked) == pytest.approx(len(theirs.marked), rel=0.1)
    assert np.mean(ours.took_ns) / 1e6 - 1 == pytest.approx(np.mean(theirs.took_ns) / 1e6, rel=0.05)


TRANSFER = {"kind": "transfer", "transport": "tcp", "size_bytes": 3_000_000}


def bottleneck(**settings: Object | str) -> Object:
    forward: Object = {"delay_ns": ms(10), "rate_bps": 10_000_000, **settings}
    return {"forward": forward, "reverse": {"delay_ns": ms(10)}}


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_tcp_with_ecn_is_marked_and_slows_down_without_a_drop(cells: VirtualCells, family: str) -> None:
    ran = cells.run(TRANSFER, host={"ecn": True}, **bottleneck(discipline="codel"), family=family)
    ledger = ran.finished.ledger
    assert ledger is not None
    assert (ran.samples()["outcome"].to_list(), set(ledger.forward.dropped.values())) == (["ok"], {0})
    packets = ran.packets("forward")
    assert ledger.forward.marked == packets["marked"].sum() > 3
    # The receiver gets the marks in headers whose checksums are right; the sender says that it has reduced its window.
    ecn, checked = ("ip.dsfield.ecn", ["-o", "ip.check_checksum:TRUE"]) if family == "ipv4" else ("ipv6.tclass.ecn", [])
    assert len(tshark(ran, "server", ["frame.number"], f"{ecn} == 3")) == ledger.forward.marked
    assert len(tshark(ran, "client", ["frame.number"], f"{ecn} == 3")) == 0
    assert len(tshark(ran, "server", ["frame.number"], "ip.checksum.status == 0", *checked)) == 0
    assert len(tshark(ran, "client", ["frame.number"], "tcp.flags.cwr == 1 and tcp.flags.syn == 0")) > 3


def test_marks_and_drops_of_codel_keep_the_queue_short(cells: VirtualCells) -> None:
    def median_ms(ran: VirtualRun) -> float:
        return float(ran.packets("forward").filter(pl.col("size_bytes") > 1000)["queueing_ns"].median()) / 1e6

    marked = cells.run(TRANSFER, host={"ecn": True}, **bottleneck(discipline="codel"))
    dropped = cells.run(TRANSFER, **bottleneck(discipline="codel"))
    full = cells.run(TRANSFER, **bottleneck())
    ledgers = [ran.finished.ledger.forward for ran in (marked, dropped, full) if ran.finished.ledger]
    assert [ledger.dropped["aqm"] > 0 for ledger in ledgers] == [False, True, False]
    assert [ledger.marked > 0 for ledger in ledgers] == [True, False, False]
    assert max(median_ms(marked), median_ms(dropped)) < 30
    assert median_ms(full) > 60
