"""The argument lists of what a test wants to run: of a command as it is, of a function a Python that calls it."""

import inspect
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from crosswind.errors import UsageError
from crosswind.files.safe_path import python_command

Function = Callable[[str, int], Any]
Program = Sequence[str | os.PathLike[str]] | str | Function
"""A command, as a list or as a shell would split it, or a function of address and port."""

_CALL = Path(__file__).with_name("call.py")


def command_of(program: Program, end: str) -> list[str]:
    """The argument list of a program. Args: end: client or server. Raises: UsageError when it is none."""
    if callable(program):
        return _call_of(program, end)
    try:
        words = shlex.split(program) if isinstance(program, str) else [os.fspath(word) for word in program]
    except (TypeError, ValueError) as error:
        hint = 'a list of words, as ["curl", "http://{address}:{port}/"], or a function of address and port'
        raise UsageError(f"the {end} {program!r} is no command: {error}", hint=hint) from None
    if not words:
        raise UsageError(f"the {end} is an empty command", hint="name a program, or leave it out")
    return words


def _call_of(function: Function, end: str) -> list[str]:
    name, module = getattr(function, "__qualname__", repr(function)), getattr(function, "__module__", "")
    value: Any = sys.modules.get(module)
    file = getattr(value, "__file__", None)
    for word in name.split("."):
        value = getattr(value, word, None)
    if file is None or not inspect.isroutine(value) or value != function:
        raise UsageError(
            f"the {end} {name} cannot be called in a process of its own, because it is no function of a module",
            hint="a lambda, a function within another one and a bound method are none: define it with def, at the top "
            "of a file",
        )
    search = os.pathsep.join(str(Path(place).absolute()) for place in sys.path)
    words = (str(_CALL), search, module, str(Path(file).absolute()), name, "{address}", "{port}")
    return [*python_command(*words, python="{python}")]
