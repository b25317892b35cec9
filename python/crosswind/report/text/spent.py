"""Why exchanges took as long as they did, and why those of one cell longer than those of another, in sentences."""

from collections.abc import Iterator, Sequence

from crosswind.analysis.result import CellResult, Result
from crosswind.analysis.result.spent import PartOfDifference, SpentDifference
from crosswind.report.page import Sentence
from crosswind.report.text.effects import exactly_said, named_level
from crosswind.report.text.exploration import is_chosen
from crosswind.report.text.format import count, interval, levels, listed, number, percent, scale_of, with_unit
from crosswind.spent import GROUPS, WHOLE, noun_of

MOST = 3
"""Sentences of each kind, and things that one names."""
_ENOUGH = 0.8
"""The share of a time after which a sentence stops naming what it was spent on."""
_MOST_OF_IT = 0.5
"""The share of its group from which on a part is named beside it."""
_NOUNS = {group.name: group.noun for group in GROUPS}


def spent_sentences(result: Result) -> list[Sentence]:
    """Of the slowest cells what their time was spent on, and of the largest differences what these are made of."""
    cells = [cell for cell in result.cells if _mean(cell, WHOLE)]
    cells.sort(key=lambda cell: -_mean(cell, WHOLE))
    return [Sentence(text) for text in (*(_of_cell(cell) for cell in cells[:MOST]), *_of_differences(result.spent))]


def spent_sentence(result: Result) -> list[str]:
    """The one that says most: what the largest difference is made of, else what the slowest cell spent its time on."""
    made = spent_sentences(result)
    of_differences = list(_of_differences(result.spent))
    return of_differences[:1] or [said.text for said in made[:1]]


def _of_cell(cell: CellResult) -> str:
    whole = _mean(cell, WHOLE)
    divisor, unit = scale_of([whole], "ns")
    named = []
    left = whole
    for group in sorted(GROUPS, key=lambda group: -_mean(cell, group.metric)):
        mean_ns = _mean(cell, group.metric)
        named.append(f"{percent(mean_ns / whole)} {group.noun}")
        left -= mean_ns
        if left <= (1 - _ENOUGH) * whole or len(named) == MOST:
            break
    place = f"{levels(cell.levels)}: " if cell.levels else ""
    of = f"of {number(whole, divisor)} {unit}, the mean of {count(cell.estimates[WHOLE].mean.n)} exchanges"
    return f"{place}{of}, {listed(named, MOST)}."


def _of_differences(differences: Sequence[SpentDifference]) -> Iterator[str]:
    """The largest difference of each factor that people choose."""
    best: dict[str, SpentDifference] = {}
    for made in differences:
        size = abs(made.difference.value or 0.0)
        if is_chosen(made.factor) and made.parts and size > abs(_value(best.get(made.factor))):
            best[made.factor] = made
    for made in list(best.values())[:MOST]:
        value = _value(made)
        divisor, unit = scale_of([value], "ns")
        slow, fast = (made.other, made.reference) if value > 0 else (made.reference, made.other)
        names = [named_level(made.factor, level) for level in (slow, fast)]
        fixed = ", ".join(named_level(key, level) for key, level in made.fixed.items())
        yield (
            f"Of the {number(abs(value), divisor)} {unit} that {names[0]} takes longer than {names[1]}"
            f"{f' at {fixed}' if fixed else ''}, {_made_of(made.parts[0], divisor, unit, turned=value < 0)}."
        )


def _made_of(first: PartOfDifference, divisor: float, unit: str, *, turned: bool) -> str:
    """What most of a difference is: a part that makes nearly all of its group by its own name."""
    said, noun, mostly = first.difference, _NOUNS[first.group], ""
    if first.part is not None and first.part_difference is not None and said.value:
        share = (first.part_difference.value or 0.0) / said.value
        if share >= _ENOUGH:
            said, noun = first.part_difference, noun_of(first.part)
        elif share >= _MOST_OF_IT:
            mostly = f", mostly {noun_of(first.part)}"
    told = with_unit(exactly_said(interval(said.negated() if turned else said, divisor)), unit)
    return f"{told} {'are' if unit != 's' else 'is'} {noun}{mostly}"


def _value(made: SpentDifference | None) -> float:
    return 0.0 if made is None else made.difference.value or 0.0


def _mean(cell: CellResult, name: str) -> float:
    return (cell.estimates[name].mean.value or 0.0) if name in cell.estimates else 0.0
