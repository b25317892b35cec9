"""What a document prints, as a plan keeps it: a number of it, or a statement that its own numbers decide."""

from collections.abc import Mapping

from pydantic import Field

from crosswind.catalog.metrics import METRICS
from crosswind.decisions.statement import OF_STATEMENT, LevelText, Range, Scale, Statement, Stored, Verdict, Yes

_MOST_NAMED = 6
"""Numbers that a sentence names."""
_ROUNDING = 1e-9
"""By which share a number may miss a bound, since decimal fractions are rounded."""


class OwnNumber(Stored):
    """What a formula over a document's numbers comes to. of: which one, empty for the only one."""

    of: str
    value: float


class PublishedStatement(Statement):
    """A statement of a document that its own numbers decide (`asks`), or, without words, that its number is ours too.

    Attributes: mean, sd, ci, functions: what is printed, in `unit`; half the width of its interval; its parts by
        function. levels: of its cells. value, what, numbers: what decides, in symbols and in words, and its value.
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
    functions: Mapping[str, float] = Field(default={})
    value: str = ""
    what: str = ""
    numbers: tuple[OwnNumber, ...] = ()
    cells: frozenset[int] = frozenset()

    @property
    def theirs(self) -> float | None:
        """The number that the document prints, in the unit of its metric; None of a statement in words."""
        return self.in_metric(self.mean)

    @property
    def range(self) -> Range:
        """Where its number has to lie."""
        return super().range if self.theirs is None else Range(self.theirs, self.theirs)

    def in_metric(self, number: float | None) -> float | None:
        """A printed number in the unit of its metric."""
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
        """The verdict, the statement, what the numbers come to, and what they had to be."""
        needed = self.range.in_words(lambda end: _text(end, self.unit))
        return (
            f"{OF_STATEMENT[self.verdict]}: “{self.asks.rstrip('.')}”: {self.what} {self._in_words()}; the statement "
            f"needs {needed}."
        )

    def _in_words(self) -> str:
        if len(self.numbers) <= _MOST_NAMED:
            *others, last = [_text(number.value) + (f" ({number.of})" if number.of else "") for number in self.numbers]
            named = f"{', '.join(others)} and {last}" if others else last
            return f"is {named} {self.unit}".rstrip()
        values = [number.value for number in self.numbers]
        return f"is {_text(min(values))} to {_text(max(values), self.unit)} in {len(values)} rows"


def _text(number: float, unit: str = "") -> str:
    return f"{number:.4g}".replace("-", "−") + (f" {unit}" if unit else "")
