"""Runs on an object store, against a server that nobody here wrote: what is finished is there, whatever dies."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

import crosswind as api
from cell_events import FINISHED, finished
from command_lines import ECHO
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.result import Finished
from crosswind.errors import CrosswindError, DiskError, StoreError, UsageError
from crosswind.store import partitions
from crosswind.store.addresses import Address, place_of, shown
from crosswind.store.bucket import Bucket, TakenError
from crosswind.store.cells import CellsFolder
from crosswind.store.directory import Store
from crosswind.store.listing import ListedRun, list_runs
from crosswind.store.manifest import Status
from crosswind.store.plan import PlannedCell
from e2e_cli import ANY_FIDELITY, Cli
from linux.lab import wait_until
from objects.conftest import KEY, S3, SECRET, Machines
from runs import cell_result, echo_samples, new_run, plan_of
from small_disks import mounted_disk

ADDRESS = "s3://runs/studies/one"
PLACE = "studies/one"
CELLS = 10
AT_ONCE = 4


@pytest.fixture(autouse=True)
def of_few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partitions, "PACKED_AT_ONCE", AT_ONCE)


def begin(address: str = ADDRESS) -> Store:
    return new_run(place_of(address), plan=plan_of(CELLS))


def measure(store: Store, cells: range | list[int], *, failure: Failure | None = None) -> None:
    """Commits the first repetition of some cells, each with samples of its own."""
    folder = CellsFolder(store.directory, store.manifest.id, store.uploads)
    for number in cells:
        planned: PlannedCell = store.plan[number]
        part = folder.begin(planned.key)
        echo_samples(60 + number).write_ipc(part / "samples.arrow")
        end = Finished.from_stored(finished().as_json() | {"id": planned.key})
        folder.commit(part, cell_result(planned, **({"failure": failure} if failure else {"finished": end})))


def die(store: Store) -> None:
    """What a killed process leaves: nothing more is sent, renewed or given back."""
    assert store.uploads is not None
    store.uploads._pool.shutdown(wait=True, cancel_futures=True)
    store.uploads._lease.close(give_back=False)


def heights(address: str = ADDRESS) -> dict[int, int]:
    """The number of samples of each cell, by which the test knows it."""
    counted = api.load(address).samples().group_by("cell").len()
    return dict(counted.iter_rows())


WHOLE = {number: 60 + number for number in range(CELLS)}


def test_a_run_is_read_on_another_machine_and_lies_there_as_on_a_disk(s3: S3, machines: Machines) -> None:
    with begin() as store:
        measure(store, [9], failure=Failure(ErrorKind.PROTOCOL, "broken", None))
        assert store.uploads is not None
        store.uploads.wait()
        assert heights_of(s3) == {}
    with Store.resume(place_of(ADDRESS)) as store:
        measure(store, range(CELLS))
        store.set_status(Status.DONE)
    copy = place_of(ADDRESS)
    here = {path.relative_to(copy).as_posix() for path in copy.rglob("*") if path.is_file() and path.name[0] != "."}
    assert s3.files(PLACE) == here
    assert {"partitions/00001/index.json", "cells/c009-r00.failed-1/result.json", "cells/c008-r00/result.json"} <= here
    assert not any(name.startswith("cells/c007") for name in here)
    machines.go_to("b")
    run = api.load(ADDRESS)
    assert heights() == WHOLE
    assert (run.status, run.valid, repr(run)) == (Status.DONE, True, f"Run({ADDRESS!r}, done)")
    (listed,) = list_runs(place_of("s3://runs/studies"))
    assert isinstance(listed, ListedRun)
    assert (listed.done, listed.attempts, shown(listed.directory)) == (CELLS, 1, ADDRESS)
    shutil.rmtree(s3.root / "runs" / PLACE / "cells")
    (listed,) = list_runs(place_of(ADDRESS))
    assert isinstance(listed, ListedRun) and listed.done == 2 * AT_ONCE


def test_a_file_of_the_copy_that_has_changed_is_fetched_anew(
    s3: S3, machines: Machines, capfd: pytest.CaptureFixture[str]
) -> None:
    with begin() as store:
        measure(store, range(CELLS))
        store.set_status(Status.DONE)
    machines.go_to("b")
    assert heights() == WHOLE
    copy = place_of(ADDRESS)
    for name in ("manifest.json", "partitions/00000/samples.parquet", "cells/c008-r00/result.json"):
        content = (copy / name).read_bytes()
        (copy / name).write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        capfd.readouterr()
        assert heights() == WHOLE
        said = f"note: {copy / name}: it has changed since it was fetched; it is fetched anew\n"
        assert capfd.readouterr().err == said
    for name in (".objects", ".copy"):
        (copy / name).write_bytes(b"\xff")
    with Store.resume(copy) as store:
        assert store.missing() == []
    assert heights() == WHOLE


def heights_of(s3: S3) -> dict[str, int]:
    """Of whole repetitions that are no partition, straight from the server's disk."""
    results = (s3.root / "runs" / PLACE / "cells").glob("*/result.json")
    return {
        place.parent.name: pl.read_parquet(place.parent / "samples.parquet").height
        for place in results
        if json.loads(place.read_bytes())["failure"] is None
    }


