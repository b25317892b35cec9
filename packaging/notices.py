"""Writes THIRD-PARTY-NOTICES.txt, which every wheel has: the licences of what the wheels and their reports hold.

    packaging/notices.py            writes it, from Cargo.lock; needs no network where the crates are there
    packaging/notices.py --check    says whether it is current

crosswind-cell is linked with crates. Reports hold the scripts of Vega, whose notices are in notices/javascript.txt:
`packaging/notices.py --javascript NODE_MODULES` writes it from an `npm install` of the versions that vl_convert names
(`get_vega_version()` and the like).
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
NOTICES = ROOT / "THIRD-PARTY-NOTICES.txt"
KEPT = Path(__file__).parent / "notices"
"""Of crates without a file, the text in their sources; and what `--javascript` wrote."""

JAVASCRIPT = KEPT / "javascript.txt"
BINARY = "crosswind-cell"
TARGETS = ("x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu")
NOT_BUNDLED = {"yargs", "commander", "iconv-lite", "rw"}
"""What only the command lines of npm packages need."""

_NAMES = re.compile(r"(licen[cs]e|copying|notice|unlicense|copyright)([-_.].*)?", re.IGNORECASE)
_LINE = "-" * 100

Package = tuple[str, str, list[str]]
"""Name with version, licence, and the texts that go with it."""


def main(arguments: list[str]) -> int:
    """Returns the exit status."""
    if arguments[:1] == ["--javascript"]:
        JAVASCRIPT.write_text(javascript_text(Path(arguments[1])), encoding="utf-8")
        return 0
    if missing := kernel_only():
        print(f"error: {', '.join(missing)} of kernel/path/Cargo.lock is not in Cargo.lock", file=sys.stderr)
        print("hint: cargo update --precise, so that the kernel of virtual time has the same crates", file=sys.stderr)
        return 1
    text = notices()
    if arguments != ["--check"]:
        NOTICES.write_text(text, encoding="utf-8")
        return 0
    if not NOTICES.exists() or NOTICES.read_text(encoding="utf-8") != text:
        print(f"error: {NOTICES.name} is not current\nhint: packaging/notices.py writes it", file=sys.stderr)
        return 1
    return 0


def notices() -> str:
    """The whole file."""
    crates = list(linked_crates())
    return (
        "Crosswind is licensed under the Apache License 2.0. It holds parts of others, whose notices are these.\n\n"
        f"{_LINE}\n1. {BINARY}, the program in this package, is linked with the Rust standard library\n"
        "   (MIT OR Apache-2.0, Copyright (c) The Rust Project Contributors) and these crates. The kernel of virtual\n"
        "   time is linked with some of them.\n\n"
        f"{listed(crates)}\n{texts(crates)}\n"
        f"{JAVASCRIPT.read_text(encoding='utf-8')}"
    )


def kernel_only() -> list[str]:
    """The crates that only the kernel of virtual time is linked with: none, so that these notices are its too."""

    def locked_in(file: Path) -> set[tuple[str, str]]:
        packages = tomllib.loads(file.read_text(encoding="utf-8"))["package"]
        return {(package["name"], package["version"]) for package in packages if "source" in package}

    kernels = locked_in(ROOT / "kernel" / "path" / "Cargo.lock")
    return [f"{name} {version}" for name, version in sorted(kernels - locked_in(ROOT / "Cargo.lock"))]


def linked_crates() -> Iterator[Package]:
    """The crates that the program is linked with, by name. Those that only build it leave nothing in it."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    command += [word for target in TARGETS for word in ("--filter-platform", target)]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    metadata = json.loads(answer.stdout)
    packages = {package["id"]: package for package in metadata["packages"]}
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    reached: set[str] = set()
    waiting = [one for one, package in packages.items() if package["name"] == BINARY]
    while waiting:
        one = waiting.pop()
        if one in reached or _is_macro(packages[one]):
            continue
        reached.add(one)
        waiting += [
            dependency["pkg"]
            for dependency in nodes[one]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        ]
    ours = {package for package in reached if packages[package]["source"] is None}
    for key in sorted(reached - ours, key=lambda key: (packages[key]["name"], packages[key]["version"])):
        package = packages[key]
        licence = package["license"] or "see its text"
        folder = Path(package["manifest_path"]).parent
        texts = licence_texts(folder, licence) or [_without_a_file(package["name"], licence, package["authors"])]
        yield f"{package['name']} {package['version']}", licence, texts


