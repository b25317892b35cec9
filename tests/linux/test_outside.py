"""The path as programs see it that nobody here wrote: ping and iperf3."""

import json
import re
import statistics
from typing import Any

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
    times = [ms(float(one)) for one in re.findall(r"time=([\d.]+) ms", ended.text("client.out"))]
    # ping prints three digits: 10 us here, of which rounding takes half.
    assert min(times) >= ms(20) - ms(0.05)
    # Each way is late by at most the largest error that the cell owns up to. The hosts answer an echo request in the
    # kernel, in some 10 us; 1 ms is for those that share this machine, and half of the replies may take longer.
    worst = ended.result["fidelity"]["delay_error_ns"]["max"]
    assert statistics.median(times) <= ms(20) + 2 * worst + ms(1)
    for direction in ("forward", "reverse"):
        packets = ended.packets(direction)
        # 56 bytes of data and 8 of ICMP behind the IP header.
        assert set(packets["size_bytes"]) == {84 if family == "ipv4" else 104}
        assert packets["protocol"].to_list() == [protocol] * 100


@FAMILIES
@pytest.mark.parametrize("direction", ["forward", "reverse"])
def test_ping_loses_what_it_is_meant_to_lose(lab: Lab, direction: str, family: str, protocol: int) -> None:
    loss = 0.1
    ended = ping(lab, 400, 0.002, family=family, seed=2, **{direction: {"loss": loss}})
    sent, received = sent_and_received(ended)
    assert sent == 400
    interval = stats.binomtest(sent - received, sent).proportion_ci(LEVEL, "exact")
    assert interval.low <= loss <= interval.high
    forward, reverse = ended.book("forward"), ended.book("reverse")
    assert ended.book(direction)["dropped"] == {"loss": sent - received, "queue": 0, "device": 0}
    assert (forward["in"], reverse["in"], reverse["delivered"]) == (sent, forward["delivered"], received)
    assert set(ended.packets()["protocol"]) == {protocol}
    # ping counts from 1, packets from 0; every request is answered or lost, so the numbers that came back are known.
    answered = [int(one) - 1 for one in re.findall(r"icmp_seq=(\d+) ", ended.text("client.out"))]
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
def test_iperf3_gets_the_rate_less_the_headers(lab: Lab, rate: int, family: str, count: str, share: float) -> None:
    # Buffers of 256 kB hold more than the path, so that the link never idles, and less than its queue of 1000 packets,
    # so that nothing is lost: what is left is the link. The median of half seconds: a pause of the machine spoils one.
    window = ["-C", "reno", "-w", "256K"]
    paths: Object = {"forward": {"rate_bps": rate, "count": count, "delay_ns": ms(1)}, "reverse": {"delay_ns": ms(1)}}
    ended, report = iperf3(lab, "-t", "3", *window, family=family, **paths)
    intervals = [one["sum"] for one in report["server_output_json"]["intervals"]]
    whole = [one["bits_per_second"] for one in intervals if one["seconds"] > 0.4]
    assert len(whole) >= 5
    assert statistics.median(whole) == pytest.approx(rate * share, rel=0.02)
    assert ended.packets("forward")["payload_bytes"].max() == (1448 if family == "ipv4" else 1428)
    assert ended.dropped("forward") == []


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
