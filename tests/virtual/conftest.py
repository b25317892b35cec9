"""What the tests in virtual time share: a kernel that is booted once for all of them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import ROOT, missing, requires_binary
from crosswind.cell.guests import Template
from crosswind.cell.kernels import Kernel, find_kernel, kernels_directory
from crosswind.errors import EngineError
from virtual.everyone import Everyone, at_home, for_everyone
from virtual.lab import VirtualCells
from virtual.paced import Paced, written
from virtual.shared_runs import SharedRuns, home_of_all_workers


def requires_kernel() -> Kernel:
    """The built kernel of virtual time."""
    try:
        return find_kernel()
    except EngineError as error:
        missing(f"{error.message}: {error.hint}")
        raise


@pytest.fixture(scope="session")
def template() -> Iterator[Template]:
    """A booted kernel."""
    template = Template(requires_kernel(), requires_binary())
    yield template
    template.close()


@pytest.fixture
def plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets a pytest of its own find Crosswind, its plugin and the kernel, and load no plugin but those it is told to.

    It comes before `pytester`, which gives the user another home.
    """
    requires_kernel()
    monkeypatch.setenv("CROSSWIND_KERNELS", str(kernels_directory()))
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTHONPATH", f"{ROOT / 'python'}:{ROOT / 'packaging' / 'pytest-crosswind'}")


@pytest.fixture(scope="session")
def installed_for_everyone() -> Iterator[Everyone]:
    """Crosswind for every user, in one place for all tests."""
    with for_everyone(requires_kernel()) as made:
        yield made


@pytest.fixture
def everyone(installed_for_everyone: Everyone) -> Iterator[Everyone]:
    """Crosswind for every user."""
    with at_home(installed_for_everyone) as made:
        yield made


@pytest.fixture
def cells(template: Template, tmp_path: Path) -> VirtualCells:
    """A place to run cells in virtual time."""
    return VirtualCells(template, requires_binary(), tmp_path)


@pytest.fixture(scope="session")
def paced(tmp_path_factory: pytest.TempPathFactory) -> Paced:
    """A sender of numbered packets, and their receiver."""
    return written(tmp_path_factory.mktemp("paced"))


@pytest.fixture(scope="session")
def shared_runs(tmp_path_factory: pytest.TempPathFactory) -> SharedRuns:
    """Runs for several tests, each made once."""
    return SharedRuns(home_of_all_workers(tmp_path_factory))
