"""The peers' dependencies: the system's Chromium, Node and npm, and npm packages (`make browser`)."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from types import MappingProxyType

from crosswind.errors import EngineError
from crosswind.peers.find_program import find_program
from crosswind.peers.node.install import install_packages

DEBIAN_PACKAGES: Mapping[str, str] = MappingProxyType({"chromium": "chromium", "node": "nodejs", "npm": "npm"})
"""Each program's Debian package."""
_APT_TIMEOUT_S = 1200


def install(say: Callable[[str], None]) -> None:
    """Installs missing programs and packages. Args: say: told each step and finding, one line each.

    Raises: EngineError for failed installations, after all others.
    """
    missing = missing_programs()
    if missing and os.geteuid() == 0 and shutil.which("apt-get"):
        say(f"installing {', '.join(missing)} with apt-get")
        _apt_install([DEBIAN_PACKAGES[name] for name in missing])
        missing = missing_programs()
    if "node" not in missing and "npm" not in missing:
        say(f"npm packages: {install_packages()}")
    if missing:
        packages = " ".join(DEBIAN_PACKAGES[name] for name in missing)
        raise EngineError(
            f"{' and '.join(missing)} cannot be installed from here", hint=f"as root: apt install {packages}"
        )


def missing_programs() -> list[str]:
    """The missing programs, by the names in `DEBIAN_PACKAGES`.

    Raises: EngineError when the environment names a missing one.
    """
    return [name for name in DEBIAN_PACKAGES if find_program(name) is None]


def _apt_install(packages: list[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in (
        ["apt-get", "update", "-qq"],
        ["apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages],
    ):
        try:
            ended = subprocess.run(
                command, env=environment, capture_output=True, text=True, timeout=_APT_TIMEOUT_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise EngineError(
                f"{' '.join(command)} failed: {error}", hint="is Debian's archive within reach?"
            ) from error
        if ended.returncode != 0:
            last = "; ".join(ended.stderr.strip().splitlines()[-2:])
            raise EngineError(f"{' '.join(command)} failed: {last}", hint="is Debian's archive within reach?")
