"""The page of `crosswind ui` by the keyboard alone, in a browser: keyboard/keyboard.spec.mjs."""

import os
import subprocess
import sys
from pathlib import Path

from conftest import REAL_CELL, ROOT, requires
from npm_packages import PLAYWRIGHT, npm_packages
from virtual.conftest import requires_kernel

SPEC = Path(__file__).parent / "keyboard"
STUDY = """
title = "Four cells"
[path]
delay = ["1ms", "2ms"]
[workload]
kind = "echo"
transport = ["tcp", "udp"]
messages = 3
[host]
clock = "virtual"
"""


def test_everything_is_done_by_the_keyboard(tmp_path: Path) -> None:
    requires_kernel()
    node, chromium = requires("node"), requires("chromium")
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "CROSSWIND_CELL": str(REAL_CELL)}
    (tmp_path / "keyboard.toml").write_text(STUDY, encoding="utf-8")
    crosswind = (sys.executable, "-m", "crosswind")
    subprocess.run([*crosswind, "run", "keyboard.toml"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    for file in SPEC.glob("*.mjs"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "node_modules").symlink_to(npm_packages(PLAYWRIGHT))
    command = [*crosswind, "ui", "--port", "0"]
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            address = server.stdout.readline().strip()
            tests = subprocess.run(
                [node, "node_modules/@playwright/test/cli.js", "test", "--reporter=list"],
                cwd=tmp_path,
                env={**environment, "ADDRESS": address, "CHROMIUM": chromium},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                check=False,
            )
            assert tests.returncode == 0, tests.stdout
            assert "6 passed" in tests.stdout
        finally:
            server.terminate()
