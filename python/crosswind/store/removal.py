"""Removes a run, or some entries.

The invariant: at every moment there is a whole run, or a directory recognisable as none. It is renamed to
`.<name>.removed` and loses its manifest before anything else; any finder may end the work.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from crosswind.errors import DiskError, StoreError
from crosswind.files.inside import remove_path
from crosswind.store.addresses import address_of
from crosswind.store.files import sync_path
from crosswind.store.listing import is_leftover, is_run
from crosswind.store.lock import without_sessions
from crosswind.store.manifest import MANIFEST, MARKER, NOT_A_RUN_HINT


def remove_run(directory: Path) -> None:
    """Removes a run, or ends an interrupted removal.

    Raises: StoreError when it is no run or is in use. DiskError when the disk refuses; the rest reads as no run.
    """
    if address_of(directory) is not None:
        from crosswind.store.objects import RunObjects

        with _disk_errors(directory):
            RunObjects(directory).remove()
        return
    leftover = is_leftover(directory)
    if not (leftover or is_run(directory)):
        raise not_a_run(directory)
    with _disk_errors(directory), without_sessions(directory):
        place = directory.resolve()
        if not leftover:
            place = place.rename(_free_name(place))
            sync_path(place.parent)
        if (place / MANIFEST).exists():
            (place / MANIFEST).rename(place / MARKER)
        # The marker goes last: it says what the rest was.
        for entry in sorted(place.iterdir(), key=lambda path: path.name == MARKER):
            remove_path(entry)
        place.rmdir()


def remove_entries(directory: Path, entries: Sequence[Path]) -> None:
    """Removes some of a run's own entries.

    Raises: StoreError when the run is in use. DiskError when the disk refuses.
    """
    if address_of(directory) is not None:
        from crosswind.store.objects import RunObjects

        with _disk_errors(directory):
            RunObjects(directory).remove_entries(entry.relative_to(directory).as_posix() for entry in entries)
    with _disk_errors(directory), without_sessions(directory):
        for entry in entries:
            remove_path(entry)


def not_a_run(directory: Path) -> StoreError:
    """Why a directory is not touched."""
    if directory.is_symlink():
        return StoreError(f"{directory} is a link", hint="name the run itself: links are not followed")
    if not directory.exists():
        return StoreError(f"there is no {directory}", hint="`crosswind runs` lists the runs")
    if (directory / MANIFEST).exists():
        return StoreError(
            f"{directory}: {MANIFEST} is damaged, or not that of a run",
            hint="remove the directory by hand, if it is one",
        )
    return StoreError(f"{directory} is not a run: it has no {MANIFEST} of one", hint=NOT_A_RUN_HINT)


def _free_name(directory: Path) -> Path:
    place, number = directory.with_name(f".{directory.name}.removed"), 1
    while os.path.lexists(place):
        number += 1
        place = directory.with_name(f".{directory.name}.removed-{number}")
    return place


@contextmanager
def _disk_errors(directory: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        where = error.filename or directory
        raise DiskError(
            f"cannot remove {where}: {error.strerror or error}", hint="`crosswind clean` lists the rest"
        ) from error
