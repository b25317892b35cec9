"""The runs on an object store, as a listing has them: of a run its manifest is read, and which repetitions partitions
hold; all else is known from the names and sizes of its objects.
"""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from crosswind.store.addresses import place_of
from crosswind.store.listing import MARKER, Listed, ListedRun, Unreadable, latest_first, listed_run
from crosswind.store.manifest import MANIFEST, UnreadableFileError, read_manifest
from crosswind.store.objects import CELLS, LAST, RunObjects, entry_of

_AT_A_TIME = 8


def list_objects(root: Path, *, details: bool = False) -> list[Listed]:
    """What is below an address, or the run that it is itself. Raises: StoreError when nothing can be listed."""
    objects = RunObjects(root)
    names, files = objects.bucket.top()
    if {MANIFEST, MARKER}.intersection(files) or (objects.address.prefix and not names):
        return [examine_objects(root, details=details)]
    places = [place_of(f"{objects.address}/{name}") for name in names]
    with ThreadPoolExecutor(_AT_A_TIME) as pool:
        return latest_first(list(pool.map(lambda place: examine_objects(place, details=details), places)))


def examine_objects(place: Path, *, details: bool = False) -> Listed:
    """What is at the address of a copy. Raises: ObjectError when the server refuses."""
    objects = RunObjects(place)
    try:
        return _examined(objects, details)
    except UnreadableFileError as error:
        if MARKER in objects.bucket.listed():
            return Unreadable(place, "its removal did not end", leftover=True)
        return Unreadable(place, error.reason)


def _examined(objects: RunObjects, details: bool) -> ListedRun:
    there = objects.pull(index_only=not details)
    if not there:
        # A session of this machine is at work, so that the copy is what there is.
        there = objects.bucket.listed()
    entries = {entry_of(name) for name in there}
    whole = {entry for entry in entries if f"{entry}/{LAST.get(entry.partition('/')[0])}" in there}
    return listed_run(
        objects.copy,
        read_manifest(objects.copy),
        sorted(entry.partition("/")[2] for entry in whole if entry.startswith(f"{CELLS}/")),
        size=(sum(found.size_bytes for found in there.values()), True),
        used=objects.is_in_use(there),
        parts=sum(entry.partition("/")[0] in LAST and entry not in whole for entry in entries),
        details=details,
    )
