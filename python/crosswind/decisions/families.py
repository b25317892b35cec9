"""Corrections for multiple testing: every family of statements judged together, and all exploration.

In each family the chance of any wrong "yes" is at most 5 %, and so is that of any wrong "no". Thresholds are kept only
together, so a wrong "yes" is one for all. docs/statistics.md has the table.
"""

from dataclasses import dataclass
from enum import Enum

ALPHA = 0.05
LEVEL = 1 - ALPHA


class Correction(Enum):
    """The correction to a family's p-values before their comparison with ALPHA."""

    HOLM = "Holm"
    BENJAMINI_HOCHBERG = "Benjamini and Hochberg"
    """It bounds the expected share of false ones among those shown, so it is for exploring alone."""
    NONE = "none: every case has to be shown"
    """A claim needing every case is wrong no more often than one of them (Berger 1982)."""


@dataclass(frozen=True)
class Family:
    """Statements judged together.

    Attributes:
        what: their owner, in words. over: the things counted. yes, no: each verdict's correction.
        together: whether a statement is a yes only if all its cases are, and a no if one is; otherwise each case has
            its verdict, and the statement all of them.
    """

    what: str
    over: str
    yes: Correction
    no: Correction
    together: bool = True


QUESTIONS = Family(
    "a study's questions", "all cases of all questions", Correction.HOLM, Correction.HOLM, together=False
)
DOCUMENT = Family("a document's statements", "its statements; for a no, their cases", Correction.HOLM, Correction.HOLM)
THRESHOLDS = Family("thresholds of a run", "all cells of all thresholds", Correction.NONE, Correction.HOLM)
CONDITIONS = Family("thresholds of two runs", "all cells of all thresholds", Correction.NONE, Correction.HOLM)

FAMILIES = (QUESTIONS, DOCUMENT, THRESHOLDS, CONDITIONS)
"""Families declared before a run."""


@dataclass(frozen=True)
class Exploration:
    """Undeclared tests. Attributes: what, over: as in `Family`. correction: to their p-values."""

    what: str
    over: str
    correction: Correction


LEVELS = Exploration(
    "comparisons of levels, which explore",
    "all comparisons of the run, those by other statistics included",
    Correction.BENJAMINI_HOCHBERG,
)
CHANGES = Exploration("`crosswind compare`, rows", "the cells of one metric and statistic", Correction.HOLM)
LIKENESS = Exploration("warnings of drift and of lag 1", "the main metrics of all cells", Correction.HOLM)

EXPLORATIONS = (LEVELS, CHANGES, LIKENESS)
