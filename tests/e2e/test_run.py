"""Runs from the command line to the result, over the real path."""

import json
import subprocess

import jsonschema
import polars as pl
import pytest

from conftest import requires
from crosswind.findings.result import schema_text
from e2e_cli import ANY_FIDELITY, Cli
from virtual.conftest import requires_kernel

ECHO = ("run", "echo", "--repetitions", "1", "--delay", "5ms", *ANY_FIDELITY)


@pytest.mark.parametrize(("clock", "losses"), [("real", ["0%"]), ("virtual", ["0%", "10%"])])
def test_an_echo_from_options_is_accounted_for_to_the_last_packet(
    crosswind: Cli, clock: str, losses: list[str]
) -> None:
    if clock == "virtual":
        requires_kernel()
    echo = (*ECHO, "--clock", clock, "--transport", "tcp,udp", "--loss", ",".join(losses), "--messages", "50", "--json")
    ended = crosswind(*echo)
    assert ended.status == 0, ended.err
    jsonschema.validate(ended.json, json.loads(schema_text()))
    found = [(cell["levels"], cell) for cell in ended.json["cells"]]
    # What has one level is no factor.
    cells = {(levels.get("path.loss", "0%"), levels["workload.transport"]): cell for levels, cell in found}
    assert set(cells) == {(loss, transport) for loss in losses for transport in ("tcp", "udp")}
    for (loss, transport), cell in cells.items():
        assert cell["ledger"]["closed"]
        for way in ("forward", "reverse"):
            ledger = cell["ledger"][way]
            assert ledger["in"] == ledger["delivered"] + sum(ledger["dropped"].values()) + ledger["queued"]
            assert ledger["in"] > 0
            if loss == "0%":
                assert {"loss", "mtu", "queue", "device"} <= ledger["dropped"].keys()
                assert not any(ledger["dropped"].values())
        # No reply can be back before it has travelled both ways.
        assert cell["estimates"]["rtt"]["median"]["value"] >= 10_000_000
        # UDP repairs nothing: an exchange is lost when its request or its reply was.
        lost = sum(cell["ledger"][way]["dropped"]["loss"] for way in ("forward", "reverse"))
        assert (cell["n"], cell["lost"]) == (50, lost if transport == "udp" else 0)
    assert cells["0%", "udp"]["ledger"]["forward"]["in"] == 50
    assert all(cells[loss, "udp"]["lost"] > 0 for loss in losses if loss != "0%")


def test_the_same_seed_drops_the_same_packets(crosswind: Cli) -> None:
    requires_kernel()
    lossy = ("--transport", "udp", "--loss", "30%", "--messages", "40", "--timeout", "50ms")
    arguments = (*ECHO, *lossy, "--clock", "virtual", "--json")
    lost = [crosswind(*arguments, "--seed", seed).json["cells"][0]["ledger"] for seed in ("7", "7", "8")]
    assert lost[0] == lost[1]
    assert lost[0] != lost[2]


def test_packets_and_captures_agree_with_the_ledger(crosswind: Cli) -> None:
    tshark = requires("tshark")
    ended = crosswind(
        *ECHO, "--transport", "udp", "--loss", "20%", "--messages", "60", "--timeout", "50ms",
        "--packets", "--capture", "--output", "here", "--json",
    )  # fmt: skip
    assert ended.status == 0, ended.err
    ledger = ended.json["cells"][0]["ledger"]
    place = crosswind.cells("here") / "c000-r00"
    packets = pl.read_parquet(place / "packets.parquet")
    for way in ("forward", "reverse"):
        rows = packets.filter(pl.col("direction") == way)
        assert rows.height == ledger[way]["in"]
        assert rows.filter(pl.col("cause") == "loss").height == ledger[way]["dropped"]["loss"]

    def count(file: str, display_filter: str) -> int:
        command = [tshark, "-r", place / file, "-Y", display_filter]
        return len(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())

    dropped = 'frame.comment contains "dropped: loss"'
    assert count("client.pcapng", dropped) == ledger["forward"]["dropped"]["loss"]
    assert count("server.pcapng", dropped) == ledger["reverse"]["dropped"]["loss"]
    assert count("client.pcapng", "frame") == ledger["forward"]["in"] + ledger["reverse"]["delivered"]
    assert count("server.pcapng", "frame") == ledger["reverse"]["in"] + ledger["forward"]["delivered"]
