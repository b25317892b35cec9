"""Sends a session's finished entries to the object store, on its own threads while cells run.

An entry, such as `cells/c000-r00`, is sent file by file. Its last file makes it count as present, so readers see an
entry whole or not at all, as on a disk. A partition is sent before the repetitions it replaces are removed.
"""

import threading
from collections.abc import Collection
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Self

from crosswind.errors import CrosswindError, DiskError
from crosswind.files.inside import files_inside
from crosswind.store.bucket import ObjectError
from crosswind.store.lease import Lease
from crosswind.store.manifest import MANIFEST
from crosswind.store.objects import LAST, RunObjects, entry_of
from crosswind.store.partition_index import names_in
from crosswind.store.plan import PLAN

_CONCURRENT = 16
_MOST_WAITING = 64
"""While more transfers wait, no further cell starts. A killed session loses them."""


class Uploads:
    """A session's hold on the objects of a run, from `begin` or `resume` until `close`."""

    def __init__(self, objects: RunObjects, lease: Lease) -> None:
        self._objects = objects
        self._bucket = objects.bucket
        self._copy = objects.copy
        self._lease = lease
        self._pool = ThreadPoolExecutor(_CONCURRENT, thread_name_prefix="objects")
        self._tags = {name: found.tag for name, found in self._bucket.listed().items()}
        self._entries: dict[str, Future[None]] = {}
        self._waiting: set[Future[None]] = set()
        self._guard = threading.Lock()
        self._error: CrosswindError | None = None

    @classmethod
    def begin(cls, copy: Path) -> Self:
        """Takes the lock of a new run, in an empty copy. Raises: StoreError when something is there. ObjectError."""
        objects = RunObjects(copy)
        return cls(objects, objects.begin())

    @classmethod
    def resume(cls, copy: Path) -> Self:
        """Takes a run's lock, and fetches missing files. Raises: StoreError, ObjectError, OSError."""
        objects = RunObjects(copy)
        return cls(objects, objects.resume())

    def put_file(self, name: str) -> None:
        """Sends a file beside the manifest, or the manifest, at once. Does nothing after an error.

        Raises: DiskError. StoreError where another session may have the run.
        """
        if self._error is not None:
            return
        try:
            if name == MANIFEST:
                self._lease.check()
                content = (self._copy / name).read_bytes()
                self._tags[name] = self._bucket.replace(name, content, self._tags.get(name))
            else:
                self._tags[name] = self._bucket.write(name, self._copy / name)
        except CrosswindError as error:
            self._fail(error)
            raise self._failure() from None

    def put(self, *entries: str, replaces: Collection[str] = ()) -> None:
        """Has directories of `cells` or `partitions` sent, one after the other, and then others removed."""

        def work() -> None:
            # All were submitted before, so each has a thread.
            wait(before)
            if self._error is None:
                try:
                    for entry in entries:
                        self._send(entry)
                    self._remove(replaces)
                except (ObjectError, OSError) as error:
                    self._fail(error)

        before = [self._entries[entry] for entry in (*entries, *replaces) if entry in self._entries]
        sent = self._pool.submit(work)
        self._entries.update(dict.fromkeys((*entries, *replaces), sent))
        with self._guard:
            self._waiting.add(sent)
        sent.add_done_callback(self._ended)

    def put_all(self) -> None:
        """Sends missing objects, and removes those outside the copy. Raises: DiskError."""
        self.put_file(PLAN)
        there: dict[str, set[str]] = {}
        for name in self._tags:
            there.setdefault(entry_of(name), set()).add(name)
        here = [f"{folder}/{name}" for folder in LAST for name in sorted(names_in(self._copy / folder))]
        for entry in here:
            if set(self._files_of(entry)) != there.get(entry):
                self.put(entry)
        self.wait()
        self.put(replaces={entry for entry in there.keys() - here if entry.partition("/")[0] in LAST})
        self.wait()

    @property
    def is_behind(self) -> bool:
        """Whether the queue is too long for another cell to start."""
        return len(self._waiting) > _MOST_WAITING

    @property
    def is_at_work(self) -> bool:
        """Whether something waits or is being sent."""
        return bool(self._waiting) and self._error is None

    def problem(self) -> CrosswindError | None:
        """Why nothing more can be sent."""
        try:
            self._lease.check()
        except CrosswindError as error:
            self._fail(error)
        return None if self._error is None else self._failure()

    def wait(self) -> None:
        """Waits until everything was sent. Raises: DiskError."""
        while waiting := set(self._waiting):
            wait(waiting)
        if self._error is not None:
            raise self._failure()

    def close(self) -> None:
        """Sends waiting entries and gives the lock back; neither after an error."""
        failed = self._error is not None
        self._pool.shutdown(wait=not failed, cancel_futures=failed)
        failed = self._error is not None
        if not failed:
            self._objects.keep_tags(self._tags)
        self._lease.close(give_back=not failed)

    # In other threads

    def _ended(self, sent: Future[None]) -> None:
        with self._guard:
            self._waiting.discard(sent)

    def _send(self, entry: str) -> None:
        last = f"{entry}/{LAST[entry.partition('/')[0]]}"
        files = self._files_of(entry)
        if last not in files:
            return  # It was packed meanwhile: its partition is sent.
        if last in self._tags:
            self._remove([entry])
        for name in sorted(files, key=lambda name: name == last):
            try:
                self._tags[name] = self._bucket.write(name, self._copy / name)
            except FileNotFoundError:
                return

    def _files_of(self, entry: str) -> list[str]:
        return [f"{entry}/{name}" for name in files_inside(self._copy / entry)]

    def _remove(self, entries: Collection[str]) -> None:
        if not entries:
            return
        names = [name for name in list(self._tags) if entry_of(name) in entries]
        # Without its last file an entry is not there.
        names.sort(key=lambda name: name.rpartition("/")[2] not in LAST.values())
        self._bucket.remove(names)
        for name in names:
            self._tags.pop(name, None)

    def _fail(self, error: CrosswindError | OSError) -> None:
        with self._guard:
            if self._error is None:
                self._error = (
                    error if isinstance(error, CrosswindError) else DiskError(f"cannot read the copy: {error}")
                )

    def _failure(self) -> CrosswindError:
        error = self._error
        assert error is not None
        return DiskError(error.message, hint=error.hint) if isinstance(error, ObjectError) else error
