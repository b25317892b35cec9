"""Adding an element, a transport, a workload and a metric is a file and a line each: shown on a copy of the tree."""

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from conftest import ROOT, requires, requires_cell
from crosswind.analysis.designs import design_of
from crosswind.analysis.settings import CellSettings
from crosswind.catalog.metrics import METRICS
from crosswind.catalog.path_effect import PathEffect
from crosswind.models import predict
from crosswind.stats.design import Tail
from e2e_cli import ANY_FIDELITY

# It builds a copy of the tree.
pytestmark = pytest.mark.timeout(1200)

HERE = Path(__file__).parent
FILES = ("crates", "docs", "packaging", "python", "Cargo.toml", "Cargo.lock", "Makefile", "pyproject.toml")
"""What is built, and what `make catalog` writes."""
LOSSES = (0.0, 0.05, 0.15, 0.25)
METRIC = """
    Metric("toy", "Toy time", TIME, "Half of the time of setting up a connection.",
           "connect_ns / 2", workloads={"toy": {}}, compared_in=("toy",)),
"""


@dataclass(frozen=True)
class Line:
    """A line that is put behind the first one that contains some text."""

    path: str
    behind: str
    line: str


NEW_FILES = {
    "crates/path/src/toy.rs": "toy_element.rs",
    "crates/transport/src/toy.rs": "toy_transport.rs",
    "crates/workload/src/toy.rs": "toy_workload.rs",
}
KINDS = {"path": "element", "transport": "transport", "workload": "workload"}
"""What each crate calls a file that is added."""
LINES = (
    Line("crates/path/src/registry.rs", "elements! {", "    toy: crate::toy::ToySettings,"),
    Line("crates/path/src/lib.rs", "mod settings;", "mod toy;"),
    Line("crates/transport/src/registry.rs", "&crate::tcp::Tcp,", "    &crate::toy::Toy,"),
    Line("crates/transport/src/lib.rs", "mod tls;", "mod toy;"),
    Line(
        "crates/workload/src/registry.rs",
        "WorkloadKind::of::<crate::echo::Echo>(),",
        "    WorkloadKind::of::<crate::toy::Toy>(),",
    ),
    Line("crates/workload/src/lib.rs", "mod session;", "mod toy;"),
    Line("python/crosswind/catalog/metrics.py", "_ALL_METRICS = (", METRIC.strip("\n")),
)


def tree_with_toys() -> dict[Path, bytes]:
    """The files of the copy: those of the tree, and the toys."""
    files = {}
    for name in FILES:
        source = ROOT / name
        paths = [path for path in source.rglob("*") if path.is_file()] if source.is_dir() else [source]
        files |= {path.relative_to(ROOT): path.read_bytes() for path in paths if path.suffix != ".pyc"}
    for new, toy in NEW_FILES.items():
        files[Path(new)] = (HERE / toy).read_bytes()
    for added in LINES:
        lines = files[Path(added.path)].decode().splitlines()
        (number,) = [number for number, line in enumerate(lines) if added.behind in line]
        lines.insert(number + 1, added.line)
        files[Path(added.path)] = "\n".join([*lines, ""]).encode()
    return files


def write_tree(place: Path, files: dict[Path, bytes]) -> None:
    """Makes `place` hold these files and no others. What has not changed keeps its time and is not built again."""
    for path in [path for path in place.rglob("*") if path.is_file()]:
        if path.relative_to(place) not in files:
            path.unlink()
    for name, content in files.items():
        path = place / name
        if not path.exists() or path.read_bytes() != content:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)


@dataclass(frozen=True)
class Copy:
    """A copy of the source tree with the toys in it, built."""

    place: Path
    cell: Path

    @property
    def env(self) -> dict[str, str]:
        """The environment in which Python takes the copy, and the copy its own binary."""
        return os.environ | {
            "PYTHONPATH": str(self.place / "python"),
            "CROSSWIND_CELL": str(self.cell),
            "NO_COLOR": "1",
        }

    def crosswind(self, *arguments: str) -> Any:
        """Runs a command line that prints JSON."""
        command = [sys.executable, "-m", "crosswind", *arguments]
        ended = subprocess.run(
            command, cwd=self.place, env=self.env, capture_output=True, text=True, check=False, timeout=120
        )
        assert ended.returncode == 0, ended.stderr
        return json.loads(ended.stdout)


def link_dependencies(built: Path, target: Path) -> None:
    """Gives `target` what is built of other people's crates, so that it is not built again.

    Cargo cannot tell our own crates from their copies with the toys: in one directory it takes each for the other.
    """
    for folder in ("deps", ".fingerprint", "build"):
        for source in (built / folder).rglob("*"):
            name = source.relative_to(built)
            link = target / name
            if source.is_file() and "crosswind" not in str(name) and not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.hardlink_to(source)


