"""Programs of other people in the hosts: what their argument lists stand for, and what a report makes of them."""

import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import missing
from e2e_cli import ANY_FIDELITY, Cli

STUDY = """
title = "A peer"
[path]
backend = "direct"
mtu = 65535
[workload]
kind = "program"
client = ["{python}", "-m", "crosswind.peers.websocket_client", "ws://{server}:80/",
          "--size", "70000", "--messages", "3"]
server = ["{cell}", "--serve", '{"transport": "websocket", "address": "{server}:80", "stay": true}']
"""


def test_a_client_is_profiled_against_our_server(crosswind: Cli) -> None:
    if importlib.util.find_spec("websocket") is None:
        missing("websocket-client is not installed")
    (crosswind.cwd / "peer.toml").write_text(STUDY, encoding="utf-8")
    ended = crosswind("run", "peer.toml", *ANY_FIDELITY, "--output", "here", "--json")
    assert ended.status == 0, ended.err
    (peer,) = ended.json["peers"]
    assert (peer["messages"], peer["problem"]) == (3, None)
    assert sum(function["share"] for function in peer["functions"]) == pytest.approx(1, abs=0.2)
    assert ended.json["provenance"]["programs"]["python"].endswith(Path(sys.executable).name)
    planned, _ = (crosswind.cwd / "here" / "plan.jsonl").read_text(encoding="utf-8").splitlines()
    assert json.loads(planned)["parameters"]["workload"]["client"][0] == "{python}"
    assert crosswind("report", "here", "--all").out.count("Client programs") == 1


def test_a_run_without_the_library_fails_and_says_what_to_install(crosswind: Cli) -> None:
    # `-m` looks into the working directory first.
    (crosswind.cwd / "websocket.py").write_text("raise ImportError\n", encoding="utf-8")
    (crosswind.cwd / "peer.toml").write_text(STUDY, encoding="utf-8")
    ended = crosswind("run", "peer.toml", *ANY_FIDELITY, "--json")
    assert ended.status == 1
    (cell,) = ended.json["cells"]
    said = "exit status 2: Python's websocket-client is not installed (pip install websocket-client)"
    (text,) = (peer["problem"] for peer in ended.json["peers"])
    assert text.startswith(f"the client program ended with {said}; the server program was still running: ")
    assert cell["reason"] == f"the client program never succeeded: {text} (cells/c000-r00/client.err)"
    assert f"failed: #1: {text} (cells/c000-r00/client.err)" in ended.err


@pytest.mark.parametrize("transport", ["tcp", "websocket"])
def test_a_server_that_is_to_stay_outlives_its_standard_input(cell: Path, transport: str) -> None:
    def serve(**changes: bool) -> "subprocess.Popen[str]":
        wanted = json.dumps({"transport": transport, "address": "127.0.0.1:0", **changes})
        return subprocess.Popen([cell, "--serve", wanted], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True)

    with serve() as ends, serve(stay=True) as stays:
        assert ends.wait() == 0
        assert stays.stdout is not None
        listening = json.loads(stays.stdout.readline())
        call = json.dumps({"transport": transport, "address": listening["address"], "sizes": [1, 1000]})
        assert subprocess.run([cell, "--call", call], stdout=subprocess.DEVNULL, check=False).returncode == 0
        stays.send_signal(signal.SIGTERM)
        assert stays.wait() == -signal.SIGTERM
