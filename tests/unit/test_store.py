"""The store: what is there is whole, what is not a run is refused, what is missing can be resumed."""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import polars as pl
import pytest

from crosswind.catalog import tables
from crosswind.catalog.tables import OBJECTS
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.errors import DiskError, EngineError, StoreError
from crosswind.store.cells import CellsFolder
from crosswind.store.checksums import Checksum
from crosswind.store.directory import Store
from crosswind.store.files import write_sealed
from crosswind.store.listing import fresh_directory, latest_run
from crosswind.store.manifest import Session
from crosswind.store.record import record_of
from crosswind.store.result import RepetitionResult
from crosswind.store.run_file import RunFile
from crosswind.store.tables import read_table, to_parquet
from runs import cell_result, echo_samples, integers, new_run, planned_cell
from small_disks import mounted_disk

SAMPLES = echo_samples(2).with_columns(outcome=pl.Series(["ok", "timeout"]))

KILLED = Failure(ErrorKind.KILLED, "m", None)


def result(number: int, *, failure: Failure | None = None) -> RepetitionResult:
    return cell_result(planned_cell(number), failure=failure)


def commit(store: Store, number: int, *, failure: Failure | None = None) -> None:
    cells = CellsFolder(store.directory, store.manifest.id)
    part = cells.begin(planned_cell(number).key)
    if failure is None:
        SAMPLES.write_ipc(part / "samples.arrow")
    cells.commit(part, result(number, failure=failure))


def missing(store: Store) -> list[str]:
    return [planned.key for planned in store.missing()]


def test_a_committed_cell_is_read_back(tmp_path: Path) -> None:
    with new_run(tmp_path / "run") as store:
        commit(store, 1)
    record = record_of(Store.read(tmp_path / "run"))
    assert record.name == "a-study"
    assert record.planned == 2
    assert [cell.key for cell in record.cells] == ["c001-r00"]
    assert record.cells[0].levels == {"path.loss": "1%"}
    assert record.cells[0].samples.equals(SAMPLES)
    assert record.cells[0].objects.equals(OBJECTS.empty)


def test_columns_that_say_the_same_in_every_row_take_the_memory_of_one(tmp_path: Path) -> None:
    rows = 10_000
    given = {
        "exchange": range(rows),
        "sent_ns": range(0, 7 * rows, 7),
        "server_ns": [3] * rows,
        "outcome": ["ok"] * rows,
    }
    columns = {name: given.get(name, [None] * rows) for name in tables.SAMPLES.schema}
    whole = pl.DataFrame(columns).cast(dict(tables.SAMPLES.schema))
    file = RunFile(tmp_path, "samples.parquet")
    whole.write_parquet(tmp_path / file.name)
    found = read_table(file, tables.SAMPLES, Checksum.of(file))
    # Three columns are as long as the table: the number, and both times, of which the constant one stays as it is.
    assert 3 * 8 * rows <= found.estimated_size() < 4 * 8 * rows
    assert found.equals(whole)
    assert found.schema == whole.schema


def test_a_rate_over_a_time_that_is_always_the_same_keeps_its_last_digit(tmp_path: Path) -> None:
    rows = 2_000
    columns = {"sent_ns": [0] * rows, "received_ns": [7] * rows, "received_bytes": range(rows)}
    file = RunFile(tmp_path, "samples.parquet")
    pl.DataFrame(columns, dict.fromkeys(columns, pl.Int64)).write_parquet(tmp_path / file.name)
    found = read_table(file, integers(*columns), Checksum.of(file))
    rate = found.select(8e9 * pl.col("received_bytes") / (pl.col("received_ns") - pl.col("sent_ns"))).to_series()
    assert rate.to_list() == [8e9 * size / 7 for size in range(rows)]


def test_what_clients_of_programs_wrote_is_read_back_within_bounds(tmp_path: Path) -> None:
    kept = 16 << 20
    with new_run(tmp_path / "run", 3) as store:
        for number, out in enumerate((b"{}\xff", b"x" * kept + b"\n{}", None)):
            part = CellsFolder(store.directory, store.manifest.id).begin(planned_cell(number).key)
            if out is not None:
                (part / "client.out").write_bytes(out)
            SAMPLES.write_parquet(part / "samples.parquet")
            CellsFolder(store.directory, store.manifest.id).commit(part, result(number))
        first, large, none = record_of(store).cells
    assert (first.client_out, none.client_out) == ("{}\ufffd", "")
    assert (len(large.client_out), large.client_out[-4:]) == (kept, "x\n{}")


