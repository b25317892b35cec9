"""Where a run's programs ran, and the files that their command lines name: programs, and arguments.

A rerun starts them in the same place, and says which of the files are others by now.
"""

import hashlib
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from crosswind.catalog.endpoints import commands_of
from crosswind.store.provenance import without_home

_LARGEST_BYTES = 64 << 20
"""A larger file is no script and no configuration, and reading it would delay a run."""


def files_of(cells: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """For the provenance: {"directory": "~/here", "files": {"server.py": SHA-256}}; empty without programs."""
    commands = {tuple(command) for cell in cells for command in commands_of(cell).values()}
    if not commands:
        return {}
    here = _here()
    place = {} if here is None else {"directory": without_home(str(here))}
    names = sorted({name for command in commands for name in _names_in(command)})
    digests = {without_home(name): digest for name in names if (digest := _digest(Path(name))) is not None}
    return {**place, "files": digests}


def directory_of(provenance: Mapping[str, Any]) -> Path | None:
    """The directory of a run's programs; None for this process's: the run says none, or it is not on this machine."""
    said = provenance.get("directory")
    if not isinstance(said, str):
        return None
    place = Path(said).expanduser()
    return place if place.is_dir() else None


def differences(provenance: Mapping[str, Any]) -> list[str]:
    """What has become of the directory and the files since the run, a sentence for each."""
    said, directory = provenance.get("directory"), directory_of(provenance)
    found = []
    if isinstance(said, str) and directory is None:
        found.append(f"the run's directory {said} is not here; its programs are run in this one")
    for name, digest in sorted((provenance.get("files") or {}).items()):
        now = _digest((directory or Path()) / Path(name).expanduser())
        if now != digest:
            found.append(f"{name} {'is not here any more' if now is None else 'has changed since the run'}")
    return found


def _here() -> Path | None:
    try:
        return Path.cwd()
    except OSError:
        return None


def _names_in(command: tuple[str, ...]) -> Iterator[str]:
    """The program's path, and what may be the paths of files: arguments, and the values of `--option=FILE`."""
    program, *arguments = command
    found = shutil.which(program)
    if found is not None:
        yield found
    for argument in arguments:
        yield from {argument, argument.rpartition("=")[2]} - {""}


def _digest(path: Path) -> str | None:
    """A regular file's; None for anything else, and where it cannot be read."""
    try:
        # An argument may be anything: opening a FIFO would wait for ever.
        if not path.is_file() or path.stat().st_size > _LARGEST_BYTES:
            return None
        return hashlib.sha256(path.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None
