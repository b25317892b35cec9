"""The command line as a fixture."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import requires_cell
from e2e_cli import Cli


@pytest.fixture
def live(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Iterator[Cli]:
    """The command line in an empty directory, for what runs no cells."""
    cli = Cli(tmp_path, capfd)
    yield cli
    cli.stop()


@pytest.fixture
def crosswind(live: Cli) -> Cli:
    """The same, on a machine that can run cells."""
    requires_cell()
    return live
