"""Python as Crosswind starts it: nothing is imported from the current directory, where a file may be named as a module.

Programs of a study are started as it says.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLE = "PYTHONSAFEPATH"


def python_command(*words: str, python: str = sys.executable) -> tuple[str, ...]:
    """The argument list of a Python. Args: words: as "-m", "crosswind". python: the program, or what stands for it."""
    return (python, "-P", *words)


@contextmanager
def safe_children() -> Iterator[dict[str, str]]:
    """Inside, processes of `multiprocessing` are safe too, which takes the option from this process alone.

    Yields: the environment that they give to programs that they start, as it was.
    """
    before = os.environ.get(_VARIABLE)
    os.environ[_VARIABLE] = "1"
    try:
        yield {_VARIABLE: before or ""}  # Empty is as good as absent.
    finally:
        if before is None:
            os.environ.pop(_VARIABLE, None)
        else:
            os.environ[_VARIABLE] = before
