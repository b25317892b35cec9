"""Sends what a session has finished to the object store, on threads of its own while cells run.

An entry, such as `cells/c000-r00`, is sent file by file. Its last file makes it count as present, so readers see an
entry whole or not at all, as on a disk. A partition is sent before the repetitions that it replaces are removed.
"""

import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from typing import Any

from crosswind.errors import CrosswindError, DiskError
from crosswind.inside import files_inside
from crosswind.store.bucket import ObjectError, TakenError
from crosswind.store.lease import Lease
from crosswind.store.manifest import MANIFEST
from crosswind.store.objects import LAST, RunObjects, entry_of
from crosswind.store.partition_index import names_in
from crosswind.store.plan import PLAN

_AT_A_TIME = 16
_MOST_WAITING = 64
"""No further cell starts while more entries than these wait. A session that is killed has not sent them."""

Sent = Future[None]


class Uploads:
    """What is sent to the objects of a run, whose lock the caller holds. Raises: ObjectError."""

    def __init__(self, objects: RunObjects, lease: Lease) -> None:
        self._objects = objects
        self._bucket = objects.bucket
        self._copy = objects.copy
        self._lease = lease
        self._pool = ThreadPoolExecutor(_AT_A_TIME, thread_name_prefix="objects")
        self._tags = {name: found.tag for name, found in self._bucket.listed().items()}
        self._entries: dict[str, Sent] = {}
        self._waiting: set[Sent] = set()
        self._guard = threading.Lock()
        self._error: CrosswindError | None = None

    # What is sent at once

    def send_manifest(self) -> None:
        """Replaces the manifest. Does nothing after an error. Raises: DiskError; so if another session did."""
        if self._error is not None:
            return
        content = (self._copy / MANIFEST).read_bytes()
        tag = self._tags.get(MANIFEST)
        try:
            self._lease.check()
            self._tags[MANIFEST] = self._replaced(content, tag)
        except CrosswindError as error:
            self._fail(error)
            raise self._failure() from None

    def _replaced(self, content: bytes, tag: str | None) -> str:
        try:
            if tag is None:
                return self._bucket.create(MANIFEST, content)
            return self._bucket.replace(MANIFEST, content, tag)
        except TakenError:
            found, stored = self._bucket.read(MANIFEST)
            if found != content:
                raise
            return stored.tag  # An answer was lost.

    def send_file(self, name: str) -> None:
        """Sends a file beside the manifest. Does nothing after an error. Raises: DiskError."""
        if self._error is not None:
            return
        try:
            self._tags[name] = self._bucket.write(name, self._copy / name)
        except ObjectError as error:
            self._fail(error)
            raise self._failure() from None

    def send_all(self) -> None:
        """Sends what the objects lack, and removes what the copy does not have. Raises: DiskError."""
        self.send_file(PLAN)
        here = [f"{folder}/{name}" for folder in LAST for name in sorted(names_in(self._copy / folder))]
        there = {name for name in map(entry_of, self._tags) if name.partition("/")[0] in LAST}
        sent = [self.send(entry) for entry in here if not self._is_sent(entry)]
        self.remove(sorted(there.difference(here)), after=sent)
        self.wait()

    def _is_sent(self, entry: str) -> bool:
        return set(self._files_of(entry)) == {name for name in self._tags if entry_of(name) == entry}

    # What is sent while cells run

    def send(self, entry: str, *, after: Iterable[Sent] = ()) -> Sent:
        """Sends a directory of `cells` or `partitions`. Args: after: what has to be sent before."""
        sent = self._submit(self._send, entry, after=[*after, *self._before(entry)])
        self._entries[entry] = sent
        return sent

    def remove(self, entries: Sequence[str], *, after: Iterable[Sent] = ()) -> None:
        """Removes entries from the store. Args: after: what has to be sent before."""
        if entries:
            waited = [*after, *(sent for entry in entries for sent in self._before(entry))]
            self._submit(self._remove, frozenset(entries), after=waited)
            for entry in entries:
                self._entries.pop(entry, None)

    def sent(self, entries: Iterable[str]) -> list[Sent]:
        """Transfers of entries that have not ended. What replaces the entries waits for them."""
        return [sent for entry in entries for sent in self._before(entry)]

    @property
    def is_behind(self) -> bool:
        """Whether so much waits that no further cell should start."""
        return len(self._waiting) > _MOST_WAITING

    @property
    def is_at_work(self) -> bool:
        """Whether something waits or is being sent."""
        return bool(self._waiting) and self._error is None

    def problem(self) -> CrosswindError | None:
        """Why nothing more can be sent."""
        if self._error is None:
            with suppress(CrosswindError):
                self._lease.check()
                return None
            with self._guard:
                try:
                    self._lease.check()
                except CrosswindError as error:
                    self._error = error
        return None if self._error is None else self._failure()

    def wait(self) -> None:
        """Waits until everything was sent. Raises: DiskError."""
        while waiting := set(self._waiting):
            wait(waiting)
        if self._error is not None:
            raise self._failure()

    def close(self) -> None:
        """Sends what waits and gives the lock back. After an error it does neither."""
        failed = self._error is not None
        self._pool.shutdown(wait=not failed, cancel_futures=failed)
        failed = self._error is not None
        if not failed:
            self._objects.keep_tags(self._tags)
        self._lease.close(give_back=not failed)

    # In other threads

    def _submit(self, do: Callable[[Any], None], what: object, *, after: Sequence[Sent]) -> Sent:
        def work() -> None:
            # These were submitted before, so that a thread has each of them.
            wait(after)
            if self._error is None:
                try:
                    do(what)
                except (ObjectError, OSError) as error:
                    self._fail(error)

        sent = self._pool.submit(work)
        with self._guard:
            self._waiting.add(sent)
        sent.add_done_callback(self._ended)
        return sent

    def _ended(self, sent: Sent) -> None:
        with self._guard:
            self._waiting.discard(sent)

    def _send(self, entry: str) -> None:
        last = f"{entry}/{LAST[entry.partition('/')[0]]}"
        files = self._files_of(entry)
        if last not in files:
            return  # It was packed meanwhile: its partition is sent.
        if last in self._tags:
            self._remove(frozenset([entry]))
        for name in sorted(files, key=lambda name: name == last):
            try:
                self._tags[name] = self._bucket.write(name, self._copy / name)
            except FileNotFoundError:
                return

    def _files_of(self, entry: str) -> list[str]:
        return [f"{entry}/{name}" for name in files_inside(self._copy / entry)]

    def _remove(self, entries: frozenset[str]) -> None:
        names = [name for name in list(self._tags) if entry_of(name) in entries]
        # Without its last file an entry is not there.
        names.sort(key=lambda name: name.rpartition("/")[2] not in LAST.values())
        self._bucket.remove(names)
        for name in names:
            self._tags.pop(name, None)

    def _before(self, entry: str) -> list[Sent]:
        before = self._entries.get(entry)
        return [] if before is None or before.done() else [before]

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
