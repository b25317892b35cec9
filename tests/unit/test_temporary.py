"""Temporary directories: removed at their end, and by the next process where a killed one could not."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT
from crosswind.files.temporary import LOCK, open_own_file, temporary_directory

HOLDS = """
import sys, time
from pathlib import Path
from crosswind.files.temporary import temporary_directory
with temporary_directory(Path(sys.argv[1])) as place:
    (place / "file").touch()
    print(place, flush=True)
    time.sleep(600)
"""


def test_a_directory_lasts_as_long_as_its_use(tmp_path: Path) -> None:
    with temporary_directory(tmp_path) as mine, temporary_directory(tmp_path) as other:
        assert sorted(tmp_path.iterdir()) == sorted([mine, other])
        assert mine.stat().st_mode & 0o777 == 0o700
        (mine / "deep" / "er").mkdir(parents=True)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_leaves_is_removed_by_the_next(tmp_path: Path) -> None:
    words = [sys.executable, "-c", HOLDS, str(tmp_path)]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    with subprocess.Popen(words, stdout=subprocess.PIPE, env=environment, text=True) as process:
        assert process.stdout is not None
        place = Path(process.stdout.readline().strip())
        # As long as that process lives, it is left alone.
        with temporary_directory(tmp_path):
            assert (place / "file").exists()
        process.kill()
    assert (place / "file").exists()
    with temporary_directory(tmp_path) as mine:
        assert list(tmp_path.iterdir()) == [mine]


def test_one_that_was_killed_before_it_had_a_lock_leaves_an_empty_directory(tmp_path: Path) -> None:
    (tmp_path / "crosswind-tmp-abcd_123").mkdir()
    with temporary_directory(tmp_path) as mine:
        assert list(tmp_path.iterdir()) == [mine]


def test_one_that_was_killed_while_it_removed_its_directory_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "crosswind-tmp-abcd_123" / "deep").mkdir(parents=True)
    (tmp_path / "crosswind-tmp-abcd_123" / "deep" / "file").touch()  # The lock went first.
    with temporary_directory(tmp_path) as mine:
        assert list(tmp_path.iterdir()) == [mine]


def test_a_directory_is_held_without_the_file_in_it(tmp_path: Path) -> None:
    with temporary_directory(tmp_path) as mine:
        (mine / LOCK).unlink()
        with temporary_directory(tmp_path) as other:
            assert sorted(tmp_path.iterdir()) == sorted([mine, other])


def test_a_directory_that_a_cell_holds_is_left_alone(tmp_path: Path) -> None:
    theirs = tmp_path / "crosswind-tmp-abcd_123"
    theirs.mkdir()
    with (theirs / LOCK).open("w") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with temporary_directory(tmp_path):
            assert theirs.exists()
    with temporary_directory(tmp_path) as mine:
        assert list(tmp_path.iterdir()) == [mine]


def another_users(place: Path) -> None:
    place.touch(mode=0o666)
    os.chown(place, 65534, 65534)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to make a file of another user")
@pytest.mark.parametrize("stand", [another_users, os.mkfifo, Path.mkdir, lambda place: place.symlink_to("/dev/null")])
def test_what_another_user_has_made_keeps_nobody_from_a_lock(tmp_path: Path, stand: Callable[[Path], object]) -> None:
    stand(tmp_path / "name.lock")
    descriptors = [open_own_file(tmp_path, "name", ".lock") for _ in range(2)]
    try:
        fcntl.flock(descriptors[0], fcntl.LOCK_EX | fcntl.LOCK_NB)
        with pytest.raises(BlockingIOError):
            fcntl.flock(descriptors[1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["name-2.lock", "name.lock"]


def test_a_lock_that_cannot_be_made_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        open_own_file(tmp_path / "nowhere", "name", ".lock")


def test_nothing_else_is_removed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "directory").mkdir(parents=True)
    (outside / "directory" / LOCK).touch()
    base = tmp_path / "base"
    base.mkdir()
    (base / "crosswind-tmp-abcd_1234").mkdir()  # Its name is longer.
    (base / "crosswind-tmp-20261231").symlink_to(outside / "directory")
    (base / "crosswind-tmp-aaaaaaaa").touch()
    before = sorted(base.iterdir())
    with temporary_directory(base) as mine:
        assert sorted(base.iterdir()) == sorted([*before, mine])
    assert (outside / "directory" / LOCK).exists()


def test_directories_of_other_users_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = tmp_path / "crosswind-tmp-abcd_123"
    theirs.mkdir()
    (theirs / LOCK).touch()
    user = os.geteuid()
    monkeypatch.setattr("os.geteuid", lambda: user + 1)
    with temporary_directory(tmp_path):
        assert theirs.exists()
    monkeypatch.undo()
    with temporary_directory(tmp_path):
        assert not theirs.exists()


def test_a_place_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError), temporary_directory(tmp_path / "nowhere"):
        pass
