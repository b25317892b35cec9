"""Which correction holds for whom: every family of statements that are judged together, and whatever explores.

In each family the chance of any wrong "yes" is at most 5 %, and so is that of any wrong "no". Of thresholds, which are
kept where all of them are, a wrong "yes" is that of all. docs/statistics.md has the table.
"""

from dataclasses import dataclass
from enum import Enum

ALPHA = 0.05
LEVEL = 1 - ALPHA


class Correction(Enum):
    """What is done to p-values of a family before they are compared with ALPHA."""

    HOLM = "Holm"
    BENJAMINI_HOCHBERG = "Benjamini and Hochberg"
    """It bounds the expected share of false ones among those shown, so it is for exploring alone."""
    NONE = "none: every case has to be shown"
    """What every case has to bear out is wrong no more often than one of them (Berger 1982)."""


@dataclass(frozen=True)
class Family:
    """Statements that are judged together.

    Attributes:
        what: whose they are, in words. over: what is counted. yes, no: the correction of either verdict.
        together: whether a statement is a yes only where all its cases are, and a no where one is; otherwise each case
            has its verdict, and the statement all of them.
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
"""Those that are declared before a run."""


@dataclass(frozen=True)
class Exploration:
    """Tests of what nobody has declared. Attributes: what, over: as of `Family`. correction: of their p-values."""

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
