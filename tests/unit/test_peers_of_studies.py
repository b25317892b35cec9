"""Peers in studies: how they are written, what a cell is told, what is refused, and what they mean to a plan."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from cell_events import finished
from cells import adhoc, checked, only_cell
from crosswind.analysis.endpoints import end_conditions, ends_of
from crosswind.cell.binary import with_ports
from crosswind.cell.result import Finished
from crosswind.cell.spec import cell_json
from crosswind.errors import EngineError, StudyError
from crosswind.execution.workers.virtual import memory_mb
from crosswind.peers import iperf3
from crosswind.peers.registry import PEERS, KnownPeer, Obstacle
from crosswind.study.design import Study
from runs import planned_cell
from study_texts import study

ECHO = '[workload]\nkind = "echo"\n'
OWN = {"name": "mine", "command": ["{python}", "client.py", "{address}"]}


@pytest.fixture
def nothing_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that has every program that any peer needs."""
    monkeypatch.setattr(KnownPeer, "missing", lambda _peer, _transport: None)


def workloads(design: Study) -> list[dict[str, Any]]:
    return [cell_json(cell, {})["workload"] for cell in design.cells()]


def test_a_peer_is_written_by_its_name_and_a_list_is_a_factor() -> None:
    design = study(f'{ECHO}client = ["native", "chromium"]\nserver = "node"\n')
    assert design.factors == {"workload.client": ("native", "chromium")}
    assert [cell.levels for cell in design.cells()] == [{"workload.client": "native"}, {"workload.client": "chromium"}]
    native, chromium = workloads(design)
    assert native["client"] is None
    assert chromium["client"] == {
        "name": "chromium",
        "command": ["{python}", "-P", "-m", "crosswind.peers.chromium"],
        "ready": None,
    }
    assert native["server"]["name"] == "node"


def test_a_program_of_ones_own_is_a_table_and_shown_by_its_name() -> None:
    design = study(
        f'{ECHO}client = ["native", {{ command = ["{{python}}", "client.py"], name = "mine" }}]\n'
        'server = { command = ["./server", "{port}"], ready = "tcp:{port}", start_timeout = "2min" }\n'
    )
    assert design.factors == {"workload.client": ("native", "mine")}
    assert [work["server"] for work in workloads(design)] == [
        {
            "name": "./server {port}",
            "command": ["./server", "{port}"],
            "ready": "tcp:{port}",
            "start_timeout_ns": 120_000_000_000,
        }
    ] * 2
    again = study(design.to_toml())
    assert workloads(again) == workloads(design)
    assert Study.from_canonical(json.loads(json.dumps(design.canonical()))).digest() == design.digest()


def test_one_key_means_a_peer_to_one_workload_and_an_argument_list_to_another() -> None:
    design = study(
        '[[part]]\nname = "a"\n[part.workload]\nkind = "echo"\nclient = ["native", "iperf3"]\n'
        '[[part]]\nname = "b"\n[part.workload]\nkind = "program"\nclient = ["iperf3"]\n'
    )
    found = [work["client"] if work["kind"] == "program" else work["client"] and work["client"]["name"]
             for work in workloads(design)]  # fmt: skip
    assert found == [None, "iperf3", ["iperf3"]]


@pytest.mark.parametrize(
    ("text", "client"),
    [
        ("chromium", "chromium"),
        ('{ command = ["a", "b,c"], name = "mine" }', "mine"),
        ("native", None),
    ],
)
def test_the_command_line_takes_names_and_tables(text: str, client: str | None) -> None:
    (work,) = workloads(adhoc("echo", client=text))
    assert (work["client"] and work["client"]["name"]) == client


def test_the_command_line_takes_several_names_and_still_commands_of_programs() -> None:
    assert [work["server"] and work["server"]["name"] for work in workloads(adhoc("echo", server="native,node"))] == [
        None,
        "node",
    ]
    both = adhoc("echo", client='["native", { command = ["a"] }]')
    assert both.factors == {"workload.client": ("native", "a")}
    (program,) = workloads(adhoc("program", client="iperf3 -c {server}"))
    assert program["client"] == ["iperf3", "-c", "{server}"]


def test_combinations_with_peers_can_be_excluded() -> None:
    design = study(
        f'{ECHO}client = ["native", "chromium"]\nserver = ["native", "node"]\n'
        '[[exclude]]\nwhere = { "workload.client" = "chromium", "workload.server" = "native" }\nreason = "x"\n'
    )
    pairs = [(cell.levels["workload.client"], cell.levels["workload.server"]) for cell in design.cells()]
    assert pairs == [("native", "native"), ("native", "node"), ("chromium", "node")]


