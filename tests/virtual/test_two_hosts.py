"""`crosswind serve` and `run --to` in virtual time, on a path of Crosswind, which knows what it did."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from e2e_cli import Cli
from virtual.conftest import requires_kernel
from virtual.lab import whole_ms

MS = 10**6
TOKEN = "0123456789abcdef0123456789abcdef"

# In the guest, which has a directory of its own: runs, and prints a line for each repetition.
CLIENT = """
import json, os, pathlib, subprocess, sys
import polars
os.chdir("/run/tmp")
done = subprocess.run(
    [sys.executable, "-m", "crosswind", "run", *sys.argv[1:], "--output", "out", "--no-report"], stdout=sys.stderr
)
for cell in sorted(pathlib.Path("out/cells").glob("c*-r??")):
    samples = polars.read_parquet(cell / "samples.parquet")
    result = json.loads((cell / "result.json").read_text())
    print(json.dumps({"result": result, "samples": samples.sort("exchange").to_dicts()}))
sys.exit(done.returncode)
"""

Run = Callable[..., tuple[list[dict[str, Any]], dict[str, Any], str]]


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """Runs `crosswind run --to` on an emulated path to `crosswind serve`.

    Args: options of the path, `--`, and what to run. Returns: its repetitions, what the path did, and standard error.
    """
    requires_kernel()
    token, client = tmp_path / "token", tmp_path / "client.py"
    token.write_text(TOKEN)
    token.chmod(0o600)
    client.write_text(CLIENT)

    def to_server(*arguments: str, family: str = "ipv4") -> tuple[list[dict[str, Any]], dict[str, Any], str]:
        place = arguments.index("--")
        # What a guest inherits of the environment names no crosswind-cell.
        with_cell = ["env", "CROSSWIND_CELL={cell}", "{python}"]
        server = [*with_cell, "-m", "crosswind", "serve", "--port", "{port}", "--token-file", str(token)]
        to = "[{address}]:{port}" if family == "ipv6" else "{address}:{port}"
        wanted = [
            *with_cell,
            str(client),
            *arguments[place + 1 :],
            "--repetitions",
            "1",
            "--to",
            to,
            "--token-file",
            str(token),
        ]
        ended = Cli(tmp_path, capfd)(
            "exec", "--clock", "virtual", "--family", family, "--port", "9470", "--json", *arguments[:place],
            "--server", " ".join(server), "--", *wanted,
        )  # fmt: skip
        assert ended.status == 0, ended.err
        *said, summary = ended.err.splitlines()
        (path,) = json.loads(summary)["repetitions"]
        return [json.loads(line) for line in ended.out.splitlines()], path, "\n".join(said)

    return to_server


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_round_trips_are_those_of_the_path(run: Run, family: str) -> None:
    repetitions, _, said = run(
        "--delay", "10ms", "--", "echo", "--transport", "tcp,udp,http3", "--messages", "20", family=family
    )
    assert "  tcp    reachable, 20 ms" in said.splitlines()
    assert len(repetitions) == 3
    for repetition in repetitions:
        samples = repetition["samples"]
        assert {whole_ms(row["received_ns"] - row["sent_ns"]) for row in samples} == {20}
        assert whole_ms(repetition["result"]["finished"]["network"]["round_trip_ns"]) == 20


def test_delays_of_one_direction_are_those_of_the_path(run: Run) -> None:
    (repetition,), _, _ = run(
        "--forward-delay", "15ms", "--reverse-delay", "5ms", "--", "echo", "--transport", "tcp", "--messages", "20"
    )
    # Client and server are namespaces of one kernel, which has one clock.
    assert repetition["result"]["finished"]["network"]["clocks"]["one_way"]
    samples = repetition["samples"]
    assert {whole_ms(row["request_ns"]) for row in samples} == {15}
    assert {whole_ms(row["reply_ns"]) for row in samples} == {5}


def test_what_tcp_retransmits_stands_for_what_the_path_dropped(run: Run) -> None:
    (repetition,), path, _ = run(
        "--delay", "10ms", "--forward-loss", "2%", "--",
        "transfer", "--transport", "tcp", "--direction", "upload", "--size", "4MB", "--count", "1",
    )  # fmt: skip
    tcp = repetition["result"]["finished"]["network"]["tcp"]
    client, server = tcp["client"], tcp["server"]
    dropped = path["forward"]["dropped"]["loss"]
    # All of the client's TCP connections are those of the cell and the few of its control.
    others = path["tcp_retransmits"]["client"] - client["retransmitted"]
    assert others >= 0
    # What was lost is retransmitted at least once; the path has dropped segments of the others, and acknowledgements.
    assert dropped - 2 * max(others, 1) <= client["retransmitted"]
    # Few were retransmitted without need: the share stands for the loss of 2 %, of at least 2763 segments.
    assert 0.01 < client["retransmitted"] / client["segments_sent"] < 0.04
    assert client["segments_sent"] >= 2763
    assert (server["retransmitted"], client["shortest_round_trip_ns"]) == (0, 20 * MS)
    # The client was busy with its transfer, up to the last acknowledgement; its kernel counts ticks.
    took_ns = max(row["received_ns"] for row in repetition["samples"]) - repetition["samples"][0]["sent_ns"]
    assert client["busy_ns"] == pytest.approx(took_ns, abs=20 * MS)
    assert client["receive_window_limited_ns"] + client["send_buffer_limited_ns"] <= client["busy_ns"]


def test_a_loss_that_blocks_udp_alone_is_told_before_the_run(run: Run) -> None:
    # Datagrams of QUIC's handshake have 1200 bytes and more, and do not pass a path of 600.
    repetitions, _, said = run(
        "--delay", "10ms", "--mtu", "600", "--", "echo", "--transport", "tcp,http3", "--messages", "5"
    )
    assert [line for line in said.splitlines() if "http3" in line and "blocked: UDP" in line]
    assert [one["result"]["parameters"]["workload"]["transport"] for one in repetitions] == ["tcp"]
