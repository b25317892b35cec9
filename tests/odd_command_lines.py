"""Odd command lines, of every command: what a user may mistype, and where output may go.

    python tests/odd_command_lines.py [--seed 1] [--of 600]

Every argument and option of every command is given what no user means, and what comes of it is judged: the exit
status, a message with a hint, nothing written, no wait without an end. It prints each contradiction, and counts.
Without --of it runs all of them (minutes).
"""

import argparse
import json
import os
import random
import re
import resource
import selectors
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from crosswind.cli import cli, main
from crosswind.cli.standard_output import open_standard_files

DEADLINE_S = 30.0
"""Of a command that should refuse what it was given at once. Generous, for busy machines."""
SERVING = frozenset({"live", "serve", "ui", "shell"})
"""Commands that last until they are told to end, where they take what they are given."""
SERVED_S = 1.0
"""How long these are waited for, unless they should refuse."""
NOT_CALLED = frozenset({"browser", "kernel"})
"""Commands that install: nothing but their help is asked for."""

NUMBERS = ("9" * 5000, "nan", "inf", "-1", "0", "1e400", "٣")
NO_NUMBERS = ("9" * 5000, "nan", "inf", "1e400")
"""What no option takes that wants a number."""
# A byte that is not UTF-8 is what a terminal can pass of surrogates.
STRINGS = ("a\x1b[2Jb", "\udcff", "x" * 5000, "", "../../x", "{", "[[1]]", "[1]\nx = 5")
FILES = ("missing", "directory", "fifo", "device", "huge", "latin1", "dangling", "loop", "empty")
"""Files that `make_files` puts into the directory of a command."""

BASES: dict[str, tuple[str, ...]] = {
    "run": ("run", "echo", "--messages", "1", "--repetitions", "1"),
    "exec": ("exec", "--", "true"),
    "plan": ("plan", "echo"),
    "predict": ("predict", "--loss", "1%", "--rtt", "20ms"),
    "live": ("live", "127.0.0.1", "--duration", "1s"),
    "reach": ("reach", "127.0.0.1:1"),
    "init": ("init", "new.toml"),
    "serve": ("serve", "--address", "127.0.0.1", "--max-seconds", "1"),
    "completions": ("completions", "bash"),
    "schema": ("schema", "study"),
    "selftest": ("selftest", "--quick"),
    "show": ("show", "quickstart"),
}
"""A command line that is right, to which what is odd is added."""


@dataclass(frozen=True)
class Odd:
    """A command line. `refused`: it has to end with status 2. `streams`: what is wrong with its output."""

    arguments: tuple[str, ...]
    refused: bool = False
    streams: str = ""
    files: tuple[str, ...] = field(default=FILES)


@dataclass(frozen=True)
class Came:
    """What came of one. `status` is None where it had to be ended."""

    status: int | None
    out: str
    err: str
    written: tuple[str, ...]


def commands() -> dict[str, click.Command]:
    """Every command by its name."""
    context = click.Context(cli)
    return {name: command for name in cli.list_commands(context) if (command := cli.get_command(context, name))}


def all_odd() -> Iterator[Odd]:
    """Every odd command line, in a fixed order."""
    settings = {parameter.name for parameter in commands()["plan"].params}
    for name, command in commands().items():
        if name not in NOT_CALLED:
            # Settings are read by the same code wherever they are given: `plan` runs nothing.
            own = [parameter for parameter in command.params if name == "plan" or parameter.name not in settings]
            for parameter in own:
                yield from _of_parameter(name, parameter)
        yield from (Odd((name, "--help"), streams=streams) for streams in ("closed", "full", "gone", "error-gone"))
        yield Odd((name, "--no-such-option"), refused=True)
    for streams in ("closed", "full", "gone", "error-gone", "error-full"):
        yield from (Odd(BASES[name], streams=streams) for name in ("plan", "predict", "show", "schema"))


