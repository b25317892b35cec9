"""`crosswind live` without the privilege for raw sockets, in a network namespace of its own."""

import json
import os
import subprocess
import sys

import pytest

from conftest import ROOT, requires

EVERYBODY, NOBODY = "0 2147483647", "1 0"
NAMESPACE = """
set -e
ip link set lo up
ip route add unreachable 192.0.2.1
echo "$0" > /proc/sys/net/ipv4/ping_group_range
exec "$@"
"""


def live(groups: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs it where nobody may open a raw socket. Args: groups: net.ipv4.ping_group_range."""
    if os.geteuid() != 0:
        pytest.skip("needs root for a network namespace")
    namespace = [requires("unshare"), "--net", "sh", "-c", NAMESPACE, groups]
    unprivileged = [requires("setpriv"), "--bounding-set=-net_raw", "--inh-caps=-net_raw"]
    requires("ip")
    return subprocess.run(
        [*namespace, *unprivileged, sys.executable, "-m", "crosswind", "live", *arguments],
        env={**os.environ, "PYTHONPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("address", ["127.0.0.1", "::1"])
def test_a_datagram_socket_serves_where_its_group_may_send_icmp(address: str) -> None:
    done = live(EVERYBODY, address, "--duration", "500ms", "--interval", "20ms", "--json", "--probes")
    assert (done.returncode, done.stderr) == (0, "")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert lines[-1]["answered"] == lines[-1]["sent"] > 0
    assert {line["ttl"] for line in lines if line["type"] == "probe"} == {64}


def test_where_no_socket_is_allowed_it_says_what_to_set() -> None:
    done = live(NOBODY, "127.0.0.1", "--duration", "1s")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "error: cannot send ICMP to 127.0.0.1: this user may not",
        'hint: as root: sysctl net.ipv4.ping_group_range="0 2147483647"; or use --tcp PORT',
    ]


def test_without_a_route_it_says_so() -> None:
    for address, why in (("192.0.2.1", "No route to host"), ("192.0.2.2", "Network is unreachable")):
        done = live(EVERYBODY, address, "--duration", "1s")
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr.splitlines()[0] == f"error: cannot reach {address}: {why}"


def test_what_the_kernel_says_of_a_host_that_never_answers_is_shown() -> None:
    done = live(EVERYBODY, "192.0.2.1", "--tcp", "80", "--duration", "300ms", "--interval", "20ms")
    assert done.returncode == 1
    assert "; no answer" in done.stdout
    assert done.stderr.splitlines()[0] == "error: 192.0.2.1 never answered: No route to host"