def test_what_a_killed_session_had_sent_is_there_though_its_machine_is_lost(s3: S3, machines: Machines) -> None:
    store = begin()
    measure(store, range(6))
    assert store.uploads is not None
    store.uploads.wait()
    die(store)
    machines.lose("a")
    machines.go_to("b")
    assert heights() == {number: 60 + number for number in range(6)}
    with pytest.raises(StoreError, match=f"{ADDRESS} is in use by another crosswind on "):
        Store.resume(place_of(ADDRESS))
    # Its lock was last renewed an hour ago.
    lock = s3.root / "runs" / PLACE / "lock"
    os.utime(lock, (lock.stat().st_mtime - 3600,) * 2)
    with Store.resume(place_of(ADDRESS)) as again:
        assert [planned.cell for planned in again.missing()] == [6, 7, 8, 9]
        measure(again, range(6, CELLS))
        again.set_status(Status.DONE)
    assert heights() == WHOLE


def test_a_session_that_slept_while_another_went_on_ends(s3: S3, machines: Machines) -> None:
    store = begin()
    lock = s3.root / "runs" / PLACE / "lock"
    os.utime(lock, (lock.stat().st_mtime - 3600,) * 2)
    machines.go_to("b")
    with Store.resume(place_of(ADDRESS)):
        assert store.uploads is not None
        assert not store.uploads._lease._renew()
        with pytest.raises(StoreError, match="may have been taken over"):
            store.set_status(Status.STOPPED)
        assert json.loads((s3.root / "runs" / PLACE / "manifest.json").read_bytes())["status"] == "running"
    machines.go_to("a")
    store.close()


def test_a_server_that_is_restarted_in_mid_run_costs_nothing(s3: S3, machines: Machines) -> None:
    with begin() as store:
        measure(store, range(3))
        s3.kill()
        measure(store, range(3, CELLS))
        assert store.uploads is not None
        assert store.uploads.is_at_work
        assert store.uploads.problem() is None
        s3.start()
        store.set_status(Status.DONE)
    machines.go_to("b")
    assert heights() == WHOLE