MISTAKES = [
    ('client = "chromum"', '3: workload.client: "chromum" is not a client', 'did you mean "chromium"?'),
    ('server = "chromium"', "3: workload.server: chromium cannot be a server", "known: native, node"),
    ('client = ["python3", "client.py"]', '3: workload.client: "python3" is not a client', "{ command ="),
    ("client = 5", "3: workload.client: 5 is not a client", 'write "chromium" or { command ='),
    ("client = { command = [] }", "3: workload.client: [] is not the command of a client", "write { command ="),
    ('client = { comand = ["a"] }', '3: workload.client: "comand" is not a key of a client', 'did you mean "command"?'),
    ('server = { command = ["a"], ready = 5 }', "3: workload.server: 5 is not a sign of readiness", '"tcp:{port}"'),
    ('server = { command = ["a"], start_timeout = "soon" }', '3: workload.server: "soon" is not a duration', "50ms"),
    ('server = { command = ["a"], name = "node" }', '3: workload.server: "node" is not a name', "any text"),
    ('client = ["native", "native"]', '3: workload.client: the list has "native" twice', "must differ"),
]


@pytest.mark.parametrize(("line", "message", "hint"), MISTAKES)
def test_a_mistake_names_its_place_and_what_would_be_right(line: str, message: str, hint: str) -> None:
    with pytest.raises(StudyError) as caught:
        study(f"{ECHO}{line}\n")
    assert f"my.toml:{message}" in caught.value.message
    assert caught.value.hint is not None
    assert hint in caught.value.hint


def test_placeholders_are_filled_in_for_peers_and_addresses_are_left_to_the_cell() -> None:
    cell = {"workload": {"kind": "echo", "client": OWN, "server": None}}
    filled = with_ports(cell, Path("/bin/true"))["workload"]["client"]["command"]
    assert filled[0].startswith("/")
    assert filled[1:] == ["client.py", "{address}"]


def test_a_placeholder_of_programs_is_none_of_peers() -> None:
    with pytest.raises(StudyError, match=r"workload.client .* has \{adress\}, which is not a placeholder") as caught:
        only_cell("echo", client='{ command = ["a", "{adress}"] }')
    assert caught.value.hint is not None
    assert caught.value.hint.startswith("did you mean {address}?")


def test_a_peer_that_lacks_something_is_refused_before_anything_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    lacks = Obstacle("Chromium is not installed", "apt install chromium")
    monkeypatch.setattr(KnownPeer, "missing", lambda peer, _transport: lacks if peer.name == "chromium" else None)
    with pytest.raises(StudyError) as caught:
        checked(adhoc("echo", client="native,chromium"))
    assert "workload.client is chromium, and Chromium is not installed" in caught.value.message
    assert caught.value.hint == "apt install chromium"
    assert len(checked(adhoc("echo", client="native"))) == 1


def test_what_a_peer_needs_is_found_by_functions_that_say_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda _name: None)
    assert PEERS["iperf3"].missing("tcp") == Obstacle("iperf3 is not installed", "`apt install iperf3`")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert PEERS["iperf3"].missing("tcp") is None


@pytest.mark.usefixtures("nothing_missing")
def test_cells_with_peers_take_longer_run_alone_and_are_never_exact() -> None:
    echo = {"host__clock": "real", "transport": "websocket"}
    plain, peers = only_cell("echo", **echo), only_cell("echo", **echo, client="chromium")
    assert peers.forecast.duration_ns - plain.forecast.duration_ns == 1_500_000_000
    assert peers.deadline_ns - plain.deadline_ns >= 60_000_000_000
    assert peers.forecast.runs_alone
    assert not peers.exact


@pytest.mark.usefixtures("nothing_missing")
@pytest.mark.parametrize(
    ("workload", "message"),
    [
        ({"client": "chromium", "transport": "tcp"}, "Chromium has no tcp: pages cannot open TCP connections"),
        ({"client": "chromium", "transport": "wss", "resumption": "session", "connection": "new"},
         "Chromium cannot be set to use resumption = session"),
        ({"server": "node", "transport": "webtransport"}, "a node server does not carry webtransport"),
        ({"client": "deno", "transport": "quic"}, "a deno client does not carry quic"),
        ({"client": "iperf3", "transport": "tcp"}, "iperf3 cannot do echo over tcp"),
    ],
)  # fmt: skip
def test_what_a_peer_cannot_do_is_refused_before_anything_runs(workload: dict[str, str], message: str) -> None:
    with pytest.raises(StudyError) as caught:
        only_cell("echo", **workload)
    end, name = next((end, name) for end, name in workload.items() if end in ("client", "server"))
    assert caught.value.message.endswith(f"workload.{end} is {name}, and {message}")


