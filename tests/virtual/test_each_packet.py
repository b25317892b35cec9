"""What the loss of each packet costs: a run with --each-loss, beside costs found by losing packets by hand."""

import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from crosswind.store.directory import Store
from crosswind.store.record import record_of
from e2e_cli import Cli
from virtual.conftest import requires_kernel
from virtual.shared_runs import LOSSES_OF_UPLOADS, SharedRuns

# Upload of 10 kB, 25 ms each way, connecting included: ms without loss, and added by the loss of each packet.
UPLOADS: dict[str, tuple[int, list[int], list[int]]] = {
    "tcp": (75, [1056, 0, *[50] * 5, 66, 66, 0, 0], [1031, *[0] * 9]),
    "https1": (125, [1056, 0, 254, 0, *[50] * 5, 66, 66, 308, 0, 0, 0, 0], [1031, 0, 253, *[0] * 10]),
    "http3": (125, [1000, 201, *[0] * 6, 7, 7, 50, 50, 57], [1050, 0, 101]),
}
ECHO = ("run", "echo", "--delay", "20ms", "--messages", "10", "--each-loss", "--transport")


def costs(each: dict[str, Any], direction: str) -> list[int]:
    losses = [loss for loss in each["costs"] if loss["direction"] == direction]
    assert [loss["index"] for loss in losses] == list(range(each["packets"][direction]))
    return [round(loss["cost_ns"] / 1e6) for loss in losses]


def test_the_loss_of_each_packet_of_an_upload_costs_what_it_did_by_hand(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], shared_runs: SharedRuns
) -> None:
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    ran = shared_runs(crosswind, *LOSSES_OF_UPLOADS, output="upload")
    assert ran.status == 0, ran.err
    report = crosswind("report", "upload", "--json").json
    for each, (clean, to_server, to_client) in zip(report["each_packet"], UPLOADS.values(), strict=True):
        assert round(each["clean_ns"] / 1e6) == clean
        for direction, expected in (("forward", to_server), ("reverse", to_client)):
            measured = costs(each, direction)
            assert measured[: len(expected)] == expected
            assert not any(measured[len(expected) :])
        assert each["slope_ns"] == sum(loss["cost_ns"] for loss in each["costs"])
        assert each["curve"]["pairs"] == 64
    page = tmp_path / "upload" / "report.html"
    assert page.read_text(encoding="utf-8").count("timeline-of-c000-r01-packet-0-to-the-server-1-056-s") == 2
    tcp = report["each_packet"][0]
    causes = {loss["cause"] for loss in tcp["costs"] if loss["cost_ns"]}
    assert causes == {"syn_timer", "fast_recovery"}
    # Ten kilobytes are seven segments.
    carried = [loss["carries"] for loss in tcp["costs"] if loss["direction"] == "forward"]
    assert (carried[:2], carried[2:9]) == (["SYN", "no data"], [*["1448 B"] * 6, "1312 B"])
    # Repetitions that lose a packet by design are in no estimate.
    assert [cell["repetitions"] for cell in report["cells"]] == [1, 1, 1]


def test_messages_on_one_connection_cost_a_timer_each_and_connecting_stands_apart(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], shared_runs: SharedRuns
) -> None:
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    assert shared_runs(crosswind, *ECHO, "tcp", output="run").status == 0
    (each,) = crosswind("report", "run", "--json").json["each_packet"]
    in_ms = costs(each, "forward") + costs(each, "reverse")
    assert (len(in_ms), in_ms.count(0), in_ms.count(244) + in_ms.count(248)) == (31, 9, 20)
    assert each["of_one_seed"] is None
    # By hand: each 0.1 % of loss costs a message 0.492 ms. The SYN and its answer cost the connection a second each.
    assert (each["exchanges"], each["connections"], each["clean_ns"] / 1e6) == (10, 1, pytest.approx(400, abs=0.1))
    assert each["slope_ns"] / 1e9 == pytest.approx(0.492, abs=0.0005)
    assert each["slope_connect_ns"] / 1e9 == pytest.approx(2.092, abs=0.0005)


