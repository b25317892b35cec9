"""`crosswind live` on the machine's clock: against this machine, at a terminal, and with bad command lines."""

import json
import os
import re
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from e2e_cli import Cli, wait_until
from terminals import Terminal, Terminals

SCREEN = {"TERM": "xterm", "COLUMNS": "110", "LINES": "45"}


@pytest.fixture
def port() -> Iterator[int]:
    """A TCP port of this machine that listens; the kernel answers, and keeps more connections than a test opens."""
    with socket.create_server(("127.0.0.1", 0), backlog=4096) as server:
        yield int(server.getsockname()[1])


@pytest.fixture
def dead_port() -> Iterator[int]:
    """A TCP port of this machine where nobody listens, so that the kernel answers with RST."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield int(bound.getsockname()[1])


@pytest.fixture
def terminal(live: Cli, port: int) -> Iterator[Terminal]:
    """A display of that port."""
    made = Terminals(live)
    yield made("live", "127.0.0.1", "--tcp", str(port), "--interval", "20ms", "--window", "1s", **SCREEN)
    made.close()


def test_a_service_that_is_dead_passes_no_bound_on_loss(live: Cli, dead_port: int) -> None:
    watching = ("live", "127.0.0.1", "--tcp", str(dead_port), "--interval", "10ms", "--duration", "500ms")
    ended = live(*watching, "--json", "--probes", "--fail-if", "loss > 1%", "--fail-if", "p95(rtt) > 1s")
    assert ended.status == 3
    lines = [json.loads(line) for line in ended.out.splitlines()]
    probes, end = [line for line in lines if line["type"] == "probe"], lines[-1]
    assert end["refused"] == end["sent"] == len(probes) > 0
    assert (end["answered"], end["lost"], end["refusal"]["value"], end["median"]) == (0, 0, 1, None)
    assert all(probe["refused"] and 0 < probe["rtt_ns"] < 10**9 for probe in probes)
    verdicts = [(threshold["fail_if"], threshold["verdict"]) for threshold in end["thresholds"]]
    assert verdicts == [("loss > 1%", "inconclusive"), ("refused > 1%", "fail"), ("p95(rtt) > 1s", "inconclusive")]
    ended = live(*watching, "--fail-if", "p95(rtt) > 1s")
    assert ended.status == 1
    assert re.fullmatch(r"error: 127\.0\.0\.1 refused all \d+ connections", ended.err.splitlines()[0])
    assert ended.err.splitlines()[1].startswith("hint: no service listens on that port")


def test_a_threshold_decides_the_status(live: Cli, port: int) -> None:
    watching = ("live", "127.0.0.1", "--tcp", str(port), "--interval", "10ms", "--duration", "1s")
    assert live(*watching, "--fail-if", "loss > 50%").status == 0
    shown = live(*watching, "--fail-if", "loss > 50%", "--fail-if", "median(rtt) > 1ns")
    assert shown.status == 3
    passed, not_refused, failed = shown.out.splitlines()[-3:]
    assert passed.startswith("Pass: fail if loss > 50%: loss is ")
    assert not_refused.startswith("Pass: fail if refused > 50% (as loss > 50%): refused is ")
    assert failed.startswith("Fail: fail if median(rtt) > 1ns: median of the round-trip time is ")
    told = live(*watching, "--fail-if", "p99(rtt) > 100s", "--require-answer", "--json")
    assert told.status == 4
    (threshold,) = json.loads(told.out.splitlines()[-1])["thresholds"]
    assert (threshold["verdict"], threshold["high"]) == ("inconclusive", None)
    assert threshold["reason"].startswith("an interval of p99 needs 2000 probes, there are ")


def test_a_host_that_never_answers(live: Cli, tmp_path: Path) -> None:
    page = tmp_path / "live.html"
    with socket.socket() as full:
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        place = full.getsockname()
        with socket.create_connection(place), socket.socket() as queued:
            # Linux keeps one connection more than the backlog; every later SYN is dropped.
            queued.setblocking(False)
            queued.connect_ex(place)
            words = ("live", "127.0.0.1", "--tcp", str(place[1]), "--interval", "50ms", "--duration", "1s", "--json")
            ended = live(*words, "--timeout", "200ms", "--html", str(page))
    assert ended.status == 1
    assert ended.err.splitlines()[:2] == [f"wrote {page}", "error: 127.0.0.1 never answered"]
    lines = [json.loads(line) for line in ended.out.splitlines()]
    assert [line["event"] for line in lines if line["type"] == "event"] == ["outage begins"]
    assert "127.0.0.1 never answered" in page.read_text(encoding="utf-8")
    end = lines[-1]
    assert (end["answered"], end["median"], end["tcp"]["models"]) == (0, None, [])
    assert end["lost"] == end["sent"] == end["loss"]["n"] > 0


def test_a_report_is_written_at_the_end_also_after_ctrl_c(live: Cli, port: int, tmp_path: Path) -> None:
    page = tmp_path / "pages" / "live.html"
    watching = ("live", "127.0.0.1", "--interval", "20ms", "--duration", "300ms", "--html", str(page))
    ended = live(*watching, "--tcp", str(port), "--fail-if", "median(rtt) > 1ns")
    assert (ended.status, ended.err) == (3, f"wrote {page}\n")
    text = page.read_text(encoding="utf-8")
    assert "A threshold fails." in text
    assert "CLOCK_MONOTONIC, resolution " in text
    assert f"TCP connections to port {port}, from SYN to SYN-ACK" in text
    assert "<h2>Reordering</h2>" not in text
    watching = ("live", "127.0.0.1", "--tcp", str(port), "--interval", "10ms", "--window", "100ms")
    started = live.start(*watching, "--html", str(page))
    assert started.stdout is not None
    started.stdout.readline()
    assert "lost" in started.stdout.readline()
    os.kill(started.pid, signal.SIGINT)
    ended = live.end(started)
    assert (ended.status, ended.err) == (0, f"wrote {page}\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it_with_its_summary(live: Cli, port: int, number: int) -> None:
    started = live.start("live", "127.0.0.1", "--tcp", str(port), "--interval", "10ms", "--window", "100ms")
    assert started.stdout is not None
    started.stdout.readline()
    assert "lost" in started.stdout.readline()
    os.kill(started.pid, number)
    ended = live.end(started)
    assert (ended.status, ended.err) == (0, "")
    assert "No prediction by Mathis" in ended.out


def test_the_display_has_keys_and_leaves_the_terminal_as_it_was(terminal: Terminal) -> None:
    terminal.see("since the start")
    assert not terminal.echoes
    terminal.see("1 probe a column")
    terminal.type("-")
    terminal.see("2 probes a column")
    terminal.type("+")
    terminal.see("1 probe a column")
    terminal.type("w")
    terminal.see(r"this window \(5 s\)")
    terminal.type("p")
    terminal.see("paused")
    terminal.type("q")
    terminal.see(r"\x1b\[\?1049l")  # The screen that was there before.
    wait_until(lambda: terminal.echoes)
    status, rest = terminal.end()
    assert status == 0
    assert "No prediction by Mathis" in rest


def test_ctrl_c_ends_the_display(terminal: Terminal) -> None:
    terminal.see("since the start")
    terminal.type("\x03")
    status, rest = terminal.end()
    assert status == 0
    assert "Mathis" in rest