def _of_parameter(name: str, parameter: click.Parameter) -> Iterator[Odd]:
    base = BASES.get(name, (name,))
    is_number = isinstance(parameter.type, click.IntRange | click.FloatRange)
    if isinstance(parameter, click.Option):
        flag = max(parameter.opts, key=len)
        if parameter.is_flag:
            yield Odd(_with(base, flag, flag))
            return
        for value in NUMBERS:
            yield Odd(_with(base, f"{flag}={value}"), refused=is_number and value in NO_NUMBERS)
        for value in STRINGS:
            yield Odd(_with(base, f"{flag}={value}"), refused=is_number)
        for file in FILES:
            yield Odd(_with(base, f"{flag}={file}"))
            yield Odd(_with(base, f"{flag}=@{file}"))
        yield Odd(_with(base, f"{flag}=1", f"{flag}=2"), refused=not parameter.multiple)
    elif name not in ("exec", "shell"):
        for value in (*STRINGS, *FILES, "9" * 5000):
            yield Odd((name, value, *_further(name)))


def _with(base: Sequence[str], *options: str) -> tuple[str, ...]:
    """A command line with further options, before what is a command of the user's own."""
    at = base.index("--") if "--" in base else len(base)
    return (*base[:at], *options, *base[at:])


def _further(name: str) -> tuple[str, ...]:
    """Arguments that a command needs beside the first."""
    return {"compare": ("missing",), "live": ("--duration", "1s")}.get(name, ())


def make_files(directory: Path) -> None:
    """Puts what `FILES` names into a directory."""
    (directory / "directory").mkdir()
    os.mkfifo(directory / "fifo")
    (directory / "device").symlink_to("/dev/zero")
    with (directory / "huge").open("wb") as huge:
        huge.truncate(1 << 40)
    (directory / "latin1").write_bytes(b'title = "\xe9"\n')
    (directory / "dangling").symlink_to("nothing")
    (directory / "loop").symlink_to("loop")
    (directory / "empty").touch()


def run(odd: Odd, home: Path) -> Came:
    """Runs one in a process of its own, in a directory of its own, which is removed."""
    home.mkdir()
    work = home / "work"
    work.mkdir()
    make_files(work)
    before = _names(work)
    try:
        status, out, err = _in_a_child(odd, home)
        return Came(status, out, err, tuple(sorted(_names(work) - before)))
    finally:
        shutil.rmtree(home, ignore_errors=True)


def _names(directory: Path) -> set[str]:
    return {str(path.relative_to(directory)) for path in directory.rglob("*")}


def _in_a_child(odd: Odd, home: Path) -> tuple[int | None, str, str]:
    out, out_of_child = os.pipe()
    err, err_of_child = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(out)
        os.close(err)
        _become(odd, home, out_of_child, err_of_child)
    os.close(out_of_child)
    os.close(err_of_child)
    serves = odd.arguments[0] in SERVING and not odd.refused
    said = _read_both(out, err, time.monotonic() + (SERVED_S if serves else DEADLINE_S))
    if said is None:
        os.killpg(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        return None, "", ""
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), *said


def _read_both(out: int, err: int, until: float) -> tuple[str, str] | None:
    """What comes until both are closed; None where that takes too long."""
    said = {out: b"", err: b""}
    with selectors.DefaultSelector() as selector:
        for descriptor in said:
            selector.register(descriptor, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, until - time.monotonic()))
            if not ready:
                break
            for key, _ in ready:
                if block := os.read(key.fd, 1 << 16):
                    said[key.fd] += block
                else:
                    selector.unregister(key.fd)
        is_over = not selector.get_map()
    os.close(out)
    os.close(err)
    return (said[out].decode(errors="replace"), said[err].decode(errors="replace")) if is_over else None


