"""A run's lock on an object store: an object, renewed by its session.

An object store does not release a lock when a process dies. So a lock says how long it is valid. A session replaces an
expired one by a conditional write; only one session succeeds.
"""

import json
import secrets
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import IO, Self

from crosswind.errors import StoreError
from crosswind.files.damage import NOT_WHAT_WAS_WRITTEN
from crosswind.store.bucket import UNCONDITIONAL_HINT, AbsentError, Bucket, ObjectError, StoredObject, TakenError
from crosswind.store.lock import LOCK, used_by_another

_PROBE = "lock.probe"
_SPARE_S = 60.0
"""A lock's validity beyond the retries to a silent server."""
_RENEWED_EVERY_S = 15.0


@dataclass(frozen=True)
class Held:
    """A lock's content.

    Attributes: session: its holder; None after release. copy: identity of the session's copy. lease_s: validity after
        each write.
    """

    session: str | None
    copy: str
    host: str
    lease_s: float


def held_by(content: bytes) -> Held:
    """Parses a lock; an unreadable one has no holder."""
    try:
        data = json.loads(content)
        return Held(data["session"], str(data["copy"]), str(data["host"]), float(data["lease_s"]))
    except NOT_WHAT_WAS_WRITTEN:
        return Held(None, "", "", 0.0)


def age_s(lock: StoredObject) -> float:
    """Seconds since the renewal by this machine's clock, for listings: they write nothing."""
    return (datetime.now(UTC) - lock.changed).total_seconds()


class Lease:
    """The lock, held by this session until `close`, and renewed by a thread.

    Args: copy: identity of this machine's copy. lock: the copy's own; `close` closes it too. It proves any other
        session on this machine dead.
    Raises: StoreError when another session has the lock, or the server ignores conditions. ObjectError.
    """

    def __init__(self, bucket: Bucket, copy: str, lock: IO[bytes]) -> None:
        self._bucket = bucket
        self._lock = lock
        self._held = Held(secrets.token_hex(8), copy, socket.gethostname(), bucket.wait_s + _SPARE_S)
        self._lost = False
        self._tag = self._take()
        self._renewed = time.monotonic()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._renew_until_over, name="lock of a run", daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raises: StoreError when another session may have the lock by now."""
        if self._lost or time.monotonic() - self._renewed > self._held.lease_s - _SPARE_S / 4:
            raise StoreError(
                f"{self._bucket.address} may have been taken over: its lock was not renewed in time",
                hint="look who is at work there; finished repetitions are kept",
            )

    def close(self, *, give_back: bool = True) -> None:
        """Ends the thread, and releases the lock. Args: give_back: False for a silent server."""
        self._over.set()
        self._thread.join(None if give_back else 0.1)
        if give_back and not self._lost:
            free = Held(None, self._held.copy, self._held.host, 0.0)
            with suppress(ObjectError):
                self._bucket.replace(LOCK, _content(free), self._tag)
        self._lock.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _take(self) -> str:
        content = _content(self._held)
        try:
            tag = self._bucket.replace(LOCK, content, None)
        except TakenError:
            tag = self._taken_over(content)
        try:
            self._bucket.replace(LOCK, b"", None)
        except TakenError:
            return tag
        raise StoreError(f"the server of {self._bucket.address} keeps no conditional writes", hint=UNCONDITIONAL_HINT)

    def _taken_over(self, content: bytes) -> str:
        try:
            found, stored = self._bucket.read(LOCK)
        except AbsentError:
            return self._bucket.replace(LOCK, content, None)  # It is being removed.
        held = held_by(found)
        if held.session is not None and held.copy != self._held.copy and self._age_s(stored) < held.lease_s:
            raise _in_use(self._bucket, held)
        try:
            return self._bucket.replace(LOCK, content, stored.tag)
        except TakenError:
            raise _in_use(self._bucket, held) from None

    def _age_s(self, lock: StoredObject) -> float:
        """Seconds since the renewal by the server's clock: this machine's may be wrong."""
        name = f"{_PROBE}.{self._held.session}"
        self._bucket.write(name, b"")
        changed = self._bucket.read(name)[1].changed
        self._bucket.remove([name])
        return (changed - lock.changed).total_seconds()

    def _renew_until_over(self) -> None:
        period_s = min(_RENEWED_EVERY_S, self._held.lease_s / 8)
        while not self._lost and not self._over.wait(period_s):
            started = time.monotonic()
            with suppress(ObjectError):
                if self._renew():
                    self._renewed = started

    def _renew(self) -> bool:
        try:
            self._tag = self._bucket.replace(LOCK, _content(self._held), self._tag)
        except TakenError:
            self._lost = True
        return not self._lost


def _content(held: Held) -> bytes:
    return json.dumps(asdict(held)).encode()


def _in_use(bucket: Bucket, held: Held) -> StoreError:
    instead = f"choose another --output; one that died gives it back within {held.lease_s:.0f} s"
    return used_by_another(str(bucket.address), host=held.host, instead=instead)
