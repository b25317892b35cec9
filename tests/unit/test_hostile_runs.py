"""Runs that somebody else wrote: every checksum is right, and the contents are what no session writes."""

import copy
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from crosswind.store.checksums import Checksum
from crosswind.store.files import write_sealed
from crosswind.store.run_file import RunFile
from fixture_types import Crosswind
from records import MS, echoes, run
from runs import change_sealed, kept_run

DEEP: Any = 1
for _ in range(900):
    DEEP = [DEEP]
WRONG = (None, 5, -1, "x", [], {}, True, 10**30, 1e308, DEEP, [1], {"a": 1}, "")
COMMANDS: tuple[tuple[str, ...], ...] = (
    ("report", "RUN"), ("report", "RUN", "--json"), ("explain", "RUN"), ("runs", "RUN"), ("verify", "RUN", "--files"),
    ("fit", "RUN"), ("compare", "WHOLE", "RUN"), ("export", "RUN", "--ro-crate", "out.zip"),
)  # fmt: skip


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every key of an object, and the first of every list, at any depth."""
    inner = value.items() if isinstance(value, dict) else enumerate(value[:1]) if isinstance(value, list) else ()
    for key, below in inner:
        yield (*at, key)
        yield from places(below, (*at, key))


def changed(value: Any, at: tuple[Any, ...], by: object) -> Any:
    """A copy with another value at a place."""
    whole = inner = copy.deepcopy(value)
    for key in at[:-1]:
        inner = inner[key]
    inner[at[-1]] = by
    return whole


def documents(whole: Path) -> dict[str, Any]:
    """The files of a run that have a format of ours, by their paths."""
    result = next((whole / "cells").glob("*/result.json"))
    read = {
        path.relative_to(whole).as_posix(): json.loads(path.read_bytes()) for path in (whole / "manifest.json", result)
    }
    return {**read, "plan.jsonl": [json.loads(line) for line in (whole / "plan.jsonl").read_bytes().splitlines()]}


def write(directory: Path, name: str, document: Any) -> None:
    """Writes a file of a run with the checksum that it has to have."""
    if name == "plan.jsonl":
        (directory / name).write_text("".join(f"{json.dumps(line)}\n" for line in document), encoding="utf-8")
        change_sealed(directory / "manifest.json", plan=Checksum.of(RunFile(directory, name)).as_json())
    else:
        write_sealed(directory / name, {key: value for key, value in document.items() if key != "checksum"})


@pytest.mark.parametrize("share", range(4))
def test_contents_that_no_session_writes_are_refused_or_shown(crosswind: Crosswind, tmp_path: Path, share: int) -> None:
    whole, hostile = kept_run(tmp_path / "WHOLE", [run(0, echoes([20 * MS] * 60))]), tmp_path / "RUN"
    cases = [(name, document, at) for name, document in documents(whole).items() for at in places(document)]
    for number, (name, document, at) in list(enumerate(cases))[share::4]:
        shutil.copytree(whole, hostile)
        write(hostile, name, changed(document, at, WRONG[number // 4 % len(WRONG)]))
        words = [str(tmp_path / word) if word.isupper() else word for word in COMMANDS[number % len(COMMANDS)]]
        status, _, err = crosswind(*words)
        assert status in (0, 1, 2), (name, at)
        assert "this is a bug" not in err, (name, at, err)
        shutil.rmtree(hostile)


def test_one_hostile_run_hides_no_other(crosswind: Crosswind, tmp_path: Path) -> None:
    for name, change in {
        "a": {},
        "b": {"presentation": {"title": DEEP}},
        "c": {"provenance": {"started": "x"}},
    }.items():
        change_sealed(kept_run(tmp_path / "all" / name, [run(0, echoes([MS] * 5))]) / "manifest.json", **change)
    status, out, err = crosswind("runs", str(tmp_path / "all"))
    assert (status, err) == (0, "")
    assert [line.split()[:2] for line in out.splitlines()[1:]] == [["a", "a-study"], ["b:", "it"], ["c:", "it"]]
