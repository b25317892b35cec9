"""What unit tests share: the command line in this process, with a made-up crosswind-cell.

No test here starts a kernel of virtual time.
"""

from pathlib import Path

import pytest

from cell_events import FINISHED
from crosswind.cli import main
from described_kernel import described_kernel
from fixture_types import Crosswind, FakeCell, UseCell
from runs import echo_samples

__all__ = ["described_kernel"]


@pytest.fixture
def crosswind(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path) -> Crosswind:
    """Runs a command line in an empty directory: (exit status, standard output, standard error)."""
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("NO_COLOR", "1")

    def run(*arguments: str) -> tuple[int, str, str]:
        capfd.readouterr()
        with pytest.raises(SystemExit) as caught:
            main(arguments)
        out, err = capfd.readouterr()
        assert isinstance(caught.value.code, int)
        return caught.value.code, out, err

    return run


@pytest.fixture
def use_cell(fake_cell: FakeCell, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> UseCell:
    """Puts a made-up cell in place. Its body may call finish(**changes), which leaves samples behind."""
    echo_samples().write_ipc(tmp_path / "samples.arrow")

    def use(body: str) -> None:
        head = f"""
import shutil
def finish(**changes):
    shutil.copy({str(tmp_path / "samples.arrow")!r}, cell['output']['directory'])
    say(**{{**{FINISHED!r}, 'id': cell['id'], **changes}})
start()
"""
        monkeypatch.setenv("CROSSWIND_CELL", str(fake_cell(head + body)))

    return use
