"""A run on an object store: the objects below its address, and their copy on this machine.

    manifest.json, plan.jsonl          as on a disk
    cells/<key>/, partitions/<number>/ as on a disk: complete with result.json or index.json, sent last
    lock                               the writer

The objects are the run; commands read the copy. A reader first fetches missing files. A session writes the copy and
then sends it (`uploads.py`). The lock is an object, renewed by its session (`lease.py`).
"""

import fcntl
import hashlib
import json
import os
import re
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path

from crosswind.errors import StoreError
from crosswind.files.cache import keep, read_kept, replace_file, say_damaged
from crosswind.files.inside import open_inside, read_inside, reader_inside, remove_path
from crosswind.store.addresses import address_of
from crosswind.store.bucket import AbsentError, Bucket, StoredObject
from crosswind.store.lease import Lease, age_s, held_by
from crosswind.store.lock import LOCK, in_use, lock_run
from crosswind.store.manifest import MANIFEST, MARKER, UnreadableFileError, read_manifest
from crosswind.store.partition_index import INDEX, PARTITIONS, names_in
from crosswind.store.plan import PLAN
from crosswind.store.result import RESULT

CELLS = "cells"
LAST = {CELLS: RESULT, PARTITIONS: INDEX}
"""Each kind of entry's last file. Without it the entry counts as absent."""
_TAGS = ".objects"
_UNKNOWN = ("", 0)
_COPY_ID = ".copy"
_IDENTITY = re.compile(r"[0-9a-f]{16}")
_CONCURRENT = 16
_TRIES = 5