def test_a_server_that_stays_away_stops_the_run_and_the_next_session_sends_what_is_here(
    s3: S3, machines: Machines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_OBJECTS_WAIT", "1")
    store = begin()
    measure(store, range(5))
    assert store.uploads is not None
    store.uploads.wait()
    s3.kill()
    measure(store, range(5, 8))
    with pytest.raises(DiskError, match=f"cannot write {ADDRESS}/cells/.*: {s3.endpoint} does not answer"):
        store.set_status(Status.DONE)
    store.close()
    s3.start()
    with Store.resume(place_of(ADDRESS)) as again:
        assert [planned.cell for planned in again.missing()] == [8, 9]
        measure(again, [8, 9])
        again.set_status(Status.DONE)
    machines.go_to("b")
    assert heights() == WHOLE


def test_a_store_that_is_full_keeps_what_it_has(
    server_program: Path, s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CROSSWIND_OBJECTS_WAIT", "1")
    s3.kill()
    with mounted_disk(tmp_path / "small", "256k") as small:
        (small / "runs").mkdir()
        s3.root = small
        s3.start()
        store = begin()
        measure(store, range(3))
        assert store.uploads is not None
        store.uploads.wait()
        with (small / "ballast").open("wb", buffering=0) as file, pytest.raises(OSError, match="No space left"):
            while True:
                file.write(bytes(4096))
        measure(store, range(3, 6))
        with pytest.raises(DiskError, match=f"cannot write {ADDRESS}/"):
            store.uploads.wait()
        store.close()
        (small / "ballast").unlink()
        assert heights() == {number: 60 + number for number in range(3)}
        with Store.resume(place_of(ADDRESS)) as again:
            measure(again, [planned.cell for planned in again.missing()])
            again.set_status(Status.DONE)
        assert heights() == WHOLE
        s3.kill()


def test_a_conditional_write_is_refused_but_for_one_whose_answer_was_lost(s3: S3) -> None:
    bucket = Bucket(Address("runs", "one"))
    first = bucket.replace("lock", b"mine", None)
    assert bucket.replace("lock", b"mine", None) == first
    second = bucket.replace("lock", b"mine again", first)
    assert bucket.replace("lock", b"mine again", first) == second
    for tag in (None, first):
        with pytest.raises(TakenError):
            bucket.replace("lock", b"theirs", tag)
    assert bucket.read("lock")[0] == b"mine again"


def test_two_runs_do_not_share_a_prefix(s3: S3, machines: Machines) -> None:
    with begin():
        machines.go_to("b")
        with pytest.raises(StoreError, match="is in use by another crosswind on "):
            begin()
    with pytest.raises(StoreError, match=f"{ADDRESS} already holds a run"):
        begin()
    (s3.root / "runs" / "other").mkdir()
    (s3.root / "runs" / "other" / "notes.txt").write_text("not a run")
    with pytest.raises(StoreError, match="s3://runs/other is not empty and not a run"):
        begin("s3://runs/other")


@pytest.mark.parametrize(
    ("variables", "address", "said"),
    [
        ({"AWS_SECRET_ACCESS_KEY": "wrong-secret"}, ADDRESS, "SignatureDoesNotMatch"),
        ({"AWS_ACCESS_KEY_ID": "nobody"}, ADDRESS, "No user exists|InvalidAccessKeyId"),
        ({"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": ""}, ADDRESS, f"there are no credentials for {ADDRESS}"),
        ({}, "s3://absent/one", "there is no bucket absent"),
        ({"AWS_ENDPOINT_URL": f"http://{KEY}:{SECRET}@127.0.0.1:1"}, ADDRESS, "http://127.0.0.1:1 does not answer"),
        ({"CROSSWIND_OBJECTS_WAIT": "soon"}, ADDRESS, "it is no number of seconds"),
    ],
)
def test_what_is_wrong_is_said_without_a_secret(
    s3: S3, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], address: str, said: str
) -> None:
    monkeypatch.setenv("CROSSWIND_OBJECTS_WAIT", "1")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    for do in (lambda: begin(address), lambda: api.load(address), lambda: list_runs(place_of(address))):
        with pytest.raises(CrosswindError, match=said) as caught:
            do()
        assert caught.value.hint
        assert not any(secret in f"{caught.value.message} {caught.value.hint}" for secret in (SECRET, "wrong-secret"))


def test_a_profile_has_the_credentials_where_the_environment_has_none(
    s3: S3, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_ENDPOINT_URL"):
        monkeypatch.delenv(name)
    folder = tmp_path / "a" / ".aws"
    folder.mkdir(parents=True)
    (folder / "config").write_text(f"[profile lab]\nendpoint_url = {s3.endpoint}\nregion = us-east-1\n")
    (folder / "credentials").write_text(f"[lab]\naws_access_key_id = {KEY}\naws_secret_access_key = {SECRET}\n")
    monkeypatch.setenv("AWS_PROFILE", "lab")
    with begin() as store:
        measure(store, [0])
    assert heights() == {0: 60}


@pytest.mark.parametrize("address", ["s3://", f"s3://{KEY}:{SECRET}@runs/one", "s3://runs/a//b", "s3://runs/.run"])
def test_an_address_of_no_meaning_is_refused(address: str) -> None:
    with pytest.raises(UsageError) as caught:
        place_of(address)
    assert SECRET not in f"{caught.value.message} {caught.value.hint}"


# The command line, with cells that only leave samples behind.

FAKE_CELL = """
import shutil
start()
if cell['id'] == {stays!r} and not os.path.exists({go_on!r}): time.sleep(60)
shutil.copy({samples!r}, cell['output']['directory'])
say(**{{**{finished!r}, 'id': cell['id']}})
"""


@pytest.fixture
def go_on(fake_cell: Callable[[str], Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Cells of which the last stays until a file is there."""
    samples, go_on = tmp_path / "samples.arrow", tmp_path / "go-on"
    echo_samples(60).write_ipc(samples)
    body = FAKE_CELL.format(stays="c001-r00", go_on=str(go_on), samples=str(samples), finished=FINISHED)
    monkeypatch.setenv("CROSSWIND_CELL", str(fake_cell(body)))
    yield go_on


def test_a_killed_run_goes_on_and_every_command_takes_its_address(
    s3: S3, go_on: Path, machines: Machines, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    crosswind = Cli(tmp_path, capfd)
    started = crosswind.start(*ECHO, *ANY_FIDELITY, "--clock", "real", "--output", ADDRESS, "--jobs", "2")
    wait_until(lambda: "cells/c000-r00/result.json" in s3.files(PLACE))
    started.kill()
    crosswind.end(started)
    go_on.touch()
    ended = crosswind("runs", "s3://runs/studies", "--json")
    (listed,) = ended.json["runs"]
    assert (listed["directory"], listed["status"], listed["done"]) == (ADDRESS, "died", 1), ended.err
    ended = crosswind("run", "--resume", ADDRESS)
    assert f"run:    {ADDRESS}" in ended.err, ended.err
    assert "report.html" in s3.files(PLACE)
    machines.go_to("b")
    crate = tmp_path / "run.zip"
    for words in (
        ["report", ADDRESS], ["verify", ADDRESS, "--files"], ["export", ADDRESS, "--ro-crate", str(crate)],
        ["runs", ADDRESS, "--details"],
    ):  # fmt: skip
        ended = crosswind(*words)
        assert ended.status == 0, (words, ended)
        assert not any(secret in ended.out + ended.err for secret in (SECRET, KEY))
    shutil.unpack_archive(crate, tmp_path / "unpacked")
    ended = crosswind("compare", ADDRESS, str(tmp_path / "unpacked"))
    assert ended.status == 0, ended.err
    assert SECRET.encode() not in b"".join(
        path.read_bytes() for path in (s3.root / "runs").rglob("*") if path.is_file()
    )
    ended = crosswind("clean", ADDRESS, "--yes")
    assert (ended.status, s3.files(PLACE)) == (0, set()), ended.err
    ended = crosswind("report", ADDRESS)
    assert (ended.status, ended.err.splitlines()[0]) == (2, f"error: {ADDRESS} is not a run: it has no manifest.json")
