"""Where the time of QUIC connections of a program went that nobody here wrote, against the program's own log."""

import json
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import missing
from crosswind.peers.registry import PEERS
from e2e_cli import Cli
from peers.certificates import authority
from virtual.conftest import requires_kernel

PROGRAM = Path(__file__).parent / "quic" / "aioquic_program.py"
MS = 1_000_000
DELAY_MS = 20


@dataclass(frozen=True)
class Ran:
    """A connection as `exec` tells it, its pieces as `explain` does, and the events of the server's qlog."""

    told: dict[str, Any]
    pieces: list[dict[str, Any]]
    server_events: list[dict[str, Any]]

    def parts_ms(self) -> dict[str, float]:
        """By part, without what is less than 0.01 ms."""
        all_parts: dict[str, int] = {}
        for part in self.told["parts"]:
            all_parts[part["part"]] = all_parts.get(part["part"], 0) + part["time_ns"]
        return {part: ns / MS for part, ns in all_parts.items() if ns >= MS / 100}

    def sent_again_ms(self, delay_ms: int) -> tuple[float, float]:
        """When the server sent first what it sent twice, and when again, since the client's first packet."""
        began = self.server_events[0]["time"] - delay_ms
        sent: dict[tuple[int, int], float] = {}
        for event in self.server_events:
            if event["name"] != "transport:packet_sent":
                continue
            for frame in event["data"]["frames"]:
                if frame["frame_type"] == "stream":
                    place = (frame["stream_id"], frame["offset"])
                    if place in sent:
                        return sent[place] - began, event["time"] - began
                    sent[place] = event["time"]
        raise AssertionError("it sent nothing twice")


