"""Checks that every dependency, Rust and Python, is under a licence that deny.toml allows. Needs no network.

Rust packages come from Cargo.lock through `cargo metadata`, Python packages from requirements-dev.lock as installed.
"""

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).parent.parent

# What packages wrote before licences had SPDX names.
SPDX = {
    "apache license 2.0": "Apache-2.0",
    "apache software license": "Apache-2.0",
    "bsd license": "BSD-3-Clause",
    "bsd": "BSD-3-Clause",
    "isc license (iscl)": "ISC",
    "mit license": "MIT",
    "mozilla public license 2.0 (mpl 2.0)": "MPL-2.0",
    "python software foundation license": "PSF-2.0",
}

Package = tuple[str, str | None]
"""Name with version, and licence as it says of itself."""


def main() -> int:
    """Prints what is not allowed. Returns the exit status."""
    policy = tomllib.loads((ROOT / "deny.toml").read_text(encoding="utf-8"))
    allowed = set(policy["licenses"]["allow"])
    packages = [*rust_packages(), *python_packages(ROOT / "requirements-dev.lock")]
    refused = [f"{name}: {licence or 'says nothing of its licence'}" for name, licence in refusals(packages, allowed)]
    for line in refused:
        print(f"error: {line}", file=sys.stderr)
    if refused:
        print("hint: replace it, or allow its licence in deny.toml with a reason", file=sys.stderr)
        return 1
    print(f"licences: {len(packages)} dependencies, all allowed")
    return 0


def refusals(packages: Iterable[Package], allowed: set[str]) -> Iterator[Package]:
    """Those of `packages` whose licence is not in `allowed`."""
    for name, licence in packages:
        if licence is None or not permitted(licence, allowed):
            yield name, licence


def permitted(expression: str, allowed: set[str]) -> bool:
    """Whether an SPDX expression (`/` counts as OR, as in old Cargo files) can be met by `allowed`."""
    tokens = re.findall(r"[()]|[^\s()]+", re.sub(r"\s*/\s*", " OR ", expression))
    place = 0

    def either() -> bool:
        nonlocal place
        value = both()
        while place < len(tokens) and tokens[place].upper() == "OR":
            place += 1
            value = both() or value
        return value

    def both() -> bool:
        nonlocal place
        value = one()
        while place < len(tokens) and tokens[place].upper() == "AND":
            place += 1
            value = one() and value
        return value

    def one() -> bool:
        nonlocal place
        if place >= len(tokens):
            return False
        token = tokens[place]
        place += 1
        if token == "(":
            value = either()
            place += 1
            return value
        if place + 1 < len(tokens) and tokens[place].upper() == "WITH":
            token = f"{token} WITH {tokens[place + 1]}"
            place += 2
        return token in allowed

    return either() and place == len(tokens)


def rust_packages() -> Iterator[Package]:
    """Every crate of Cargo.lock that is not ours."""
    command = ["cargo", "metadata", "--format-version", "1", "--locked"]
    answer = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    for package in json.loads(answer.stdout)["packages"]:
        if package["source"] is not None:
            yield f"{package['name']} {package['version']}", package["license"]


def python_packages(lock: Path) -> Iterator[Package]:
    """Every package of a lock file that is installed here; those for other systems are not."""
    for name in re.findall(r"^([A-Za-z0-9._-]+)==", lock.read_text(encoding="utf-8"), re.MULTILINE):
        try:
            about = metadata.metadata(name)
        except metadata.PackageNotFoundError:
            continue
        yield f"{name} {about['Version']}", python_licence(about)


def python_licence(about: "metadata.PackageMetadata") -> str | None:
    """The SPDX expression of a Python package, from whichever of three fields it uses."""
    if about["License-Expression"]:
        return about["License-Expression"]
    classifiers = [
        line.rpartition(" :: ")[2] for line in about.get_all("Classifier") or () if line.startswith("License ::")
    ]
    named = [SPDX[line.lower()] for line in classifiers if line.lower() in SPDX]
    if named:
        return " AND ".join(named)
    text = (about["License"] or "").strip()
    return SPDX.get(text.lower(), text.split("\n")[0]) or None


if __name__ == "__main__":
    sys.exit(main())
