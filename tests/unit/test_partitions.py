"""Repetitions in partitions are read, resumed, listed, removed and found damaged as those in directories are."""

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

import crosswind as api
from cell_events import finished
from crosswind.api import results
from crosswind.cell.record import CellRun, RunRecord
from crosswind.cell.result import Finished
from crosswind.errors import StoreError
from crosswind.execution.verify import check_files, compare_cells
from crosswind.store import partitions
from crosswind.store.cells import CellsFolder
from crosswind.store.directory import Store
from crosswind.store.kept import Sums
from crosswind.store.listing import ListedRun, examine_directory
from crosswind.store.manifest import Status
from crosswind.store.run import load
from fixture_types import Crosswind, UseCell
from mutations import mutated, same
from runs import cell_result, change_sealed, echo_samples, new_run, planned_cell

CELLS, REPETITIONS, AT_ONCE = 2, 5, 4


@pytest.fixture(autouse=True)
def of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "PACKED_AT_ONCE", AT_ONCE)


def fill(directory: Path, *, status: Status = Status.DONE, upto: int = CELLS * REPETITIONS) -> Path:
    """A run whose repetitions are packed, four at a time; the third has a file that stays one."""
    plan = [
        planned_cell(
            cell, key=f"c{cell:03d}-r{repetition:02d}", order=order, repetition=repetition, seed=repetition,
            parameters={"schema": "crosswind.cell/1", "workload": {"kind": "echo", "transport": "udp"}, "path": {}},
        )
        for order, (repetition, cell) in enumerate((r, c) for r in range(REPETITIONS) for c in range(CELLS))
    ]  # fmt: skip
    with new_run(directory, plan=plan) as store:
        folder = CellsFolder(store.directory, store.manifest.id)
        for planned in plan[:upto]:
            part = folder.begin(planned.key)
            echo_samples(60 + planned.order).write_ipc(part / "samples.arrow")
            if planned.order == 2:
                (part / "client.out").write_text("said")
            end = Finished.from_stored(finished().as_json() | {"id": planned.key})
            folder.commit(part, cell_result(planned, finished=end))
        store.set_status(status)
    return directory


