"""The path as programs see it that nobody here wrote, exactly: ping and iperf3."""

import json
import re
from typing import Any

import polars as pl
import pytest

from chance import lost_packets
from conftest import requires
from linux.lab import DIRECTIONS, Object, ms
from virtual.lab import VirtualCells, VirtualRun

UDP = 17
FAMILIES = pytest.mark.parametrize("family", ["ipv4", "ipv6"])


def ping(cells: VirtualCells, count: int, interval_s: float, **sections: Any) -> VirtualRun:
    """-n: no names."""
    client = [requires("ping"), "-n", "-c", str(count), "-i", str(interval_s), "-W", "1", "{server}"]
    return cells.run({"kind": "program", "client": client}, **sections)


def sent_and_received(ran: VirtualRun) -> tuple[int, int]:
    found = re.search(r"(\d+) packets transmitted, (\d+) received", ran.text("client.out"))
    assert found, ran.text("client.out") + ran.text("client.err")
    return int(found[1]), int(found[2])


@FAMILIES
def test_ping_takes_the_paths_round_trip(cells: VirtualCells, family: str) -> None:
    ran = ping(cells, 100, 0.01, family=family, forward={"delay_ns": ms(12)}, reverse={"delay_ns": ms(8)})
    assert sent_and_received(ran) == (100, 100)
    assert re.findall(r"time=([\d.]+) ms", ran.text("client.out")) == ["20.0"] * 100


def test_ping_waits_between_requests_from_its_first_second_on(cells: VirtualCells) -> None:
    # It takes a clock in its first second for one that it has not read, and then sends at once.
    ran = ping(cells, 5, 0.2, forward={"delay_ns": ms(10)}, reverse={"delay_ns": ms(10)})
    sent = ran.packets("forward")["in_ns"].to_list()
    assert [(later - sent[0]) // ms(1) for later in sent] == [0, 200, 400, 600, 800]


@FAMILIES
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_ping_loses_what_the_seed_decides(cells: VirtualCells, direction: str, family: str) -> None:
    path: Object = {each: {"delay_ns": ms(1)} for each in DIRECTIONS}
    path[direction]["loss"] = 0.1
    # The next request is sent when the reply to the last is there, or lost: computing takes no time, so that a ping
    # which sends as fast as it can would never have the time to receive.
    ran = ping(cells, 400, 0.002, family=family, seed=2, **path)
    lost = lost_packets(2, direction, 0.1, 400)
    assert ran.dropped(direction) == lost
    assert sent_and_received(ran) == (400, 400 - len(lost))
    forward, reverse = ran.book("forward"), ran.book("reverse")
    assert (forward["in"], reverse["in"], reverse["delivered"]) == (400, forward["delivered"], 400 - len(lost))
    # ping counts from 1, packets from 0. In the other direction, there is a packet for each that came through.
    answered = [int(number) - 1 for number in re.findall(r"icmp_seq=(\d+) ", ran.text("client.out"))]
    assert answered == [number for number in range(400) if number not in lost]


def iperf3(cells: VirtualCells, *arguments: str, **sections: Any) -> tuple[VirtualRun, Object]:
    program = requires("iperf3")
    workload = {
        "kind": "program",
        "client": [program, "-c", "{server}", "-J", "--get-server-output", *arguments],
        "server": [program, "-s", "-1", "-J", "-i", "0.5"],
    }
    ran = cells.run(workload, **sections)
    report: Object = json.loads(ran.text("client.out"))
    assert "error" not in report, report["error"]
    return ran, report


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
@pytest.mark.parametrize(
    ("rate", "family", "count", "share"),
    [
        (10_000_000, "ipv4", "ip", 1448 / 1500),
        (50_000_000, "ipv4", "ethernet", 1448 / 1538),
        (10_000_000, "ipv6", "ethernet", 1428 / 1538),
        (50_000_000, "ipv6", "ip", 1428 / 1500),
    ],
)
def test_iperf3_gets_the_rate_less_the_headers(
    cells: VirtualCells, rate: int, family: str, count: str, share: float
) -> None:
    # Buffers of 256 kB hold more than the path, so that the link never idles, and less than its queue of 1000 packets,
    # so that nothing is lost.
    seconds = 0.3
    given = ["-C", "reno", "-w", "256K", "-n", str(round(seconds * rate / 8))]
    paths: Object = {"forward": {"rate_bps": rate, "count": count, "delay_ns": ms(1)}, "reverse": {"delay_ns": ms(1)}}
    ran, report = iperf3(cells, *given, family=family, **paths)
    packets = ran.packets("forward")
    assert ran.dropped("forward") == []
    assert packets["payload_bytes"].max() == (1448 if family == "ipv4" else 1428)
    assert packets["due_ns"].to_list() == link_schedule(packets, rate, count, ms(1))
    received = report["server_output_json"]["end"]["sum_received"]
    on_the_link_ns = received["bytes"] * 8e9 / (rate * share)
    # Both ends need a round trip of 2 ms each to begin and to end, and iperf3 prints six digits.
    assert 0 <= received["seconds"] * 1e9 - on_the_link_ns <= 2 * ms(2) + ms(1)


def test_iperf3_misses_the_datagrams_that_the_ledger_says_were_lost(cells: VirtualCells) -> None:
    ran, report = iperf3(
        cells, "-u", "-b", "4M", "-l", "1000", "-k", "1000", forward={"loss": 0.05, "delay_ns": ms(1)}, seed=4
    )
    packets = ran.packets("forward")
    assert ran.dropped("forward") == lost_packets(4, "forward", 0.05, len(packets))
    data = packets.filter((pl.col("protocol") == UDP) & (pl.col("payload_bytes") == 1000))
    assert len(data) == 1000
    counted, missed = report["end"]["sum"]["packets"], report["end"]["sum"]["lost_packets"]
    # The server knows of a loss when a later datagram arrives; it counts as far as the last one it saw.
    assert counted > 900
    assert missed == int((data.head(counted)["cause"] == "loss").sum()) > 0
