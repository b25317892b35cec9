"""Runs on a disk: what a listing says of each, and that a removal takes whole runs, and nothing else."""

import fcntl
import os
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from cell_events import finished
from crosswind.cell.failure import ErrorKind, Failure
from crosswind.cell.result import FailureCount
from crosswind.errors import DiskError, StoreError
from crosswind.store import removal
from crosswind.store.checksums import sealed
from crosswind.store.details import Details
from crosswind.store.directory import Store
from crosswind.store.files import write_sealed
from crosswind.store.listing import (
    MARKER,
    SAMPLED_CELLS,
    ListedRun,
    Unreadable,
    attempts_of,
    examine_directory,
    half_written,
    latest_run,
    list_runs,
)
from crosswind.store.lock import in_use
from crosswind.store.manifest import Session, Status
from crosswind.store.removal import remove_entries, remove_run
from crosswind.store.result import RepetitionResult
from fixture_types import Crosswind
from runs import RUN_ID, cell_result, change_sealed, new_run, planned_cell

RESULT_BYTES = 5000


def make_run(
    root: Path, name: str, *, status: str = "done", cells: int = 2, done: int | None = None, day: int = 1
) -> Path:
    """A run whose first cells have a result of RESULT_BYTES beside other files; nobody holds its lock."""
    started = f"2026-01-{day:02d}T12:00:00.000+00:00"
    with new_run(root / name, cells, name=name, started=started) as store:
        store.set_status(Status(status))
    for number in range(cells if done is None else done):
        put_result(root / name, cell_result(planned_cell(number)))
    return root / name


def put_result(run: Path, result: RepetitionResult) -> None:
    """Leaves a result behind as a session would, without its tables."""
    cell = run / "cells" / result.key
    cell.mkdir(exist_ok=True)
    data = {"run": RUN_ID, **result.as_json(), "padding": ""}
    write_sealed(cell / "result.json", {**data, "padding": "x" * (RESULT_BYTES - len(sealed(data)))})


def run(directory: Path, *, details: bool = False) -> ListedRun:
    found = examine_directory(directory, details=details)
    assert isinstance(found, ListedRun), found
    return found


def problem(directory: Path) -> str:
    found = examine_directory(directory)
    assert isinstance(found, Unreadable), found
    return found.problem


def test_a_run_is_running_only_while_somebody_holds_its_lock(tmp_path: Path) -> None:
    directory = make_run(tmp_path, "run", status="running")
    with Store.resume(directory):
        assert run(directory).status == "running"
        assert in_use(directory)
    assert run(directory).status == "died"
    # Asking left no lock behind, neither in this process nor for another.
    with Store.resume(directory):
        pass
    with (directory / "lock").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_SH)  # Somebody else asks at this moment.
        assert run(directory).status == "died"
    (directory / "lock").unlink()
    assert run(directory).status == "died"


def test_the_last_sign_of_life_is_that_of_the_last_session(tmp_path: Path) -> None:
    directory = make_run(tmp_path, "run")
    with Store.resume(directory) as store:
        last = Session(started="2026-01-01T12:00:00.000+00:00", ended="2026-02-03T04:05:06.000+00:00")
        store.end_session(last, provenance=store.manifest.provenance)
    assert run(directory).active == datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (None, "it has no manifest.json"),
        ("{", "it has changed since it was written"),
        ("[]", "it has changed since it was written"),
        ("\xff", "it has changed since it was written"),
        ("[" * 100_000, "it has changed since it was written"),
        ('{"schema": "crosswind.run/99"}', "its schema is crosswind.run/99, newer than crosswind.run/5"),
    ],
)
def test_what_cannot_be_read_is_listed_with_the_reason(tmp_path: Path, text: str | None, reason: str) -> None:
    (tmp_path / "odd").mkdir()
    if text is not None:
        (tmp_path / "odd" / "manifest.json").write_text(text, encoding="latin-1")
    assert reason in problem(tmp_path / "odd")
    assert len(list_runs(tmp_path)) == 1


def test_a_listing_opens_no_plan(tmp_path: Path) -> None:
    directory = make_run(tmp_path, "run", cells=7)
    (directory / "plan.jsonl").write_text("not a plan", encoding="utf-8")
    assert run(directory).planned == 7


@pytest.mark.parametrize(
    "change", [{"presentation": {}}, {"provenance": {"started": "yesterday"}}, {"sessions": [3]}, {"status": "fine"}]
)
def test_a_manifest_with_a_wrong_value_is_listed_as_unreadable(tmp_path: Path, change: dict[str, object]) -> None:
    directory = make_run(tmp_path, "run")
    change_sealed(directory / "manifest.json", **change)
    assert "manifest" in problem(directory)


