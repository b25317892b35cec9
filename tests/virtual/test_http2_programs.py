"""Where the time of HTTP/2 connections of programs went that nobody here wrote: their windows, by the frames."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from conftest import requires
from e2e_cli import Cli
from peers.certificates import authority
from virtual.conftest import requires_kernel

MS = 1_000_000
RTT_MS = 40
BODY = b"a body that no run has\n"
SIZE = 400_000

Run = Callable[..., dict[str, Any]]


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs a client against nghttpd, which has a page, over 20 ms: a whole window may be in flight at once."""
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    certificate = authority(tmp_path, "authority").issue("server", host="server")
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "page").write_bytes((BODY * SIZE)[:SIZE])

    def of(client: str, *options: str, scheme: str = "http", serves: str = "", page: str = "page") -> dict[str, Any]:
        files = f"{certificate.key_path} {certificate.certificate_path}"
        serve = f"{requires('nghttpd')} {serves} -d {pages} {{port}} {files if scheme == 'https' else '--no-tls'}"
        kept = tmp_path / f"run-{len(list(tmp_path.glob('run-*')))}"
        url = f"{scheme}://server:{{port}}/{page}"
        ended = crosswind(
            "exec", "--clock", "virtual", "--delay", f"{RTT_MS // 2}ms", "--initial-window", "100", *options, "--json",
            "--output", str(kept), "--server", serve, "--", *client.split(), url,
        )  # fmt: skip
        assert ended.status == 0, ended.err
        (repetition,) = json.loads(ended.err.splitlines()[-1])["repetitions"]
        (told,) = repetition["connections"]["longest"]
        assert sum(part["time_ns"] for part in told["parts"]) == told["whole_ns"]
        # Neither keys nor what the programs said are in the run.
        for path in kept.rglob("*"):
            found = path.read_bytes() if path.is_file() else b""
            assert b"TRAFFIC_SECRET" not in found and BODY not in found, path
        return dict(told)

    return of


def in_ms(told: dict[str, Any], *kinds: str) -> float:
    """How long it waited for some parts together."""
    all_ns: int = sum(part["time_ns"] for part in told["parts"] if part["part"].startswith(kinds))
    return all_ns / MS


def the(told: dict[str, Any], name: str) -> dict[str, Any]:
    """A window's part."""
    (found,) = [part for part in told["parts"] if part["part"] == name]
    return dict(found)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_a_stream_waits_a_round_trip_for_each_window_but_the_first(run: Run, scheme: str) -> None:
    told = run("h2load -n1 -c1 -m1 -w15 -W30", scheme=scheme)
    waits = -(-SIZE // 32_767) - 1
    window = the(told, "stream_window")
    assert (window["data"], window["times"], window["window_bytes"]) == ("reverse", waits, 32_767)
    assert window["time_ns"] / MS == pytest.approx(waits * RTT_MS, abs=0.01)
    assert f"waited for the flow control of a stream of at most 32\u202f767 bytes, {waits} times" in told["sentence"]
    # The request, and what TLS needs.
    assert told["turns"] == (1 if scheme == "http" else 6)


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_all_streams_wait_for_the_window_of_the_connection(run: Run, scheme: str) -> None:
    told = run("h2load -n1 -c1 -m1 -w30 -W16", scheme=scheme)
    # Seven windows. TCP's own first one ends a little before that of HTTP/2.
    window = the(told, "connection_window")
    assert (window["data"], window["times"], window["window_bytes"]) == ("reverse", 5, 65_535)
    assert window["time_ns"] / MS == pytest.approx(5 * RTT_MS, abs=0.01)
    assert in_ms(told, "receive_window") == pytest.approx(RTT_MS, abs=0.01)


def test_without_secrets_of_tls_1_3_a_window_is_told_as_round_trips(run: Run, tmp_path: Path) -> None:
    upload = f"curl -sko /dev/null --data-binary @{tmp_path / 'pages/page'}"
    # All streams together have a larger one, so that it is the stream's alone.
    known = run(upload, scheme="https", serves="-W20")
    window = the(known, "stream_window")
    assert (window["data"], window["window_bytes"]) == ("forward", 65_535), known["parts"]
    # TCP's own window may end a little before the first one of HTTP/2.
    assert window["times"] in (5, 6)
    assert window["time_ns"] / MS == pytest.approx(window["times"] * RTT_MS, abs=0.01)
    unknown = run(upload, "--no-keys", scheme="https", serves="-W20")
    assert unknown["whole_ns"] == pytest.approx(known["whole_ns"], abs=MS / 100)
    both = ("propagation", "receive_window")
    assert in_ms(unknown, *both) == pytest.approx(in_ms(known, *both, "stream_window"), abs=0.01)
    assert in_ms(unknown, "stream_window") == 0 and unknown["turns"] >= known["turns"] + 2 * 5
    older = run(f"{upload} --tls-max 1.2", scheme="https", serves="-W20")
    assert in_ms(older, "stream_window", "connection_window") == 0


def test_a_window_that_settings_make_smaller_is_followed(run: Run, tmp_path: Path) -> None:
    # The client sends 65,535 bytes before it knows the server's settings.
    upload = f"curl -so /dev/null --http2-prior-knowledge --data-binary @{tmp_path / 'pages/page'}"
    # A page would be the answer, and be sent meanwhile.
    told = run(upload, serves="-w15", page="none")
    waits = -(-(SIZE - 65_535) // 32_767)
    assert the(told, "stream_window")["times"] == waits
    assert in_ms(told, "stream_window") == pytest.approx(waits * RTT_MS, abs=0.01)
    wide = run(upload, serves="-w20 -W20", page="none")
    assert in_ms(wide, "stream_window", "connection_window") == 0
    assert wide["whole_ns"] / MS == pytest.approx(told["whole_ns"] / MS - (waits - 2) * RTT_MS, abs=0.1)
