"""A run on an object store: the objects below its address, and their copy on this machine.

    manifest.json, plan.jsonl          as on a disk
    cells/<key>/, partitions/<number>/ as on a disk: complete if result.json or index.json is there, which come last
    lock                               who writes

The objects are the run; the copy is what commands read. A reader first fetches what the copy lacks. A session writes
the copy and then sends it (`uploads.py`). The lock is an object that its session renews (`lease.py`).
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
"""The file of an entry that is sent last. Without it the entry counts as absent."""
_TAGS = ".objects"
_UNKNOWN = ("", 0)
_COPY_ID = ".copy"
_IDENTITY = re.compile(r"[0-9a-f]{16}")
_AT_A_TIME = 16
_TRIES = 5


class RunObjects:
    """The objects of a run. Raises: UsageError without obstore or credentials."""

    def __init__(self, copy: Path) -> None:
        address = address_of(copy)
        assert address is not None
        self.address = address
        self.copy = copy
        self.bucket = Bucket(address)

    # The copy

    def pull(self, *, index_only: bool = False) -> Mapping[str, StoredObject]:
        """Fetches what the copy lacks, unless a session of this machine is writing it.

        Args: index_only: fetch the manifest and the indices of partitions, and no measurements.
        Returns: all objects. Raises: UnreadableFileError when there is no run. ObjectError, OSError.
        """
        with self._exclusively():
            if in_use(self.copy):
                return self.bucket.listed() if index_only else {}
            return self._pull(keep=False, index_only=index_only)

    def _pull(self, *, keep: bool, index_only: bool = False) -> Mapping[str, StoredObject]:
        """As `pull`. Args: keep: leave what the copy of the run has and the objects lack; else remove it."""
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
            stale = [name for name, found in wanted.items() if not self._has(name, found, known)]
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
        """Whether the copy is of a run that was at this address earlier. Fetches the manifest."""
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

    def _has(self, name: str, found: StoredObject, known: Mapping[str, tuple[str, int]]) -> bool:
        """Whether the copy has an object as it is. Args: known: tags and times of what was fetched and sent."""
        try:
            with reader_inside(self.copy, name) as file:
                about = os.fstat(file.fileno())
                if (found.tag, about.st_mtime_ns) == known.get(name) and about.st_size == found.size_bytes:
                    return True
                # The tag of an object that was sent in one piece is its MD5. A session that was killed kept no tags.
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

        with ThreadPoolExecutor(_AT_A_TIME) as pool:
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
        """The tag of what the copy has, and when that was changed."""
        kept = read_kept(self.copy / _TAGS)
        return {} if kept is None else {name: (tag, at_ns) for name, (tag, at_ns) in json.loads(kept).items()}

    def keep_tags(self, tags: Mapping[str, str]) -> None:
        """Stores the tags of objects that the copy has. Without that the next reader fetches some again."""
        known = {name: (tag, _changed_ns(self.copy / name)) for name, tag in tags.items()}
        keep(self.copy / _TAGS, json.dumps(known).encode())

    @contextmanager
    def _exclusively(self) -> Iterator[None]:
        """Keeps other processes of this machine from changing the copy."""
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
        """Checks that a run can begin here, and leaves nothing behind. Raises: as `begin`."""
        with self._exclusively():
            self._taken(self._refuse_others, empty=True).close()
            self.bucket.remove([LOCK])

    def resume(self) -> Lease:
        """Takes the lock of a run, and fetches what the copy lacks.

        The copy keeps repetitions that the objects lack: their session was killed before it sent them.
        Raises: StoreError when there is no run, or it is in use. ObjectError, OSError.
        """
        with self._exclusively():
            if MANIFEST not in self.bucket.listed():
                raise self._no_run()
            lease = self._taken(lambda: self._pull(keep=True))
            (self.copy / CELLS).mkdir(exist_ok=True)
            return lease

    def _taken(self, check: Callable[[], object] = lambda: None, *, empty: bool = False) -> Lease:
        """The lock. Args: check: what has to succeed, or the lock is given back. empty: whether to empty the copy."""
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
        """Raises: StoreError where more is there than a session leaves that is killed before it has a manifest."""
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
                    # Who finds it may end the removal.
                    self.bucket.write(MARKER, self.bucket.read(MANIFEST)[0])
                self.bucket.remove([MANIFEST])
                lease.check()
                self.bucket.remove(sorted(self.bucket.listed().keys() - {LOCK, MARKER}))
            self.bucket.remove([MARKER, LOCK])
            shutil.rmtree(self.copy, ignore_errors=True)

    def remove_entries(self, names: Iterable[str]) -> None:
        """Removes entries of the run, such as `cells/c000-r00.failed-1`. Raises: as `remove`."""
        with self._exclusively(), self._taken():
            entries = set(names)
            self.bucket.remove([name for name in self.bucket.listed() if entry_of(name) in entries])


def send_pages(place: Path) -> None:
    """Sends the pages of a report to the object store of a run, if it is on one. Raises: ObjectError."""
    if (address := address_of(place)) is not None:
        bucket = Bucket(address)
        for page in sorted(place.glob("*.html")):
            bucket.write(page.name, page)


def whole(there: Mapping[str, StoredObject]) -> dict[str, StoredObject]:
    """The objects that belong to a run: not those of incomplete entries, nor foreign ones."""
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
    """The entry of a run that an object belongs to: `cells/c000-r00`, or a file beside the manifest."""
    return "/".join(name.split("/")[:2])


def _is_index(name: str) -> bool:
    return name == MANIFEST or (name.startswith(f"{PARTITIONS}/") and name.endswith(f"/{INDEX}"))


def _changed_ns(path: Path) -> int:
    try:
        return path.lstat().st_mtime_ns
    except OSError:
        return 0
