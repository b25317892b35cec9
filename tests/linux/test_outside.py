"""The path as programs see it that nobody here wrote: ping and iperf3."""

import json
import re
from typing import Any

import polars as pl
import pytest
from scipy import stats

from conftest import requires
from linux.lab import Ended, Lab, Object, ms

ICMP, UDP, ICMPV6 = 1, 17, 58
FAMILIES = pytest.mark.parametrize(("family", "protocol"), [("ipv4", ICMP), ("ipv6", ICMPV6)])
# Decisions derive from the seed, so a cell that is in its interval once is in it always: no test fails by chance.
LEVEL = 0.999


def ping(lab: Lab, count: int, interval_s: float, **sections: Any) -> Ended:
    requires("ping")
    # -W: a reply this late is lost. -n: no names.
    client = ["ping", "-n", "-c", str(count), "-i", str(interval_s), "-W", "1", "{server}"]
    return lab.run({"kind": "program", "client": client}, packets=True, **sections)


def sent_and_received(ended: Ended) -> tuple[int, int]:
    found = re.search(r"(\d+) packets transmitted, (\d+) received", ended.text("client.out"))
    assert found, ended.text("client.out") + ended.text("client.err")
    return int(found[1]), int(found[2])


@FAMILIES
def test_ping_takes_the_paths_round_trip(lab: Lab, family: str, protocol: int) -> None:
    ended = ping(lab, 100, 0.01, family=family, forward={"delay_ns": ms(12)}, reverse={"delay_ns": ms(8)})
    assert sent_and_received(ended) == (100, 100)
    seen = [ms(float(time)) for time in re.findall(r"time=([\d.]+) ms", ended.text("client.out"))]
    requests, replies = ended.packets("forward"), ended.packets("reverse")
    assert (requests["due_ns"] - requests["in_ns"] == ms(12)).all()
    assert (replies["due_ns"] - replies["in_ns"] == ms(8)).all()
    # ping sees what the packets took, and what its own host added before and after. It prints three digits: of 20 to
    # 99 ms, 0.1 ms, of which rounding takes half.
    added = [time - took for time, took in zip(seen, replies["out_ns"] - requests["in_ns"], strict=True)]
    assert min(added) >= -ms(0.05)
    # A host that shares its machine is slow at times; but not with every one of a hundred packets.
    assert min(added) <= ms(0.5)
    for packets in (requests, replies):
        # 56 bytes of data and 8 of ICMP behind the IP header.
        assert set(packets["size_bytes"]) == {84 if family == "ipv4" else 104}
        assert packets["protocol"].to_list() == [protocol] * 100


@FAMILIES
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_ping_loses_what_it_is_meant_to_lose(lab: Lab, direction: str, family: str, protocol: int) -> None:
    loss = 0.1
    # As fast as answers come.
    ended = ping(lab, 400, 0, family=family, seed=2, **{direction: {"loss": loss}})
    sent, received = sent_and_received(ended)
    assert sent == 400
    interval = stats.binomtest(sent - received, sent).proportion_ci(LEVEL, "exact")
    assert interval.low <= loss <= interval.high
    forward, reverse = ended.book("forward"), ended.book("reverse")
    assert ended.book(direction)["dropped"] == {"loss": sent - received, "queue": 0, "device": 0}
    assert (forward["in"], reverse["in"], reverse["delivered"]) == (sent, forward["delivered"], received)
    assert set(ended.packets()["protocol"]) == {protocol}
    # ping counts from 1, packets from 0; every request is answered or lost, so the numbers that came back are known.
    answered = [int(number) - 1 for number in re.findall(r"icmp_seq=(\d+) ", ended.text("client.out"))]
    lost = set(range(sent)) - set(answered)
    requests = [index for index in range(sent) if index not in set(ended.dropped("forward"))]
    assert lost == set(ended.dropped("forward")) | {requests[index] for index in ended.dropped("reverse")}


