"""Two network namespaces that stand for two machines, and a third one between them that stands for the network.

client 10.9.1.2, fd09:1::2  --  router  --  server 10.9.2.2, fd09:2::2
"""

import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from conftest import ROOT, requires

SERVER = {"ipv4": "10.9.2.2", "ipv6": "fd09:2::2"}
TOKEN = "0123456789abcdef0123456789abcdef"

_ROUTER = """
set -e
ip link add to-client type veth peer name eth0 netns $1
ip link add to-server type veth peer name eth0 netns $2
ip link set lo up
for link in client:1 server:2; do
    name=to-${link%:*} net=${link#*:}
    ip address add 10.9.$net.1/24 dev $name
    ip address add fd09:$net::1/64 dev $name nodad
    ip link set $name up
done
echo 1 > /proc/sys/net/ipv4/ip_forward
echo 1 > /proc/sys/net/ipv6/conf/all/forwarding
"""
_HOST = """
set -e
ip link set lo up
ip address add 10.9.$1.2/24 dev eth0
ip address add fd09:$1::2/64 dev eth0 nodad
ip link set eth0 up
ip route add default via 10.9.$1.1
ip route add default via fd09:$1::1
"""


@dataclass
class Machines:
    """The three namespaces, each held by a process. Whatever they run has ended with `close`."""

    cwd: Path
    running: list["subprocess.Popen[str]"] = field(default_factory=list)
    holders: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    def inside(self, name: str, *command: str) -> list[str]:
        """The argument list that runs a command in a namespace."""
        return ["nsenter", "--target", str(self.holders[name].pid), "--net", *command]

    def do(self, name: str, command: str, *arguments: str) -> None:
        """Runs a shell command in a namespace, which has to succeed."""
        done = subprocess.run(
            self.inside(name, "sh", "-c", command, "sh", *arguments), capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr

    def start(
        self, name: str, *arguments: str, token: str | None = TOKEN, cell: Path | None = None
    ) -> "subprocess.Popen[str]":
        """Starts a command line of Crosswind on a machine. Args: cell: another crosswind-cell."""
        process = subprocess.Popen(
            self.inside(name, sys.executable, "-m", "crosswind", *arguments),
            cwd=self.cwd,
            env={**_environment(token), **({} if cell is None else {"CROSSWIND_CELL": str(cell)})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.running.append(process)
        return process

    def crosswind(self, *arguments: str, token: str | None = TOKEN) -> "subprocess.CompletedProcess[str]":
        """Runs a command line of Crosswind on the client's machine to its end."""
        process = self.start("client", *arguments, token=token)
        out, err = process.communicate()
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def serve(self, *arguments: str, token: str = TOKEN, cell: Path | None = None) -> "subprocess.Popen[str]":
        """Starts a server on the server's machine, and returns when it listens."""
        path = self.cwd / "served-token"
        path.unlink(missing_ok=True)
        path.write_text(token, encoding="ascii")
        path.chmod(0o600)
        process = self.start("server", "serve", "--json", "--token-file", str(path), *arguments, token=None, cell=cell)
        assert process.stdout is not None
        line = process.stdout.readline()
        assert '"listening"' in line, line + str(process.communicate())
        return process

    def close(self) -> None:
        """Ends whatever runs, and with it the namespaces."""
        for process in self.running:
            if process.poll() is None:
                process.terminate()
            process.communicate()
        for holder in self.holders.values():
            holder.kill()
            holder.wait()


def _environment(token: str | None) -> dict[str, str]:
    own = {key: value for key, value in os.environ.items() if key != "CROSSWIND_TOKEN"}
    given = {} if token is None else {"CROSSWIND_TOKEN": token}
    return {**own, **given, "PYTHONPATH": str(ROOT / "python"), "NO_COLOR": "1", "COLUMNS": "120"}


@contextmanager
def machines(cwd: Path) -> Iterator[Machines]:
    """Makes them, and takes them away again."""
    if os.geteuid() != 0:
        pytest.skip("needs root for network namespaces")
    for program in ("ip", "tc", "unshare", "nsenter"):
        requires(program)
    made = Machines(cwd)
    try:
        for name in ("router", "client", "server"):
            made.holders[name] = _holder()
        made.do("router", _ROUTER, str(made.holders["client"].pid), str(made.holders["server"].pid))
        made.do("client", _HOST, "1")
        made.do("server", _HOST, "2")
        yield made
    finally:
        made.close()


def _holder() -> "subprocess.Popen[bytes]":
    """A process in a network namespace of its own, which is there when this returns."""
    command: Sequence[str] = ["unshare", "--net", "sh", "-c", "echo; exec sleep infinity"]
    holder = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert holder.stdout is not None
    holder.stdout.readline()
    return holder