def test_tables_are_parquet_and_nothing_else_is_left(tmp_path: Path) -> None:
    with new_run(tmp_path / "run") as store:
        part = CellsFolder(store.directory, store.manifest.id).begin("c000-r00")
        SAMPLES.write_ipc(part / "samples.arrow")
        SAMPLES.write_ipc(part / "packets.arrow")
        (part / "client.pcapng").write_bytes(b"x")
        (part / "server.pcapng.part").write_bytes(b"half")
        CellsFolder(store.directory, store.manifest.id).commit(part, result(0))
    names = sorted(path.name for path in (tmp_path / "run" / "cells" / "c000-r00").iterdir())
    assert names == ["client.pcapng", "packets.parquet", "result.json", "samples.parquet"]
    assert [path.name for path in (tmp_path / "run" / "cells").iterdir()] == ["c000-r00"]


def test_what_is_missing_is_what_has_no_result_or_failed(tmp_path: Path) -> None:
    with new_run(tmp_path / "run", 3) as store:
        assert missing(store) == ["c000-r00", "c001-r00", "c002-r00"]
        commit(store, 1)
        commit(store, 2, failure=KILLED)
        assert missing(store) == ["c000-r00", "c002-r00"]


def test_a_failed_attempt_is_kept_beside_its_successor(tmp_path: Path) -> None:
    with new_run(tmp_path / "run") as store:
        for _ in range(2):
            commit(store, 0, failure=KILLED)
        commit(store, 0)
        assert missing(store) == ["c001-r00"]
    names = sorted(path.name for path in (tmp_path / "run" / "cells").iterdir())
    assert names == ["c000-r00", "c000-r00.failed-1", "c000-r00.failed-2"]


def test_half_written_cells_are_not_read_and_go_on_resume(tmp_path: Path) -> None:
    store = new_run(tmp_path / "run")
    part = CellsFolder(store.directory, store.manifest.id).begin("c000-r00")
    write_sealed(part / "result.json", result(0).as_json())
    store.close()
    assert Store.read(tmp_path / "run").results() == {}
    with Store.resume(tmp_path / "run") as again:
        assert list((tmp_path / "run" / "cells").iterdir()) == []
        assert len(again.missing()) == 2


def test_a_table_that_is_none_is_the_cells_failure(tmp_path: Path) -> None:
    for content in (b"", b"garbage" * 100, b"ARROW1\0\0"):
        path = tmp_path / "samples.arrow"
        path.write_bytes(content)
        with pytest.raises(EngineError, match=r"samples\.arrow is not a whole Arrow file"):
            to_parquet(path)


def test_resume_refuses_another_study(tmp_path: Path) -> None:
    new_run(tmp_path / "run").close()
    with pytest.raises(StoreError, match="holds another study") as caught:
        Store.resume(tmp_path / "run", digest="d2")
    assert "--resume" in str(caught.value.hint)
    Store.resume(tmp_path / "run", digest="d1").close()


def test_two_writers_are_refused_and_a_reader_is_not(tmp_path: Path) -> None:
    with new_run(tmp_path / "run"):
        with pytest.raises(StoreError, match="in use by another crosswind"):
            Store.resume(tmp_path / "run")
        assert Store.read(tmp_path / "run").results() == {}
    Store.resume(tmp_path / "run").close()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot read"),
        ('{"schema": "crosswind.run/6"}', "newer than crosswind.run/5"),
        ('{"schema": "crosswind.run/3"}', "not 'crosswind.run/5'"),
        ('{"schema": "else/1"}', "its schema is 'else/1'"),
        ('{"schema": "crosswind.run/5"}', "it has changed"),
    ],
)
def test_a_foreign_manifest_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "manifest.json").write_text(content, encoding="utf-8")
    with pytest.raises(StoreError, match=message) as caught:
        Store.read(tmp_path)
    assert caught.value.hint


@pytest.mark.parametrize("name", ["empty", "nowhere", "file"])
def test_a_place_that_is_no_run_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(StoreError, match="is not a run: it has no manifest") as caught:
        Store.read(tmp_path / name)
    assert caught.value.exit_code == 2