def iperf3(lab: Lab, *arguments: str, **sections: Any) -> tuple[Ended, Object]:
    requires("iperf3")
    workload = {
        "kind": "program",
        "client": ["iperf3", "-c", "{server}", "-J", "--get-server-output", *arguments],
        "server": ["iperf3", "-s", "-1", "-J", "-i", "0.5"],
    }
    ended = lab.run(workload, packets=True, **sections)
    report: Object = json.loads(ended.text("client.out"))
    assert "error" not in report, report["error"]
    return ended, report


def link_schedule(packets: pl.DataFrame, rate: int, count: str, delay: int) -> list[int]:
    """When each packet is due at the far end of a link that sends one after the other and never loses time."""
    due, link_free = [], 0
    for entered, size in packets.select("in_ns", "size_bytes").iter_rows():
        # Header 14, FCS 4, preamble 8 and gap 12 of Ethernet, whose frames have 46 bytes of payload at least.
        occupied = size if count == "ip" else max(size, 46) + 38
        link_free = max(entered, link_free) + occupied * 8 * 1_000_000_000 // rate
        due.append(link_free + delay)
    return due


# MTU 1500 less IP header (20, 40), TCP header (20) and timestamps (12); counted as Ethernet, 38 bytes more.
@pytest.mark.alone
@pytest.mark.parametrize(
    ("rate", "family", "count", "share"),
    [
        (10_000_000, "ipv4", "ip", 1448 / 1500),
        (50_000_000, "ipv4", "ethernet", 1448 / 1538),
        (10_000_000, "ipv6", "ethernet", 1428 / 1538),
        (50_000_000, "ipv6", "ip", 1428 / 1500),
    ],
)
def test_iperf3_gets_the_rate_less_the_headers(lab: Lab, rate: int, family: str, count: str, share: float) -> None:
    # Buffers of 256 kB hold more than the path, so that the link never idles, and less than its queue of 1000 packets,
    # so that nothing is lost.
    seconds = 1.5
    given = ["-C", "reno", "-w", "256K", "-n", str(round(seconds * rate / 8))]
    paths: Object = {"forward": {"rate_bps": rate, "count": count, "delay_ns": ms(1)}, "reverse": {"delay_ns": ms(1)}}
    ended, report = iperf3(lab, *given, family=family, **paths)
    packets = ended.packets("forward")
    assert ended.dropped("forward") == []
    assert packets["payload_bytes"].max() == (1448 if family == "ipv4" else 1428)
    assert packets["due_ns"].to_list() == link_schedule(packets, rate, count, ms(1))
    # iperf3 has its data on a connection of its own, on which a cookie of 37 bytes comes first. It stops counting when
    # the other connection asks it to.
    data_port = packets["source_port"].mode()[0]
    data = packets.filter((pl.col("source_port") == data_port) & (pl.col("payload_bytes") > 37))
    received = report["server_output_json"]["end"]["sum_received"]
    arrived_ns = data.filter(pl.col("payload_bytes").cum_sum() >= received["bytes"])["out_ns"]
    # Its time began before the first byte arrived, so it has at least the path's.
    assert received["seconds"] >= (arrived_ns[0] - data["out_ns"][0]) / 1e9
    # 5 %: 75 ms, for both ends to begin and to end.
    assert received["bits_per_second"] == pytest.approx(rate * share, rel=0.05)


def test_iperf3_misses_the_datagrams_that_the_ledger_says_were_lost(lab: Lab) -> None:
    loss = 0.05
    ended, report = iperf3(
        lab, "-u", "-b", "4M", "-l", "1000", "-k", "1000", forward={"loss": loss, "delay_ns": ms(1)}, seed=4
    )
    packets = ended.packets("forward")
    data = packets.filter((packets["protocol"] == UDP) & (packets["payload_bytes"] == 1000))
    counted, missed = report["end"]["sum"]["packets"], report["end"]["sum"]["lost_packets"]
    assert len(data) == 1000
    # The server knows of a loss when a later datagram arrives; it counts as far as the last one it saw.
    seen = data.head(counted)
    assert missed == int((seen["cause"] == "loss").sum())
    assert counted > 900
    interval = stats.binomtest(missed, counted).proportion_ci(LEVEL, "exact")
    assert interval.low <= loss <= interval.high
