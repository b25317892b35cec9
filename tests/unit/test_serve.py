"""`crosswind serve` and its token, with a program in the place of crosswind-cell that prints what it is told to."""

import json
import os
import resource
import socket
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from conftest import requires_binary
from crosswind.cell.token import VARIABLE, check_token, make_or_read_token, new_token, read_token, use_token
from crosswind.cli.serve import event_line, opening_lines
from crosswind.errors import UsageError
from fixture_types import Crosswind

LISTENING = {"event": "listening", "address": "0.0.0.0:9470", "data_port": 9471}
TOKEN = "0123456789abcdef0123456789abcdef"


# --- the token --------------------------------------------------------------------------------------------------------


def test_a_token_is_made_of_128_random_bits_for_the_user_alone(tmp_path: Path) -> None:
    path = tmp_path / "token"
    token, is_new = make_or_read_token(path)
    assert (len(token), is_new) == (32, True)
    int(token, 16)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert make_or_read_token(path) == (token, False)
    assert new_token() != new_token()


def test_a_token_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{TOKEN}\n")
    path.chmod(0o640)
    with pytest.raises(UsageError, match="others can read the token file") as caught:
        read_token(path)
    assert caught.value.hint == f"chmod 600 {path}"
    path.chmod(0o600)
    assert read_token(path) == TOKEN


def test_what_is_no_token_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no token file"):
        read_token(tmp_path / "nowhere")
    with pytest.raises(UsageError, match="cannot read the token file"):
        read_token(tmp_path)
    with pytest.raises(UsageError, match="cannot make the token file"):
        make_or_read_token(tmp_path / "no" / "directory")


@pytest.mark.parametrize(("token", "message"), [("a" * 19, "has 19 characters, and needs 20"), ("a b" * 9, "no token")])
def test_a_token_that_is_short_or_strange_is_refused(token: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        check_token(token, "it")


def test_cells_find_the_token_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    with pytest.raises(UsageError, match="there is no token"):
        use_token(None)
    path = tmp_path / "token"
    token, _ = make_or_read_token(path)
    use_token(path)
    assert os.environ[VARIABLE] == token
    use_token(None)


# --- what it prints ---------------------------------------------------------------------------------------------------


def test_it_says_what_the_other_machine_has_to_run() -> None:
    lines = list(opening_lines(LISTENING, host="192.0.2.7", token=TOKEN, token_file=None, is_new=True))
    assert lines == [
        "listening on 0.0.0.0:9470 for control connections, and on port 9471 for measured traffic",
        "open in firewalls: TCP 9470, TCP 9471, UDP 9471",
        f"token: {TOKEN}  (shown this once; --token-file FILE keeps one)",
        "on the other machine:",
        f"  CROSSWIND_TOKEN={TOKEN} crosswind run latency-by-link --to 192.0.2.7",
        "Ctrl-C ends the server.",
    ]


def test_a_token_in_a_file_is_not_shown() -> None:
    event = {**LISTENING, "address": "[::]:80"}
    lines = list(opening_lines(event, host="2001:db8::7", token=TOKEN, token_file=Path("/a/my token"), is_new=True))
    assert lines[2] == "token: in /a/my token, created now; copy the file to the other machine"
    assert lines[4] == "  crosswind run latency-by-link --to [2001:db8::7]:80 --token-file 'my token'"
    assert not [line for line in lines if TOKEN in line]


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (
            {"event": "refused", "peer": "[::ffff:10.0.0.2]:51514", "reason": "it does not know the token"},
            "12:00:00 10.0.0.2:51514: refused: it does not know the token",
        ),
        (
            {"event": "refused_more", "count": 12345, "seconds": 10},
            "12:00:00 12\u202f345 more were refused within 10 s",
        ),
        (
            {"event": "cell_started", "peer": "10.0.0.2:1", "id": "c0-r0", "workload": "echo", "transport": "tcp"},
            "12:00:00 10.0.0.2:1: cell c0-r0: echo over tcp",
        ),
        (
            {
                "event": "cell_ended",
                "peer": "10.0.0.2:1",
                "id": "c0-r0",
                "outcome": "done",
                "seconds": 1.23,
                "connections": 3,
                "received_bytes": 12345,
                "sent_bytes": 456,
            },
            "12:00:00 10.0.0.2:1: cell c0-r0: done, 1.23 s, 3 connections, 12.3 kB received, 456 B sent",
        ),
        ({"event": "something else"}, None),
    ],
)
def test_each_event_is_a_line(event: dict[str, object], line: str | None) -> None:
    assert event_line(event, "12:00:00") == line


# --- the command ------------------------------------------------------------------------------------------------------


