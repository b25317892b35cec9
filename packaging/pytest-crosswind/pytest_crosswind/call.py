"""Calls a Python function in a process of its own, which Crosswind starts on a host of an emulated path.

    python call.py SYS_PATH MODULE FILE FUNCTION ADDRESS PORT

The function gets the server's address and port. What it returns is printed as JSON in the last line.

In virtual time whatever is imported is compiled anew in each repetition. So this file imports nothing of its package,
and what is seldom needed where it is needed.
"""

import importlib
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType
    from typing import Any


def main(words: "list[str]") -> int:
    """Calls a function. Args: words: as above, the first being `sys.path`, joined. Returns the exit status."""
    search, module, file, function, address, port = words
    sys.path[:] = search.split(os.pathsep)
    try:
        value = _function(_module(module, file), function)(address, int(port))
        if hasattr(value, "__await__"):
            import asyncio

            value = asyncio.run(_awaited(value))
    except Exception as error:
        import traceback

        # The first frame is this function's, which says nothing about the test.
        after = error.__traceback__.tb_next if error.__traceback__ else None
        traceback.print_exception(error.with_traceback(after))
        return 1
    return _print(value, function)


async def _awaited(value: "Any") -> "Any":
    return await value


def _print(value: "Any", function: str) -> int:
    if value is None:
        print("null", flush=True)
        return 0
    import json

    try:
        line = json.dumps(value)
    except (TypeError, ValueError) as error:
        print(f"{function} returned {value!r:.200}, which cannot be written as JSON: {error}", file=sys.stderr)
        return 1
    print(line, flush=True)
    return 0


def _function(module: "ModuleType", name: str) -> "Callable[..., Any]":
    value: Any = module
    for word in name.split("."):
        value = getattr(value, word)
    function: Callable[..., Any] = value
    return function


def _module(name: str, file: str) -> "ModuleType":
    """The module, by its name or, where a name leads elsewhere, by its file: pytest imports tests in either way."""
    try:
        module = importlib.import_module(name)
        if _is_file(module, file):
            return module
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot import {name} from {file}")
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _is_file(module: "ModuleType", file: str) -> bool:
    of_module = getattr(module, "__file__", None)
    if of_module is None or of_module == file:
        return of_module == file
    from pathlib import Path

    return Path(of_module).resolve() == Path(file).resolve()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
