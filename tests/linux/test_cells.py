"""Cells whose outcome is exact, whatever the machine's timing: counts, shared chance, settings, lower bounds of time."""

from itertools import pairwise

import polars as pl
import pytest

from linux.lab import DIRECTIONS, NEVER_TWICE, Lab, ms

TCP, UDP = 6, 17
BOTH = [("ipv4"), ("ipv6")]


def udp_burst(messages: int, *, size: int = 1, rate: float = 500) -> dict[str, object]:
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


# --- chance ---------------------------------------------------------------------------------------------------------


def test_the_seed_decides_which_packets_are_lost_and_nothing_else_does(lab: Lab) -> None:
    path = {"forward": {"loss": 0.1}, "reverse": {"loss": 0.1}}
    first = lab.run(udp_burst(250), seed=7, **path)
    again = lab.run(udp_burst(250, size=700, rate=2000), seed=7, **path)
    other = lab.run(udp_burst(250), seed=8, **path)
    assert first.dropped("forward") == again.dropped("forward") != []
    assert first.dropped("reverse") == again.dropped("reverse") != []
    assert first.dropped("forward") != other.dropped("forward")
    assert first.dropped("reverse") != other.dropped("reverse")
    # The two directions draw from streams of their own.
    assert first.dropped("forward") != first.dropped("reverse")


def test_tcp_and_udp_meet_the_same_losses(lab: Lab) -> None:
    path = {"forward": {"loss": 0.1}, "reverse": {"loss": 0.1}}
    udp = lab.run(udp_burst(400, rate=2000), seed=3, **path)
    tcp = lab.run(
        {"kind": "echo", "transport": "tcp", "messages": 60}, seed=3, host={"min_rto_ns": ms(5)}, **path
    )
    for direction in DIRECTIONS:
        both = min(udp.book(direction)["in"], tcp.book(direction)["in"])
        shared = [index for index in udp.dropped(direction) if index < both]
        assert shared == [index for index in tcp.dropped(direction) if index < both] != []


def test_one_byte_messages_are_matched_with_their_own_replies(lab: Lab) -> None:
    # 600 messages whose one byte has 256 values: numbers repeat, and a reply must not go to a message that was lost.
    ended = lab.run(udp_burst(600), seed=11, forward={"loss": 0.1}, reverse={"loss": 0.1})
    lost_requests = set(ended.dropped("forward"))
    answered = [number for number in range(600) if number not in lost_requests]
    lost_replies = {answered[index] for index in ended.dropped("reverse")}
    samples = ended.samples()
    timeouts = set(samples.filter(pl.col("outcome") == "timeout")["exchange"])
    assert timeouts == lost_requests | lost_replies
    assert set(samples["outcome"]) == {"ok", "timeout"}
    lost = ended.book("forward")["dropped"]["loss"] + ended.book("reverse")["dropped"]["loss"]
    assert len(timeouts) == lost == ended.result["samples"]["lost"]
