"""The kinds of finding, in the order in which a report shows them. A kind is a folder with these modules and a line."""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from crosswind.findings.declared import Declaration
    from crosswind.findings.judged import Judging
    from crosswind.findings.showing import Showing

FINDING_KINDS = (
    "threshold",
    "question",
    "ladder",
    "published",
    "check",
    "figure",
    "fit",
)


@cache
def declarations() -> "dict[str, Declaration]":
    """What a study file may have of each kind, by its name."""
    return {kind: import_module(f"crosswind.findings.{kind}.declare").DECLARATION for kind in FINDING_KINDS}


@cache
def judgings() -> "tuple[Judging, ...]":
    """How findings of each kind are made."""
    return tuple(import_module(f"crosswind.findings.{kind}.judge").JUDGING for kind in FINDING_KINDS)


@cache
def showings() -> "tuple[Showing, ...]":
    """How findings of each kind are shown."""
    return tuple(import_module(f"crosswind.findings.{kind}.show").SHOWING for kind in FINDING_KINDS)
