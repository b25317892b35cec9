"""docs/netem.md: what netem does, set by hand on the sender's device, that whoever sets it does not expect."""

import re

import crosswind
from conftest import requires

SENT = re.compile(r"Sent \d+ bytes (\d+) pkt \(dropped (\d+)")

SENDER = """
import socket, sys, time
sender = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(20000):
    sender.sendto(bytes(500), (sys.argv[1], 9))
    time.sleep(0.0005)
"""


def by_hand(commands: str, *, server: str = "iperf3 -s -1") -> str:
    """What commands write on a host with a wire to another one, on which they may set netem."""
    for program in ("tc", "iperf3", "ping", "nstat"):
        requires(program)
    counts = "tc -s qdisc show dev path0; nstat -az TcpRetransSegs"
    cell = crosswind.virtual(
        {"backend": "direct"}, ["sh", "-c", f"ping -q -c 1 {{server}}; {commands}; {counts}"], server.split()
    )
    return cell.output["client"]


def dropped(output: str) -> float:
    """The share of packets that netem has dropped."""
    (counts,) = SENT.findall(output)
    sent, lost = map(int, counts)
    return lost / (sent + lost)


def retransmitted(output: str) -> int:
    (count,) = re.findall(r"TcpRetransSegs\s+(\d+)", output)
    return int(count)


def datagrams(netem: str, traffic: str) -> float:
    return dropped(by_hand(f"tc qdisc add dev path0 root netem {netem}; iperf3 -u -c {{server}} {traffic}"))


def test_the_limit_drops_what_a_long_line_holds() -> None:
    # 1000 packets in 0.1 s are 112 of 200 Mbit/s.
    assert 0.4 < datagrams("delay 100ms", "-b 200M -l 1400 -t 2") < 0.48


def test_rate_and_delay_share_the_limit() -> None:
    # 9 Mbit/s over 0.1 s are 80 packets in flight, 50 of which find room.
    assert 0.3 < datagrams("rate 10mbit delay 100ms limit 50", "-b 9M -l 1400 -t 5") < 0.45


def test_correlated_loss_is_not_the_loss_that_was_asked_for() -> None:
    def share(correlation: int) -> float:
        setup = f"tc qdisc add dev path0 root netem loss 5% {correlation}%"
        return dropped(by_hand(f"{setup}; {{python}} -c '{SENDER}' {{server}}", server="true"))

    shares = [share(correlation) for correlation in (0, 10, 25, 50)]
    assert 0.045 < shares[0] < 0.055
    assert 0.01 < shares[1] < 0.02
    assert 0 < shares[2] < 0.005
    assert shares[3] < 0.0002


def test_one_loss_takes_many_packets_although_offloads_are_off() -> None:
    netem = "delay 5ms loss 1% rate 100mbit limit 10000"
    output = by_hand(f"tc qdisc add dev path0 root netem {netem}; iperf3 -n 20M -c {{server}}")
    ((_, lost),) = SENT.findall(output)
    assert 0 < 3 * int(lost) < retransmitted(output)


def test_a_full_queue_of_the_sender_is_no_loss_to_its_tcp() -> None:
    output = by_hand("tc qdisc add dev path0 root netem rate 10mbit limit 10; iperf3 -n 2M -c {server}")
    assert dropped(output) > 0
    assert retransmitted(output) == 0


def test_a_rate_counts_the_ethernet_header_and_tbf_no_time_on_the_wire() -> None:
    def ping(qdisc: str, size: int) -> str:
        commands = f"tc qdisc add dev path0 root {qdisc}; ping -q -c 5 -s {size - 28} {{server}}"
        return by_hand(commands, server="true").split("rtt ")[-1].split("/")[3].split()[-1]

    assert ping("netem rate 1mbit", 50) == "0.512"
    assert ping("netem rate 1mbit -14", 50) == "0.400"
    assert ping("netem rate 1mbit -14", 1500) == "12.000"
    assert ping("tbf rate 1mbit burst 1600 limit 30000", 1500) == "0.000"


def test_jitter_reorders_packets_that_are_closer_than_it() -> None:
    def overtaken(interval: str) -> int:
        commands = f"tc qdisc add dev path0 root netem delay 10ms 5ms; ping -n -i {interval} -c 500 {{server}}"
        latest = late = 0
        for number in map(int, re.findall(r"icmp_seq=(\d+)", by_hand(commands, server="true"))[1:]):
            late += number < latest
            latest = max(latest, number)
        return late

    assert overtaken("0.001") > 25
    assert overtaken("0.010") == 0


def test_both_directions_of_lo_meet_one_netem() -> None:
    commands = "tc qdisc add dev lo root netem delay 10ms loss 10%; ping -q -i 0.01 -c 2000 127.0.0.1"
    output = by_hand(commands, server="true").split("127.0.0.1 ping statistics")[1]
    (lost,) = re.findall(r"([\d.]+)% packet loss", output)
    assert 16 < float(lost) < 22
    assert "= 20.000/20.000/" in output