def test_sizes_are_read_or_estimated(tmp_path: Path) -> None:
    def own(directory: Path) -> int:
        return sum((directory / name).stat().st_size for name in ("manifest.json", "plan.jsonl"))

    few = make_run(tmp_path, "few", cells=SAMPLED_CELLS)
    assert (run(few).size_bytes, run(few).exact) == (own(few) + RESULT_BYTES * SAMPLED_CELLS, True)
    many = make_run(tmp_path, "many", cells=200)
    assert (run(many).size_bytes, run(many).exact) == (own(many) + 200 * RESULT_BYTES, False)
    # Larger in the second half: the sample is spread over the names.
    for number in range(100, 200):
        (many / "cells" / f"c{number:03d}-r00" / "samples.parquet").write_bytes(bytes(9000))
    assert run(many).size_bytes == own(many) + 200 * RESULT_BYTES + 100 * 9000
    assert run(many, details=True).exact


def test_links_count_as_themselves(tmp_path: Path) -> None:
    directory = make_run(tmp_path, "run", cells=1)
    before = run(directory).size_bytes
    (tmp_path / "large").mkdir()
    (tmp_path / "large" / "file").write_bytes(bytes(100_000))
    link = directory / "cells" / "c000-r00" / "link"
    link.symlink_to(tmp_path / "large")
    assert run(directory).size_bytes == before + link.lstat().st_size
    (tmp_path / "alias").symlink_to(directory)
    alias = run(tmp_path / "alias")
    assert (alias.done, alias.size_bytes) == (1, run(directory).size_bytes)


def test_details_come_from_the_results(tmp_path: Path) -> None:
    directory = make_run(tmp_path, "run", cells=5)
    put_result(directory, cell_result(planned_cell(0), finished=finished(valid=False)))
    put_result(directory, cell_result(planned_cell(1), failure=Failure(ErrorKind.KILLED, "m", None)))
    (directory / "cells" / "c002-r00" / "result.json").write_text("{", encoding="utf-8")
    found = run(directory, details=True)
    assert found.details is not None
    assert (found.details.valid, found.details.invalid, found.details.failed) == (2, 1, 1)
    assert found.problem is not None
    assert found.problem.startswith("cells/c002-r00/result.json has changed since it was written")
    assert run(directory).details is None


def test_details_say_how_exchanges_were_lost_and_why(tmp_path: Path) -> None:
    def lost(*outcomes: tuple[str, int, str | None]) -> dict[str, object]:
        counts = [{"outcome": name, "count": count, "first_error": error} for name, count, error in outcomes]
        return {"rows": 300, "ok": 300 - sum(outcome[1] for outcome in outcomes), "lost": 0, "outcomes": counts}

    directory = make_run(tmp_path, "run", cells=3)
    first, second = lost(("timeout", 2, None)), lost(("certificate", 298, "it has expired"), ("timeout", 1, "too late"))
    put_result(directory, cell_result(planned_cell(0), finished=finished(samples=first)))
    put_result(directory, cell_result(planned_cell(2), finished=finished(samples=second, valid=False)))
    details = run(directory, details=True).details
    assert details == Details(
        valid=2,
        invalid=1,
        failed=0,
        clocks=("real",),
        outcomes=(
            FailureCount(outcome="certificate", count=298, first_error="it has expired"),
            FailureCount(outcome="timeout", count=3, first_error="too late"),
        ),
    )
    assert [outcome.text() for outcome in details.outcomes] == [
        "298 x certificate (it has expired)",
        "3 x timeout (too late)",
    ]


def test_attempts_and_parts_are_counted_apart(tmp_path: Path) -> None:
    directory = make_run(tmp_path, "run", cells=2, done=1)
    names = ["c000-r00.failed-1", "c000-r00.missed-2", "c001-r00.missed-1", "c001-r00.4711.part"]
    for name in names:
        (directory / "cells" / name).mkdir()
    (directory / "manifest.json.part").touch()
    (directory / "cells" / "notes").mkdir()
    found = run(directory)
    assert (found.done, found.attempts, found.parts) == (1, 3, 1)
    # The attempt at what has no result yet stays: the run may go on from it.
    assert [path.name for path in attempts_of(directory)] == names[:2]
    assert [path.name for path in half_written(directory)] == [names[3], "manifest.json.part"]
    remove_entries(directory, [*attempts_of(directory), *half_written(directory)])
    assert sorted(path.name for path in (directory / "cells").iterdir()) == ["c000-r00", "c001-r00.missed-1", "notes"]
    assert {path.name for path in directory.iterdir()} == {"cells", "lock", "manifest.json", "plan.jsonl"}