@pytest.fixture
def copy() -> Copy:
    """The toys, built on the dependencies that the tests in Rust have built, and described by `make catalog`."""
    cargo, make = requires("cargo"), requires("make")
    place, target = ROOT / "target" / "scratch" / "tree", ROOT / "target" / "scratch" / "build"
    place.mkdir(parents=True, exist_ok=True)
    write_tree(place, tree_with_toys())
    link_dependencies(ROOT / "target" / "debug", target / "debug")
    build = [cargo, "build", "--package", "crosswind-cell", "--offline", "--locked", "--quiet"]
    # Nobody debugs it.
    environment = os.environ | {"CARGO_TARGET_DIR": str(target), "CARGO_PROFILE_DEV_DEBUG": "0"}
    subprocess.run(build, cwd=place, env=environment, check=True)
    cell = Path(shutil.copy(target / "debug" / "crosswind-cell", place / "crosswind-cell"))
    python = Path(sys.executable).parent.parent
    kept = [f"--old-file={path}" for path in (python / ".locked", cell)]
    catalog = [make, "catalog", f"CELL={cell}", f"DEV={python}", *kept]
    subprocess.run(catalog, cwd=place, check=True, capture_output=True)
    return Copy(place, cell)


def test_the_files_touched_are_those_that_are_listed() -> None:
    listed = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for path in NEW_FILES:
        _, crate, _ = path.split("/", 2)
        assert f"`crates/{crate}/src/<{KINDS[crate]}>.rs`" in listed
    for added in LINES:
        assert f"`{added.path}`" in listed


def assert_described(copy: Copy) -> None:
    """The binary describes the toys."""
    described = json.loads(subprocess.run([copy.cell, "--describe"], capture_output=True, check=True).stdout)
    assert "toy" in {transport["name"] for transport in described["transports"]}
    (element,) = [element for element in described["elements"] if element["name"] == "toy"]
    assert [key["name"] for key in element["keys"]] == ["drops", "bad_luck"]
    (workload,) = [workload for workload in described["workloads"] if workload["kind"] == "toy"]
    assert "toy" in workload["transports"]


def assert_taken(copy: Copy) -> None:
    """The study format has their keys, and so has its reference."""
    schema = json.dumps(copy.crosswind("schema"))
    documented = (copy.place / "docs" / "study.md").read_text(encoding="utf-8")
    for name in ("drops", "bad_luck", "toys"):
        assert name in schema
        assert name in documented


def assert_run(copy: Copy) -> None:
    """A study of toys runs, and its report has the metric."""
    (copy.place / "drops.txt").write_text("0\n")
    # Connections are counted; a median needs about as many.
    toys = (
        "--transport",
        "toy",
        "--delay",
        "1ms",
        "--repetitions",
        "1",
        "--set",
        "path.forward.drops=@drops.txt,0 1",
        "--set",
        "workload.toys=60",
    )
    result = copy.crosswind("run", "toy", *toys, *ANY_FIDELITY, "--json")
    assert result["valid"]
    assert [cell["n"] for cell in result["cells"]] == [60, 60]
    # A round trip of 2 ms, and no less for setting up a connection.
    assert result["cells"][0]["estimates"]["toy"]["median"]["value"] >= 1_000_000
    # The packet that opened the first connection was dropped, and in the second cell that which repeated it.
    ledgers = [cell["ledger"]["forward"] for cell in result["cells"]]
    assert [ledger["dropped"]["numbered"] for ledger in ledgers] == [1, 2]
    # The last acknowledgement may still be on its way when a cell ends.
    assert [ledger["in"] - ledger["delivered"] - ledger["queued"] for ledger in ledgers] == [1, 2]


def assert_seen(copy: Copy) -> None:
    """Models, designs and forecasts see the losses of an element of which Python has never heard."""
    workload = {"kind": "transfer", "transport": "tcp", "size_bytes": 10**6}
    asked = [
        {
            "schema": "crosswind.cell/1",
            "path": {"forward": {"delay_ns": 10**7, "bad_luck": loss}, "reverse": {"delay_ns": 10**7}},
            "host": {"clock": "virtual"},
            "workload": workload,
        }
        for loss in LOSSES
    ]
    lines = "\n".join(map(json.dumps, asked))
    said = subprocess.run([copy.cell, "--check"], input=lines, capture_output=True, text=True, check=True).stdout
    answers = [json.loads(line) for line in said.splitlines()]
    assert [answer["exact"] for answer in answers] == [True, False, False, False]
    seen = [(answer["cell"], PathEffect.from_stored(answer["demand"])) for answer in answers]
    designs = [design_of(METRICS["transfer_time"], CellSettings.of(cell, effect)) for cell, effect in seen]
    assert [design.tail for design in designs] == [Tail.LIGHT, Tail.SKEWED, Tail.HEAVY, Tail.INFINITE]
    predicted = [predict("transfer", cell, effect) for cell, effect in seen]
    assert [prediction.inputs["loss"] for prediction in predicted] == list(LOSSES)
    assert_grows([prediction.value for prediction in predicted])
    luck = f"path.forward.bad_luck={','.join(f'{loss:.0%}' for loss in LOSSES)}"
    planned = copy.crosswind("plan", "transfer", "--size", "1MB", "--delay", "10ms", "--set", luck, "--json")
    assert_grows([cell["expected_ns"] for cell in planned["cells"]])


def assert_grows(numbers: list[float]) -> None:
    assert numbers == sorted(set(numbers))


def test_toys_are_described_taken_run_and_reported(copy: Copy) -> None:
    assert_described(copy)
    assert_taken(copy)
    assert_seen(copy)
    requires_cell()
    assert_run(copy)
