"""The wheel that `make install` installs, in an environment of its own: what a user has."""

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from conftest import ROOT, missing, requires_cell
from e2e_cli import ANY_FIDELITY

Crosswind = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel; what it depends on comes from the environment of the tests."""
    wheels = list((ROOT / "dist").glob("*.whl"))
    if not wheels:
        missing("there is no wheel: make build")
    place = tmp_path_factory.mktemp("environment")
    venv.create(place)
    python = place / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet", "--no-index", "--no-deps"]
    subprocess.run([*install, *map(str, wheels)], check=True)
    site_packages = place / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    (site_packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n", encoding="utf-8")
    return place


@pytest.fixture
def crosswind(environment: Path, tmp_path: Path) -> Crosswind:
    """The installed command in an empty directory. Needs a machine that can run cells."""
    requires_cell()
    ours = ("CROSSWIND_CELL", "PYTHONPATH")
    variables = {name: value for name, value in os.environ.items() if name not in ours} | {"NO_COLOR": "1"}

    def run(*arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [environment / "bin" / "crosswind", *arguments],
            cwd=tmp_path,
            env=variables,
            capture_output=True,
            text=True,
            check=False,
        )

    return run


def test_the_demo_study_runs_in_its_quick_variant(crosswind: Crosswind, tmp_path: Path) -> None:
    ended = crosswind("run", "quickstart", "--quick", *ANY_FIDELITY)
    assert ended.returncode == 0, ended.stderr
    page = Path(ended.stderr.rpartition("report: ")[2].strip())
    assert "</html>" in (tmp_path / page).read_text(encoding="utf-8")
    again = crosswind("report", str(page.parent))
    assert (again.returncode, again.stdout) == (0, ended.stdout)


def test_the_wheel_has_the_notices_of_others() -> None:
    (wheel,) = (ROOT / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as packed:
        (name,) = (name for name in packed.namelist() if name.endswith(".dist-info/licenses/THIRD-PARTY-NOTICES.txt"))
        assert packed.read(name) == (ROOT / "THIRD-PARTY-NOTICES.txt").read_bytes()


def test_the_installed_command_uses_the_binary_beside_it(crosswind: Crosswind, environment: Path) -> None:
    assert (environment / "bin" / "crosswind-cell").exists()
    doctor = crosswind("doctor", "--json")
    assert str(environment) in doctor.stdout
