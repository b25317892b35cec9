"""No Python that Crosswind starts imports from the current directory, whose files may be named as modules."""

import asyncio
import os
import re
import subprocess
import sys
import tomllib
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from conftest import ROOT
from crosswind.errors import UsageError
from crosswind.execution.workers.dask import _started
from crosswind.peers.registry import PEERS
from crosswind.ui.commands import page_of
from pytest_crosswind.programs import command_of

NAMES = ("crosswind", "json", "random", "pickle", "signal", "socket", "tempfile")
"""Of files that are there by chance, or by somebody's malice."""

CLUSTER = """
import os, sys
from contextlib import ExitStack
from crosswind.execution.workers.dask import _connected

def surroundings():
    return sys.flags.safe_path, os.environ["PYTHONSAFEPATH"]

if __name__ == "__main__":
    with ExitStack() as opened:
        cluster, client = _connected("local:1", opened)
        print(client.submit(surroundings).result(timeout=30))
        client.close()
        cluster.close()
    print(os.environ.get("PYTHONSAFEPATH"))
"""


@pytest.fixture
def traps(tmp_path: Path) -> Path:
    """A directory of modules, each of which leaves a file when it is imported."""
    directory = tmp_path / "traps"
    directory.mkdir()
    for name in NAMES:
        (directory / f"{name}.py").write_text(f"open({str(tmp_path / 'imported')!r}, 'a').write({name!r})\n")
    return directory


def test_a_command_of_the_page_imports_nothing_from_there(traps: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(traps)
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "python"))
    with pytest.raises(UsageError, match="nowhere"):
        asyncio.run(page_of("report", "nowhere"))
    assert not (traps.parent / "imported").exists()


def test_neither_do_the_processes_of_a_cluster_and_programs_that_they_start_are_as_they_were(traps: Path) -> None:
    script = traps.parent / "cluster.py"
    script.write_text(CLUSTER, encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONSAFEPATH"}
    environment["PYTHONPATH"] = str(ROOT / "python")
    ended = subprocess.run(
        [sys.executable, script], cwd=traps, env=environment, capture_output=True, text=True, check=False, timeout=60
    )
    assert (ended.stdout, ended.stderr) == ("(True, '')\nNone\n", "")
    assert not (traps.parent / "imported").exists()


@pytest.mark.parametrize(
    ("on", "module", "name", "options"),
    [
        ("slurm:2", "dask_jobqueue", "SLURMCluster", {"python": f"{sys.executable} -P"}),
        ("k8s:2", "dask_kubernetes.operator", "KubeCluster", {}),
    ],
)
def test_jobs_of_a_queue_begin_in_a_directory_of_the_user(
    monkeypatch: pytest.MonkeyPatch, on: str, module: str, name: str, options: dict[str, str]
) -> None:
    asked: list[object] = []
    cluster = SimpleNamespace(scale=asked.append)
    made = SimpleNamespace(**{name: lambda **given: asked.append(given) or cluster})
    monkeypatch.setattr("crosswind.execution.workers.dask.import_module", {module: made}.get)
    assert _started(on, None, ExitStack()) is cluster
    assert asked == [options, 2]


def programs(value: Any) -> list[list[str]]:
    """The argument lists in a study."""
    if isinstance(value, dict):
        return [found for part in value.values() for found in programs(part)]
    if isinstance(value, list):
        return [value] if value[:1] == ["{python}"] else [found for part in value for found in programs(part)]
    return []


def test_every_python_is_started_that_way() -> None:
    studies = [tomllib.loads(path.read_text("utf-8")) for path in (ROOT / "python/crosswind/studies").glob("*.toml")]
    peers = [peer.command(end) for peer in PEERS.values() for end in ("client", "server")]
    commands = [*programs(studies), *filter(None, peers), command_of(re.compile, "client")]
    assert len(commands) > len(PEERS)
    assert {tuple(command[:2]) for command in commands} == {("{python}", "-P")}
    sources = [*(ROOT / "python").rglob("*.py"), *(ROOT / "packaging/pytest-crosswind/pytest_crosswind").glob("*.py")]
    naming = {path.name for path in sources if "sys.executable" in path.read_text(encoding="utf-8")}
    assert naming == {"safe_path.py", "binary.py"}  # The second fills in {python}.
