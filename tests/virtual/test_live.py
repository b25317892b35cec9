"""`crosswind live` on an emulated path: what it shows is what the path did."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from e2e_cli import Cli
from virtual.conftest import requires_kernel

MS = 10**6
PATH = ("--delay", "10ms", "--loss", "5%")


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_round_trips_and_losses_are_those_of_the_path(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], family: str
) -> None:
    lines, summary = live(tmp_path, capfd, "--family", family, "--", "{address}", "--probes")
    probes = [line for line in lines if line["type"] == "probe"]
    end = lines[-1]
    assert len(probes) == end["sent"] == 400
    assert [probe["sequence"] for probe in probes] == list(range(400))
    assert {round(probe["rtt_ns"] / MS, 2) for probe in probes if probe["rtt_ns"] is not None} == {20.0}
    assert {probe["ttl"] for probe in probes if probe["rtt_ns"] is not None} == {64}
    there, back = (summary[direction]["dropped"].get("loss", 0) for direction in ("forward", "reverse"))
    assert summary["forward"]["packets"] == 400
    assert there > 0
    assert back > 0
    assert end["lost"] == sum(probe["rtt_ns"] is None for probe in probes) == there + back
    assert (end["reordered"], end["duplicates"], end["late"]) == (0, 0, 0)
    assert end["loss"]["low"] < 1 - 0.95**2 < end["loss"]["high"]
    windows = [line for line in lines if line["type"] == "window"]
    assert [(window["sent"], window["start_ns"]) for window in windows] == [(200, 0), (200, 10_000 * MS)]
    assert sum(window["lost"] for window in windows) == end["lost"]


@pytest.mark.parametrize("answer", ["SYN-ACK", "RST"])
def test_a_connection_takes_one_round_trip(tmp_path: Path, capfd: pytest.CaptureFixture[str], answer: str) -> None:
    server = ("--server", f"{sys.executable} -m http.server {{port}}") if answer == "SYN-ACK" else ()
    lines, _ = live(
        tmp_path, capfd, "--loss", "0%", *server, "--port", "8000", "--", "{address}", "--tcp", "8000", "--probes"
    )
    probes = [line for line in lines if line["type"] == "probe"]
    assert len(probes) == 400
    assert {round(probe["rtt_ns"] / MS, 2) for probe in probes} == {20.0}
    assert lines[-1]["lost"] == 0


def live(cwd: Path, capfd: pytest.CaptureFixture[str], *arguments: str) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Runs it in virtual time: arguments of `exec`, `--`, and of `live`. Returns: its lines, and exec's summary."""
    requires_kernel()
    place = arguments.index("--")
    watching = [
        "{python}",
        "-m",
        "crosswind",
        "live",
        *arguments[place + 1 :],
        "--duration",
        "20s",
        "--interval",
        "50ms",
    ]
    ended = Cli(cwd, capfd)(
        "exec", "--clock", "virtual", *PATH, *arguments[:place], "--json", "--", *watching, "--json"
    )
    assert ended.status == 0, ended.err
    summary = json.loads(ended.err.splitlines()[-1])
    (repetition,) = summary["repetitions"]
    return [json.loads(line) for line in ended.out.splitlines()], repetition
