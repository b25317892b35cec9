"""`crosswind verify`: a run's cells in virtual time again."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from conftest import requires_binary, requires_cell
from crosswind.execution.verify import RerunComparison, compare_cells, digests, result_values, spread
from crosswind.store.run import load
from e2e_cli import ANY_FIDELITY, Cli
from runs import change_sealed, reseal
from virtual.conftest import requires_kernel

ECHO = ("echo", "--delay", "10ms", "--messages", "20", "--no-report", "--output", "here")


@pytest.fixture
def cli(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """The command line in an empty directory."""
    requires_kernel()
    requires_binary()
    cli = Cli(tmp_path, capfd)
    yield cli
    cli.stop()


def run(cli: Cli, *arguments: str, repetitions: int = 1) -> None:
    ended = cli("run", *ECHO, "--repetitions", str(repetitions), "--clock", "virtual", *arguments)
    assert ended.status == 0, ended.err


def test_all_that_a_run_kept_comes_out_the_same(cli: Cli) -> None:
    run(cli, "--transport", "tcp,quic,wss", "--loss", "0%,5%", "--packets", "--capture", "--qlog")
    before = {path: path.read_bytes() for path in cli.cwd.rglob("*") if path.is_file()}
    ended = cli("verify", "here", "--all")
    assert ended.status == 0, ended.out + ended.err
    lines = ended.out.splitlines()
    assert sorted(lines[:-1]) == [f"c00{number}-r00  same" for number in range(6)]
    assert lines[-1] == "6 of 6 cells came out the same, of 6 in virtual time"
    # Nothing in the run was touched.
    assert before == {path: path.read_bytes() for path in cli.cwd.rglob("*") if path.is_file()}


def test_a_sample_is_spread_over_the_plan(cli: Cli) -> None:
    run(cli, "--loss", "5%", repetitions=8)
    assert len(cli("verify", "here").out.splitlines()) == 1 + 5
    ended = cli("verify", "here", "--cells", "2")
    assert [line.split()[0] for line in ended.out.splitlines()] == ["c000-r00", "c000-r04", "2"]
    results = list(load(cli.cwd / "here").results().values())
    assert [result.planned.repetition for result in spread(results, 3)] == [0, 2, 5]
    assert len(spread(results, 100)) == 8


def test_what_differs_is_named(cli: Cli) -> None:
    run(cli, "--loss", "0%,5%", "--packets")
    cell = cli.cwd / "here" / "cells" / "c001-r00"
    samples = pl.read_parquet(cell / "samples.parquet")
    samples.with_columns(pl.col("received_ns") + 1).write_parquet(cell / "samples.parquet")
    result = json.loads((cell / "result.json").read_text())
    result["finished"]["ledger"]["forward"]["delivered"] += 1
    change_sealed(cell / "result.json", finished=result["finished"])
    (cell / "packets.parquet").unlink()
    reseal(cell)
    ended = cli("verify", "here")
    assert ended.status == 1
    said = "c001-r00  differs: packets.parquet, result.ledger.forward.delivered, samples.parquet"
    assert set(ended.out.splitlines()) == {
        "c000-r00  same",
        said,
        "1 of 2 cells came out the same, of 2 in virtual time",
    }


def test_damage_is_named_left_out_and_no_difference(cli: Cli) -> None:
    run(cli, "--loss", "0%,5%", "--packets")
    file = cli.cwd / "here" / "cells" / "c001-r00" / "packets.parquet"
    file.write_bytes(file.read_bytes()[:-1])
    ended = cli("verify", "here")
    assert ended.status == 1
    assert ended.out.splitlines() == [
        "damaged: cells/c001-r00/packets.parquet has changed since it was written: repetition 1 of cell 1 is left out",
        "c000-r00  same",
        "1 of 1 cells came out the same, of 1 in virtual time",
    ]


def test_digests_are_of_contents(tmp_path: Path) -> None:
    table = pl.DataFrame({"a": range(1000), "b": ["x"] * 1000})
    found = []
    for number, compression in enumerate(("zstd", "snappy")):
        place = tmp_path / str(number)
        place.mkdir()
        table.write_parquet(place / "t.parquet", compression=compression, row_group_size=100 + number)
        (place / "client.out").write_text("text")
        (place / "result.json").write_text(str(number))
        found.append(digests(place))
    assert found[0] == found[1]
    assert set(found[0]) == {"t.parquet", "client.out"}


def left(place: Path, finished: dict[str, object], **columns: list[int]) -> Path:
    """What a repetition leaves: its result and a table."""
    place.mkdir()
    (place / "result.json").write_text(json.dumps({"finished": finished}))
    pl.DataFrame(columns).write_parquet(place / "samples.parquet")
    return place


def test_what_a_newer_cell_adds_is_named_and_no_difference(tmp_path: Path) -> None:
    before = left(tmp_path / "before", {"ok": 1, "profile": None, "ledger": {"in": 2}}, sent_ns=[1, 2])
    finished = {"ok": 1, "profile": None, "ledger": {"in": 2, "marked": 0}, "energy": {"joules": 3}}
    after = left(tmp_path / "after", finished, sent_ns=[1, 2], hops=[4, 5])
    assert compare_cells("c000-r00", before, after) == RerunComparison(
        "c000-r00", (), ("result.energy.joules", "result.ledger.marked", "samples.parquet.hops")
    )


def test_what_is_gone_or_has_another_value_differs_beside_what_is_new(tmp_path: Path) -> None:
    before = left(tmp_path / "before", {"ok": 1, "profile": None, "lost": 0}, sent_ns=[1, 2], hops=[4, 5])
    after = left(tmp_path / "after", {"ok": 2, "profile": {"samples": 9}, "new": 1}, sent_ns=[1, 3], way=[0, 0])
    found = compare_cells("c000-r00", before, after)
    assert found.added == ("result.new", "samples.parquet.way")
    assert found.differing == (
        "result.lost",
        "result.ok",
        "result.profile",
        "result.profile.samples",
        "samples.parquet",
        "samples.parquet.hops",
    )


def test_a_run_keeps_the_name_of_its_kernel(cli: Cli) -> None:
    run(cli)
    manifest = cli.cwd / "here" / "manifest.json"
    kernel = requires_kernel()
    assert json.loads(manifest.read_text())["provenance"]["kernels"] == [kernel.name]
    provenance = {**json.loads(manifest.read_text())["provenance"], "kernels": ["6.12-000000000000"]}
    change_sealed(manifest, provenance=provenance)
    ended = cli("verify", "here")
    assert ended.status == 1
    assert f"it had 6.12-000000000000, and here is {kernel.name}" in ended.err
    assert "hint: " in ended.err


def test_a_run_that_does_not_say_its_kernel_is_compared_all_the_same(cli: Cli) -> None:
    run(cli)
    manifest = cli.cwd / "here" / "manifest.json"
    provenance = json.loads(manifest.read_text())["provenance"]
    del provenance["kernels"]
    provenance["versions"]["crosswind_cell"] = "0.0.1"
    change_sealed(manifest, provenance=provenance)
    ended = cli("verify", "here")
    assert ended.status == 0
    assert f"note: the run does not say which kernel it had; this is {requires_kernel().name}" in ended.err
    assert "note: the run was made by crosswind-cell 0.0.1, and this is" in ended.err


def test_measurements_of_the_machine_cannot_be_repeated_exactly(cli: Cli) -> None:
    requires_cell()
    ended = cli("run", *ECHO, "--repetitions", "1", "--clock", "real", *ANY_FIDELITY)
    assert ended.status == 0, ended.err
    ended = cli("verify", "here")
    assert ended.status == 2
    assert "ran on the machine's clock: nothing in it can be repeated exactly" in ended.err
    assert "--clock virtual" in ended.err
    assert "kernels" not in load(cli.cwd / "here").manifest.provenance


def test_programs_run_where_the_run_ran_and_what_has_changed_since_is_named(cli: Cli, tmp_path: Path) -> None:
    here = Cli(tmp_path / "here", cli.capture)
    here.cwd.mkdir()
    (here.cwd / "client.py").write_text("print(open('numbers').read())", encoding="utf-8")
    (here.cwd / "numbers").write_text("1 2 3", encoding="utf-8")
    words = ["--clock", "virtual", "--output", "run", "--", sys.executable, "-IS", "client.py", "numbers"]
    assert here("exec", *words).status == 0
    ended = cli("verify", "here/run")
    assert (ended.status, "note: " in ended.err) == (0, False), ended.out + ended.err
    (here.cwd / "client.py").write_text("print(open('numbers').read(), end='')", encoding="utf-8")
    (here.cwd / "numbers").rename(here.cwd / "digits")
    ended = cli("verify", "here/run")
    assert ended.status == 1
    notes = [line for line in ended.err.splitlines() if line.startswith("note: ")]
    assert notes == ["note: client.py has changed since the run", "note: numbers is not here any more"]
    here.cwd.rename(tmp_path / "there")
    assert f"note: the run's directory {here.cwd} is not here; its programs are run in this one" in (
        cli("verify", "there/run").err
    )


def test_the_command_line_can_be_wrong(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cli("verify", "nowhere").status == 2
    assert cli("verify", "--cells", "0").status == 2
    assert cli("verify", "--cells", "2", "--all").status == 2
    run(cli)
    monkeypatch.setenv("CROSSWIND_KERNELS", str(cli.cwd))
    ended = cli("verify", "here")
    assert ended.status == 1
    assert "there is no kernel of virtual time" in ended.err


def test_what_names_the_machine_is_not_compared(cli: Cli) -> None:
    run(cli)
    (result,) = load(cli.cwd / "here").results().values()
    assert result.finished is not None
    values = result_values(result.finished.as_json())
    assert values["result.ledger.closed"] == "true"
    for key in ("versions", "processors_awake", "peak_memory_bytes", "fidelity.cpus", "fidelity.realtime"):
        assert not any(name.startswith(f"result.{key}") for name in values)