def test_a_new_run_takes_no_occupied_directory(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(StoreError, match="not empty and not a run"):
        new_run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    new_run(tmp_path / "run").close()
    with pytest.raises(StoreError, match="already holds a run"):
        new_run(tmp_path / "run")


@pytest.mark.parametrize(
    "left", [["lock"], ["lock", "cells/"], ["lock", "cells/", "plan.jsonl.part"], ["lock", "cells/", "plan.jsonl"]]
)
def test_a_start_that_was_killed_leaves_room_for_another(tmp_path: Path, left: list[str]) -> None:
    for name in left:
        (tmp_path / name).mkdir() if name.endswith("/") else (tmp_path / name).touch()
    with new_run(tmp_path) as store:
        assert len(store.missing()) == 2
        assert not (tmp_path / "plan.jsonl.part").exists()


@pytest.mark.parametrize(("name", "text"), [("lock", "mine"), ("plan.jsonl", "mine"), ("cells/c000-r00", "mine")])
def test_what_only_looks_like_a_killed_start_is_no_place_for_a_run(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text(text, encoding="utf-8")
    with pytest.raises(StoreError, match="not empty and not a run"):
        new_run(tmp_path)
    assert (tmp_path / name).read_text(encoding="utf-8") == text


def test_directories_are_named_after_study_and_time_and_never_twice(tmp_path: Path) -> None:
    first = fresh_directory("a", "T", root=tmp_path)
    assert first == tmp_path / "a-T"
    first.mkdir()
    assert fresh_directory("a", "T", root=tmp_path) == tmp_path / "a-T-2"


def test_the_latest_run_is_the_one_started_last(tmp_path: Path) -> None:
    for name, started in (("b", "2026-01-02"), ("a", "2026-01-03"), ("b", "2026-01-01")):
        new_run(tmp_path / f"{name}-{started}", name=name, started=started).close()
    (tmp_path / "other").mkdir()
    assert latest_run(tmp_path).name == "a-2026-01-03"
    assert latest_run(tmp_path, name="b").name == "b-2026-01-02"
    with pytest.raises(StoreError, match="no run of c"):
        latest_run(tmp_path, name="c")


def test_json_is_replaced_whole(tmp_path: Path) -> None:
    write_sealed(tmp_path / "a.json", {"n": 1})
    write_sealed(tmp_path / "a.json", {"n": 2})
    assert json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))["n"] == 2
    assert [path.name for path in tmp_path.iterdir()] == ["a.json"]


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 256 kB."""
    with mounted_disk(tmp_path / "disk", "256k") as place:
        yield place


def fill(disk: Path, leave_bytes: int) -> None:
    """Fills the disk up to its last pages, then frees some."""
    ballast = os.open(disk / "ballast", os.O_WRONLY | os.O_CREAT)
    with suppress(OSError):
        while True:
            os.write(ballast, b"x" * 4096)
    os.close(ballast)
    os.truncate(disk / "ballast", max(0, (disk / "ballast").stat().st_size - leave_bytes))


def test_a_full_disk_leaves_no_half_cell(small_disk: Path) -> None:
    with new_run(small_disk / "run") as store:
        commit(store, 0)
        part = CellsFolder(store.directory, store.manifest.id).begin("c001-r00")
        pl.DataFrame({"n": list(range(4000))}).write_ipc(part / "samples.arrow")
        fill(small_disk, leave_bytes=4096)
        with pytest.raises(DiskError, match="No space left") as caught:
            CellsFolder(store.directory, store.manifest.id).commit(part, result(1))
        assert caught.value.exit_code == 1
        assert "--resume" in str(caught.value.hint)
        assert list(store.results()) == ["c000-r00"]
    (small_disk / "ballast").unlink()
    with Store.resume(small_disk / "run") as store:
        assert missing(store) == ["c001-r00"]
        commit(store, 1)
        assert missing(store) == []


def test_a_full_disk_keeps_the_old_manifest(small_disk: Path) -> None:
    with new_run(small_disk / "run") as store:
        fill(small_disk, leave_bytes=0)
        with pytest.raises(DiskError):
            store.begin_session(Session(started="x" * 8192))
    assert Store.read(small_disk / "run").manifest.sessions == store.manifest.sessions[:1]


def test_a_run_that_cannot_begin_leaves_nothing(small_disk: Path) -> None:
    (small_disk / "run").mkdir()
    fill(small_disk, leave_bytes=0)
    with pytest.raises(DiskError):
        new_run(small_disk / "run")
    assert list((small_disk / "run").iterdir()) == []


def test_a_read_only_disk_is_refused_with_a_hint(small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", small_disk], check=True)
    with pytest.raises(DiskError, match="Read-only") as caught:
        new_run(small_disk / "run")
    assert "--output" in str(caught.value.hint)


def test_objects_of_pages_are_kept_beside_their_samples(tmp_path: Path) -> None:
    objects = pl.DataFrame([{"page": 0, "object": "html", "sent_ns": 5}], dict(OBJECTS.schema))
    with new_run(tmp_path / "run") as store:
        part = CellsFolder(store.directory, store.manifest.id).begin("c001-r00")
        SAMPLES.write_ipc(part / "samples.arrow")
        objects.write_ipc(part / "objects.arrow")
        CellsFolder(store.directory, store.manifest.id).commit(part, result(1))
    (cell,) = record_of(Store.read(tmp_path / "run")).cells
    assert cell.objects.equals(objects)


def test_the_keys_of_a_capture_are_the_users_alone(tmp_path: Path) -> None:
    with new_run(tmp_path / "run") as store:
        folder = CellsFolder(store.directory, store.manifest.id)
        part = folder.begin("c000-r00")
        for name in ("keys.log", "client.pcapng"):
            (part / name).write_text("secret")
            (part / name).chmod(0o644)
        folder.commit(part, cell_result(planned_cell(0)))
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "run/cells/c000-r00").iterdir()}
    assert (modes["keys.log"], modes["client.pcapng"]) == (0o600, 0o644)
