"""Our path beside the kernel's own netem, in the same guests: the same programs, the same kernel, no machine's noise.

netem draws from the guest's randomness and ours from the seed, so losses cannot agree packet by packet: their numbers
have to be those of the probability, delays and rates exact, and times of transfers those of one distribution.
"""

import json
import sys
from pathlib import Path

import pytest
import scipy.stats

import crosswind
from crosswind.cell.guests import Template
from virtual.lab import between_hosts

# Rates are of IP packets, as ours; netem counts the 14 bytes of the Ethernet header as well, unless it is told not to.
NETEM = "for host in a b; do ip netns exec $host tc qdisc add dev v root netem limit 10000 $1; done\n"

# One connection after another. None learns from those before it, and each finds the path empty.
SERVER = """
import socket, sys
with socket.create_server((sys.argv[1], 5001)) as listener:
    for _ in range(int(sys.argv[2])):
        connection, _ = listener.accept()
        with connection:
            while connection.recv(65536):
                pass
            connection.sendall(b"!")
"""

CLIENT = """
import pathlib, socket, sys, time
pathlib.Path("/proc/sys/net/ipv4/tcp_no_metrics_save").write_text("1")
for _ in range(int(sys.argv[2])):
    while True:
        client = socket.socket()
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, b"cubic")
        started = time.monotonic_ns()
        try:
            client.connect((sys.argv[1], 5001))
            break
        except ConnectionRefusedError:
            time.sleep(0.01)
    client.sendall(bytes(int(sys.argv[3])))
    client.shutdown(socket.SHUT_WR)
    assert client.recv(1) == b"!"
    print(time.monotonic_ns() - started)
    client.close()
    time.sleep(10)
"""

SIZE = 200_000
TRANSFERS = 50


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The client and the server of a transfer."""
    home = tmp_path_factory.mktemp("programs")
    for name, text in (("client.py", CLIENT), ("server.py", SERVER)):
        (home / name).write_text(text)
    return home / "client.py", home / "server.py"


def over_netem(template: Template, netem: str, commands: str) -> str:
    """What commands write between two hosts behind netem."""
    return between_hosts(template, NETEM + commands, netem)


def transfers_over_netem(template: Template, programs: tuple[Path, Path], netem: str, count: int) -> list[int]:
    """How long each of some transfers took, in nanoseconds."""
    client, server = programs
    commands = f"""
    ip netns exec b {sys.executable} {server} 10.0.0.2 {count} &
    ip netns exec a {sys.executable} {client} 10.0.0.2 {count} {SIZE}
    wait
    """
    return [int(line) for line in over_netem(template, netem, commands).splitlines()]


def transfers_over_ours(programs: tuple[Path, Path], path: dict[str, str], count: int) -> list[int]:
    """How long each of some transfers took, in nanoseconds."""
    client, server = programs
    cell = crosswind.virtual(
        path,
        ["{python}", str(client), "{server}", str(count), str(SIZE)],
        ["{python}", str(server), "{server}", str(count)],
    )
    return [int(line) for line in cell.output["client"].splitlines()]


def test_netem_loses_by_the_probability_and_so_do_we(template: Template) -> None:
    # One direction: every second packet of a ping is a reply, which no loss meets here.
    commands = "tc -n b qdisc del dev v root; ip netns exec a ping -q -i 0.01 -c 2000 10.0.0.2 || true"
    words = over_netem(template, "loss 5%", commands).split("transmitted, ")[1].split()
    netem_lost = 2000 - int(words[0])
    cell = crosswind.virtual(
        {"forward": {"loss": "5%"}},
        workload={"kind": "echo", "transport": "udp", "messages": 2000, "timeout": "10ms"},
    )
    ours_lost = cell.result.ledger.forward.dropped["loss"]
    # 99.99 % of samples of so many packets.
    low, high = scipy.stats.binom.interval(0.9999, 2000, 0.05)
    assert low <= netem_lost <= high
    assert low <= ours_lost <= high


def test_netem_delays_exactly_and_so_do_we(template: Template) -> None:
    output = over_netem(template, "delay 10ms", "ip netns exec a ping -q -i 0.1 -c 50 10.0.0.2 | tail -1")
    smallest, mean, largest = (float(word) for word in output.split(" = ")[1].split()[0].split("/")[:3])
    # A timer fires up to 0.5 us late, which ping may round up.
    assert (smallest, mean) == (20.0, 20.0)
    assert largest <= 20.001
    cell = crosswind.virtual({"delay": "10ms"}, workload={"kind": "echo", "transport": "udp", "messages": 50})
    times = cell.samples["received_ns"] - cell.samples["sent_ns"]
    assert 20_000_000 <= int(times.min() or 0) <= int(times.max() or 0) < 20_002_000


def test_a_link_of_netem_and_ours_take_the_same_time_for_a_transfer(
    template: Template, programs: tuple[Path, Path]
) -> None:
    (netem,) = transfers_over_netem(template, programs, "delay 20ms rate 10mbit -14", 1)
    (ours,) = transfers_over_ours(programs, {"delay": "20ms", "rate": "10mbit", "queue": "10000p"}, 1)
    assert ours == pytest.approx(netem, rel=0.01)


def test_times_of_transfers_with_loss_have_one_distribution(template: Template, programs: tuple[Path, Path]) -> None:
    path = {"delay": "10ms", "rate": "10mbit", "queue": "10000p", "loss": "3%"}
    netem = transfers_over_netem(template, programs, "delay 10ms rate 10mbit -14 loss 3%", TRANSFERS)
    ours = transfers_over_ours(programs, path, TRANSFERS)
    assert len(netem) == len(ours) == TRANSFERS
    # A fixed sample: the same seed gives the same times, so this either holds or it does not.
    assert scipy.stats.ks_2samp(netem, ours).pvalue > 0.01, json.dumps({"netem": netem, "ours": ours})
    assert len(set(netem)) > TRANSFERS / 2
    assert len(set(ours)) > TRANSFERS / 2
