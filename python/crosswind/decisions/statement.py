"""A statement: a number over some cells, and its claimed range.

A run's plan stores a study's questions, a document's statements and thresholds in this form, with their cells' indices.
`missing`: declared levels absent from the run; `is_quick`: whether the run is its study's quick variant, with fewer.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict

Scale = Literal["ratio", "difference", "value", "exponent", "slope", "model", "model-error"]
Verdict = Literal["yes", "no", "cannot tell"]
Yes = Literal["less", "more", "different", "same", "within", "rises", "falls"]

OF_STATEMENT: Mapping[str, str] = {"yes": "Holds", "no": "Does not hold", "cannot tell": "Cannot tell"}
"""Verdicts on a document's statements, in words."""

Kept = Literal["pass", "fail", "inconclusive"]
KEPT: Mapping[Verdict, Kept] = {"yes": "pass", "no": "fail", "cannot tell": "inconclusive"}
"""A threshold's verdict, from that on the statement of a kept bound."""

NUMBERS: Mapping[Scale, str] = {
    "ratio": "a level divided by the reference",
    "difference": "a level less the reference",
    "value": "the statistic of every cell",
    "exponent": "the exponent k between each two neighbouring levels, where the statistic is proportional to level^k",
    "slope": "between each two neighbouring levels, by how much the statistic grows for each ms (of path.delay, there "
    "and back), %, Mbit/s or byte",
    "model": "of every cell, the statistic divided by what `model` predicts",
    "model-error": "over all cells together, the mean of |predicted / measured - 1|, by what `model` predicts",
}
"""A statement's number, by its scale."""

ANSWERS: Mapping[Yes, str] = {
    "less": "each level is less than the reference, by more than the margin if there is one",
    "more": "each level is more than the reference, likewise",
    "different": "each level is less or more than the reference, likewise; of every two levels without `compare`",
    "same": "every two levels differ by no more than the margin, which it needs",
    "within": "every number lies from `at_least` to `at_most`, ends included",
    "rises": "each level of the factor has more than the next smaller one",
    "falls": "each level of the factor has less than the next smaller one",
}
"""The condition for yes, by a study's `yes`."""

OF_CELLS: tuple[Scale, ...] = ("value", "model", "model-error")
"""Scales for single cells, without compared levels."""
OF_NEIGHBOURS: tuple[Scale, ...] = ("exponent", "slope")
"""Scales for laws over a factor, between each two neighbouring levels."""
PLAIN: tuple[Scale, ...] = ("ratio", "exponent", "model", "model-error")
"""Scales without a unit."""


@dataclass(frozen=True)
class Range:
    """Where a number has to lie: from low to high (None: no such end), or outside of them.

    Attributes: is_open: whether the ends are outside the range; else they belong to it.
    """

    low: float | None
    high: float | None
    inside: bool = True
    is_open: bool = False

    @property
    def ends(self) -> tuple[float, ...]:
        """The finite ends."""
        return tuple(end for end in (self.low, self.high) if end is not None)

    def encloses(self, low: float | None, high: float | None) -> bool:
        """Whether all numbers from low to high are inside; None: an unknown end."""
        return (self.low is None or (low is not None and self._reaches(low, self.low))) and (
            self.high is None or (high is not None and self._reaches(-high, -self.high))
        )

    def misses(self, low: float | None, high: float | None) -> bool:
        """Whether all numbers of an interval lie below low, or all above high."""
        below = self.low is not None and high is not None and not self._reaches(high, self.low)
        return below or (self.high is not None and low is not None and not self._reaches(-low, -self.high))

    def in_words(self, text: Callable[[float], str]) -> str:
        """As "0.909 to 1.1", "−5 to 5 ms", "at least 5 ms", "above 1", "outside 0.8 to 1.25". Args: text: of an end."""
        low, high = ("" if end is None else text(end) for end in (self.low, self.high))
        if self.low is None:
            return f"{'below' if self.is_open else 'at most'} {high}"
        if self.high is None:
            return f"{'above' if self.is_open else 'at least'} {low}"
        if low == high:
            return low if self.inside else f"another number than {low}"
        unit = high.partition(" ")[2]
        least = low.removesuffix(f" {unit}") if unit else low
        return f"{'' if self.inside else 'outside '}{least} to {high}"

    def _reaches(self, number: float, end: float) -> bool:
        return number > end if self.is_open else number >= end


