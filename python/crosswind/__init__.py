"""Crosswind: a network-protocol performance laboratory.

    import crosswind

    run = crosswind.run("quickstart", quick=True)
    print(run.directory, run.valid)
    result = crosswind.analyse(run)
    crosswind.write_html(run, "report.html")

`run` runs a study, `resume` goes on with a run, `load` opens one: each gives a `Run`, whose `samples()`, `estimates()`,
`compare()` and `plot()` are for notebooks. `analyse` computes the result of
a run, `write_html` writes its report. `load_study` reads a study, and an `Observer` sees a run go by. `virtual` runs
one cell in virtual time and returns its samples and packets. The names are imported when they are first used, so that
`import crosswind` costs nothing.
"""

from importlib import import_module

from crosswind.text.version import __version__

# For type checkers. Importing `typing` takes milliseconds, in which Ctrl-C would show a traceback.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from crosswind.api.results import analyse, write_html
    from crosswind.api.runs import Run, load, resume, run
    from crosswind.execution.observer import Observer
    from crosswind.execution.virtual import VirtualCell, virtual
    from crosswind.study.design import Study
    from crosswind.study.files import load_study

__all__ = [
    "Observer",
    "Run",
    "Study",
    "VirtualCell",
    "__version__",
    "analyse",
    "load",
    "load_study",
    "resume",
    "run",
    "virtual",
    "write_html",
]

_PLACES = {
    "Observer": "crosswind.execution.observer",
    "Run": "crosswind.api.runs",
    "Study": "crosswind.study.design",
    "VirtualCell": "crosswind.execution.virtual",
    "analyse": "crosswind.api.results",
    "load": "crosswind.api.runs",
    "load_study": "crosswind.study.files",
    "resume": "crosswind.api.runs",
    "run": "crosswind.api.runs",
    "virtual": "crosswind.execution.virtual",
    "write_html": "crosswind.api.results",
}


def __getattr__(name: str) -> object:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_PLACES[name]), name)
