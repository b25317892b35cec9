"""What the cells of a run's record come to: their samples, estimates and comparisons.

Numpy, polars and scipy are imported when the first of these names is used, so that the description of a result
(`crosswind.analysis.result`) can be had without them.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosswind.analysis.cells import CellData, collect
    from crosswind.analysis.comparisons import compare_levels

__all__ = ["CellData", "collect", "compare_levels"]

_MODULES = {"CellData": "cells", "collect": "cells", "compare_levels": "comparisons"}


def __getattr__(name: str) -> object:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
