"""The path as programs see it that nobody here wrote: ping."""

import re
from typing import Any

import pytest

from conftest import requires
from linux.lab import Ended, Lab, ms

ICMP, ICMPV6 = 1, 58
FAMILIES = pytest.mark.parametrize(("family", "protocol"), [("ipv4", ICMP), ("ipv6", ICMPV6)])
# Decisions derive from the seed, so a cell that is in its interval once is in it always: no test fails by chance.


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


# MTU 1500 less IP header (20, 40), TCP header (20) and timestamps (12); counted as Ethernet, 38 bytes more.