class RunObjects:
    """A run's objects. Raises: UsageError without obstore or credentials."""

    def __init__(self, copy: Path) -> None:
        address = address_of(copy)
        assert address is not None
        self.address = address
        self.copy = copy
        self.bucket = Bucket(address)

    # The copy

    def pull(self, *, index_only: bool = False) -> Mapping[str, StoredObject]:
        """Fetches missing files, unless a session on this machine writes the copy.

        Args: index_only: fetch the manifest and the partitions' indices, and no measurements.
        Returns: all objects. Raises: UnreadableFileError without a run. ObjectError, OSError.
        """
        with self._exclusively():
            if in_use(self.copy):
                return self.bucket.listed() if index_only else {}
            return self._pull(keep=False, index_only=index_only)

    def _pull(self, *, keep: bool, index_only: bool = False) -> Mapping[str, StoredObject]:
        """As `pull`. Args: keep: leave files missing from the objects; else remove them."""
        for attempt in range(_TRIES):
            everything = self.bucket.listed()
            there = whole(everything)
            if MANIFEST not in there:
                raise self._no_run()
            known = self._tags()
            if known.get(MANIFEST, _UNKNOWN)[0] != there[MANIFEST].tag and self._is_of_another_run():
                self._empty()
                known = {}
            wanted = {name: found for name, found in there.items() if not index_only or _is_index(name)}
            stale = [name for name, found in wanted.items() if not self._is_current(name, found, known)]
            try:
                fetched = self._fetched(stale)
            except AbsentError:
                if attempt + 1 < _TRIES:
                    continue  # It was packed meanwhile.
                raise
            if not index_only:
                if not keep:
                    self._remove_others(there)
                self.keep_tags({name: fetched.get(name, found.tag) for name, found in there.items()})
            return everything
        raise AssertionError("the last attempt returns or raises")

    def _is_of_another_run(self) -> bool:
        """Whether the copy is from an earlier run at this address. Fetches the manifest."""
        try:
            before = read_manifest(self.copy).id
        except StoreError:
            before = None
        self.copy.mkdir(parents=True, exist_ok=True)
        self.bucket.fetch(MANIFEST, self.copy / MANIFEST)
        try:
            return before is None or read_manifest(self.copy).id != before
        except StoreError:
            return True

    def _is_current(self, name: str, found: StoredObject, known: Mapping[str, tuple[str, int]]) -> bool:
        """Whether the copy has an object's current version. Args: known: tags and times after fetching and sending."""
        try:
            with reader_inside(self.copy, name) as file:
                about = os.fstat(file.fileno())
                if (found.tag, about.st_mtime_ns) == known.get(name) and about.st_size == found.size_bytes:
                    return True
                # An object sent in one piece has its MD5 as tag. A killed session kept no tags.
                digest = hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
                if f'"{digest}"' == found.tag:
                    return True
        except OSError:
            return False
        if found.tag == known.get(name, _UNKNOWN)[0]:
            say_damaged(self.copy / name, "it has changed since it was fetched", "it is fetched anew")
        return False

    def _fetched(self, names: Iterable[str]) -> dict[str, str]:
        """Fetches objects. Returns: their tags. Raises: AbsentError, ObjectError, OSError."""
        # Results and indices last, as they were written.
        ordered = sorted(names, key=lambda name: name.rpartition("/")[2] in LAST.values())

        def fetch(name: str) -> tuple[str, str]:
            return name, self.bucket.fetch(name, self.copy / name)

        with ThreadPoolExecutor(_CONCURRENT) as pool:
            return dict(pool.map(fetch, ordered))

    def _remove_others(self, there: Mapping[str, StoredObject]) -> None:
        entries = {entry_of(name) for name in there}
        for folder in LAST:
            for name in names_in(self.copy / folder):
                if f"{folder}/{name}" not in entries:
                    shutil.rmtree(self.copy / folder / name, ignore_errors=True)
        (self.copy / CELLS).mkdir(exist_ok=True)

    def _empty(self) -> None:
        for path in self.copy.iterdir():
            if path.name not in (LOCK, _COPY_ID, MANIFEST):
                remove_path(path)

    def _tags(self) -> dict[str, tuple[str, int]]:
        """Each copied file's tag and modification time."""
        kept = read_kept(self.copy / _TAGS)
        return {} if kept is None else {name: (tag, at_ns) for name, (tag, at_ns) in json.loads(kept).items()}

    def keep_tags(self, tags: Mapping[str, str]) -> None:
        """Stores tags for copied objects. Without them the next reader fetches some again."""
        known = {name: (tag, _changed_ns(self.copy / name)) for name, tag in tags.items()}
        keep(self.copy / _TAGS, json.dumps(known).encode())

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Locks the copy against other processes on this machine."""
        self.copy.parent.mkdir(parents=True, exist_ok=True)
        place = self.copy.with_suffix(".lock")
        with os.fdopen(open_inside(place.parent, place.name, os.O_WRONLY | os.O_CREAT), "wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    # Sessions

    def begin(self) -> Lease:
        """Takes the lock of a new run, in an empty copy. Raises: StoreError when something is there. ObjectError."""
        with self._exclusively():
            return self._taken(self._refuse_others, empty=True)

    def check_free(self) -> None:
        """Checks for a free address, and leaves nothing behind. Raises: as `begin`."""
        with self._exclusively():
            self._taken(self._refuse_others, empty=True).close()
            self.bucket.remove([LOCK])

    def resume(self) -> Lease:
        """Takes a run's lock, and fetches missing files.

        The copy keeps repetitions missing from the objects: their session was killed before sending them.
        Raises: StoreError without a run, or for one in use. ObjectError, OSError.
        """
        with self._exclusively():
            if MANIFEST not in self.bucket.listed():
                raise self._no_run()
            lease = self._taken(lambda: self._pull(keep=True))
            (self.copy / CELLS).mkdir(exist_ok=True)
            return lease

    def _taken(self, check: Callable[[], object] = lambda: None, *, empty: bool = False) -> Lease:
        """Takes the lock. Args: check: on an error in it, the lock is given back. empty: whether to empty the copy."""
        self.copy.mkdir(parents=True, exist_ok=True)
        with ExitStack() as failed:
            lock = failed.enter_context(lock_run(self.copy))
            if empty:
                (self.copy / MANIFEST).unlink(missing_ok=True)
                self._empty()
            identity = self._copy_id()
            if identity is None:
                identity = secrets.token_hex(8)
                replace_file(self.copy / _COPY_ID, identity.encode())
            lease = failed.enter_context(Lease(self.bucket, identity, lock))
            check()
            failed.pop_all()
            return lease

    def _refuse_others(self) -> None:
        """Raises: StoreError for more than a killed start's leftovers."""
        others = {entry_of(name) for name in self.bucket.listed()} - {LOCK, PLAN}
        if MANIFEST in others:
            raise StoreError(
                f"{self.address} already holds a run",
                hint=f"`crosswind run --resume {self.address}` continues it; or choose another --output",
            )
        if others:
            raise StoreError(f"{self.address} is not empty and not a run", hint="choose another prefix with --output")

    def _no_run(self) -> UnreadableFileError:
        reason = f"it has no {MANIFEST}"
        hint = f"`crosswind runs s3://{self.address.bucket}/...` lists the runs below a prefix"
        return UnreadableFileError(f"{self.address} is not a run: {reason}", reason, hint=hint)

    def is_in_use(self, there: Mapping[str, StoredObject]) -> bool:
        """Whether a session on any machine holds the run. Args: there: its objects. Raises: ObjectError."""
        if in_use(self.copy):
            return True
        lock = there.get(LOCK)
        if lock is None:
            return False
        try:
            held = held_by(self.bucket.read(LOCK)[0])
        except AbsentError:
            return False
        if held.session is None or held.copy == self._copy_id():
            return False
        return age_s(lock) < held.lease_s

    def _copy_id(self) -> str | None:
        try:
            identity = read_inside(self.copy, _COPY_ID).decode("ascii")
        except (OSError, ValueError):
            return None
        return identity if _IDENTITY.fullmatch(identity) else None

    # Removal

    def remove(self) -> None:
        """Removes the run, its manifest first. Raises: StoreError when it is in use. ObjectError."""
        there = self.bucket.listed()
        if not there.keys() & {MANIFEST, MARKER}:
            raise self._no_run()
        with self._exclusively():
            with self._taken() as lease:
                if MARKER not in there:
                    # Any finder may end the removal.
                    self.bucket.write(MARKER, self.bucket.read(MANIFEST)[0])
                self.bucket.remove([MANIFEST])
                lease.check()
                self.bucket.remove(sorted(self.bucket.listed().keys() - {LOCK, MARKER}))
            self.bucket.remove([MARKER, LOCK])
            shutil.rmtree(self.copy, ignore_errors=True)

    def remove_entries(self, names: Iterable[str]) -> None:
        """Removes entries, such as `cells/c000-r00.failed-1`. Raises: as `remove`."""
        with self._exclusively(), self._taken():
            entries = set(names)
            self.bucket.remove([name for name in self.bucket.listed() if entry_of(name) in entries])


def send_pages(place: Path) -> None:
    """Sends a report's pages to the run's object store, if any. Raises: ObjectError."""
    if (address := address_of(place)) is not None:
        bucket = Bucket(address)
        for page in sorted(place.glob("*.html")):
            bucket.write(page.name, page)


def whole(there: Mapping[str, StoredObject]) -> dict[str, StoredObject]:
    """A run's objects, without incomplete entries and foreign objects."""
    of_run = {}
    for name, stored in there.items():
        if ".." in name.split("/"):
            continue  # A copy has it nowhere.
        folder, slash, _ = name.partition("/")
        if (
            name in (MANIFEST, PLAN)
            or (not slash and name.endswith(".html"))
            or (folder in LAST and f"{entry_of(name)}/{LAST[folder]}" in there)
        ):
            of_run[name] = stored
    return of_run


def entry_of(name: str) -> str:
    """An object's entry: `cells/c000-r00`, or a file beside the manifest."""
    return "/".join(name.split("/")[:2])


def _is_index(name: str) -> bool:
    return name == MANIFEST or (name.startswith(f"{PARTITIONS}/") and name.endswith(f"/{INDEX}"))


def _changed_ns(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0
