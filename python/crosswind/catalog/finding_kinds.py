"""The kinds of finding, in report order: a folder in `crosswind.findings` and a line each.

Its modules are imported by name: a study, a report and the judge know none of them.
"""

from importlib import import_module
from typing import Any

FINDING_KINDS = (
    "threshold",
    "break_even",
    "question",
    "ladder",
    "each_packet",
    "published",
    "figure",
    "fit",
)


def of_each_kind(module: str, name: str) -> dict[str, Any]:
    """A name from each kind's module, by kind."""
    return {kind: getattr(import_module(f"crosswind.findings.{kind}.{module}"), name) for kind in FINDING_KINDS}
