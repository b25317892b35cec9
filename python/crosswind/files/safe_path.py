"""Python as Crosswind starts it: nothing is imported from the current directory, where a file may be named as a module.

Programs of a study are started as it says.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_VARIABLE = "PYTHONSAFEPATH"


def python_command(*words: str, python: str = sys.executable) -> tuple[str, ...]:
    """An argument list for Python. Args: words: as "-m", "crosswind". python: the program, or its placeholder."""
    return (python, "-P", *words)


@contextmanager
def safe_children() -> Iterator[dict[str, str]]:
    """Makes `multiprocessing` processes inside safe too: they take the option only from this process.

    Yields: the unchanged environment, for their own child programs.
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