def _is_macro(package: Mapping[str, Any]) -> bool:
    return any("proc-macro" in target["kind"] for target in package["targets"])


def licence_texts(folder: Path, licence: str) -> list[str]:
    """The texts in a package's folder; of alternatives the one of MIT, which asks for no more than its text."""
    places = [*folder.iterdir(), *folder.glob("third_party/**/*")]
    files = sorted(path for path in places if path.is_file() and _NAMES.fullmatch(path.name))
    if re.search(r"\bOR\b|/", licence) and "MIT" in licence:
        of_mit = [path for path in files if "mit" in path.name.lower()]
        files = of_mit + [path for path in files if path.name.lower().startswith("notice")] if of_mit else files
    return [_normal(path.read_text(encoding="utf-8", errors="replace")) for path in files]


def _without_a_file(name: str, licence: str, authors: Iterable[str]) -> str:
    """What stands for a text that a crate does not have. Raises: FileNotFoundError where that is in its sources."""
    if "Apache-2.0" in licence:
        return f"Copyright {', '.join(authors)}. Licensed under the Apache License 2.0, whose text is in this file.\n"
    return (KEPT / f"{name}.txt").read_text(encoding="utf-8")


def javascript_text(modules: Path) -> str:
    """The second part of the file. Args: modules: a folder node_modules."""
    packages = list(javascript_packages(modules))
    return (
        f"{_LINE}\n2. The reports that Crosswind writes hold these scripts, which the Python package vl-convert-python "
        f"{locked('vl-convert-python')}\n   has in one bundle:\n\n{listed(packages)}\n{texts(packages)}"
    )


def javascript_packages(modules: Path) -> Iterator[Package]:
    """Those that a page needs, by name."""
    packages: set[str] = set()
    waiting = ["vega", "vega-lite", "vega-embed", "vega-themes"]
    while waiting:
        name = waiting.pop()
        if name not in packages and name not in NOT_BUNDLED and not name.startswith("@types/"):
            packages.add(name)
            waiting += json.loads((modules / name / "package.json").read_text(encoding="utf-8")).get("dependencies", {})
    for name in sorted(packages):
        about = json.loads((modules / name / "package.json").read_text(encoding="utf-8"))
        texts = licence_texts(modules / name, about["license"])
        assert texts, f"{name} has no licence"
        yield f"{name} {about['version']}", about["license"], texts


def locked(name: str) -> str:
    """The version of a Python package in the lock file."""
    pinned = re.search(rf"^{name}==(\S+)", (ROOT / "requirements.lock").read_text(encoding="utf-8"), re.MULTILINE)
    assert pinned is not None
    return pinned[1]


def listed(packages: Iterable[Package]) -> str:
    """A line for each package."""
    return "".join(f"   {name}: {licence}\n" for name, licence, _ in packages)


def texts(packages: Iterable[Package]) -> str:
    """Each text once, below the packages that it is of."""
    of: dict[str, list[str]] = {}
    for name, _, licence_texts in packages:
        for text in licence_texts:
            of.setdefault(text, []).append(name)
    return "".join(f"{_LINE}\n{', '.join(names)}\n\n{text}\n" for text, names in of.items())


def _normal(text: str) -> str:
    lines = (line.rstrip() for line in text.replace("\f", "\n").splitlines())
    return "\n".join(lines).strip("\n") + "\n"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
