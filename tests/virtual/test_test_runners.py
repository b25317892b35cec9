"""Tests of other runners on a path (docs/test-runners.md): the examples of integrations/."""

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from conftest import REAL_CELL, ROOT, requires
from npm_packages import PLAYWRIGHT, npm_packages
from virtual.conftest import requires_kernel

INTEGRATIONS = ROOT / "integrations"


@pytest.fixture
def environment(tmp_path: Path) -> Mapping[str, str]:
    """One in which `crosswind` is the one that is tested."""
    requires_kernel()
    program = tmp_path / "bin" / "crosswind"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -m crosswind "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    return {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "CROSSWIND_CELL": str(REAL_CELL)}


def run(*command: str, cwd: Path, environment: Mapping[str, str]) -> str:
    ended = subprocess.run(
        command, cwd=cwd, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
    assert ended.returncode == 0, ended.stdout
    return ended.stdout


def test_go(environment: Mapping[str, str]) -> None:
    go = requires("go")
    # As `make test-packages` builds, so that Go's own packages are in the compiler's cache.
    command = (go, "test", "-count=1", "-trimpath", "-v", "./...")
    printed = run(*command, cwd=INTEGRATIONS / "go", environment={**environment, "CGO_ENABLED": "0"})
    assert printed.count("--- PASS: ") == 5


def test_rust(environment: Mapping[str, str]) -> None:
    target = ROOT / "target" / "integrations"
    command = (requires("cargo"), "test", "--offline", "--quiet", "--target-dir", str(target))
    assert "3 passed" in run(*command, "--test", "example", cwd=INTEGRATIONS / "rust", environment=environment)


def test_playwright(environment: Mapping[str, str], tmp_path: Path) -> None:
    node, chromium = requires("node"), requires("chromium")
    place = tmp_path / "playwright"
    shutil.copytree(INTEGRATIONS / "playwright", place, ignore=shutil.ignore_patterns("node_modules", "test-results"))
    (place / "node_modules").symlink_to(npm_packages(PLAYWRIGHT))
    command = (node, "node_modules/@playwright/test/cli.js", "test", "--config", "example", "--reporter=list")
    printed = run(*command, cwd=place, environment={**environment, "CHROMIUM": chromium})
    assert "1 passed" in printed