def test_links_are_not_followed_out_of_a_run(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    (precious / "c000-r00.4711.part").mkdir(parents=True)
    (precious / "file").touch()
    kept = sorted(precious.rglob("*"))
    directory = make_run(tmp_path, "run", cells=1)
    for place in (directory / "link", directory / "cells" / "c001-r00", directory / "cells" / "x.part"):
        place.symlink_to(precious)
    remove_entries(directory, half_written(directory))
    assert not (directory / "cells" / "x.part").is_symlink()
    remove_run(directory)
    directory = make_run(tmp_path, "again", cells=0)
    (directory / "cells").rmdir()
    (directory / "cells").symlink_to(precious)
    assert (run(directory).done, half_written(directory), attempts_of(directory)) == (0, [], [])
    remove_run(directory)
    assert sorted(precious.rglob("*")) == kept
    assert list(tmp_path.iterdir()) == [precious]


def directory_of_files(root: Path) -> Path:
    (root / "files").mkdir()
    (root / "files" / "manifest.json").write_text('{"schema": "elsewhere/1", "plan": []}', encoding="utf-8")
    return root / "files"


def link_to_a_run(root: Path) -> Path:
    (root / "link").symlink_to(make_run(root, "run"))
    return root / "link"


def looks_removed(root: Path) -> Path:
    (root / ".mine.removed").mkdir()
    (root / ".mine.removed" / "file").touch()
    return root / ".mine.removed"


@pytest.mark.parametrize("make", [directory_of_files, link_to_a_run, looks_removed, lambda root: root / "nowhere"])
def test_what_is_no_run_is_not_removed(tmp_path: Path, make: Callable[[Path], Path]) -> None:
    place = make(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(StoreError):
        remove_run(place)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_run_of_another_version_can_be_removed_but_not_read(tmp_path: Path) -> None:
    directory = make_run(tmp_path, "run")
    change_sealed(directory / "manifest.json", schema="crosswind.run/99")
    assert "crosswind.run/99" in problem(directory)
    remove_run(directory)
    assert not directory.exists()


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_a_lock_that_is_no_file_is_named(tmp_path: Path, make: Callable[[Path], None]) -> None:
    lock = make_run(tmp_path, "run") / "lock"
    lock.unlink()
    make(lock)
    with pytest.raises(StoreError, match="lock is not a regular file"):
        Store.resume(lock.parent)


def test_a_run_whose_name_has_a_line_feed_is_one_line(crosswind: Crosswind, tmp_path: Path) -> None:
    make_run(tmp_path, "first\nsecond")
    status, out, _ = crosswind("runs", str(tmp_path))
    assert status == 0
    assert "first\\u000asecond" in out


def test_a_run_in_use_is_not_touched(tmp_path: Path) -> None:
    directory = make_run(tmp_path, "run")
    with Store.resume(directory):
        (directory / "cells" / "c001-r00.4711.part").mkdir()
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(StoreError, match="in use"):
            remove_run(directory)
        with pytest.raises(StoreError, match="in use"):
            remove_entries(directory, half_written(directory))
        assert sorted(tmp_path.rglob("*")) == before


def test_while_a_run_is_removed_nobody_can_go_on_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = make_run(tmp_path, "run")
    lock = (directory / "lock").open("rb")
    refused = []

    def ask(path: Path) -> None:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            refused.append(path.name)
        remove(path)

    remove = removal.remove_path
    monkeypatch.setattr(removal, "remove_path", ask)
    with lock:
        remove_run(directory)
    assert set(refused) == {"cells", "lock", "plan.jsonl", MARKER}
    assert refused[-1] == MARKER


@pytest.mark.parametrize("steps", [0, 1, 2])
@pytest.mark.parametrize("error", [KeyboardInterrupt(), PermissionError(13, "Permission denied")])
def test_a_removal_that_is_interrupted_leaves_no_run_and_can_be_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: int, error: BaseException
) -> None:
    directory = make_run(tmp_path, "run")
    left = [steps]

    def remove_some(path: Path) -> None:
        if not left[0]:
            raise error
        left[0] -= 1
        remove(path)

    remove = removal.remove_path
    with monkeypatch.context() as patched:
        patched.setattr(removal, "remove_path", remove_some)
        with pytest.raises((KeyboardInterrupt, DiskError)):
            remove_run(directory)
    (leftover,) = tmp_path.iterdir()
    assert leftover.name == ".run.removed"
    assert list_runs(tmp_path) == [Unreadable(leftover, "its removal did not end", leftover=True)]
    with pytest.raises(StoreError, match="there is no run"):
        latest_run(tmp_path)
    # Another run of that name can be made and removed meanwhile.
    remove_run(make_run(tmp_path, "run"))
    assert list(tmp_path.iterdir()) == [leftover]
    remove_run(leftover)
    assert list(tmp_path.iterdir()) == []
