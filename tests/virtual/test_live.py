"""`crosswind live` on an emulated path: what it shows is what the path did."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import REAL_CELL, requires
from e2e_cli import Cli
from virtual.conftest import requires_kernel

MS = 10**6
DELAY, LOSS = ("--delay", "10ms"), ("--loss", "5%")
OURS = f"env CROSSWIND_CELL={REAL_CELL}"


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_round_trips_and_losses_are_those_of_the_path(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], family: str
) -> None:
    lines, summary = live(tmp_path, capfd, "--family", family, "--", "{address}", "--probes", "--window", "5s")
    probes = [line for line in lines if line["type"] == "probe"]
    end = lines[-1]
    assert len(probes) == end["sent"] == 200
    assert [probe["sequence"] for probe in probes] == list(range(200))
    assert {round(probe["rtt_ns"] / MS, 2) for probe in probes if probe["rtt_ns"] is not None} == {20.0}
    assert {probe["ttl"] for probe in probes if probe["rtt_ns"] is not None} == {64}
    there, back = (summary[direction]["dropped"].get("loss", 0) for direction in ("forward", "reverse"))
    assert summary["forward"]["packets"] == 200
    assert there > 0
    assert back > 0
    assert end["lost"] == sum(probe["rtt_ns"] is None for probe in probes) == there + back
    assert (end["reordered"], end["duplicates"], end["late"]) == (0, 0, 0)
    assert end["loss"]["low"] < 1 - 0.95**2 < end["loss"]["high"]
    windows = [line for line in lines if line["type"] == "window"]
    assert [(window["sent"], window["start_ns"]) for window in windows] == [(100, 0), (100, 5_000 * MS)]
    assert sum(window["lost"] for window in windows) == end["lost"]


@pytest.mark.parametrize("answer", ["SYN-ACK", "RST"])
def test_a_connection_takes_one_round_trip(tmp_path: Path, capfd: pytest.CaptureFixture[str], answer: str) -> None:
    server = ("--server", f"{sys.executable} -m http.server {{port}}") if answer == "SYN-ACK" else ()
    lines, _ = live(
        tmp_path, capfd, "--loss", "0%", *server, "--port", "8000", "--", "{address}", "--tcp", "8000", "--probes",
        status=0 if answer == "SYN-ACK" else 1,
    )  # fmt: skip
    probes = [line for line in lines if line["type"] == "probe"]
    assert len(probes) == 200
    assert {round(probe["rtt_ns"] / MS, 2) for probe in probes} == {20.0}
    end = lines[-1]
    assert (end["lost"], end["answered"], end["refused"]) == ((0, 200, 0) if answer == "SYN-ACK" else (0, 0, 200))


@pytest.fixture
def token(tmp_path: Path) -> Path:
    """The file of a token that a server and its client share."""
    file = tmp_path / "token"
    file.write_text("0123456789abcdef0123456789abcdef\n", encoding="ascii")
    file.chmod(0o600)
    return file


def with_server(token: Path, *path: str) -> tuple[str, ...]:
    """Arguments of `exec` for a path to `crosswind serve`."""
    served = f"{OURS} {{python}} -m crosswind serve --token-file {token}"
    return ("--reverse-loss", "2%", *path, "--port", "9470", "--server", served)


def dropped(run: Path, host: str, display: str) -> int:
    """How many packets of a host the path dropped, by the comments in its capture."""
    (cell,) = (run / "cells").iterdir()
    command = [requires("tshark"), "-r", str(cell / f"{host}.pcapng"), "-n", "-T", "fields", "-e", "frame.comment"]
    listed = subprocess.run([*command, "-Y", display], check=True, capture_output=True, text=True)
    return sum("dropped" in line for line in listed.stdout.splitlines())


@pytest.mark.parametrize("transport", ["udp", "quic-datagram"])
def test_losses_there_and_back_are_those_that_the_path_dropped(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], token: Path, transport: str
) -> None:
    run = tmp_path / "run"
    captured = ("--output", str(run), "--capture", str(tmp_path / "client.pcapng"))
    words = ("{address}", "--transport", transport, "--token-file", str(token), "--probes")
    lines, _ = live(tmp_path, capfd, *with_server(token, *captured), "--", *words, pinned=True)
    end, probes = lines[-1], [line for line in lines if line["type"] == "probe"]
    there, back = (round(end[name]["value"] * end[name]["n"]) for name in ("loss_there", "loss_back"))
    # Of those that are lost at the very end no later answer tells.
    at_the_end = next(at for at, probe in enumerate(reversed(probes)) if probe["rtt_ns"] is not None)
    assert (end["sent"], end["lost"]) == (200, there + back + at_the_end)
    assert {round(probe["rtt_ns"] / MS, 1) for probe in probes if probe["rtt_ns"] is not None} == {20.0}
    assert min(there, back) > 0
    told = [line["lost"] for line in lines if line["type"] == "way"]
    assert (told.count("there"), told.count("back")) == (there, back)
    dropped_there = dropped(run, "client", "udp.dstport == 9471")
    dropped_back = dropped(run, "server", "udp.srcport == 9471")
    assert there <= dropped_there
    assert back <= dropped_back
    if transport == "udp":
        # The packets of QUIC are handshakes and acknowledgements as well, and its keys hide which are which.
        assert dropped_there + dropped_back == end["lost"]
    assert end["loss_there"]["low"] < 0.05 < end["loss_there"]["high"]
    assert end["loss_back"]["low"] < 0.02 < end["loss_back"]["high"]
    assert {model["direction"] for model in end["tcp"]["models"]} == {"download", "upload"}


def test_over_a_stream_nothing_is_lost_and_what_was_dropped_takes_longer(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], token: Path
) -> None:
    words = ("{address}", "--transport", "tcp", "--token-file", str(token), "--timeout", "10s")
    lines, _ = live(tmp_path, capfd, *with_server(token), "--", *words, pinned=True)
    end = lines[-1]
    assert (end["sent"], end["lost"], end["reordered"]) == (200, 0, None)
    assert end["smallest_ns"] == pytest.approx(20 * MS, abs=0.1 * MS)
    # A segment that was dropped is retransmitted after a timeout, or once later segments were acknowledged.
    assert end["largest_ns"] > 60 * MS


def test_what_tcp_gets_is_what_the_link_carries(tmp_path: Path, capfd: pytest.CaptureFixture[str], token: Path) -> None:
    words = ("{address}", "--tcp", "9470", "--probe", "5s", "--token-file", str(token), "--rate", "10mbit")
    served = f"{OURS} {{python}} -m crosswind serve --token-file {token}"
    path = ("--loss", "0%", "--rate", "10mbit", "--queue", "100p", "--port", "9470", "--server", served)
    lines, summary = live(tmp_path, capfd, *path, "--", *words, pinned=True)
    measured = lines[-1]["tcp"]["measured"]
    assert [each["direction"] for each in measured] == ["download", "upload"]
    assert lines[0]["measured"] == measured
    for each in measured:
        # Of 1500 bytes on the link 1448 are data; slow start takes less than a tenth of the five seconds.
        assert 0.9 * 10e6 * 1448 / 1500 < each["value"] <= 10e6 * 1448 / 1500
        assert each["time_ns"] == pytest.approx(5e9, rel=0.1)
        assert (each["low"], each["high"], each["n"]) == (None, None, 1)
        assert each["received_bytes"] * 8e9 / each["time_ns"] == pytest.approx(each["value"])
        assert each["retransmitted"] >= 0
    assert summary["reverse"]["bytes"] > measured[0]["received_bytes"]
    assert summary["forward"]["bytes"] > measured[1]["received_bytes"]


def live(
    cwd: Path, capfd: pytest.CaptureFixture[str], *arguments: str, pinned: bool = False, status: int = 0
) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Runs it in virtual time: arguments of `exec`, `--`, and of `live`. Returns: its lines, and exec's summary.

    Args: pinned: whether it uses the crosswind-cell that is tested, which it would not find by itself. status: of exec.
    """
    requires_kernel()
    place = arguments.index("--")
    watching = [
        *(OURS.split() if pinned else ()),
        "{python}",
        "-m",
        "crosswind",
        "live",
        *arguments[place + 1 :],
        "--duration",
        "10s",
        "--interval",
        "50ms",
    ]
    path = (*DELAY, *(() if "--loss" in arguments[:place] else LOSS), *arguments[:place])
    ended = Cli(cwd, capfd)("exec", "--clock", "virtual", *path, "--json", "--", *watching, "--json")
    assert ended.status == status, ended.err
    summary = json.loads(ended.err.splitlines()[-1])
    (repetition,) = summary["repetitions"]
    return [json.loads(line) for line in ended.out.splitlines()], repetition
