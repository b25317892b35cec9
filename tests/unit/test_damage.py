"""Damage to the files of a run: whatever a disk does to one of them, no command shows a number that comes of it."""

import os
import random
import shutil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import crosswind as api
from cell_events import finished
from crosswind.catalog.tables import OBJECTS
from crosswind.cell.record import RunRecord
from crosswind.cell.result import Finished
from crosswind.errors import StoreError
from crosswind.execution.verify import check_files
from crosswind.store.cells import CellsFolder
from crosswind.store.checksums import Checksum, DamagedFileError, check_file
from crosswind.store.directory import Store
from crosswind.store.manifest import Status
from crosswind.store.run import load
from crosswind.store.run_file import RunFile
from crosswind.store.tables import read_rows, read_table
from fixture_types import Crosswind, UseCell
from mutations import flip, mutated, same
from runs import cell_result, echo_samples, integers, new_run, planned_cell

REPETITIONS = 3
DAMAGED = "cells/c000-r01/"
READ_BY_REPORTS = ["samples.parquet", "objects.parquet", "client.out", "result.json"]
NOT_READ_BY_REPORTS = ["packets.parquet", "client.pcapng", "server.qlog", "output/data/a.bin"]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of two cells with files of every kind, and an attempt that does not count."""
    return make_run(tmp_path_factory.mktemp("runs") / "whole")


@pytest.fixture
def damaged(whole: Path, tmp_path: Path) -> Path:
    """A copy of it, for a test to damage."""
    shutil.copytree(whole, tmp_path / "run")
    return tmp_path / "run"


def make_run(directory: Path, *, first: int = 60, **changes: Any) -> Path:
    seed = changes.pop("seed", 1)
    parameters = {"schema": "crosswind.cell/1", "workload": {"kind": "echo", "transport": "udp"}, "path": {}}
    plan = [
        planned_cell(
            cell, key=f"c{cell:03d}-r{repetition:02d}", order=order, repetition=repetition, seed=seed,
            parameters={**parameters, "id": f"c{cell:03d}-r{repetition:02d}"},
        )
        for order, (repetition, cell) in enumerate((r, c) for r in range(REPETITIONS) for c in range(2))
    ]  # fmt: skip
    draw = random.Random(1)
    with new_run(directory, plan=plan, **changes) as store:
        folder = CellsFolder(store.directory, store.manifest.id)
        for planned in plan:
            for commit in [folder.commit_missed, folder.commit] if planned.order == 0 else [folder.commit]:
                part = folder.begin(planned.key)
                echo_samples(first + planned.order).write_parquet(part / "samples.parquet")
                objects = pl.DataFrame([{"page": planned.order}], dict(OBJECTS.schema))
                objects.write_parquet(part / "objects.parquet")
                pl.DataFrame({"n": [planned.order]}).write_parquet(part / "packets.parquet")
                (part / "output/data").mkdir(parents=True)
                for name in ("client.out", "client.pcapng", "server.qlog", "output/data/a.bin"):
                    (part / name).write_bytes(draw.randbytes(500))
                end = Finished.from_stored(finished().as_json() | {"id": planned.key})
                commit(part, cell_result(planned, finished=end))
        store.set_status(Status.DONE)
    return directory


def assert_left_out(record: RunRecord, before: RunRecord, file: str) -> None:
    """The repetition of a file is left out, and the file named; every other one is as it was."""
    assert [damage.file for damage in record.damaged] == [file]
    kept = [run for run in before.cells if run.key != record.damaged[0].key]
    assert len(record.cells) == len(kept) == 2 * REPETITIONS - 1
    assert all(map(same, record.cells, kept))


@pytest.mark.parametrize("name", READ_BY_REPORTS)
def test_a_repetition_of_which_a_file_has_changed_is_left_out_and_named(damaged: Path, whole: Path, name: str) -> None:
    before = load(whole).record()
    for _ in mutated(damaged / DAMAGED / name, seed=len(name)):
        assert_left_out(load(damaged).record(), before, DAMAGED + name)
        assert [damage.file for damage in check_files(damaged).damaged] == [DAMAGED + name]
    assert load(damaged).record().damaged == []


@pytest.mark.parametrize("name", NOT_READ_BY_REPORTS)
def test_a_file_that_reports_do_not_read_is_found_by_the_check_of_all(damaged: Path, name: str) -> None:
    for _ in mutated(damaged / DAMAGED / name, seed=len(name)):
        assert [damage.file for damage in check_files(damaged).damaged] == [DAMAGED + name]
    assert check_files(damaged).sentences == ()


def test_a_file_of_an_attempt_that_does_not_count_is_found_too(damaged: Path) -> None:
    name = "cells/c000-r00.missed-1/samples.parquet"
    for _ in mutated(damaged / name, seed=3):
        assert check_files(damaged).sentences == (f"{name} has changed since it was written: it does not count",)
        assert load(damaged).record().damaged == []


@pytest.mark.parametrize("name", ["manifest.json", "plan.jsonl"])
def test_a_run_whose_manifest_or_plan_has_changed_is_refused(damaged: Path, name: str) -> None:
    for _ in mutated(damaged / name, seed=len(name)):
        with pytest.raises(StoreError, match=f"{name}.*(has changed since it was written|crosswind)") as caught:
            load(damaged).record()
        assert "\n" not in caught.value.message


@pytest.mark.parametrize("source", ["run/cells/c000-r02", "run/cells/c000-r00.missed-1", "other/cells/c000-r01"])
def test_a_result_or_a_table_from_elsewhere_is_not_taken_for_its_own(
    damaged: Path, whole: Path, tmp_path: Path, source: str
) -> None:
    make_run(tmp_path / "other", id="another", first=100)
    for name in ("samples.parquet", "result.json"):
        content = (damaged / DAMAGED / name).read_bytes()
        shutil.copy(tmp_path / source / name, damaged / DAMAGED)
        assert_left_out(load(damaged).record(), load(whole).record(), DAMAGED + name)
        (damaged / DAMAGED / name).write_bytes(content)


def test_a_manifest_from_elsewhere_fits_neither_plan_nor_results(damaged: Path, tmp_path: Path) -> None:
    other = make_run(tmp_path / "other", id="another", seed=2)
    shutil.copy(other / "manifest.json", damaged)
    with pytest.raises(StoreError, match=r"plan\.jsonl: it has changed since it was written"):
        load(damaged).record()
    shutil.copy(other / "plan.jsonl", damaged)
    assert {damage.reason for damage in load(damaged).record().damaged} == {"is the result of another repetition"}
    with pytest.raises(StoreError, match="has no undamaged result: "):
        load(damaged).measured()


@pytest.mark.parametrize("what", ["gone", "a directory", "a pipe"])
@pytest.mark.parametrize("name", [*READ_BY_REPORTS, *NOT_READ_BY_REPORTS])
def test_what_stands_in_the_place_of_a_file_is_not_read(damaged: Path, name: str, what: str) -> None:
    place = damaged / DAMAGED / name
    place.unlink()
    if what == "a directory":
        place.mkdir()
    elif what == "a pipe":
        os.mkfifo(place)
    assert [damage.file for damage in check_files(damaged).damaged] == [DAMAGED + name]


def test_a_finished_run_of_which_a_repetition_is_gone_is_damaged(damaged: Path, whole: Path) -> None:
    shutil.rmtree(damaged / DAMAGED)
    assert_left_out(load(damaged).record(), load(whole).record(), DAMAGED + "result.json")


COMMANDS = [
    ("report", "run"), ("report", "run", "--json"), ("report", "run", "--csv", "a.csv", "--samples", "a.parquet"),
    ("report", "run", "--html", "a.html"), ("compare", "whole", "run"), ("compare", "run", "whole", "--json"),
    ("fit", "run"), ("verify", "run"), ("verify", "run", "--files"), ("runs", "run", "--details"),
    ("clean", "run", "--leftovers", "--yes"),
    ("plan", "echo", "--transport", "udp", "--precision", "5%", "--from", "run"),
]  # fmt: skip
NAMES_IT = {"report", "compare", "verify", "fit", "plan"}


@pytest.mark.parametrize("name", ["manifest.json", "plan.jsonl", DAMAGED + "result.json", DAMAGED + "samples.parquet"])
@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_says_in_a_sentence_what_is_damaged(
    crosswind: Crosswind, use_cell: UseCell, damaged: Path, whole: Path, *, command: tuple[str, ...], name: str
) -> None:
    use_cell("finish()")
    Path("run").symlink_to(damaged) if command[0] != "clean" else shutil.copytree(damaged, "run")
    Path("whole").symlink_to(whole)
    file = Path("run") / name
    content = file.read_bytes()
    file.write_bytes(content[:-200] + bytes([content[-200] ^ 1]) + content[-199:])
    status, out, err = crosswind(*command)
    said = out + err
    assert "unexpected" not in said
    assert "bug" not in said
    assert "Traceback" not in said
    of_run = name in ("manifest.json", "plan.jsonl")
    if of_run and command[0] in NAMES_IT:
        assert (status, out) == (2, "")
        assert err.startswith("error: ")
        assert f"{name}: it has changed since it was written" in err
    elif command[0] in NAMES_IT:
        assert f"{name} has changed since it was written: repetition 2 of cell 0 is left out" in " ".join(said.split())
        assert status == {"verify": 1 if "--files" in command else 2, "plan": 2, "fit": 2}.get(command[0], 1)


def test_the_check_of_all_files_counts_them(crosswind: Crosswind, damaged: Path) -> None:
    count = 2 + 7 * 8  # Manifest and plan; six repetitions and an attempt of eight files each.
    status, out, _ = crosswind("verify", str(damaged), "--files")
    assert (status, out) == (0, f"{count} of {count} files are unchanged\n")


def test_notebooks_are_warned_and_get_the_rest(damaged: Path) -> None:
    file = damaged / DAMAGED / "samples.parquet"
    file.write_bytes(flip(file.read_bytes(), random.Random(1)))
    run = api.load(damaged)
    with pytest.warns(UserWarning, match=r"samples\.parquet has changed since it was written: repetition 2 of cell 0"):
        samples = run.samples()
    assert samples.filter(pl.col("cell") == 0)["repetition"].unique().to_list() == [0, 2]


def test_a_run_that_goes_on_runs_damaged_repetitions_again_and_keeps_them(damaged: Path) -> None:
    file = damaged / DAMAGED / "packets.parquet"
    content = file.read_bytes()
    file.write_bytes(content + b"x")
    with Store.resume(damaged) as store:
        assert [planned.key for planned in store.missing()] == ["c000-r01"]
        assert [damage.file for damage in store.damaged] == [DAMAGED + "packets.parquet"]
    assert (damaged / "cells/c000-r01.damaged-1/packets.parquet").read_bytes() == content + b"x"
    assert not (damaged / DAMAGED).exists()


def test_some_rows_of_a_table_are_those_of_all_of_it_and_damage_is_said_alike(tmp_path: Path) -> None:
    (tmp_path / "a[b]*").mkdir()
    file = RunFile(tmp_path / "a[b]*", "packets.parquet")
    path = file.run / file.name
    pl.DataFrame({"port": [1, 2, 1], "at": [30, 20, 10]}).write_parquet(path)
    checksum = Checksum.of(file)
    schema = integers("at", "port")
    chosen = {"where": pl.col("port") == 1, "columns": ["at"]}
    whole = read_table(file, schema, checksum).filter(chosen["where"]).select(chosen["columns"])
    assert read_rows(file, schema, checksum, **chosen).equals(whole)
    assert whole.rows() == [(30,), (10,)]
    assert read_rows(file, schema, None, **chosen).is_empty()
    with pytest.raises(DamagedFileError, match='cannot be read: unable to find column "hop"'):
        read_table(file, integers("at", "port", "hop"), checksum)
    content = path.read_bytes()
    for damage in (lambda: path.write_bytes(flip(content, random.Random(1))), path.unlink):
        damage()
        said = []
        for read in (
            lambda: read_table(file, schema, checksum),
            lambda: read_rows(file, schema, checksum, **chosen),
            lambda: check_file(file, checksum),
        ):
            with pytest.raises(DamagedFileError) as raised:
                read()
            said.append((str(raised.value), raised.value.hint))
        assert len(set(said)) == 1
