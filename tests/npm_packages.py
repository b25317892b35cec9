"""npm packages that tests alone need, in the versions of their lock files. As a program it fetches all of them."""

import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
PLAYWRIGHT, AXE = ROOT / "integrations" / "playwright", ROOT / "tests" / "axe"
_LOCKED = ("package.json", "package-lock.json")
_NPM_CI = ("npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error")


def npm_packages(source: Path) -> Path:
    """The node_modules of a directory with a lock file; the test that calls this ends where they are not there."""
    from conftest import missing

    place = _place(source)
    if not place.is_dir():
        missing(f"the npm packages of {source.relative_to(ROOT)} are not installed: make test-packages")
    return place / "node_modules"


def fetch(source: Path) -> None:
    """Fetches them once, into target/. Raises: CalledProcessError, OSError."""
    place = _place(source)
    if place.is_dir():
        return
    part = place.with_name(f"{place.name}.{os.getpid()}.part")
    part.mkdir(parents=True)
    try:
        for name in _LOCKED:
            shutil.copy(source / name, part)
        environment = {**os.environ, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"}
        subprocess.run(_NPM_CI, cwd=part, env=environment, check=True, timeout=600)
        part.rename(place)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def _place(source: Path) -> Path:
    digest = hashlib.sha256(b"\0".join((source / name).read_bytes() for name in _LOCKED)).hexdigest()[:12]
    return ROOT / "target" / "npm" / digest


if __name__ == "__main__":
    try:
        for directory in (PLAYWRIGHT, AXE):
            fetch(directory)
    except (OSError, subprocess.SubprocessError) as error:
        sys.exit(f"error: cannot fetch the npm packages of tests: {error}")
