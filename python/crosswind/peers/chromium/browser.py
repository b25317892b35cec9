"""Finds Chromium, starts it, and ends it with every process that it has started."""

import contextlib
import fcntl
import os
import signal
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from crosswind.peers.chromium.devtools import BrowserGoneError, DevTools
from crosswind.peers.chromium.errors import ChromiumError
from crosswind.peers.chromium.flags import flags
from crosswind.peers.chromium.job import Job
from crosswind.peers.chromium.profile import profile
from crosswind.peers.programs import CHROMIUM, find_program

EXTRA_FLAGS = "CROSSWIND_CHROMIUM_FLAGS"
"""The environment variable with further flags."""
OLDEST = 132
"""The first version whose `--headless` is the whole browser. Older ones are not tested."""

_PIPE_DESCRIPTORS = (3, 4)
_LOG_BYTES = 4000
_LOG_LINES = 3


@dataclass(frozen=True)
class Browser:
    """A running browser. Attributes: version: as 156.0.8078.79."""

    devtools: DevTools
    version: str


def find_chromium() -> str:
    """Return the path of the program. Raises: CrosswindError when there is none."""
    found = find_program("chromium")
    if found is None:
        hint = f"apt-get install chromium, or set {CHROMIUM} to its path"
        raise ChromiumError("Chromium is not installed", hint=hint)
    return found


@contextlib.contextmanager
def browser(job: Job) -> Iterator[Browser]:
    """A browser for this job. Raises: CrosswindError when it does not start, or ends before its use does."""
    program = find_chromium()
    extra = os.environ.get(EXTRA_FLAGS, "").split()
    with profile() as directory, _log(job.directory) as log:
        # What it keeps of its own goes with the profile.
        own = {name: str(directory) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME")}
        pid, devtools = _start([program, *flags(job, directory, extra=extra)], {**os.environ, **own}, log)
        try:
            yield Browser(devtools, _version(devtools))
        except BrowserGoneError as error:
            raise ChromiumError(
                f"Chromium has ended: {_last_words(log)}", hint=_where(log) or f"try {program} --headless --dump-dom"
            ) from error
        finally:
            _end(pid)
            devtools.close()


def _version(devtools: DevTools) -> str:
    product = str(devtools.call("Browser.getVersion")["product"])
    version = product.partition("/")[2]
    if int(version.partition(".")[0] or 0) < OLDEST:
        raise ChromiumError(
            f"Chromium {version} is too old", hint=f"install version {OLDEST} or later, or set {CHROMIUM} to one"
        )
    return version


def _start(command: list[str], environment: Mapping[str, str], log: IO[bytes]) -> tuple[int, DevTools]:
    theirs_in, our_out = map(_above_pipe, os.pipe())
    our_in, theirs_out = map(_above_pipe, os.pipe())
    try:
        pid = os.posix_spawn(
            command[0],
            command,
            environment,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, log.fileno(), 1),
                (os.POSIX_SPAWN_DUP2, log.fileno(), 2),
                (os.POSIX_SPAWN_DUP2, theirs_in, _PIPE_DESCRIPTORS[0]),
                (os.POSIX_SPAWN_DUP2, theirs_out, _PIPE_DESCRIPTORS[1]),
            ],
            setsid=True,
        )
    except OSError as error:
        raise ChromiumError(f"cannot start {command[0]}: {error.strerror}") from error
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    return pid, DevTools(our_in, our_out)


def _above_pipe(descriptor: int) -> int:
    """The same file under a number that the browser's pipe does not need."""
    moved = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, max(_PIPE_DESCRIPTORS) + 1)
    os.close(descriptor)
    return moved


def _end(pid: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _log(directory: Path | None) -> IO[bytes]:
    if directory is None:
        return tempfile.TemporaryFile()
    return (directory / "chromium.log").open("w+b")


def _last_words(log: IO[bytes]) -> str:
    size = log.seek(0, os.SEEK_END)
    log.seek(max(0, size - _LOG_BYTES))
    lines = [line.strip() for line in log.read().decode(errors="replace").splitlines() if line.strip()]
    # What reports the crash complains about files that containers lack.
    own = [line for line in lines if "/crashpad/" not in line]
    return " / ".join(own[-_LOG_LINES:]) or "it said nothing"


def _where(log: IO[bytes]) -> str | None:
    return f"all that it said: {log.name}" if isinstance(log.name, str) else None
