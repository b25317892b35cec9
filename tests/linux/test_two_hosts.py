"""`crosswind serve` and `run --to` between namespaces that stand for machines, with a network between them."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import requires_binary
from linux.lab import wait_until
from linux.machines import SERVER, TOKEN, Machines, machines

OTHER_TOKEN = "ffffffffffffffffffffffffffffffff"


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Machines]:
    """A client's and a server's machine."""
    requires_binary()
    with machines(tmp_path) as made:
        yield made


def echo(*more: str, to: str = SERVER["ipv4"], messages: int = 20, repetitions: int = 1) -> tuple[str, ...]:
    return (
        "run",
        "echo",
        "--to",
        to,
        "--messages",
        str(messages),
        "--repetitions",
        str(repetitions),
        "--output",
        "out",
        "--no-report",
        *more,
    )


def results(pair: Machines) -> list[dict[str, Any]]:
    """What the cells of the run have left."""
    return [json.loads(path.read_text()) for path in sorted((pair.cwd / "out" / "cells").glob("c*-r??/result.json"))]


def events_of(pair: Machines, server: Any) -> list[dict[str, Any]]:
    """What a server has said, once it was ended."""
    server.send_signal(signal.SIGINT)
    out, err = server.communicate()
    assert (server.returncode, err) == (0, "")
    return [json.loads(line) for line in out.splitlines()]


def wait_for_start(server: "subprocess.Popen[str]", key: str) -> None:
    """Reads what a server says until a cell has begun."""
    assert server.stdout is not None
    for line in server.stdout:
        event = json.loads(line)
        if (event["event"], event.get("id")) == ("cell_started", key):
            return
    raise AssertionError(f"the server ended without the cell {key}")


def child_of(process: "subprocess.Popen[str]") -> int:
    """The crosswind-cell of a server."""
    (child,) = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text(encoding="ascii").split()
    return int(child)


# --- what works -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("family", "some", "count"), [("ipv4", (), 16), ("ipv6", ("--transport", "tcp,udp"), 2)])
def test_every_transport_runs_between_two_machines(
    pair: Machines, family: str, some: tuple[str, ...], count: int
) -> None:
    server = pair.serve()
    address = f"[{SERVER['ipv6']}]:9470" if family == "ipv6" else SERVER["ipv4"]
    done = pair.crosswind("reach", address, *some, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    rows = json.loads(done.stdout)["transports"]
    assert len(rows) == count
    assert [row["transport"] for row in rows if not row["reachable"]] == []
    ended = [event for event in events_of(pair, server) if event["event"] == "cell_ended"]
    assert [event["outcome"] for event in ended] == ["done"] * count


def test_a_run_leaves_what_its_ends_know(pair: Machines) -> None:
    server = pair.serve()
    done = pair.crosswind(*echo("--transport", "tcp,udp"))
    assert done.returncode == 0, done.stderr
    of_tcp, of_udp = (result["finished"] for result in results(pair))
    assert (of_tcp["ledger"], of_tcp["fidelity"], of_tcp["traffic"]) == (None, None, None)
    assert of_tcp["network"]["server"] == "10.9.2.2:9470"
    assert of_tcp["network"]["client"] == "10.9.1.2"
    assert of_tcp["network"]["tcp"]["client"]["connections"] == 1
    assert of_tcp["network"]["tcp"]["client"]["segments_sent"] >= 20
    assert of_udp["network"]["tcp"] is None
    # Both namespaces are of one kernel, which has one clock.
    assert of_tcp["network"]["clocks"]["method"] == "same kernel"
    assert of_tcp["samples"]["ok"] == of_udp["samples"]["ok"] == 20
    ended = [event for event in events_of(pair, server) if event["event"] == "cell_ended"]
    assert [event["outcome"] for event in ended] == ["done"] * 4
    assert not [
        path for path in (pair.cwd / "out").rglob("*") if path.is_file() and TOKEN.encode() in path.read_bytes()
    ]


@pytest.mark.parametrize(
    "workload",
    [
        ("transfer", "--transport", "tcp,http3", "--size", "100kB", "--direction", "upload,download"),
        ("connect", "--transport", "tls,quic", "--count", "5", "--resumption", "session"),
        ("multiplex", "--transport", "websocket,webtransport", "--messages", "40", "--message-rate", "200"),
        ("page", "--transport", "https1,http2,http3", "--count", "2"),
    ],
    ids=lambda workload: workload[0],
)
def test_every_workload_runs_between_two_machines(pair: Machines, workload: tuple[str, ...]) -> None:
    pair.serve()
    done = pair.crosswind("run", *workload, "--repetitions", "1", "--to", SERVER["ipv4"], "--output", "out", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["valid"]
    assert sum(cell["lost"] for cell in result["cells"]) == 0


def test_messages_wait_behind_uploads_beside_them(pair: Machines) -> None:
    """In the queue of a link of 20 Mbit/s, which holds 100 ms of packets. Beside them is also a download over QUIC."""
    pair.do("router", "tc qdisc add dev to-server root tbf rate 20mbit burst 5kb limit 250kb")
    server = pair.serve()
    flows = (
        "transfer --name upload --transport tcp --congestion-control cubic --count 0,2",
        "transfer --name download --transport quic --direction download --stop 500ms",
    )
    beside = [word for flow in flows for word in ("--beside", flow)]
    rate = ("--mode", "open", "--message-rate", "50")
    done = pair.crosswind(*echo("--transport", "udp", *rate, *beside, messages=100))
    assert done.returncode == 0, done.stderr
    alone, loaded = (result["finished"] for result in results(pair))
    medians = [
        pl.read_parquet(path).filter(flow=0).select((pl.col("received_ns") - pl.col("sent_ns")).median()).item()
        for path in sorted((pair.cwd / "out" / "cells").glob("c*-r00/samples.parquet"))
    ]
    assert medians[0] < 10e6
    assert 30e6 < medians[1] < 150e6
    assert [(flow["name"], flow["port"], flow["samples"]["ok"]) for flow in alone["flows"]] == [("download", 9472, 1)]
    assert [(flow["name"], flow["port"]) for flow in loaded["flows"]] == [
        ("upload", 9472),
        ("upload", 9473),
        ("download", 9474),
    ]
    assert [flow["client_socket"]["congestion_control"] for flow in loaded["flows"][:2]] == ["cubic", "cubic"]
    assert loaded["flows"][2]["ended_ns"] == pytest.approx(500e6, abs=200e6)
    ended = [event for event in events_of(pair, server) if event["event"] == "cell_ended"]
    assert [event["outcome"] for event in ended] == ["done"] * len(ended)
    # The transport is tried before the run, which takes a cell of its own.
    assert len(ended) == 1 + 2 + 4
    assert max(event["received_bytes"] for event in ended) > 500_000


def test_both_ends_keep_what_they_sent_and_received(pair: Machines) -> None:
    pair.serve()
    done = pair.crosswind(*echo("--transport", "tcp", "--capture"))
    assert done.returncode == 0, done.stderr
    kept = {path.name for path in (pair.cwd / "out" / "cells" / "c000-r00").iterdir()}
    assert {"client.pcapng", "server.pcapng"} <= kept


def test_a_link_that_is_too_short_for_tcp_shows_as_inferred_loss(pair: Machines) -> None:
    pair.do("router", "tc qdisc add dev to-server root tbf rate 20mbit burst 5kb limit 10kb")
    pair.serve()
    done = pair.crosswind(
        "run", "transfer", "--to", SERVER["ipv4"], "--transport", "tcp", "--congestion-control", "reno",
        "--direction", "upload", "--size", "4MB", "--count", "1", "--repetitions", "6", "--output", "out", "--json",
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    (cell,) = json.loads(done.stdout)["cells"]
    there = cell["retransmitted"].pop("forward")
    # 4 MB take 2763 segments of 1448 bytes; a queue of 10 kB drops some of every window.
    assert there["segments"] >= 6 * 2763
    assert there["retransmitted"] > 0
    # The server has sent a confirmation for each upload, over a link that has room.
    assert all(back["retransmitted"] == 0 for back in cell["retransmitted"].values())
    assert cell["estimates"]["goodput"]["mean"]["value"] < 20e6


# --- what goes wrong --------------------------------------------------------------------------------------------------


def test_a_firewall_that_drops_udp_blocks_transports_over_it(pair: Machines) -> None:
    pair.do("router", "ip rule add ipproto udp blackhole")
    pair.serve()
    done = pair.crosswind(*echo("--transport", "tcp,udp,http3"))
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert "  udp    blocked: UDP 9471 gets no answer" in lines
    assert "  http3  blocked: UDP 9471 gets no answer" in lines
    assert len(results(pair)) == 1
    notes = json.loads((pair.cwd / "out/manifest.json").read_text())["presentation"]["left_out"]
    assert "No cells over http3, which is blocked: UDP 9471 gets no answer." in notes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((SERVER["ipv4"],), "cannot reach 10.9.2.2:9470: Connection refused"),
        (("10.9.2.9",), "cannot reach 10.9.2.9:9470"),
        (("no-such-host.invalid",), "no-such-host.invalid"),
    ],
)
def test_without_a_server_there_is_one_message(pair: Machines, arguments: tuple[str, ...], message: str) -> None:
    done = pair.crosswind("reach", *arguments, "--transport", "tcp")
    error, hint = done.stderr.splitlines()
    assert done.returncode == 1
    assert error.startswith("error: ")
    assert message in error
    assert hint.startswith("hint: ")


def test_a_wrong_token_is_refused_on_both_sides(pair: Machines) -> None:
    server = pair.serve()
    done = pair.crosswind("reach", SERVER["ipv4"], "--transport", "tcp", token=OTHER_TOKEN)
    error, hint = done.stderr.splitlines()
    assert done.returncode == 1
    assert "token" in error
    assert hint.startswith("hint: ")
    (refused,) = [event for event in events_of(pair, server) if event["event"] == "refused"]
    assert "token" in refused["reason"]
    assert "10.9.1.2" in refused["peer"]


def test_another_version_is_refused(pair: Machines) -> None:
    server = pair.serve()
    hello = [sys.executable, str(Path(__file__).with_name("control_client.py")), SERVER["ipv4"], "9470", "9.9.9"]
    done = subprocess.run(
        pair.inside("client", *hello), env={**os.environ, "CROSSWIND_TOKEN": TOKEN}, capture_output=True, check=False
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert (answer["say"], answer["kind"]) == ("refused", "network")
    assert answer["message"].startswith("the server is Crosswind ")
    assert answer["message"].endswith(", the client is 9.9.9")
    assert answer["hint"] == "install the same version on both machines"
    (refused,) = [event for event in events_of(pair, server) if event["event"] == "refused"]
    assert refused["reason"] == answer["message"]


def test_a_busy_server_says_so(pair: Machines) -> None:
    server = pair.serve()
    client = pair.start("client", *echo("--mode", "open", "--message-rate", "20", messages=1000))
    wait_for_start(server, "c000-r00")
    done = pair.crosswind("reach", SERVER["ipv4"], "--transport", "tcp")
    error, hint = done.stderr.splitlines()
    assert done.returncode == 1
    assert "measures for another client" in error
    assert hint.startswith("hint: ")
    client.send_signal(signal.SIGINT)
    assert client.wait() == 130


def test_a_server_that_is_killed_ends_the_run_which_goes_on_with_another(pair: Machines) -> None:
    server = pair.serve()
    client = pair.start("client", *echo(messages=2000, repetitions=50))
    wait_until(lambda: len(list((pair.cwd / "out" / "cells").glob("c*-r??"))) > 1)
    os.kill(child_of(server), signal.SIGKILL)
    out, err = client.communicate()
    assert client.returncode == 1, out + err
    error, hint = err.splitlines()[-2:]
    assert error.startswith("error: ")
    assert hint.endswith("continue later: crosswind run --resume out")
    kept = len(results(pair))
    assert 1 < kept < 50
    server.communicate()
    pair.serve()
    done = pair.crosswind("run", "--resume", "out", "--no-report", "--set", "study.repetitions=50")
    assert done.returncode == 2, "a run that goes on takes no settings"
    done = pair.crosswind("run", "--resume", "out", "--no-report")
    assert done.returncode == 0, done.stderr
    assert len(results(pair)) == 50


def test_a_link_that_goes_down_ends_the_run_and_what_was_finished_is_kept(pair: Machines) -> None:
    server = pair.serve()
    # Cells that last for seconds, so that the link goes down within one.
    client = pair.start("client", *echo("--mode", "open", "--message-rate", "1000", messages=4000, repetitions=3))
    wait_for_start(server, "c000-r01")
    pair.do("router", "ip link set to-server down")
    out, err = client.communicate()
    assert client.returncode == 1, out + err
    error, hint = err.splitlines()[-2:]
    assert error.startswith("error: ")
    assert "10.9.2.2:9470" in error
    assert hint.endswith("continue later: crosswind run --resume out")
    assert len(results(pair)) == 1


def test_a_link_that_goes_down_is_noticed_while_exchanges_time_out(pair: Machines) -> None:
    server = pair.serve()
    client = pair.start("client", *echo("--timeout", "1s", messages=400_000))
    wait_for_start(server, "c000-r00")
    pair.do("router", "ip link set to-server down")
    # Otherwise every exchange would wait for a second each.
    out, err = client.communicate()
    assert client.returncode == 1, out + err
    assert "10.9.2.2:9470" in err.splitlines()[-2]


def test_ctrl_c_ends_a_server_and_leaves_nothing(pair: Machines) -> None:
    server = pair.serve()
    child = child_of(server)
    server.send_signal(signal.SIGINT)
    out, err = server.communicate()
    assert (server.returncode, out, err) == (0, "", "")
    assert not Path(f"/proc/{child}").exists()


def test_a_port_in_use_is_one_message(pair: Machines) -> None:
    pair.serve()
    other = pair.start("server", "serve", "--json", "--token-file", str(pair.cwd / "served-token"), token=None)
    out, err = other.communicate()
    error, hint = err.splitlines()
    assert (other.returncode, out) == (1, "")
    assert error.startswith("error: ")
    assert "9470" in error
    assert hint.startswith("hint: ")
