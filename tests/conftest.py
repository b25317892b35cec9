"""What tests share: which cell binary they use, and how a test says what it cannot do without."""

import os
import shutil
import stat
import sys
import textwrap
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import settings

from cell_events import FINISHED, PROGRESS

WITHOUT_SAMPLES = {**FINISHED, "samples": {"rows": 0, "ok": 0, "lost": 0, "outcomes": []}, "fidelity": None}

# Tests of the plugin for pytest run pytest.
pytest_plugins = ["pytester"]

ROOT = Path(__file__).parent.parent
BUILT_CELL = ROOT / "target" / "release" / "crosswind-cell"

# A test must never pick up whatever crosswind-cell happens to lie on PATH.
os.environ.setdefault("CROSSWIND_CELL", str(BUILT_CELL))
# What a test starts finds the package that it tests, also where peers start Python (crosswind.peers).
os.environ["PYTHONPATH"] = str(ROOT / "python")
# Nor does a test learn from what others took, or teach the user's forecasts.
os.environ["CROSSWIND_DURATIONS"] = "off"
# How long an example takes depends on what else the machine does, and is no matter of right or wrong.
settings.register_profile("shared-machine", parent=settings(), deadline=None)
settings.load_profile("shared-machine")
REAL_CELL = Path(os.environ["CROSSWIND_CELL"])  # whatever a test sets in its place later


def missing(what: str) -> None:
    """Skips the test and says what is missing; fails it in CI, where everything that can be installed is."""
    if os.environ.get("CI"):
        pytest.fail(f"missing in CI: {what}", pytrace=False)
    pytest.skip(what)


LONGEST = (
    "virtual/test_first_screens.py", "scratch/test_adding.py", "virtual/test_counterfactual.py",
    "virtual/test_ui_keyboard.py", "virtual/test_test_runners.py", "virtual/test_site.py",
    "virtual/test_ci_examples.py", "unit/test_odd_command_lines.py", "linux/test_two_hosts.py",
)  # fmt: skip
"""Files of the tests that take longest."""


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Has every worker begin with its share of the longest, so that none is left with one of them at the end.

    Each worker of pytest-xdist first gets as many tests as the others, in this order.
    """
    longest = [item for name in LONGEST for item in items if str(item.path).endswith(name)]
    others = [item for item in items if not str(item.path).endswith(LONGEST)]
    workers, left = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")), len(items)
    items.clear()
    for worker in range(workers):
        share = longest[worker::workers]
        shorter = max(0, left // (workers - worker) - len(share))
        items += [*share, *others[:shorter]]
        del others[:shorter]
        left -= len(share) + shorter
    items += others


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Says at the end what was not tested, and why."""
    skipped = (report.longrepr for report in terminalreporter.getreports("skipped"))
    reasons = Counter(why[2].removeprefix("Skipped: ") for why in skipped if isinstance(why, tuple))
    if reasons:
        terminalreporter.section("not tested")
        for reason, tests in reasons.most_common():
            terminalreporter.line(f"{tests:5}  {reason}")


def requires(program: str) -> str:
    """The path of a program the test runs, or the end of the test with its name."""
    found = shutil.which(program)
    if found is None:
        missing(f"{program} is not installed")
    return str(found)


def requires_binary() -> Path:
    """The built crosswind-cell, for what it says without running a cell."""
    if not REAL_CELL.exists():
        missing("crosswind-cell is not built: cargo build --release")
    return REAL_CELL


def requires_cell() -> Path:
    """The built crosswind-cell, on a machine where it can run a cell."""
    binary = requires_binary()
    if os.geteuid() != 0:
        pytest.skip("needs root for network namespaces")
    if not Path("/dev/net/tun").exists():
        pytest.skip("needs /dev/net/tun")
    return binary


@pytest.fixture
def cell() -> Path:
    """The real crosswind-cell."""
    return requires_cell()


@pytest.fixture
def fake_cell(tmp_path: Path) -> Callable[[str], Path]:
    """Makes a program that speaks the cell protocol as badly as its Python body says.

    The body finds the parsed cell in `cell`, `say(**event)` prints an event, `progress(**changes)` one about progress.
    What it is asked to check, the real one does.
    """
    real = requires_binary()

    def make(body: str) -> Path:
        path = tmp_path / "fake-cell"
        lines = [
            f"#!{sys.executable} -IS",
            "import json, os, signal, sys, time",
            "if sys.argv[1:] == ['--version']: print('crosswind-cell 0.0.0'); sys.exit()",
            f"if sys.argv[1:] == ['--check']: os.execv({str(real)!r}, [{str(real)!r}, '--check'])",
            "cell = json.loads(sys.stdin.read())",
            "def say(**event): print(json.dumps(event), flush=True)",
            "def ready(): say(event='ready', setup_ns=1)",
            f"def progress(**changes): say(**{{**{PROGRESS!r}, **changes}})",
            "def start(): say(event='started', schema='crosswind.event/1', id=cell.get('id', ''))",
            textwrap.dedent(body),
        ]
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return path

    return make


GOOD_END = f"""
import os
def finish(**changes):
    say(**{{**{WITHOUT_SAMPLES!r}, 'id': cell.get('id', ''), **changes}})
"""
"""Defines finish() for a fake cell: a `finished` event without samples and fidelity."""
