"""`crosswind run --to`, `plan --to` and `reach`, with a program that plays crosswind-cell and the network."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from cell_events import PROGRESS, network
from conftest import GOOD_END
from crosswind.cell.token import VARIABLE
from fixture_types import Crosswind

TOKEN = "0123456789abcdef0123456789abcdef"

NETWORK_CELL = f"""
import pathlib
network = {network()!r}
nothing = dict.fromkeys(("ledger", "fidelity", "traffic", "queueing_ns"))
workload = cell["workload"]
transport = workload["transport"]
seen = pathlib.Path("seen")
seen.mkdir(exist_ok=True)
(seen / cell["id"]).write_text(os.environ.get("{VARIABLE}", ""))
processors = sorted(os.sched_getaffinity(0))
def fail(message):
    say(event="error", kind="network", message=message, hint="a hint")
    sys.exit(1)
def end(outcome="ok"):
    ok = 3 if outcome == "ok" else 0
    bad = [] if ok else [{{"outcome": outcome, "count": 3, "first_error": "it is unreachable"}}]
    say(**{{**{PROGRESS!r}, "median_ns": 20_345_678 if ok else None}})
    samples = {{"rows": 3, "ok": ok, "lost": 3 - ok, "outcomes": bad}} if cell["id"].startswith("reach") else None
    finish(**nothing, network=network, **({{"samples": samples}} if samples else {{}}))
