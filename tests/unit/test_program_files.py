"""Where a run's programs ran, and the files that their command lines name."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from crosswind.store.program_files import differences, directory_of, files_of
from crosswind.store.provenance import without_home


def cell(*client: str) -> dict[str, Any]:
    return {"workload": {"kind": "program", "client": list(client)}}


def test_files_are_those_that_a_command_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "work")
    Path("client.py").write_text("1", encoding="utf-8")
    Path("c.toml").write_text("2", encoding="utf-8")
    os.mkfifo("pipe")
    shell = "/bin/sh"
    found = files_of([cell(shell, "client.py", "--config=c.toml", "pipe", ".", "a\0b", "-", "no"), cell(shell)])
    digests = {text: hashlib.sha256(text.encode()).hexdigest() for text in "12"}
    assert found["directory"] == "~/work"
    assert {name: found["files"][name] for name in found["files"] if name != shell} == {
        "client.py": digests["1"],
        "c.toml": digests["2"],
    }
    assert shell in found["files"]
    assert (directory_of(found), differences(found)) == (home / "work", [])
    monkeypatch.chdir("/")
    Path(home / "work/client.py").write_text("3", encoding="utf-8")
    assert differences(found) == ["client.py has changed since the run"]


def test_a_run_without_programs_says_nothing() -> None:
    assert files_of([{"workload": {"kind": "echo"}}]) == {}
    assert (directory_of({}), differences({})) == (None, [])


def test_only_the_home_itself_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/srv/home")
    words = ["/srv/home", "/srv/home/x", "--file=/srv/home/x", "/srv/home-made/x", "/srv/homely"]
    assert [without_home(word) for word in words] == ["~", "~/x", "--file=~/x", "/srv/home-made/x", "/srv/homely"]
