"""The wheel of `make kernel-wheel`: installed where no kernel was built, it is all that virtual time takes."""

import json
import os
import subprocess
import sys
import sysconfig
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest

from conftest import ROOT, requires_binary
from virtual.conftest import requires_kernel

SCRIPT = ROOT / "packaging" / "kernel" / "wheel.py"

CELL = """
import crosswind
cell = crosswind.virtual({"delay": "10ms"}, workload={"kind": "echo", "transport": "tcp", "messages": 10})
print(len(cell.samples), (cell.samples["received_ns"] - cell.samples["sent_ns"]).min())
"""


def make(directory: Path) -> Path:
    """Makes the wheel. The kernel has been built, so that this takes a second."""
    requires_kernel()
    made = subprocess.run([sys.executable, SCRIPT, directory], capture_output=True, text=True, check=False)
    assert made.returncode == 0, made.stderr
    return Path(made.stdout.strip())


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel."""
    return make(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel; Crosswind itself and the rest come from where the tests run."""
    place = tmp_path_factory.mktemp("environment")
    venv.create(place)
    install(place, "install", "--no-index", str(wheel))
    site_packages = place / "lib" / f"python{sysconfig.get_python_version()}" / "site-packages"
    paths = f"{ROOT / 'python'}\n{sysconfig.get_path('purelib')}\n"
    (site_packages / "dependencies.pth").write_text(paths, encoding="utf-8")
    return place


def install(place: Path, *arguments: str) -> None:
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", "--python", place / "bin" / "python"]
    subprocess.run([*pip, *arguments], check=True)


def run(place: Path, home: Path, *arguments: str) -> "subprocess.CompletedProcess[str]":
    """Runs the environment's Python as a user who has built no kernel."""
    unset = ("CROSSWIND_KERNELS", "PYTHONPATH")
    variables = {name: value for name, value in os.environ.items() if name not in unset}
    variables |= {"XDG_CACHE_HOME": str(home), "CROSSWIND_CELL": str(requires_binary().absolute()), "NO_COLOR": "1"}
    return subprocess.run(
        [place / "bin" / "python", *arguments], env=variables, cwd=home, capture_output=True, text=True, check=False
    )


def test_a_cell_runs_on_the_kernel_of_the_package(environment: Path, tmp_path: Path) -> None:
    ran = run(environment, tmp_path, "-c", CELL)
    assert ran.returncode == 0, ran.stderr
    messages, shortest_ns = map(int, ran.stdout.split())
    assert messages == 10
    assert shortest_ns >= 20_000_000


def test_doctor_says_that_the_kernel_is_the_packages(environment: Path, tmp_path: Path) -> None:
    said = run(environment, tmp_path, "-m", "crosswind", "doctor", "--json")
    (check,) = [check for check in json.loads(said.stdout)["checks"] if check["name"] == "virtual time"]
    assert check["ok"], check
    assert check["detail"].startswith(f"Linux {requires_kernel().release} from the package crosswind-kernel")


def test_the_wheel_has_the_licence_and_all_that_the_kernel_was_made_from(wheel: Path, tmp_path: Path) -> None:
    kernel = requires_kernel()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    package = tmp_path / "crosswind_kernel"
    licence = (package / "source" / "kernel" / "COPYING").read_text()
    assert "GNU GENERAL PUBLIC LICENSE\n                       Version 2, June 1991" in licence
    assert "END OF TERMS AND CONDITIONS" in licence
    facts = json.loads((package / "kernels" / kernel.series / "kernel.json").read_text())
    assert (facts["source"], facts["digest"]) == (kernel.source, kernel.digest)
    (about,) = tmp_path.glob("*.dist-info/METADATA")
    assert f"Linux {kernel.release} from Debian's {kernel.source}" in about.read_text()
    theirs = {path.relative_to(package / "source"): path.read_bytes() for path in files(package / "source")}
    folders = ["kernel", *(f"crates/{name}" for name in path_crates())]
    ours = [ROOT / "Cargo.toml", *(path for folder in folders for path in files(ROOT / folder))]
    assert theirs == {path.relative_to(ROOT): path.read_bytes() for path in ours}


def path_crates() -> list[str]:
    """The crates of ours that are linked with the kernel, by its lock."""
    lock = tomllib.loads((ROOT / "kernel" / "path" / "Cargo.lock").read_text(encoding="utf-8"))
    ours = [package["name"] for package in lock["package"] if "source" not in package]
    return [name.removeprefix("crosswind-") for name in ours if name != "crosswind-kernel-path"]


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def test_the_same_kernel_makes_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    assert make(tmp_path).read_bytes() == wheel.read_bytes()


def test_uninstalling_leaves_nothing(wheel: Path, tmp_path: Path) -> None:
    place = tmp_path / "environment"
    venv.create(place)
    before = set(files(place))
    install(place, "install", "--no-index", "--no-compile", str(wheel))
    assert any("crosswind_kernel" in str(path) for path in files(place))
    install(place, "uninstall", "--yes", "crosswind-kernel")
    assert set(files(place)) == before
