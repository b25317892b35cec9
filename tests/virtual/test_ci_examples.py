"""The examples for CI services (docs/examples/ci): what they run, they run without installing anything."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import yaml

from conftest import ROOT, requires

EXAMPLES = ROOT / "docs" / "examples" / "ci"
TEST = """
def ask(address, port):
    import socket
    with socket.create_connection((address, port)) as connection:
        return connection.recv(5).decode()

def answer(address, port):
    import socket
    with socket.create_server((address, port)) as listener:
        while True:
            listener.accept()[0].send(b"hello")

def test_hello(net):
    assert net.run(client=ask, server=answer, network="4g").value == "hello"
"""


def commands(name: str) -> Sequence[str]:
    """What a service's file runs, without what it installs."""
    document = yaml.safe_load((EXAMPLES / name).read_text(encoding="utf-8"))
    if name == "gitlab-ci.yml":
        job = document["network-tests"]
        assert set(job) == {"image", "timeout", "before_script", "script", "artifacts"}
        assert job["artifacts"]["reports"]["junit"] == "network-tests.xml"
        lines = [*job["before_script"], *job["script"]]
    else:
        # YAML takes `on` for a truth.
        assert set(document) == {"name", True, "permissions", "jobs"}
        (job,) = document["jobs"].values()
        assert all(("uses" in step) != ("run" in step) for step in job["steps"])
        lines = [step["run"] for step in job["steps"] if "run" in step]
    assert sum(line.startswith("pip install --find-links") for line in lines) == 1
    return [line for line in lines if not line.startswith("pip install")]


def test_the_examples_are_alike_and_pass(plugin: None, tmp_path: Path) -> None:
    requires("curl")
    lines = commands("gitlab-ci.yml")
    assert [line.partition(" #")[0] for line in commands("github-actions.yml")] == [
        line.partition(" #")[0] for line in lines
    ]
    for program, module in {"crosswind": "crosswind", "pytest": "pytest -p pytest_crosswind.plugin -p xdist"}.items():
        script = tmp_path / "bin" / program
        script.parent.mkdir(exist_ok=True)
        script.write_text(f'#!/bin/sh\nexec {sys.executable} -m {module} "$@"\n', encoding="utf-8")
        script.chmod(0o755)
    work = tmp_path / "work"
    work.mkdir()
    (work / "test_hello.py").write_text(TEST, encoding="utf-8")
    environment = {**os.environ, "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}
    for line in lines:
        asked = line.replace("-n auto", "-n 1")
        ended = subprocess.run(
            asked, shell=True, cwd=work, env=environment, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, f"{line}\n{ended.stdout}{ended.stderr}"
    assert {"network-tests.xml", "network-reports"} <= {path.name for path in work.iterdir()}