@pytest.fixture
def listener(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Puts a program in the place of crosswind-cell that prints events, and what it was asked into a file."""

    def make(*events: dict[str, object]) -> Path:
        asked = tmp_path / "asked"
        body = [
            f"#!{sys.executable} -IS",
            "import json, os, sys",
            f"open({str(asked)!r}, 'w').write(json.dumps([sys.argv[1:], os.environ['CROSSWIND_TOKEN']]))",
            f"for event in {list(events)!r}: print(json.dumps(event), flush=True)",
        ]
        path = tmp_path / "listener"
        path.write_text("\n".join(body) + "\n", encoding="utf-8")
        path.chmod(0o755)
        monkeypatch.setenv("CROSSWIND_CELL", str(path))
        return asked

    return make


def test_it_asks_crosswind_cell_to_listen(crosswind: Crosswind, listener: Callable[..., Path]) -> None:
    asked = listener(LISTENING)
    status, out, err = crosswind("serve", "--token-file", "token", "--address", "192.0.2.7", "--max-bytes", "1GB")
    # The program of this test ends by itself, which a server does not.
    assert (status, err.splitlines()[0]) == (1, "error: the server ended with status 0")
    assert out.splitlines()[0].startswith("listening on ")
    arguments, token = json.loads(asked.read_text())
    assert token == Path("token").read_text().strip()
    assert arguments[0] == "--listen"
    assert json.loads(arguments[1]) == {
        "address": "192.0.2.7:9470",
        "data_port": 9471,
        "limits": {"seconds": 3600, "bytes": 10**9, "connections": 100_000},
    }


def test_an_error_is_one_message_with_a_hint(crosswind: Crosswind, listener: Callable[..., Path]) -> None:
    listener({"event": "error", "kind": "network", "message": "port 9470 is in use", "hint": "--port another"})
    assert crosswind("serve") == (1, "", "error: port 9470 is in use\nhint: --port another\n")


def test_events_are_printed_as_they_are(crosswind: Crosswind, listener: Callable[..., Path]) -> None:
    listener(LISTENING)
    _, out, _ = crosswind("serve", "--json", "--token-file", "token")
    assert [json.loads(line) for line in out.splitlines()] == [LISTENING]


def test_what_a_client_says_is_one_line_without_control_characters(
    crosswind: Crosswind, listener: Callable[..., Path]
) -> None:
    said = "x\n12:00:00 10.0.0.9:1: refused\x1b[2J\x9b1A\u202e\r"
    started = {"event": "cell_started", "peer": "10.0.0.2:1", "id": said, "workload": "echo", "transport": "tcp"}
    refused = {"event": "refused", "peer": "10.0.0.2:1", "reason": said}
    listener(started, refused)
    _, out, _ = crosswind("serve")
    shown = r"x\u000a12:00:00 10.0.0.9:1: refused\u001b[2J\u009b1A\u202e\u000d"
    assert [line.split(" ", 1)[1] for line in out.splitlines()] == [
        f"10.0.0.2:1: cell {shown}: echo over tcp",
        f"10.0.0.2:1: refused: {shown}",
    ]
    _, out, _ = crosswind("serve", "--json", "--token-file", "token")
    assert [json.loads(line) for line in out.splitlines()] == [started, refused]
    assert out.isascii()


def test_strangers_at_a_limit_of_threads_do_not_end_the_server() -> None:
    binary, asked = requires_binary(), {"address": "127.0.0.1:0", "data_port": free_port()}
    with subprocess.Popen(
        [binary, "--listen", json.dumps(asked)], stdout=subprocess.PIPE, env={**os.environ, VARIABLE: TOKEN}
    ) as server:
        try:
            assert server.stdout is not None
            events = map(json.loads, server.stdout)
            listening = next(events)
            assert listening["event"] == "listening"
            # Memory for small things, and for no stack.
            pages = int(Path(f"/proc/{server.pid}/statm").read_text(encoding="ascii").split()[0])
            most = pages * resource.getpagesize() + (7 << 18)
            before = resource.prlimit(server.pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
            assert reason_of(listening["address"], events).startswith("cannot start a thread: ")
            resource.prlimit(server.pid, resource.RLIMIT_AS, before)
            assert reason_of(listening["address"], events).startswith("no proof of the token")
        finally:
            server.kill()


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def reason_of(address: str, events: Iterator[Mapping[str, str]]) -> str:
    """Why a stranger is refused who sends what is no TLS."""
    host, port = address.split(":")
    with socket.create_connection((host, int(port)), timeout=30) as stranger:
        stranger.sendall(b"\0" * 100)
        event = next(events)
        assert event["event"] == "refused"
        return event["reason"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--address", "example.org"), "--address example.org is not an address"),
        (("--port", "65535"), "no data port follows port 65535"),
        (("--port", "80", "--data-port", "80"), "--port and --data-port are both 80"),
        (("--max-bytes", "many"), "--max-bytes many"),
        (("--json",), "--json shows no token"),
    ],
)
def test_a_mistake_gets_one_message_and_a_hint(
    crosswind: Crosswind, listener: Callable[..., Path], arguments: tuple[str, ...], message: str
) -> None:
    asked = listener(LISTENING)
    status, out, err = crosswind("serve", *arguments)
    assert (status, out) == (2, "")
    error, hint = err.splitlines()
    assert error.startswith(f"error: {message}")
    assert hint.startswith("hint: ")
    assert not asked.exists()
