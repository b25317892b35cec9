"""Chance on the path: which packets are lost, and what each transport makes of it."""

import polars as pl
import pytest

from chance import lost_packets
from crosswind.catalog import catalog
from linux.lab import DIRECTIONS, Object, ms
from virtual.lab import VirtualCells

DATAGRAM = ["udp", "quic-datagram", "webtransport-datagram"]
LOSSY: Object = {direction: {"loss": 0.1} for direction in DIRECTIONS}


def udp_burst(messages: int, *, size: int = 1, rate: float = 500) -> Object:
    """Datagrams that wait for nothing: the message's number is its index on the path."""
    return {
        "kind": "echo",
        "transport": "udp",
        "mode": "open",
        "messages": messages,
        "size_bytes": size,
        "rate_per_s": rate,
        "timeout_ns": ms(500),
    }


def test_the_seed_decides_which_packets_are_lost_and_nothing_else_does(cells: VirtualCells) -> None:
    for seed, size, rate in ((7, 1, 500), (7, 700, 2000), (8, 1, 500)):
        ran = cells.run(udp_burst(250, size=size, rate=rate), seed=seed, **LOSSY)
        for direction in DIRECTIONS:
            expected = lost_packets(seed, direction, 0.1, len(ran.packets(direction)))
            assert ran.dropped(direction) == expected != []
    # The two directions draw from streams of their own, and so do two seeds.
    drawn = [lost_packets(seed, direction, 0.1, 200) for seed in (7, 8) for direction in DIRECTIONS]
    assert len(set(map(tuple, drawn))) == 4


@pytest.mark.parametrize("transport", catalog().transports)
def test_losses_are_recovered_or_are_outcomes(cells: VirtualCells, transport: str) -> None:
    timeout_ns = ms(500 if transport in DATAGRAM else 20_000)
    workload = {"kind": "echo", "transport": transport, "messages": 60, "timeout_ns": timeout_ns, "size_bytes": 100}
    ran = cells.run(workload, seed=5, **LOSSY)
    for direction in DIRECTIONS:
        assert ran.dropped(direction) == lost_packets(5, direction, 0.1, len(ran.packets(direction))) != []
    samples = ran.samples()
    if transport not in DATAGRAM:
        assert set(samples["outcome"]) == {"ok"}
        return
    assert set(samples["outcome"]) == {"ok", "timeout"}
    # Nothing is repaired and nothing is lost for another reason: whatever got no answer had a packet dropped meanwhile.
    dropped_at = ran.packets().filter(pl.col("cause") == "loss")["in_ns"]
    for sent in samples.filter(pl.col("outcome") == "timeout")["sent_ns"]:
        assert dropped_at.is_between(sent, sent + timeout_ns).any()
    if transport == "udp":
        # Message i is packet i on its way there, and those that arrive are numbered anew on their way back.
        arrived = [number for number in range(60) if number not in ran.dropped("forward")]
        lost = {*ran.dropped("forward"), *(arrived[index] for index in ran.dropped("reverse"))}
        assert set(samples.filter(pl.col("outcome") == "timeout")["exchange"]) == lost


def test_one_byte_messages_are_matched_with_their_own_replies(cells: VirtualCells) -> None:
    # 600 messages whose one byte has 256 values: numbers repeat, and a reply must not go to a message that was lost.
    ran = cells.run(udp_burst(600), seed=11, **LOSSY)
    lost_requests = set(ran.dropped("forward"))
    answered = [number for number in range(600) if number not in lost_requests]
    lost_replies = {answered[index] for index in ran.dropped("reverse")}
    samples = ran.samples()
    timeouts = set(samples.filter(pl.col("outcome") == "timeout")["exchange"])
    assert timeouts == lost_requests | lost_replies
    assert set(samples["outcome"]) == {"ok", "timeout"}
    lost = ran.book("forward")["dropped"]["loss"] + ran.book("reverse")["dropped"]["loss"]
    assert len(timeouts) == lost == ran.result["samples"]["lost"]
