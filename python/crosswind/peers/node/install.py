"""npm packages for the peers in JavaScript: `npm ci` installs package-lock.json into the user's cache."""

import fcntl
import hashlib
import json
import os
import shutil
import stat
import subprocess
from pathlib import Path

from crosswind.errors import DiskError, EngineError
from crosswind.files.cache import cache_directory, keep, read_kept, say_damaged
from crosswind.files.inside import files_inside, reader_inside, remove_path
from crosswind.peers.find_program import find_program, is_older, program_version
from crosswind.peers.node.abilities import OLDEST_NODE

HINT = "`crosswind browser install` installs it"
NPM_TIMEOUT_S = 600
DENO_PACKAGE = "@deno/linux-x64-glibc"

_HERE = Path(__file__).parent
_LOCKED = ("package.json", "package-lock.json")
_FILES = ".installed"
"""Sizes and digests of all files beside it at installation."""
_ANEW = "`crosswind browser install` installs them anew"


def packages_directory() -> Path:
    """Where the packages are or would be: a directory for each lock file, in the user's cache."""
    return cache_directory() / "npm" / _lock_digest()


def installed_packages() -> Path:
    """The directory with node_modules. Raises: EngineError when the packages are not installed."""
    directory = packages_directory()
    if not directory.is_dir():
        raise EngineError("the npm packages of the peers node and deno are not installed", hint=HINT)
    if why := _damage(directory):
        raise EngineError(f"the npm packages in {directory} are damaged: {why}", hint=_ANEW)
    return directory


def package_versions() -> dict[str, str]:
    """Each used package's version, by name. Raises: EngineError."""
    modules = installed_packages() / "node_modules"
    wanted = json.loads((_HERE / "package.json").read_text("utf-8"))
    return {name: _version(modules / name) for name in wanted["dependencies"]}


def socketio_bundle() -> Path:
    """The official Socket.IO client for browsers, one module. Raises: EngineError when it is not installed."""
    return installed_packages() / "node_modules" / "socket.io-client" / "dist" / "socket.io.esm.min.js"


def deno_program() -> Path:
    """Deno, as its npm package brings it. Raises: EngineError when it is not installed."""
    program = installed_packages() / "node_modules" / DENO_PACKAGE / "deno"
    if not program.is_file():
        raise EngineError("Deno is not installed", hint="its npm package is for Linux on x86_64 only")
    return program


def deno_version() -> str:
    """Deno's version. Raises: EngineError when it is not installed."""
    return _version(deno_program().parent)


def node_program() -> str:
    """The system's Node. Raises: EngineError without one."""
    program = find_program("node")
    if program is None:
        raise EngineError("Node is not installed", hint=HINT)
    return program


def check_node_installed() -> None:
    """Raises: EngineError for a missing or too old Node."""
    version = program_version(node_program())
    if is_older(version, OLDEST_NODE):
        raise EngineError(f"Node {version} is too old", hint=f"the peers need Node {OLDEST_NODE} or later")


def install_packages() -> Path:
    """Fetches the packages, unless they are there. Returns their directory.

    Raises: EngineError when there is no npm, or it fails. DiskError.
    """
    directory = packages_directory()
    try:
        _install_into(directory)
    except OSError as error:
        hint = "$XDG_CACHE_HOME says where the user's cache is"
        raise DiskError(f"cannot install npm packages into {directory}: {error.strerror}", hint=hint) from error
    return directory


def _install_into(directory: Path) -> None:
    directory.parent.mkdir(parents=True, exist_ok=True)
    with (directory.parent / "lock").open("w") as lock:
        # Two concurrent installations would write to the same place.
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.lexists(directory):
            why = _damage(directory, contents=True)
            if why is None:
                return
            say_damaged(directory, why)
            remove_path(directory)
        part = directory.with_name(f"{directory.name}.part")
        # From an interrupted installation.
        remove_path(part)
        part.mkdir()
        for name in _LOCKED:
            shutil.copy(_HERE / name, part)
        _npm_ci(part)
        installed = {name: [(part / name).stat().st_size, _digest(part, name)] for name in files_inside(part)}
        keep(part / _FILES, json.dumps(installed).encode())
        part.rename(directory)


def _damage(directory: Path, *, contents: bool = False) -> str | None:
    """A defect in installed packages, if any.

    Args: contents: read every file, Deno's 100 MB too, beside looking at its size.
    """
    kept = read_kept(directory / _FILES)
    if kept is None:
        return "nothing says what was installed"
    for name, (size, digest) in json.loads(kept).items():
        try:
            found = os.lstat(f"{directory}/{name}")
            is_whole = stat.S_ISREG(found.st_mode) and found.st_size == size
            if not is_whole or (contents and _digest(directory, name) != digest):
                return f"{name} has changed"
        except OSError as error:
            return f"{name}: {error.strerror or error}"
    return None


def _digest(directory: Path, name: str) -> str:
    with reader_inside(directory, name) as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _npm_ci(directory: Path) -> None:
    npm = shutil.which("npm")
    if npm is None:
        raise EngineError("npm is not installed", hint="apt install nodejs npm")
    # No package needs its install script.
    command = [npm, "ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    try:
        ended = subprocess.run(
            command, cwd=directory, capture_output=True, text=True, timeout=NPM_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise EngineError(f"npm ci failed: {error}", hint="is npm's registry within reach?") from error
    if ended.returncode != 0:
        last = "; ".join((ended.stderr or ended.stdout).strip().splitlines()[-3:])
        raise EngineError(f"npm ci failed: {last}", hint="is npm's registry within reach?")


def _version(package: Path) -> str:
    return str(json.loads((package / "package.json").read_text("utf-8"))["version"])


def _lock_digest() -> str:
    return hashlib.sha256(b"\0".join((_HERE / name).read_bytes() for name in _LOCKED)).hexdigest()[:12]
