"""What the tests on the real kernel share."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import requires_cell
from linux.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A place to run cells. Needs a machine that can."""
    lab = Lab(requires_cell(), tmp_path)
    yield lab
    lab.stop()
