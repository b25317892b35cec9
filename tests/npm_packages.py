"""npm packages that tests alone need, in the versions of their lock files."""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path

from conftest import ROOT, missing, requires

_LOCKED = ("package.json", "package-lock.json")


def npm_packages(source: Path) -> Path:
    """The node_modules of a directory with a lock file, fetched once into target/."""
    files = [source / name for name in _LOCKED]
    digest = hashlib.sha256(b"\0".join(file.read_bytes() for file in files)).hexdigest()[:12]
    place = ROOT / "target" / "npm" / digest
    if not place.is_dir():
        part = place.with_name(f"{digest}.{os.getpid()}.part")
        part.mkdir(parents=True)
        for file in files:
            shutil.copy(file, part)
        command = [requires("npm"), "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        environment = {**os.environ, "PLAYWRIGHT_SKIP_BROWSER_DOWNLOAD": "1"}
        ended = subprocess.run(command, cwd=part, env=environment, capture_output=True, text=True, check=False)
        if ended.returncode != 0:
            missing(f"the packages of {source}: {ended.stderr}")
        if not place.exists():
            part.rename(place)
    return place / "node_modules"
