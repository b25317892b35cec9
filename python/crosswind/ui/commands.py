"""Runs the command line: sessions in their own processes, and report pages.

A session outlives the server, and ends like one started in a terminal.
"""

import asyncio
import contextlib
import os
import re
import signal
import tempfile
from collections.abc import AsyncGenerator, Sequence
from datetime import UTC, datetime
from io import BufferedWriter
from pathlib import Path

from crosswind.errors import CrosswindError, UsageError
from crosswind.files.inside import open_inside, reader_inside
from crosswind.files.safe_path import python_command
from crosswind.files.temporary import temporary_directory
from crosswind.store.listing import fresh_directory
from crosswind.store.lock import holder, in_use
from crosswind.store.manifest import MANIFEST
from crosswind.text.visible import visible

_LOOK_S = 0.05
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,59}")
_LAST_BYTES = 60_000
"""The shown end of a log."""
_MOST_WORD_BYTES = 4096
"""Limit for typed words and paths."""


async def page_of(*arguments: str) -> str:
    """The HTML page from a command's `--html`. Raises: UsageError with the command's message."""
    with temporary_directory() as scratch:
        page = scratch / "page.html"
        process = await asyncio.create_subprocess_exec(
            *_command(*arguments, "--html", str(page)),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        _, said = await process.communicate()
        if not page.exists():
            raise _complaint(said.decode(errors="replace"))
        return page.read_text(encoding="utf-8")


async def lines_of(*arguments: str) -> AsyncGenerator[str, None]:
    """A command's output, line by line, until the reader stops. Raises: UsageError with its message."""
    with tempfile.TemporaryFile() as errors:
        process = await asyncio.create_subprocess_exec(
            *_command(*arguments), stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=errors,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            async for line in process.stdout:
                yield line.decode(errors="replace").rstrip("\n")
            if await process.wait():
                errors.seek(0)
                raise _complaint(errors.read().decode(errors="replace"))
        finally:
            if process.returncode is None:
                process.terminate()
                await process.wait()


async def start(text: str, name: str, *, root: Path, quick: bool, cluster: str) -> Path:
    """Starts a study. Returns: its run's directory, once there is one.

    Args: name: the study's, a word. cluster: as for `--on`; empty: this machine.
    Raises: UsageError with the command's message when it does not start.
    """
    if not _NAME.fullmatch(name):
        raise UsageError("this is no name of a study", hint="small letters, digits and hyphens, as my-study")
    if cluster.startswith("-"):
        raise UsageError(f"{cluster[:40]} is no cluster", hint="as local:4, tcp://HOST:PORT, slurm:8; empty: here")
    root.mkdir(parents=True, exist_ok=True)
    directory = await _reserved(name, root)
    try:
        with temporary_directory() as scratch:
            study = scratch / f"{name}.toml"
            study.write_text(text, encoding="utf-8")
            more = ["--quick"] * quick + (["--on", cluster] if cluster else [])
            process = await _session([str(study), *more, "--output", str(directory)], log_of(directory))
            while not (directory / MANIFEST).exists():
                await _wait_and_check(process, directory)
    except Exception:
        if not directory.exists():
            log_of(directory).unlink(missing_ok=True)
        raise
    return directory


async def resume(directory: Path) -> None:
    """Resumes a run. Raises: UsageError with the command's message when it does not start."""
    process = await _session(["--resume", str(directory)], log_of(directory))
    while process.returncode is None and not in_use(directory):
        await _wait_and_check(process, directory)


async def _reserved(name: str, root: Path) -> Path:
    """A new run's directory, reserved by its log: two pages may start the same at once."""
    while True:
        directory = fresh_directory(name, datetime.now(UTC).strftime("%Y%m%dT%H%M%SZ"), root=root)
        try:
            open_log(log_of(directory), os.O_EXCL).close()
        except FileExistsError:
            await asyncio.sleep(_LOOK_S)
            continue
        return directory


def stop(directory: Path) -> None:
    """Asks the session of a run to stop, as Ctrl-C does. Raises: UsageError where there is none to be found."""
    session = holder(directory)
    if session is None:
        raise UsageError(f"{directory.name} is not running here", hint="stop it where it was started")
    with contextlib.suppress(ProcessLookupError):  # It has ended meanwhile.
        os.kill(session, signal.SIGTERM)


def log_of(directory: Path) -> Path:
    """The log of sessions started here."""
    return directory.with_name(f"{directory.name}.log")


def log_text(directory: Path) -> str:
    """The log's end; empty without one."""
    try:
        with reader_inside(directory.parent, log_of(directory).name) as log:
            log.seek(max(0, log.seek(0, os.SEEK_END) - _LAST_BYTES))
            return log.read().decode(errors="replace")
    except OSError:
        return ""


def open_log(log: Path, flags: int = os.O_APPEND) -> BufferedWriter:
    """A log, to be written at its end. Args: flags: beside those to write. Raises: OSError, also where a link is."""
    return os.fdopen(open_inside(log.parent, log.name, os.O_WRONLY | os.O_CREAT | flags), "wb")


def _command(*arguments: str) -> Sequence[str]:
    wrong = next((word for word in arguments if not _is_word(word)), None)
    if wrong is not None:
        hint = f"type it anew: up to {_MOST_WORD_BYTES:,} bytes, without hidden characters"
        raise UsageError(f'"{visible(wrong[:40])}" cannot be given to a program', hint=hint)
    return python_command("-m", "crosswind", *arguments)


def _is_word(text: str) -> bool:
    try:
        return "\0" not in text and len(os.fsencode(text)) <= _MOST_WORD_BYTES
    except UnicodeEncodeError:
        return False


async def _session(arguments: Sequence[str], log: Path) -> asyncio.subprocess.Process:
    with open_log(log) as file:
        return await asyncio.create_subprocess_exec(
            *_command("run", *arguments),
            stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.DEVNULL, stderr=file, start_new_session=True,
        )  # fmt: skip


async def _wait_and_check(process: asyncio.subprocess.Process, directory: Path) -> None:
    """Waits a little. Raises: UsageError with a session's message when it failed, or left no run."""
    await asyncio.sleep(_LOOK_S)
    if process.returncode or (process.returncode == 0 and not (directory / MANIFEST).exists()):
        raise _complaint(log_text(directory))


def _complaint(said: str) -> CrosswindError:
    errors = re.findall(r"^error: (.*)(?:\nhint: (.*))?", said, re.MULTILINE)
    message, hint = errors[-1] if errors else (said.strip()[-400:] or "the command failed", "")
    return UsageError(message, hint=hint or None)
