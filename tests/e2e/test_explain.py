"""`crosswind explain`: exchanges whose packets are lost by index, in virtual time, so that every word is known."""

import shutil
from pathlib import Path

import pytest

from crosswind.catalog import catalog
from crosswind.catalog.spent import GROUPS
from crosswind.catalog.tables import SAMPLES, SPENT
from crosswind.store.checksums import sealed, unsealed
from e2e_cli import Cli
from virtual.conftest import requires_kernel

STUDY = """
[host]
clock = "virtual"
congestion_control = "cubic"
[path]
delay = "20ms"
forward.lose = "@lost"
[workload]
kind = "echo"
transport = "tcp"
messages = 10
"""

WHY = (
    "Exchange 4 took {whole} instead of 40 ms, the median of its repetition: packet 7 to the server was lost, with "
    "nothing behind it to show that; a tail loss probe came {probe} later; packet 9 to the server was lost, and sent "
    "again {timer} later by the retransmission timer."
)


@pytest.fixture
def run(crosswind: Cli) -> Path:
    requires_kernel()
    (crosswind.cwd / "study.toml").write_text(STUDY, encoding="utf-8")
    (crosswind.cwd / "lost").write_text("7 9\n", encoding="utf-8")
    place = crosswind.cwd / "run"
    ended = crosswind("run", "study.toml", "--output", str(place))
    assert ended.status == 0
    assert "kept:   parts " in ended.err
    return place


def test_an_exchange_is_explained_packet_by_packet(crosswind: Cli, run: Path) -> None:
    ended = crosswind("explain", str(run), "--slowest", "1", "--json")
    (found,) = ended.json["exchanges"]
    assert list(found["parts"]) == ["client_host", "server_host", "propagation_forward", "propagation_reverse", "late",
                                    "tail_loss_probe", "retransmission_timer"]  # fmt: skip
    pieces = found["pieces"]
    assert [piece["from_ns"] for piece in pieces[1:]] == [piece["to_ns"] for piece in pieces[:-1]]
    assert sum(found["parts"].values()) == found["whole_ns"] == pieces[-1]["to_ns"] - pieces[0]["from_ns"]
    times = {"whole": found["whole_ns"]} | {name: found["parts"][part] for name, part in (
        ("probe", "tail_loss_probe"), ("timer", "retransmission_timer"))}  # fmt: skip
    said = WHY.format(**{name: f"{ns / 1e6:.3g} ms" for name, ns in times.items()})
    assert found["sentence"] == said
    text = crosswind("explain", str(run), "--slowest", "1").out
    assert " ".join(text.split()).startswith(said)
    assert any("retransmission timer" in line for line in text.splitlines()[-9:])


def test_any_exchange_may_be_asked_for_and_the_page_has_its_picture(crosswind: Cli, run: Path) -> None:
    undisturbed = crosswind("explain", str(run), "--message", "0")
    assert undisturbed.out.startswith("Exchange 0 took 40 ms, which is what the path takes.\n")
    assert crosswind("explain", str(run), "--html", "why.html").err == "wrote why.html\n"
    page = (crosswind.cwd / "why.html").read_text(encoding="utf-8")
    assert "Exchange 4 took" in page
    assert "packet 7 to the server, lost" in page


def test_what_cannot_be_explained_is_said(crosswind: Cli, run: Path) -> None:
    for asked, said in (
        (["--message", "10"], "exchange 10 of c000-r00 did not succeed, or there is none\nhint: the last one is 9"),
        (
            ["--connection", "0"],
            "connections are told of programs, peers and pages, and this run has none\n"
            "hint: --message N explains exchange N of a cell",
        ),
        (["--cell", "1"], "the run has no repetition of cell 1\nhint: its cells are 0 to 0"),
        (
            ["--message", "1", "--slowest", "2"],
            "--slowest and --message exclude each other\nhint: give only one of them",
        ),
    ):
        ended = crosswind("explain", str(run), *asked)
        assert (ended.status, ended.out, ended.err) == (2, "", f"error: {said}\n")
    without = str(crosswind.cwd / "without")
    kept = crosswind("run", "study.toml", "--no-parts", "--output", without)
    assert "kept:   no parts (--no-parts)\n" in kept.err
    ended = crosswind("explain", without)
    said = "nothing tells what the time of these exchanges was spent on\nhint: the run was started with --no-parts: "
    assert (ended.status, ended.err) == (2, f"error: {said}run it again without\n")
    fails = ("--fail-if", "mean(spent_recovery) > 5ms")
    assert "the run was started with --no-parts" in " ".join(crosswind("report", without, *fails).out.split())
    assert "The run kept nothing that tells" in (Path(without) / "report.html").read_text(encoding="utf-8")
    for name in ("tcp.parquet", "pieces.parquet"):
        (run / "cells" / "c000-r00" / name).write_bytes(b"no table")
        ended = crosswind("explain", str(run))
        assert (ended.status, ended.out) == (2, "")
        assert f"{name} has changed since it was written\nhint: " in ended.err