Run = Callable[..., Ran]


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs the program over 20 ms: a request of each size."""
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    certificate = authority(tmp_path, "authority").issue("server", host="server")

    def of(
        sizes: str,
        *options: str,
        delay: str = f"{DELAY_MS}ms",
        lost: str = "",
        settings: dict[str, Any] | None = None,
        before: str = "",
    ) -> Ran:
        (tmp_path / "lost").write_text(lost, encoding="utf-8")
        program = f"{before}{sys.executable} {PROGRAM}"
        kept = tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}"
        serve = f"{program} serve {{port}} {certificate.certificate_path} {certificate.key_path} {{output}}/server.qlog"
        ended = crosswind(
            "exec", "--clock", "virtual", "--delay", delay, "--reverse-lose", "@lost", *options, "--json",
            "--output", str(kept), "--server", serve, "--", *program.split(), "fetch", "{server}", "{port}", sizes,
            "{output}/client.qlog", json.dumps(settings or {}),
        )  # fmt: skip
        assert ended.status == 0, ended.err
        (repetition,) = json.loads(ended.err.splitlines()[-1])["repetitions"]
        (told,) = repetition["connections"]["longest"]
        assert sum(part["time_ns"] for part in told["parts"]) == told["whole_ns"]
        explained = json.loads(crosswind("explain", str(kept), "--json").out)
        log = json.loads((kept / "cells/c000-r00/output/server.qlog").read_text(encoding="utf-8"))
        # Keys are nowhere in the run.
        for path in kept.rglob("*"):
            assert not path.is_file() or b"TRAFFIC_SECRET" not in path.read_bytes(), path
        return Ran(told, explained["connections"][0]["pieces"], log["traces"][0]["events"])

    return of


SETUP = {"security_handshake": 2 * DELAY_MS, "closing": DELAY_MS}


def test_a_request_takes_a_handshake_and_a_round_trip(run: Run) -> None:
    ran = run("1000")
    assert ran.parts_ms() == pytest.approx(
        {**SETUP, "propagation_forward": DELAY_MS, "propagation_reverse": DELAY_MS}, abs=0.01
    )
    assert (ran.told["protocol"], ran.told["beginning"], ran.told["turns"]) == ("quic", "handshake", 1)


def test_keys_and_connection_ids_that_change_are_followed(run: Run) -> None:
    ran = run("1000,1000,1000", settings={"changes": True})
    assert ran.parts_ms() == pytest.approx(
        {**SETUP, "propagation_forward": 3 * DELAY_MS, "propagation_reverse": 3 * DELAY_MS}, abs=0.01
    )
    assert sum(event["name"] == "security:key_updated" for event in ran.server_events) > 4


@pytest.mark.parametrize(
    ("delay", "lost", "part"),
    [
        ("20ms", "9", "time_threshold"),
        ("200ms", "7", "packet_threshold"),
        ("20ms", "12", "probe_timer"),
    ],
)
def test_a_loss_has_its_name_and_lasts_as_long_as_the_program_says(run: Run, delay: str, lost: str, part: str) -> None:
    ran = run("1000,10000", delay=delay, lost=lost)
    (piece,) = [piece for piece in ran.pieces if piece["part"] == part]
    since_first_packet = [(piece[time] - ran.told["from_ns"]) / MS for time in ("from_ns", "to_ns")]
    # Its log counts milliseconds since 1970 in floats, whose steps are 0.0002, and each wait ends a little late.
    assert since_first_packet == pytest.approx(ran.sent_again_ms(int(delay.removesuffix("ms"))), abs=0.01)
    assert ran.told["again_reverse"] >= 1


def test_flow_control_is_told_by_the_limit_that_held(run: Run) -> None:
    # The server may send 5000 bytes, and hears a round trip later that it may send as many more: the client doubles a
    # limit when half of it is used. So it waits for 10,000, 20,000 and 40,000.
    stream = run("30000", settings={"max_stream_data": 5000})
    all_streams = run("30000", settings={"max_data": 5000})
    for ran, part in ((stream, "stream_window"), (all_streams, "connection_window")):
        (window,) = [row for row in ran.told["parts"] if row["part"] == part]
        assert (window["data"], window["times"]) == ("reverse", 3)
        assert window["time_ns"] / MS == pytest.approx(3 * 2 * DELAY_MS, abs=0.01)
        assert 10_000 <= window["window_bytes"] < 20_000


def test_without_keys_nothing_of_a_host_has_a_name(run: Run) -> None:
    known = run("1000,10000", lost="9")
    for unknown in (
        run("1000,10000", "--no-keys", lost="9"),
        run("1000,10000", lost="9", before="env -u SSLKEYLOGFILE "),
    ):
        assert unknown.told["protocol"] == "udp"
        assert unknown.told["whole_ns"] == pytest.approx(known.told["whole_ns"], abs=MS)
    assert not {part["part"] for part in unknown.told["parts"]} & {"server_host", "client_host", "datagram_loss"}
    assert unknown.parts_ms()["unknown"] > 0


def test_each_program_has_a_file_of_its_own_that_goes_with_the_cell(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    # What is in it may be anything.
    show = 'echo "$SSLKEYLOGFILE" && stat -c %a "$SSLKEYLOGFILE" && echo CLIENT_TRAFFIC_SECRET_0 >> "$SSLKEYLOGFILE"'
    command = ["exec", "--clock", "virtual", "--output", str(tmp_path / "run")]
    ended = crosswind(*command, "--server", f"sh -c '{show}; sleep 9'", "--", "sh", "-c", show)
    assert ended.status == 0, ended.err
    written = (tmp_path / "run/cells/c000-r00/server.out").read_text(encoding="utf-8").splitlines()
    places = [lines[0] for lines in (written, ended.out.splitlines())]
    assert [lines[1] for lines in (written, ended.out.splitlines())] == ["600", "600"]
    assert len(set(places)) == 2
    assert not any(Path(place).exists() for place in places)
    without = crosswind("exec", "--clock", "virtual", "--no-keys", "--", "sh", "-c", 'test -z "$SSLKEYLOGFILE"')
    assert without.status == 0


@pytest.mark.timeout(600)
def test_a_browser_that_loads_a_page_over_http_3_is_read(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    requires_kernel()
    lack = PEERS["chromium"].missing("http3")
    if lack is not None:
        missing(f"{lack.problem}: {lack.hint}")
    crosswind = Cli(tmp_path, capfd)
    kept = str(tmp_path / "run")
    page = ["run", "page", "--transport", "http3", "--client", "chromium", "--count", "1", "--repetitions", "1"]
    ended = crosswind(*page, "--clock", "virtual", "--delay", f"{DELAY_MS}ms", "--no-report", "--output", kept)
    assert ended.status == 0, ended.err
    connections = json.loads(crosswind("explain", kept, "--slowest", "20", "--json").out)["connections"]
    assert connections
    for found in connections:
        of_handshake = [part["time_ns"] for part in found["parts"] if part["part"] == "security_handshake"]
        assert (found["protocol"], found["beginning"]) == ("quic", "handshake")
        assert sum(of_handshake) / MS == pytest.approx(2 * DELAY_MS, abs=0.01)
        waits = {part["part"] for part in found["parts"]}
        assert "congestion_window" in waits
        assert "datagram_loss" not in waits