@pytest.fixture(scope="module")
def directories(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same run without partitions."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(partitions, "PACKED_AT_ONCE", 1000)
        return fill(tmp_path_factory.mktemp("runs") / "whole")


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


def assert_same(record: RunRecord, other: RunRecord, *, without: set[str] = frozenset()) -> None:  # type: ignore[assignment]
    kept = [run for run in other.cells if run.key not in without]
    assert {run.key for run in record.cells} == {run.key for run in kept}
    by_key: dict[str, CellRun] = {run.key: run for run in record.cells}
    assert all(same(by_key[run.key], run) for run in kept)
    assert {damage.key for damage in record.damaged} == without


def test_packed_repetitions_read_as_those_in_directories_do(tmp_path: Path, directories: Path) -> None:
    run = fill(tmp_path / "run")
    # Of ten, the third has an output of its own; nine make two partitions and one is left.
    assert names(run / "partitions") == ["00000", "00001"]
    assert names(run / "cells") == ["c000-r01", "c001-r04"]
    assert_same(load(run).record(), load(directories).record())
    assert load(run).valid == load(directories).valid
    assert load(run).sums() == load(directories).sums()
    assert list(load(run).results()) == [planned.key for planned in Store.read(run).plan]
    assert Store.read(run).missing() == []
    before, after = load(directories).results(), load(run).results()
    assert [before[key].finished for key in before] == [after[key].finished for key in after]


def test_a_table_of_all_repetitions_is_read_in_place(tmp_path: Path) -> None:
    run = fill(tmp_path / "run")
    counted = pl.scan_parquet(run / "partitions/*/samples.parquet").group_by("cell").len().sort("cell").collect()
    assert counted.rows() == [(0, 60 + 64 + 66 + 68), (1, 61 + 63 + 65 + 67)]


def test_a_packed_repetition_is_unpacked_as_it_was(tmp_path: Path, directories: Path) -> None:
    run = Store.read(fill(tmp_path / "run"))
    result = run.results()["c001-r01"]
    assert result.partition is not None
    place = run.unpacked(result, tmp_path)
    assert compare_cells(result.key, directories / "cells" / result.key, place).differing == ()


def test_a_run_that_was_cut_goes_on_with_what_is_neither_packed_nor_a_directory(tmp_path: Path) -> None:
    run = fill(tmp_path / "run", status=Status.RUNNING, upto=7)
    with Store.resume(run) as store:
        assert [planned.key for planned in store.missing()] == ["c001-r03", "c000-r04", "c001-r04"]
        assert store.damaged == []


def test_a_session_that_died_while_it_packed_leaves_nothing_twice_and_loses_nothing(
    tmp_path: Path, directories: Path
) -> None:
    run = fill(tmp_path / "run", status=Status.RUNNING)
    shutil.copytree(directories / "cells/c000-r00", run / "cells/c000-r00")  # It was packed, and not removed yet.
    (run / "cells/c001-r00").mkdir()  # Half of it was.
    (run / "partitions/00002.4711.part").mkdir()
    assert_same(load(run).record(), load(directories).record())
    listed = examine_directory(run)
    assert isinstance(listed, ListedRun)
    assert (listed.done, listed.parts) == (CELLS * REPETITIONS, 1)
    Store.resume(run).close()
    assert names(run / "cells") == ["c000-r01", "c001-r04"]
    assert names(run / "partitions") == ["00000", "00001"]


def test_a_run_of_directories_is_packed_when_it_goes_on(tmp_path: Path, directories: Path) -> None:
    run = shutil.copytree(directories, tmp_path / "run")
    Store.resume(run).close()
    assert names(run / "partitions") == ["00000", "00001"]
    assert_same(load(run).record(), load(directories).record())


@pytest.mark.parametrize("name", ["index.json", "results.parquet", "samples.parquet"])
def test_a_partition_of_which_a_file_has_changed_is_left_out_and_run_again(
    tmp_path: Path, directories: Path, name: str
) -> None:
    run, whole = fill(tmp_path / "run"), load(directories).record()
    keys = set(Store.read(run).partitions()[0].keys)
    file = f"partitions/00000/{name}"
    for _ in mutated(run / file, seed=len(name)):
        assert_same(load(run).record(), whole, without=keys)
        (sentence,) = check_files(run).sentences
        assert sentence == f"{file} has changed since it was written: {AT_ONCE} repetitions are left out"
    (run / file).unlink()
    assert_same(load(run).record(), whole, without=keys)
    with Store.resume(run) as store:
        assert {planned.key for planned in store.missing()} == keys
    assert names(run / "partitions") == ["00000.damaged-1", "00001"]


def test_a_partition_from_elsewhere_is_not_taken_for_its_own(tmp_path: Path) -> None:
    run, other = fill(tmp_path / "run"), fill(tmp_path / "other")
    change_sealed(other / "partitions/00000/index.json", run="another")
    shutil.copy(other / "partitions/00000/index.json", run / "partitions/00000")
    (sentence,) = check_files(run).sentences
    assert sentence.startswith("partitions/00000/index.json is the index of another run: ")


def test_a_disk_that_changed_what_is_to_be_packed_is_not_believed(tmp_path: Path) -> None:
    run = fill(tmp_path / "run", upto=3, status=Status.RUNNING)
    file = run / "cells/c000-r00/samples.parquet"
    file.write_bytes(file.read_bytes()[:-1] + b"?")
    with Store.resume(run) as store:
        assert [damage.file for damage in store.damaged] == ["cells/c000-r00/samples.parquet"]


COMMANDS = [("report",), ("compare", "directories"), ("verify", "--files"), ("runs", "--details"), ("clean", "--yes")]


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_commands_work_on_packed_runs(
    crosswind: Crosswind, use_cell: UseCell, tmp_path: Path, directories: Path, command: tuple[str, ...]
) -> None:
    use_cell("finish()")
    run = fill(tmp_path / "run", status=Status.DONE)
    first, *others = [str(directories) if word == "directories" else word for word in command]
    status, out, err = crosswind(first, str(run), *others)
    assert "unexpected" not in out + err
    if first == "runs":
        assert " 10/10 " in out
    if first == "clean":
        assert not run.exists()
    assert status == 0, out + err


def test_what_a_session_packs_is_what_it_ran(tmp_path: Path) -> None:
    """Of a notebook: samples, in the order of cells and repetitions, whatever is packed."""
    run = api.load(fill(tmp_path / "run"))
    samples = run.samples()
    assert samples.group_by("cell", "repetition").len().height == CELLS * REPETITIONS
    with pytest.raises(StoreError, match="already holds a run"):
        fill(run.directory)


def copy_of_a_partition(run: Path) -> str:
    shutil.copytree(run / "partitions/00000", run / "partitions/00002")
    return "partitions/00002/index.json has 4 repetitions of partitions/00000 once more, which count once"


def overlapping_partition(run: Path) -> str:
    """Another session has packed half of the repetitions of the first partition with those of the second."""
    first, second = Store.read(run).partitions()
    half = pl.DataFrame({"key": list(first.keys), "again": [True, False, True, False]})
    again = first.texts().filter(half["again"])
    tables = {
        name: pl.concat([table.join(again, on=["cell", "repetition"], how="semi"), other])
        for name in first.files
        if (table := first.table(name)) is not None and (other := second.table(name)) is not None
    }
    keys = [*half.filter("again")["key"], *second.keys]
    partitions.write_partition(run, Store.read(run).manifest.id, keys, tables, Sums())
    shutil.rmtree(run / "partitions/00001")
    return "partitions/00002/index.json has 2 repetitions of partitions/00000 once more, which count once"


@pytest.mark.parametrize("is_large", [False, True])
@pytest.mark.parametrize("repeat", [copy_of_a_partition, overlapping_partition])
def test_a_repetition_is_in_a_run_once(
    tmp_path: Path,
    directories: Path,
    crosswind: Crosswind,
    monkeypatch: pytest.MonkeyPatch,
    *,
    repeat: Callable[[Path], str],
    is_large: bool,
) -> None:
    whole, run = load(directories), fill(tmp_path / "run")
    if is_large:
        monkeypatch.setattr("crosswind.store.run.MOST_CELLS", 1)
    expected = results.analysed(whole).result
    said = repeat(run)
    record = load(run).record()
    assert_same(record, whole.record(), without={""})
    assert [damage.text for damage in record.damaged] == [said]
    assert (load(run).sums(), load(run).valid, len(list(load(run).iter_results()))) == (whole.sums(), True, 10)
    made = results.analysed(load(run)).result
    estimates = [cell.model_dump()["estimates"] for cell in expected.cells]
    assert [cell.model_dump()["estimates"] for cell in made.cells] == estimates
    assert (made.executed, made.complete, [cell.repetitions for cell in made.cells]) == (10, True, [5, 5])
    assert (made.warnings[0].name, made.warnings[0].text) == ("damaged", said)
    assert check_files(run).sentences == (said,)
    listed = examine_directory(run, details=True)
    assert isinstance(listed, ListedRun) and listed.details is not None
    assert (listed.done, listed.details.valid, listed.problem) == (10, 10, said)
    for command in (("report", str(run)), ("verify", str(run), "--files"), ("compare", str(run), str(directories))):
        status, out, err = crosswind(*command)
        assert (status, said in " ".join((out + err).split())) == (1, True), command
    with Store.resume(run) as store:
        assert [damage.text for damage in store.damaged] == [said]
        assert store.missing() == []
    assert_same(load(run).record(), whole.record())
    assert check_files(run).sentences == ()
    assert "00002.repeated-1" in names(run / "partitions")


def test_of_a_run_that_is_done_a_directory_of_what_is_packed_is_said_and_removed(
    tmp_path: Path, directories: Path
) -> None:
    run, whole = fill(tmp_path / "run"), load(directories).record()
    shutil.copytree(directories / "cells/c000-r00", run / "cells/c000-r00")
    said = "cells/c000-r00 is in partitions/00000 too, and counts once"
    assert check_files(run).sentences == (said,)
    assert_same(load(run).record(), whole, without={""})
    with Store.resume(run) as store:
        assert [damage.text for damage in store.damaged] == [said]
    assert_same(load(run).record(), whole)


def test_a_copy_counts_where_the_first_partition_is_damaged(tmp_path: Path, directories: Path) -> None:
    run = fill(tmp_path / "run")
    copy_of_a_partition(run)
    (run / "partitions/00000/samples.parquet").write_bytes(b"?")
    with Store.resume(run) as store:
        assert store.missing() == []
    assert names(run / "partitions") == ["00000.damaged-1", "00001", "00002"]
    assert_same(load(run).record(), load(directories).record())


def test_a_partition_with_a_repetition_twice_is_none(tmp_path: Path) -> None:
    run = fill(tmp_path / "run")
    keys = Store.read(run).partitions()[0].keys
    change_sealed(run / "partitions/00000/index.json", keys=[*keys[:-1], keys[0]])
    (sentence,) = check_files(run).sentences
    assert sentence == "partitions/00000/index.json has a repetition twice: 4 repetitions are left out"