def _become(odd: Odd, home: Path, out: int, err: int) -> None:
    """The child: never returns."""
    status = 70
    try:
        os.setsid()
        os.chdir(home / "work")
        places = {"HOME": home, "TMPDIR": home, "XDG_CACHE_HOME": home / "cache"}
        os.environ |= {name: str(place) for name, place in places.items()}
        os.environ["NO_COLOR"] = "1"
        tempfile.tempdir = None
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(_output(odd.streams, out), 1)
        os.dup2(_output(odd.streams.removeprefix("error-") if odd.streams.startswith("error-") else "", err), 2)
        if odd.streams == "closed":
            os.close(1)
        os.closerange(3, 1024)
        # Python has no standard output where it finds it closed.
        sys.stdout = None if odd.streams == "closed" else os.fdopen(1, "w", closefd=False)
        sys.stderr = os.fdopen(2, "w", closefd=False)
        open_standard_files()
        main(odd.arguments)
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else 1
    except BaseException as error:  # What main lets through, a user would see as a traceback.
        os.write(2, f"Traceback: {error!r}".encode(errors="replace"))
    finally:
        for stream in (sys.stdout, sys.stderr):
            try:
                if stream is not None:
                    stream.flush()
            except (OSError, ValueError):
                pass
        os._exit(status)


def _output(streams: str, usual: int) -> int:
    if streams == "full":
        return os.open("/dev/full", os.O_WRONLY)
    if streams == "gone":
        reader, writer = os.pipe()
        os.close(reader)
        return writer
    return usual


def contradictions(odd: Odd, came: Came) -> Iterator[str]:
    """What is wrong with what came of it."""
    if came.status is None:
        if odd.refused or odd.arguments[0] not in SERVING:
            yield "it does not end"
        return
    if "Traceback" in came.err + came.out or "this is a bug" in came.err:
        yield "a traceback, or a bug"
    if "\x1b[2J" in came.err + came.out:
        yield "an escape sequence is printed raw"
    if odd.streams:
        # A reader that leaves is no failure; output without room is.
        if came.status not in {"full": (1,), "closed": (0, 1)}.get(odd.streams, (0,)):
            yield f"status {came.status} where output is {odd.streams}"
        return
    # exec and shell end with what the program, or its absence, ends with.
    more = (126, 127) if odd.arguments[0] in ("exec", "shell") else ()
    if came.status not in ((2,) if odd.refused else (0, 1, 2, 3, *more)):
        yield f"status {came.status}"
    if came.status in (1, 2) and not re.search(r"^error: ", came.err, re.MULTILINE):
        yield "no message"
    if came.status == 2 and "hint: " not in came.err:
        yield "no hint"
    if came.status == 2 and came.written:
        yield f"it wrote {came.written[:3]}"


def shown(odd: Odd) -> str:
    """A command line, shortened, as text that a terminal can show."""
    words = (word if len(word) < 60 else f"{word[:40]}… ({len(word)} characters)" for word in odd.arguments)
    return ascii(" ".join(words)) + (f" with standard output {odd.streams}" if odd.streams else "")


def arguments() -> argparse.Namespace:
    """What the program is asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--of", type=int, help="how many, drawn at random; all without it")
    parser.add_argument("--command", help="only those of a command")
    return parser.parse_args()


def ask() -> int:
    """Runs them. Returns: how many were judged wrong."""
    asked = arguments()
    every = [odd for odd in all_odd() if asked.command in (None, odd.arguments[0])]
    chosen = every if asked.of is None else random.Random(asked.seed).sample(every, min(asked.of, len(every)))
    wrong: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(prefix="crosswind-odd-") as directory:
        for number, odd in enumerate(chosen):
            came = run(odd, Path(directory) / str(number))
            for why in contradictions(odd, came):
                wrong[why] += 1
                print(json.dumps({"wrong": why, "command": shown(odd), "said": came.err[-300:]}), flush=True)
    print(json.dumps({"of": len(every), "run": len(chosen), "wrong": sum(wrong.values())}))
    return sum(wrong.values())


if __name__ == "__main__":
    sys.exit(1 if ask() else 0)
