"""What unit tests share: the command line in this process. No test here starts a kernel of virtual time."""

from collections.abc import Callable
from pathlib import Path

import pytest

from crosswind.cli import main
from described_kernel import described_kernel

__all__ = ["described_kernel"]


@pytest.fixture
def crosswind(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> Callable[..., tuple[int, str, str]]:
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
