"""At a terminal: `crosswind shell`, and `crosswind exec` with the keys that send signals. The terminal is a pty's."""

import select
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import requires
from e2e_cli import Cli
from terminals import Terminals

# It starts no process: a shell that is stopped while it starts one may never say so (vfork). It writes without
# Python's buffer, which may not be used in a handler while it is being written: the job may be stopped right there.
JOB = """
import os, signal
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.signal(signal.SIGCONT, lambda *_: os.write(1, b"going on\\n"))
os.write(1, b"started\\n")
while True: signal.pause()
"""


@pytest.fixture
def terminals(crosswind: Cli) -> Iterator[Terminals]:
    """Command lines at terminals."""
    made = Terminals(crosswind)
    yield made
    made.close()


def test_a_shell_on_the_path(terminals: Terminals) -> None:
    server = f"{sys.executable} -m http.server {{port}}"
    terminal = terminals("shell", "--delay", "10ms", "--server", server, SHELL="/bin/sh", PS1="here> ")
    terminal.see(r'crosswind: this shell is on a path to the host "server" \(198.18.0.2, port 8000\); `exit` leaves it')
    terminal.see("here> ")
    terminal.type("ping -n -c 1 server | tail -n 1\n")
    assert float(terminal.see(r"rtt min/avg/max/mdev = [\d.]+").rpartition(" ")[2]) >= 20
    terminal.type("echo status $((40 + 2)); exit 7\n")
    terminal.see("status 42")
    status, rest = terminal.end()
    assert status == 7
    assert "crosswind: exit status 7 after " in rest


def test_a_shell_has_its_jobs_and_the_keys_for_signals(terminals: Terminals, tmp_path: Path) -> None:
    (tmp_path / "job").write_text(JOB, encoding="utf-8")
    (tmp_path / ".bashrc").write_text("PS1='here> '\n", encoding="utf-8")
    terminal = terminals("shell", SHELL=requires("bash"), HOME=str(tmp_path))
    terminal.see("here> ")
    terminal.type(f"{sys.executable} -I -S job\n")
    # Whatever the job says, it has the terminal by then.
    terminal.see("started")
    terminal.type("\x1a")  # Ctrl-Z
    terminal.see("Stopped ")
    terminal.type("fg\n")
    terminal.see("going on")
    terminal.type("\x03")  # Ctrl-C
    terminal.see("here> ")
    terminal.type("exit\n")
    status, _ = terminal.end()
    assert status == 130  # Bash ends with the status of the last command.


def test_at_a_terminal_a_key_for_a_signal_is_the_clients(terminals: Terminals) -> None:
    terminal = terminals("exec", "--", "ping", "-n", "{address}")
    terminal.see("64 bytes from 198.18.0.2")
    terminal.type("\x03")
    status, rest = terminal.end()
    assert status == 0
    assert "packets transmitted" in rest
    assert "crosswind: exit status 0 after " in rest


def test_a_command_cannot_be_stopped_by_a_key(terminals: Terminals) -> None:
    terminal = terminals("exec", "--", "sh", "-c", "echo ready; read key; echo it went on")
    terminal.see("ready")
    terminal.type("\x1a\n")
    terminal.see("it went on")
    assert terminal.end()[0] == 0


def test_a_key_for_a_signal_before_the_client_has_started_ends_crosswind(terminals: Terminals, tmp_path: Path) -> None:
    script = f"touch {tmp_path / 'waiting'}; exec sleep 1000"
    terminal = terminals("exec", "--server", f"sh -c '{script} {{port}}'", "--", "true")
    while not (tmp_path / "waiting").exists():
        select.select([], [], [], 0.01)
    terminal.type("\x03")
    status, rest = terminal.end()
    assert status == 130
    assert "interrupted" in rest
    assert "Traceback" not in rest


def test_a_terminal_is_left_as_it_was(terminals: Terminals) -> None:
    script = "stty -echo && echo silent; read key; kill -9 $$"
    terminal = terminals("exec", "--", "sh", "-c", script)
    terminal.see("silent")
    assert not terminal.echoes
    terminal.type("\n")
    terminal.see("fidelity")
    assert terminal.echoes
    assert terminal.end()[0] == 128 + signal.SIGKILL