def range_of(yes: Yes, margin: float | None, *, is_ratio: bool) -> Range:
    """The range for a statement about two levels. Args: margin: for a ratio the part above 1; None: no effect."""
    nothing = 1.0 if is_ratio else 0.0
    low, high = nothing, nothing
    if margin is not None:
        low, high = (1 / (1 + margin), 1 + margin) if is_ratio else (-margin, margin)
    if yes in ("less", "falls"):
        return Range(None, low, is_open=True)
    if yes in ("more", "rises"):
        return Range(high, None, is_open=True)
    return Range(low, high, inside=yes == "same")


LevelText = Annotated[str, BeforeValidator(str)]
"""A level as in a study, possibly a number or a truth value there."""
Note = Annotated[str | None, BeforeValidator(lambda text: text or None)]


class Stored(BaseModel):
    """A finding's stored form in a plan."""

    # Deferred: a study reads these declarations long before anything is judged.
    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    def shared_with(self, model: type[BaseModel], *, but: Collection[str] = ()) -> dict[str, Any]:
        """Its values for the fields of another model."""
        shared = type(self).model_fields.keys() & model.model_fields.keys()
        return {name: getattr(self, name) for name in shared.difference(but)}


class ComparedLevel(Stored):
    """A compared level, and its cells."""

    level: LevelText
    cells: frozenset[int]


class Statement(Stored):
    """A statement with its cells.

    Attributes:
        asks: the question, or a document's statement. source: the document; empty for a study's question.
        metric, statistic, scale: the number, from NUMBERS. factor: the compared levels'; compare: these, the reference
        first; empty for all. yes: the claim; `low`, `high`, `inside`, `is_open`: its range (Range). margin: as written;
        bound: its number, for a ratio the part above 1.
        model: the predicting one. figure: title of its figure. choice: one that the document leaves open, after "with";
        why_open: the reason.
    """

    asks: str
    source: str = ""
    metric: str
    statistic: str = "mean"
    scale: Scale
    yes: Yes
    factor: str | None = None
    compare: tuple[ComparedLevel, ...] = ()
    low: float | None = None
    high: float | None = None
    inside: bool = True
    is_open: bool = False
    margin: str | None = None
    bound: float | None = None
    model: str | None = None
    figure: str | None = None
    note: Note = None
    choice: str = ""
    why_open: str = ""
    where: dict[str, LevelText] = {}
    missing: tuple[str, ...] = ()
    is_quick: bool = False
    cells: frozenset[int]

    @property
    def range(self) -> Range:
        """Where its number has to lie."""
        return Range(self.low, self.high, self.inside, self.is_open)

    def without_cell(self, levels: str) -> str:
        """The sentence for a run without a cell with some levels, and the run with one."""
        return f"this run has no cell with {levels}{', but one without --quick has' if self.is_quick else ''}"

    def absence(self, executed: Collection[int]) -> str | None:
        """A run's missing cells, in a sentence; None with all declared ones. Args: executed: cells."""
        absent = [f"{self.factor} {level.level}" for level in self.compare if not level.cells]
        missing = list(dict.fromkeys((*self.missing, *absent)))
        if missing:
            return self.without_cell(" or ".join(missing))
        needed = self.cells
        if self.compare:
            needed &= frozenset(cell for level in self.compare for cell in level.cells)
        left = len(needed.difference(executed))
        return f"{left} of its {len(needed)} cells {'was' if left == 1 else 'were'} not executed" if left else None


def more_than(needed: int | None, units: int) -> int | None:
    """Repetitions beyond those so far; as many again, where an undecided case needs no more by plan."""
    if needed is None:
        return None
    return needed - units if needed > units else max(units, 1)