def test_a_guest_that_runs_programs_has_memory_for_a_browser() -> None:
    def needed(**workload: object) -> int:
        return memory_mb(planned_cell(0, parameters={"workload": workload}))

    assert needed(kind="echo", client=None) == 512
    assert needed(kind="echo", client={"name": "node", "command": ["node"]}) == 3072
    assert needed(kind="program", client=["true"]) == 3072


def of_peers(verified: str | None = "wss", wait: int | None = 7, **facts: float) -> Finished:
    native = {
        "name": "native",
        "implementation": "Crosswind 0.1.0",
        "clock": None,
        "processor_wait_ns": None,
        "facts": {},
    }
    clock = {"name": "performance.now", "resolution_ns": 5000}
    chromium = {"name": "chromium", "implementation": "Chromium 156", "clock": clock, "processor_wait_ns": wait}
    return finished(peers={"client": {**chromium, "facts": facts}, "server": native, "verified_transport": verified})


def test_the_ends_of_a_cell_are_those_of_its_repetitions() -> None:
    ends = ends_of([of_peers(wait=7, retransmits=2), of_peers(wait=9, retransmits=3)])
    assert ends is not None
    assert (ends.client.implementations, ends.client.processor_wait_ns) == (["Chromium 156"], 9)
    assert (ends.verified_transport, ends.facts) == ("wss", {"retransmits": 5})
    assert ends_of([finished()]) is None


def test_what_was_not_measured_or_not_verified_in_one_repetition_is_so_in_all() -> None:
    ends = ends_of([of_peers(), of_peers(verified=None, wait=None)])
    assert ends is not None
    assert (ends.verified_transport, ends.client.processor_wait_ns) == (None, None)


def test_conditions_name_the_programs_at_both_ends() -> None:
    conditions = {one.name: one.values for one in end_conditions([finished(), of_peers(), of_peers(verified=None)])}
    assert conditions == {
        "client": ["native", "chromium (Chromium 156, clock in steps of 5us)"],
        "server": ["native"],
        "transport verified": ["wss", "none: the client does not know"],
    }
    assert end_conditions([finished()]) == []


JOB: dict[str, Any] = {
    "address": "198.18.0.2",
    "port": 4433,
    "workload": {"kind": "transfer", "transport": "tcp", "direction": "upload", "size_bytes": 1000, "connections": 1},
}


def job(**changes: object) -> dict[str, Any]:
    return {**JOB, "workload": {**JOB["workload"], **changes}}


def test_iperf3_is_told_what_the_workload_says() -> None:
    both = ["-c", "198.18.0.2", "-p", "4433", "-J"]
    assert iperf3.arguments_of(job()) == [*both, "-n", "1000"]
    timed = job(size_bytes=None, duration_ns=3_000_000_000, direction="download")
    assert iperf3.arguments_of(timed) == [*both, "-t", "3", "-R"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"kind": "echo"}, "iperf3 cannot do echo over tcp"),
        ({"transport": "tls"}, "iperf3 cannot do transfer over tls"),
        ({"connections": 2}, "iperf3's server takes one client at a time"),
        ({"size_bytes": None, "duration_ns": 1_500_000_000}, "iperf3 measures for whole seconds"),
    ],
)
def test_what_iperf3_cannot_do_is_said(changes: dict[str, object], message: str) -> None:
    with pytest.raises(EngineError, match=message):
        iperf3.arguments_of(job(**changes))


def test_what_iperf3_reports_is_read() -> None:
    report = {"end": {"sum_sent": {"bytes": 1100, "retransmits": 4, "seconds": 2.0},
                      "sum_received": {"bytes": 1000, "seconds": 2.125}}}  # fmt: skip
    found = iperf3.read_report(json.dumps(report))
    assert (found.took_s, found.sent_bytes, found.received_bytes, found.retransmits) == (2.125, 1100, 1000, 4)
    del report["end"]["sum_sent"]["retransmits"]
    assert iperf3.read_report(json.dumps(report)).retransmits == 0


@pytest.mark.parametrize(
    ("text", "message", "outcome"),
    [
        ('{"error": "unable to connect to server: Connection refused"}', "Connection refused", "refused"),
        ('{"error": "control socket has closed unexpectedly"}', "control socket", "closed"),
        ('{"end": {}}', "printed no report", "error"),
        ("", "printed no report", "error"),
    ],
)
def test_a_failure_of_iperf3_is_an_outcome(text: str, message: str, outcome: str) -> None:
    with pytest.raises(EngineError, match=message) as caught:
        iperf3.read_report(text)
    assert iperf3.outcome_of(caught.value.message) == outcome


def test_plan_says_what_is_missing(
    crosswind: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(KnownPeer, "missing", lambda _peer, _transport: Obstacle("it is not here", "install it"))
    status, _, err = crosswind("plan", "echo", "--client", "chromium")
    assert status == 2
    assert "--client chromium: workload.client is chromium, and it is not here" in err
    assert "hint: install it" in err