def test_damage_is_said_of_every_file_that_a_repetition_kept(crosswind: Cli) -> None:
    requires_kernel()
    # QUIC has no TCP socket of which a page would draw the packets.
    quic = ("--transport", "quic", "--messages", "2", "--repetitions", "3")
    crosswind("run", "echo", "--clock", "virtual", *quic, "--packets", "--output", "ran")
    cells = crosswind.cwd / "ran" / "cells"
    again = f"hint: `crosswind run --resume {crosswind.cwd / 'ran'}` runs "
    for name, gone in (("packets.parquet", "is missing"), ("result.json", "has changed since it was written")):
        file = cells / "c000-r01" / name
        whole = file.read_bytes()
        if name == "result.json":
            file.write_bytes(whole[:-100])
        else:
            file.unlink()
        for asked in (["--slowest", "200"], ["--repetition", "1"], ["--repetition", "1", "--html", "why.html"]):
            ended = crosswind("explain", str(crosswind.cwd / "ran"), *asked)
            assert (ended.status, ended.out) == (2, "")
            assert ended.err.startswith(f"error: {file} {gone}\n{again}")
        assert not (crosswind.cwd / "why.html").exists()
        assert crosswind("explain", "ran", "--repetition", "2").status == 0
        file.write_bytes(whole)
    ended = crosswind("explain", "ran", "--repetition", "3")
    assert ended.err == "error: the run has no repetition 3\nhint: the last repetition is 2\n"


@pytest.mark.parametrize(("words", "why"), [
    (["run", "echo", "--messages", "2", "--repetitions", "1", "--forward-loss", "100%", "--timeout", "1s"],
     "no exchange succeeded: 2 x timeout (cannot connect: timed out)"),
    (["run", "echo", "--messages", "1", "--repetitions", "1", "--backend", "netem"],
     "no packet passed the emulator: the path is netem"),
    (["exec", "--", "true"], "neither TCP nor UDP passed the path"),
])  # fmt: skip
def test_where_nothing_tells_it_is_said_why(crosswind: Cli, words: list[str], why: str) -> None:
    requires_kernel()
    crosswind(words[0], "--clock", "virtual", "--output", "ran", *words[1:])
    ended = crosswind("explain", "ran")
    assert (ended.status, ended.out) == (2, "")
    assert ended.err.startswith("error: nothing tells what the time of ")
    assert ended.err.endswith(f" was spent on\nhint: {why}\n")


def test_every_part_is_in_one_group_and_no_column_of_samples_has_its_name() -> None:
    parts = [name.removesuffix("_ns") for name in SPENT.schema if name not in ("exchange", "whole_ns")]
    assert sorted(part for group in GROUPS for part in group.parts) == sorted(parts)
    assert set(SPENT.schema) & set(SAMPLES.schema) == {"exchange"}
    assert [column.name for column in catalog().spent] == list(SPENT.schema)


def test_a_run_that_was_stopped_before_a_repetition_ended_says_so(crosswind: Cli) -> None:
    requires_kernel()
    crosswind("run", "echo", "--clock", "virtual", "--messages", "2", "--output", "ran")
    # As it is where the session was killed in the middle of the first one.
    cells = crosswind.cwd / "ran" / "cells"
    shutil.rmtree(cells / "c000-r00")
    (cells / "c000-r00.1.part").mkdir()
    manifest = crosswind.cwd / "ran" / "manifest.json"
    written = unsealed(manifest.read_bytes())
    del written["checksum"]
    manifest.write_bytes(sealed(written | {"status": "running"}))
    for asked, which in (([], ""), (["--cell", "0"], " of cell 0"), (["--repetition", "0"], " 0")):
        ended = crosswind("explain", "ran", *asked)
        assert (ended.status, ended.out) == (2, "")
        said = f"error: no repetition{which} has ended yet\nhint: `crosswind run --resume "
        assert ended.err.startswith(said), ended.err
