"""Some of the odd command lines (tests/odd_command_lines.py, which runs all of them): none hangs, crashes or passes."""

import json
import subprocess
import sys

import pytest

from conftest import ROOT, requires_binary


@pytest.mark.timeout(900)
def test_odd_command_lines_are_refused_with_a_hint() -> None:
    requires_binary()
    command = [sys.executable, str(ROOT / "tests" / "odd_command_lines.py"), "--seed", "47", "--of", "200"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=840, check=False)
    *wrong, counts = ended.stdout.splitlines()
    assert not wrong, "\n".join(wrong)
    assert (ended.returncode, json.loads(counts)["run"]) == (0, 200), ended.stderr
