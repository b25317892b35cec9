"""A document's printed number, or a statement decided by its own numbers, as stored in a plan."""

from collections.abc import Mapping

from pydantic import Field

from crosswind.catalog.metrics import METRICS
from crosswind.decisions.statement import OF_STATEMENT, LevelText, Range, Scale, Statement, Stored, Verdict, Yes
from crosswind.text.lists import begun

_MOST_NAMED = 6
"""Maximum numbers named in a sentence."""
_ROUNDING = 1e-9
"""Relative tolerance at a bound: decimal fractions are rounded."""


class OwnNumber(Stored):
    """The value of a formula over a document's numbers. of: its name, empty for the only one."""

    of: str
    value: float


class PublishedStatement(Statement):
    """A document's statement, decided by its own numbers (`asks`), or, without words, its number's equality with ours.

    Attributes: mean, sd, ci, functions: as printed, in `unit`; half the width of its interval; its parts by function.
        runs: behind it, if a single one.
        levels: its cells'. value, what, numbers: the deciding formula, in symbols and in words, and its value.
    """

    asks: str = ""
    metric: str = ""
    scale: Scale = "value"
    yes: Yes = "within"
    unit: str
    levels: Mapping[str, LevelText] = Field(default={})
    mean: float | None = None
    sd: float | None = None
    ci: float | None = None
    runs: int | None = None
    functions: Mapping[str, float] = Field(default={})
    value: str = ""
    what: str = ""
    numbers: tuple[OwnNumber, ...] = ()
    cells: frozenset[int] = frozenset()

    @property
    def theirs(self) -> float | None:
        """The printed number, in its metric's unit; None for a statement in words."""
        return self.in_metric(self.mean)

    @property
    def range(self) -> Range:
        """Where its number has to lie."""
        return super().range if self.theirs is None else Range(self.theirs, self.theirs)

    def in_metric(self, number: float | None) -> float | None:
        """A printed number in its metric's unit."""
        return None if number is None else number * METRICS[self.metric].unit.scales[self.unit]

    def holds_of(self, number: float) -> bool:
        """Whether one of its own numbers lies in the range."""
        slack = _ROUNDING * abs(number)
        return self.range.encloses(number + slack, number - slack)

    @property
    def verdict(self) -> Verdict:
        """By the rule: every one of its own numbers lies in the range."""
        return "yes" if all(self.holds_of(number.value) for number in self.numbers) else "no"

    @property
    def sentence(self) -> str:
        """The verdict, the statement, its numbers' values, and the required range."""
        needed = self.range.in_words(lambda end: _text(end, self.unit))
        what = f"{begun(self.what)} {self._in_words()}"
        return f"{OF_STATEMENT[self.verdict]}: {self.asks.rstrip('.')}. {what}; the statement needs {needed}."

    def _in_words(self) -> str:
        if len(self.numbers) <= _MOST_NAMED:
            *others, last = [_text(number.value) + (f" ({number.of})" if number.of else "") for number in self.numbers]
            named = f"{', '.join(others)} and {last}" if others else last
            return f"is {named} {self.unit}".rstrip()
        values = [number.value for number in self.numbers]
        return f"is {_text(min(values))} to {_text(max(values), self.unit)} in {len(values)} rows"


def _text(number: float, unit: str = "") -> str:
    return f"{number:.4g}".replace("-", "−") + (f" {unit}" if unit else "")