def test_a_lost_datagram_is_a_lost_exchange_and_a_sample_of_the_packets_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    (each,) = crosswind(*ECHO, "udp", "--json").json["each_packet"]
    assert (each["packets"], each["slope_ns"]) == ({"forward": 10, "reverse": 10}, None)
    assert {(loss["cost_ns"], loss["failed"]) for loss in each["costs"]} == {(None, 1)}
    # A message or its answer: 2 % of exchanges for each 1 % of loss.
    assert each["slope_failed"] == 2
    (each,) = crosswind(*ECHO, "tcp", "--jitter", "1ms", "--json").json["each_packet"]
    assert each["of_one_seed"] == "packets are delayed at random"
    study = tmp_path / "some.toml"
    study.write_text(
        '[host]\nclock = "virtual"\n[workload]\nkind = "echo"\ntransport = "tcp"\nmessages = 10\n'
        "[[each_packet]]\nmost = 8\n"
    )
    ran = crosswind("run", str(study))
    assert "packets, 10 were tried: " in ran.out
    assert ", estimated from 10 of 28 packets" in ran.out
    # The handshake's packets are in every sample, and stand for themselves alone.
    (sample,) = crosswind("report", "--json").json["each_packet"]
    opening = [loss for loss in sample["costs"] if loss["carries"] in ("SYN", "SYN-ACK")]
    assert sample["slope_connect_ns"] == sum(loss["cost_ns"] for loss in opening)


def test_a_run_without_the_result_of_one_packet_has_no_sum(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], shared_runs: SharedRuns
) -> None:
    requires_kernel()
    crosswind = Cli(tmp_path, capfd)
    assert shared_runs(crosswind, *ECHO, "tcp", output="run").status == 0
    shutil.rmtree(tmp_path / "run/cells/c000-r05")
    left = crosswind("report", "run", "--json", "--fail-if", "mean(loss_cost) > 1us").json
    (each,) = left["each_packet"]
    assert (each["untried"], each["slope_ns"], each["slope_connect_ns"], each["curve"]) == (1, None, None, None)
    assert each["sentence"].startswith("30 of 31 packets were lost in turn, so no sum is known; ")
    assert [asked["verdict"] for asked in left["thresholds"]] == ["inconclusive"]


def test_packets_that_delay_the_end_are_those_that_something_waits_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    requires_kernel()
    words = ("run", "connect", "--delay", "20ms", "--count", "1", "--each-hold", "1ms")
    (each,) = Cli(tmp_path, capfd)(*words, "--transport", "tcp", "--json").json["each_packet"]
    # The SYN and its answer delay the connection by as much. Its ACK and the FINs delay nobody.
    held = {direction: costs(each, direction) for direction in ("forward", "reverse")}
    assert held["forward"][0] == held["reverse"][0] == 1
    assert not any(held["forward"][1:] + held["reverse"][1:])
    assert (each["hold_ns"], each["slope_ns"], each["curve"]) == (1_000_000, None, None)


def test_a_packet_that_an_exchange_waits_for_in_flight_delays_it_by_as_much_as_it_is_late(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    requires_kernel()
    words = ("run", "echo", "--delay", "20ms", "--messages", "3", "--size", "20kB", "--each-hold", "100us")
    crosswind = Cli(tmp_path, capfd)
    (each,) = crosswind(*words, "--transport", "tcp", "--output", "run", "--json").json["each_packet"]
    clean = next(run for run in record_of(Store.read(tmp_path / "run")).cells if run.disturbed is None)
    in_flight = clean.pieces().filter(pl.col("part").str.starts_with("propagation")).select("direction", "index")
    late = {(cost["direction"], cost["index"]): cost["cost_ns"] for cost in each["costs"]}
    assert in_flight.height > 5
    # A timer of the kernel may take up half a microsecond.
    assert all(99_000 < late[packet] <= 100_000 for packet in in_flight.rows())
    assert 0 in late.values()
