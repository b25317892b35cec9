"""A run that somebody else sent: no link in it, and no name in it, leads a command out of it."""

import fcntl
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.errors import StoreError
from crosswind.execution.verify import check_files
from crosswind.store import partitions
from crosswind.store.directory import Store
from crosswind.store.lock import holder, in_use, lock_run
from crosswind.store.run import load
from crosswind.ui import commands, runs
from fixture_types import Crosswind, UseCell
from runs import change_sealed, new_run
from unit.test_damage import make_run
from unit.test_partitions import AT_ONCE, fill

PRECIOUS = b"precious\n"
WRITTEN = ["manifest.json.part", "plan.jsonl.part", "report.html", "report.html.part", "report-cells.html"]
"""A session takes their place."""
REFUSED = ["lock", "cells", "partitions"]
READ = [
    "manifest.json", "plan.jsonl", "cells/c000-r00", "cells/c000-r00/result.json", "cells/c000-r00/samples.parquet",
    "cells/c000-r00/client.out", "cells/c000-r00/output", "cells/c000-r00/output/data", "cells/c000-r00.4711.part",
]  # fmt: skip
COMMANDS = [
    ("run", "--resume", "run"), ("report", "run", "--html", "run/report.html"), ("report", "run", "--json"),
    ("verify", "run", "--files"), ("verify", "run"), ("runs", "run", "--details"), ("compare", "run", "whole"),
    ("export", "run", "--ro-crate", "run.zip"), ("clean", "run", "--leftovers", "--yes"), ("clean", "run", "--yes"),
]  # fmt: skip


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run with files of every kind."""
    return make_run(tmp_path_factory.mktemp("runs") / "whole")


def linked(whole: Path, name: str) -> Path:
    """A copy of it in the current directory, of which one entry is a link to what it was, which is elsewhere."""
    run, outside = Path("run"), Path("outside")
    shutil.copytree(whole, run)
    shutil.copytree(whole, "whole")
    outside.mkdir()
    target = outside / "target"
    if (run / name).exists():
        (run / name).rename(target)
    else:
        target.write_bytes(PRECIOUS)
    (run / name).symlink_to(target.absolute())
    return run


@pytest.mark.parametrize(("name", "status"), [("cells/c000-r00/client.out", 0), ("cells", 1)])
def test_a_page_in_a_folder_of_a_run_replaces_the_link(
    crosswind: Crosswind, whole: Path, name: str, status: int
) -> None:
    run = linked(whole, name)
    before = contents(Path("outside"))
    page = run / name if status == 0 else run / name / "page.html"
    assert crosswind("report", "whole", "--html", str(page))[0] == status
    assert contents(Path("outside")) == before


def contents(directory: Path) -> dict[str, bytes | None]:
    return {str(path): path.read_bytes() if path.is_file() else None for path in directory.rglob("*")}


@pytest.mark.parametrize("name", [*WRITTEN, *REFUSED, *READ])
def test_no_command_follows_a_link_in_a_run(
    crosswind: Crosswind, use_cell: UseCell, whole: Path, tmp_path: Path, name: str
) -> None:
    use_cell("finish()")
    for command in COMMANDS:
        linked(whole, name)
        before = contents(Path("outside"))
        _, out, err = crosswind(*command)
        assert contents(Path("outside")) == before, command
        assert "bug" not in out + err, command
        for place in (Path("run"), Path("whole"), Path("outside")):
            shutil.rmtree(place, ignore_errors=True)


@pytest.mark.parametrize("name", WRITTEN)
def test_what_a_session_writes_takes_the_place_of_a_link(
    crosswind: Crosswind, use_cell: UseCell, whole: Path, name: str
) -> None:
    use_cell("finish()")
    run = linked(whole, name)
    assert crosswind("run", "--resume", "run")[0] == 0
    assert (run / "report.html").read_bytes().startswith(b"<!doctype html>")
    assert not (run / "report.html").is_symlink() and not (run / "manifest.json").is_symlink()


@pytest.mark.parametrize("name", REFUSED)
def test_a_session_says_which_link_it_does_not_follow(crosswind: Crosswind, whole: Path, name: str) -> None:
    linked(whole, name)
    status, _, err = crosswind("run", "--resume", "run")
    assert status in (1, 2)
    assert f"{name} is a link" in err and "hint: " in err


def test_a_file_that_is_a_link_is_damage(whole: Path, crosswind: Crosswind) -> None:
    run = linked(whole, "cells/c000-r00/samples.parquet")
    (damage,) = check_files(run).damaged
    assert damage.text == (
        "cells/c000-r00/samples.parquet cannot be read: samples.parquet is a link, which is not followed: "
        "repetition 1 of cell 0 is left out"
    )


def test_a_link_to_a_run_is_the_run(whole: Path, tmp_path: Path) -> None:
    (tmp_path / "run").symlink_to(whole)
    assert check_files(tmp_path / "run") == check_files(whole)
    assert not check_files(whole).damaged


def test_who_holds_the_target_of_a_link_does_not_hold_the_run(whole: Path, crosswind: Crosswind) -> None:
    run = linked(whole, "lock")
    with Path("outside/target").open("rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        assert holder(run) is None
        assert not in_use(run)
    (run / "lock").unlink()
    with lock_run(run):
        assert (holder(run), in_use(run)) == (os.getpid(), True)


def test_the_page_follows_no_link_either(tmp_path: Path) -> None:
    run = tmp_path / "runs" / "run"
    new_run(run).close()
    (tmp_path / "target").write_bytes(PRECIOUS)
    for place in (run / "report.html", commands.log_of(run)):
        place.symlink_to(tmp_path / "target")
    assert commands.log_text(run) == ""
    assert [one["answer"] for one in runs.listed(tmp_path / "runs")] == [""]
    with pytest.raises(OSError, match=r"run\.log is a link, which is not followed"):
        commands.open_log(commands.log_of(run))
    assert (tmp_path / "target").read_bytes() == PRECIOUS


def name_of_a_file(run: Path) -> None:
    result = run / "cells/c000-r01/result.json"
    change_sealed(result, files={"../../../target": {"bytes": 9, "sha256": "0"}})


def name_in_a_partition(run: Path) -> None:
    change_sealed(run / "partitions/00000/index.json", files={"/target": {"bytes": 9, "sha256": "0"}})


@pytest.mark.parametrize("change", [name_of_a_file, name_in_a_partition])
def test_the_name_of_a_file_leads_nowhere_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], None]
) -> None:
    monkeypatch.setattr(partitions, "PACKED_AT_ONCE", AT_ONCE)
    run = fill(tmp_path / "run")
    change(run)
    (reason,) = {damage.reason for damage in check_files(run).damaged}
    assert reason.endswith("target' is no path within it")
    assert len(load(run).record().cells) in (6, 9)


@pytest.mark.parametrize("key", ["../../target", "a/b", "", ".."])
def test_the_key_of_a_repetition_is_a_name(tmp_path: Path, key: str) -> None:
    with pytest.raises(StoreError, match="no key of a repetition"), new_run(tmp_path / "run") as store:
        planned = store.plan[0]
        store.extend_plan([type(planned)(**{**vars(planned), "key": key})])
        _ = Store.read(tmp_path / "run").plan
