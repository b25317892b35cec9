"""Crosswind: a network-protocol performance laboratory.

    import crosswind

    run = crosswind.run("quickstart", quick=True)
    print(run.directory, run.valid)

`run` runs a study, `resume` goes on with a run, `load` opens one: each gives a `Run`. `load_study` reads a study, and
an `Observer` sees a run go by. The names are imported when they are first used, so that `import crosswind` costs
nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from crosswind.execution.observer import Observer
    from crosswind.execution.session import resume, run
    from crosswind.store.run import Run, load
    from crosswind.study.design import Study, load_study

__version__ = "0.1.0"

__all__ = ["Observer", "Run", "Study", "__version__", "load", "load_study", "resume", "run"]

_PLACES = {
    "Observer": "crosswind.execution.observer",
    "Run": "crosswind.store.run",
    "Study": "crosswind.study.design",
    "load": "crosswind.store.run",
    "load_study": "crosswind.study.design",
    "resume": "crosswind.execution.session",
    "run": "crosswind.execution.session",
}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