start()
"""


@pytest.fixture
def play(fake_cell: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], None]:
    """Puts a program in the place of crosswind-cell, and a token into the environment."""
    monkeypatch.setenv(VARIABLE, TOKEN)

    def make(body: str) -> None:
        monkeypatch.setenv("CROSSWIND_CELL", str(fake_cell(GOOD_END + NETWORK_CELL + body)))

    return make


def echo(*more: str, repetitions: int = 1) -> tuple[str, ...]:
    return (
        "run",
        "echo",
        "--messages",
        "3",
        "--repetitions",
        str(repetitions),
        "--to",
        "192.0.2.7",
        "--output",
        "out",
        "--no-report",
        *more,
    )


@pytest.mark.parametrize(
    ("words", "empty"),
    [
        ("run echo --to=", "--to"),
        ("plan latency-by-link --to=", "--to"),
        ("reach", "HOST[:PORT]"),
        ("live --tcp 80", "HOST[:PORT]"),
        ("live example.org --metrics=", "--metrics"),
        ("serve --address=", "--address"),
        ("run echo --network=", "--network"),
        ("run echo --server=", "--server"),
        ("run echo --client=", "--client"),
        ("exec --server= -- true", "--server"),
        ("run echo --output=", "--output"),
    ],
)
def test_what_an_unset_variable_leaves_empty_is_refused(crosswind: Crosswind, words: str, empty: str) -> None:
    given = [*words.split(), ""] if empty.startswith("HOST") else words.split()
    status, out, err = crosswind(*given)
    assert (status, out) == (2, "")
    assert err == f"error: {empty} is empty\nhint: is a variable unset? Give it a value, or leave it out\n"


def test_each_transport_is_tried_before_the_run(crosswind: Crosswind, play: Callable[[str], None]) -> None:
    play("end()")
    status, _, err = crosswind(*echo("--transport", "tcp,http3"))
    assert status == 0
    lines = err.splitlines()
    at = lines.index("to 192.0.2.7:9470:")
    assert lines[at + 1 : at + 3] == ["  tcp    reachable, 20.3 ms", "  http3  reachable, 20.3 ms"]
    assert sorted(path.name for path in Path("seen").iterdir()) == ["c000-r00", "c001-r00", "reach-http3", "reach-tcp"]
    assert Path("seen/reach-tcp").read_text() == TOKEN


def test_cells_of_a_transport_that_is_blocked_are_not_run(crosswind: Crosswind, play: Callable[[str], None]) -> None:
    play("end('timeout' if transport == 'http3' else 'refused' if transport == 'http2' else 'ok')")
    status, _, err = crosswind(*echo("--transport", "tcp,http2,http3"))
    assert status == 0
    assert "  http2  blocked: TCP 9471 is refused" in err.splitlines()
    assert "  http3  blocked: UDP 9471 gets no answer" in err.splitlines()
    presentation = json.loads(Path("out/manifest.json").read_text())["presentation"]
    assert "No cells over http3, which is blocked: UDP 9471 gets no answer." in presentation["left_out"]
    tried = "Tried before the run: tcp reachable, 20.3 ms; http2 blocked"
    assert [note for note in presentation["notes"] if note.startswith(tried)]
    assert len(Path("out/plan.jsonl").read_text().splitlines()) == 2  # A cell, and its repetition.


def test_where_every_transport_is_blocked_nothing_is_run(crosswind: Crosswind, play: Callable[[str], None]) -> None:
    play("end('error')")
    status, _, err = crosswind(*echo("--transport", "udp"))
    assert status == 2
    assert "none of its transports reaches the server (udp: UDP 9471: it is unreachable)" in err
    assert not Path("out").exists()


def test_a_server_that_refuses_is_one_message(crosswind: Crosswind, play: Callable[[str], None]) -> None:
    play("fail('192.0.2.7:9470 does not know this token')")
    status, _, err = crosswind(*echo())
    assert status == 1
    assert err.splitlines()[-2:] == ["error: 192.0.2.7:9470 does not know this token", "hint: a hint"]
    assert not Path("out").exists()


def test_a_server_that_goes_away_ends_the_run_and_resume_goes_on(
    crosswind: Crosswind, play: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Three cells were tried or run before the second repetition.
    play("end() if len(list(seen.iterdir())) < 3 else fail('192.0.2.7:9470 went away')")
    status, _, err = crosswind(*echo(repetitions=3))
    assert status == 1
    error, hint = err.splitlines()[-2:]
    assert error == "error: 192.0.2.7:9470 went away"
    assert hint == "hint: a hint · continue later: crosswind run --resume out"
    assert [path.name for path in Path("out/cells").iterdir()] == ["c000-r00"]

    monkeypatch.delenv(VARIABLE)
    status, _, err = crosswind("run", "--resume", "out", "--no-report")
    assert (status, err.splitlines()[0]) == (2, "error: there is no token, by which the server would know this machine")

    monkeypatch.setenv(VARIABLE, TOKEN)
    play("end()")
    status, _, err = crosswind("run", "--resume", "out", "--no-report")
    assert status == 0
    assert sorted(path.name for path in Path("out/cells").iterdir()) == ["c000-r00", "c000-r01", "c000-r02"]


def test_the_token_is_in_no_file_of_the_run(
    crosswind: Crosswind, play: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE)
    play("end()")
    monkeypatch.delenv(VARIABLE, raising=False)
    path = Path("token")
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o600)
    assert crosswind(*echo("--token-file", "token"))[0] == 0
    assert Path("seen/c000-r00").read_text() == TOKEN
    files = [file for file in Path("out").rglob("*") if file.is_file()]
    assert files
    assert not [file for file in files if TOKEN.encode() in file.read_bytes()]


def test_cells_run_one_after_another_wherever_they_like(crosswind: Crosswind, play: Callable[[str], None]) -> None:
    play("pathlib.Path('processors').write_text(str(processors))\nend()")
    assert crosswind(*echo("--jobs", "4", "--size", "1,2,3"))[0] == 0
    stored = [json.loads(path.read_text()) for path in Path("out/cells").glob("*/result.json")]
    assert [(each["beside"], each["placement"]) for each in stored] == [(0, {})] * 3
    assert Path("processors").read_text() == str(sorted(os.sched_getaffinity(0)))
    assert "virtual" not in {each["parameters"]["host"].get("clock") for each in stored}


def test_the_report_says_what_the_network_was(crosswind: Crosswind, play: Callable[[str], None]) -> None:
    play("end()")
    status, out, _ = crosswind("run", "echo", "--to", "192.0.2.7", "--output", "out", "--messages", "3")
    text = " ".join(out.split())
    assert "echo from the command line over the network to 192.0.2.7:9470" in text
    assert "Network: the real network between this machine and 192.0.2.7:9470; nothing is emulated" in text
    assert "packets are not counted" in text
    assert Path("out/report.html").exists()
    assert status == 0


def test_settings_of_an_emulated_path_beside_to_are_a_mistake(crosswind: Crosswind) -> None:
    status, _, err = crosswind("plan", "echo", "--to", "192.0.2.7", "--loss", "5%", "--set", "host.sack=false")
    assert status == 2
    assert err.splitlines()[0] == "error: --loss, --sack: with --to nothing is emulated"
    assert crosswind("plan", "echo", "--to", "nobody here")[2].splitlines() == [
        'error: --to: "nobody here" is not the address of a server',
        "hint: write HOST or HOST:PORT, as example.org, 192.0.2.7:9470 or [2001:db8::7]:9470",
    ]
    status, _, err = crosswind("run", "echo", "--to", "192.0.2.7", "--packets")
    assert (status, "--packets needs the emulator" in err) == (2, True)
    status, _, err = crosswind("run", "--resume", "--to", "192.0.2.7")
    assert (status, "takes no settings" in err) == (2, True)


def test_a_plan_says_what_is_left_out_and_that_it_is_rough(crosswind: Crosswind, play: Callable[[str], None]) -> None:
    play("fail('a plan asks nobody')")
    status, out, err = crosswind("plan", "latency-by-link", "--to", "[2001:db8::7]")
    assert status == 0
    assert "note: Left out, as there is no emulated path: path.family, path.delay, path.loss." in err.splitlines()
    assert "These forecasts are rough, because the network is unknown." in " ".join(out.split())
    assert "side by side" not in out


def test_reach_tries_all_transports(crosswind: Crosswind, play: Callable[[str], None]) -> None:
    play("end('timeout' if transport == 'quic' else 'ok')")
    status, out, _ = crosswind("reach", "192.0.2.7", "--transport", "tcp,quic")
    assert (status, out.splitlines()) == (1, ["  tcp   reachable, 20.3 ms", "  quic  blocked: UDP 9471 gets no answer"])
    status, out, _ = crosswind("reach", "192.0.2.7:80", "--transport", "tcp", "--json")
    assert (status, json.loads(out)) == (
        0,
        {
            "schema": "crosswind.reach/1",
            "server": "192.0.2.7:80",
            "transports": [{"transport": "tcp", "reachable": True, "round_trip_ns": 20_345_678, "obstacle": None}],
        },
    )
    status, _, err = crosswind("reach", "192.0.2.7", "--transport", "carrier-pigeon")
    assert (status, "there is no transport 'carrier-pigeon'" in err) == (2, True)
