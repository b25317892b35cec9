"""Peers on the command line: a study with peers as levels, its report, and a peer that fails."""

import json

from conftest import ROOT
from e2e_cli import ANY_FIDELITY, Cli

OWN = 'command = ["{python}", "-IS", "client.py"], name = "mine"'
STUDY = f"""
[path]
delay = "1ms"
[workload]
kind = "echo"
transport = "tcp"
messages = 5
client = ["native", {{ {OWN} }}]
"""


def test_a_peer_is_a_level_and_the_report_names_what_it_was(crosswind: Cli) -> None:
    text = (ROOT / "docs" / "examples" / "echo_client.py").read_text("utf-8")
    (crosswind.cwd / "client.py").write_text(text, encoding="utf-8")
    (crosswind.cwd / "peer.toml").write_text(STUDY, encoding="utf-8")
    ended = crosswind("run", "peer.toml", *ANY_FIDELITY, "--output", "here", "--json")
    assert ended.status == 0, ended.err
    native, mine = ended.json["cells"]
    assert [cell["levels"] for cell in (native, mine)] == [{"workload.client": "native"}, {"workload.client": "mine"}]
    assert native["ends"] is None
    assert mine["ends"]["client"]["implementations"] == ["echo_client.py 1.0"]
    assert mine["ends"]["verified_transport"] == "tcp"
    assert {one["name"]: one["values"] for one in ended.json["conditions"]["ends"]} == {
        "client": ["native", "mine (echo_client.py 1.0)"],
        "server": ["native"],
        "transport verified": ["tcp"],
    }
    (comparison,) = (one for one in ended.json["comparisons"] if one["metric"] == "rtt")
    assert comparison["factor"] == "workload.client"
    plan = [json.loads(line) for line in (crosswind.cwd / "here" / "plan.jsonl").read_text("utf-8").splitlines()]
    cells = [line for line in plan if "parameters" in line]
    commands = [cell["parameters"]["workload"].get("client", {}).get("command") for cell in cells]
    assert ["{python}", "-IS", "client.py"] in commands
    assert "Clients and servers" in crosswind("report", "here", "--all").out


def test_a_peer_that_fails_is_a_failed_cell_and_the_others_are_measured(crosswind: Cli) -> None:
    (crosswind.cwd / "client.py").write_text("raise SystemExit('no luck today')\n", encoding="utf-8")
    (crosswind.cwd / "peer.toml").write_text(STUDY, encoding="utf-8")
    ended = crosswind("run", "peer.toml", *ANY_FIDELITY, "--output", "here", "--json")
    assert ended.status == 1
    native, mine = ended.json["cells"]
    assert native["valid"]
    said = 'the client mine ended with exit status 1 before it printed "finished": no luck today'
    assert mine["reason"] == (
        f"repetition 1 failed: {said} (the cell's directory keeps what it wrote, in client.err: cells/c001-r00/*)"
    )
    assert f"failed: client=mine #1: {said} (cells/c001-r00/*)" in ended.err
    assert (crosswind.cwd / "here" / "cells" / "c001-r00" / "client.err").read_text("utf-8") == "no luck today\n"


def test_a_peer_on_the_command_line(crosswind: Cli) -> None:
    example = ROOT / "docs" / "examples" / "echo_server.py"
    server = f'{{ command = ["{{python}}", "{example}"], name = "mine" }}'
    ended = crosswind(
        "run", "echo", "--server", server, "--messages", "3", "--repetitions", "1", *ANY_FIDELITY, "--json"
    )
    assert ended.status == 0, ended.err
    (cell,) = ended.json["cells"]
    assert cell["ends"]["server"]["implementations"] == ["echo_server.py 1.0"]
