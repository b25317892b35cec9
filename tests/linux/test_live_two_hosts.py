"""`crosswind live --transport` between namespaces that stand for machines: a dead link, a firewall, a kill."""

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import requires_binary
from linux.lab import wait_until
from linux.machines import SERVER, Machines, machines


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Machines]:
    """A client's and a server's machine."""
    requires_binary()
    with machines(tmp_path) as made:
        yield made


def read_until(watching: "subprocess.Popen[str]", event: str) -> list[dict[str, Any]]:
    """The lines up to an event."""
    assert watching.stdout is not None
    seen: list[dict[str, Any]] = []
    while not (seen and seen[-1].get("event") == event):
        line = watching.stdout.readline()
        assert line, watching.communicate()[1]
        seen.append(json.loads(line))
    return seen


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_messages_and_transfers_go_between_two_machines(pair: Machines, family: str) -> None:
    pair.serve("--address", "::" if family == "ipv6" else "0.0.0.0")
    address = f"[{SERVER['ipv6']}]:9470" if family == "ipv6" else SERVER["ipv4"]
    words = ("--transport", "quic-datagram", "--probe", "200kB", "--interval", "20ms", "--duration", "500ms", "--json")
    done = pair.crosswind("live", address, *words)
    assert done.returncode == 0, done.stderr
    *_, end = (json.loads(line) for line in done.stdout.splitlines())
    assert end["answered"] == end["sent"] > 0
    assert [each["received_bytes"] for each in end["tcp"]["measured"]] == [200_000, 200_000]


def test_what_a_dead_link_loses_is_lost_on_the_way_there(pair: Machines) -> None:
    pair.serve()
    watching = pair.start(
        "client", "live", SERVER["ipv4"], "--transport", "udp", "--interval", "20ms", "--window", "500ms",
        "--timeout", "300ms", "--json", "--probes",
    )  # fmt: skip
    assert watching.stdout is not None
    while json.loads(watching.stdout.readline())["type"] != "window":
        pass
    pair.do("router", "ip link set to-server down")
    read_until(watching, "outage begins")
    pair.do("router", "ip link set to-server up")
    read_until(watching, "outage ends")
    watching.send_signal(signal.SIGINT)
    out, err = watching.communicate()
    assert (watching.returncode, err) == (0, "")
    end = json.loads(out.splitlines()[-1])
    assert end["lost"] >= 3
    # The first answer after the outage says how many had not arrived.
    lost_there = round(end["loss_there"]["value"] * end["loss_there"]["n"])
    assert lost_there >= 3
    # One answer may have been on its way back when the link went down.
    assert round(end["loss_back"]["value"] * end["loss_back"]["n"]) <= 1


def test_a_firewall_that_drops_udp_is_named(pair: Machines) -> None:
    pair.serve()
    pair.do("router", "ip rule add ipproto udp blackhole")
    done = pair.crosswind("live", SERVER["ipv4"], "--transport", "udp", "--interval", "50ms", "--duration", "500ms")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-2:] == [
        "error: 10.9.2.2 never answered",
        "hint: something on the way may drop them: `crosswind reach` tries every transport",
    ]


def test_a_client_that_is_killed_leaves_nothing_and_frees_the_server(pair: Machines) -> None:
    server = pair.serve()
    watching = pair.start("client", "live", SERVER["ipv4"], "--transport", "tcp", "--interval", "20ms", "--json")
    assert watching.stdout is not None
    watching.stdout.readline()
    (child,) = Path(f"/proc/{watching.pid}/task/{watching.pid}/children").read_text(encoding="ascii").split()
    watching.kill()
    watching.wait()
    status = Path(f"/proc/{child}/status")
    wait_until(lambda: not status.exists() or "\nState:\tZ" in status.read_text(encoding="ascii"))
    assert server.stdout is not None
    events = [json.loads(server.stdout.readline()) for _ in range(2)]
    assert [event["event"] for event in events] == ["cell_started", "cell_ended"]
    # Its end of the pipe closes before the kernel kills the child, which may end by itself in between.
    assert events[1]["outcome"] in ("the client went away", "done")
