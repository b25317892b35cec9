"""Temporary directories: removed at their end, and by the next process where a killed one could not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import ROOT
from crosswind.temporary import LOCK, temporary_directory

HOLDS = """
import sys, time
from pathlib import Path
from crosswind.temporary import temporary_directory
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


def test_nothing_else_is_removed(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "directory").mkdir(parents=True)
    (outside / "directory" / LOCK).touch()
    base = tmp_path / "base"
    base.mkdir()
    (base / "crosswind-tmp-abcd_123").mkdir()
    (base / "crosswind-tmp-abcd_123" / "file").touch()  # It has no lock.
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
