"""Reasons for the exchanges' times, and for differences between cells, in sentences."""

from collections.abc import Iterator, Sequence

from crosswind.analysis.result import CellResult, PartOfDifference, Result, SpentDifference
from crosswind.catalog import catalog
from crosswind.catalog.spent import GROUPS, WHOLE
from crosswind.report.page import Sentence
from crosswind.report.text.effects import exactly_said, named_level
from crosswind.report.text.exploration import is_chosen
from crosswind.report.text.format import count_of, interval, levels, listed, number, percent, scale_of, with_unit
from crosswind.stats.estimate import Interval

MOST = 3
"""Maximum sentences of each kind, and things named in one."""
_ENOUGH = 0.8
"""Share of a time at which a sentence stops naming causes."""
_MOST_OF_IT = 0.5
"""Share of its group from which a part is named beside it."""
_NOTHING_NS = 1_000
"""A negligible difference: less than a microsecond."""
_CANCELS_OUT = 20
"""Maximum ratio of a difference's largest part to the difference: beyond, the parts cancel out."""
_NO_INTERVAL = " (no interval)"
_NOUNS = {group.name: group.noun for group in GROUPS}


def spent_sentences(result: Result) -> list[Sentence]:
    """The slowest cells' time breakdown, and the largest differences' parts."""
    cells = [cell for cell in result.cells if _mean(cell, WHOLE)]
    cells.sort(key=lambda cell: -_mean(cell, WHOLE))
    return [
        Sentence(text)
        for text in (*(_cell_sentence(cell) for cell in cells[:MOST]), *difference_sentences(result.spent))
    ]


def spent_sentence(result: Result) -> list[str]:
    """The most informative one: the largest difference's parts, else the slowest cell's breakdown."""
    made = spent_sentences(result)
    of_differences = list(difference_sentences(result.spent))
    return of_differences[:1] or [said.text for said in made[:1]]


def _cell_sentence(cell: CellResult) -> str:
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
    begun = f"{levels(cell.levels)}: the" if cell.levels else "The"
    exchanges = count_of(cell.estimates[WHOLE].mean.n, "exchange")
    return f"{begun} mean of {exchanges} is {number(whole, divisor)} {unit}: {listed(named, MOST)}."


def difference_sentences(differences: Sequence[SpentDifference]) -> Iterator[str]:
    """The largest difference between each two levels in a question, then for each chosen factor."""
    best: dict[tuple[str, ...], SpentDifference] = {}
    for made in sorted(differences, key=lambda made: (not made.asked, -abs(_value(made)))):
        if is_chosen(made.factor) and made.parts and not _is_nothing(made):
            best.setdefault((made.factor, made.reference, made.other) if made.asked else (made.factor,), made)
    for made in list(best.values())[:MOST]:
        value = _value(made)
        divisor, unit = scale_of([value], "ns")
        slow, fast = (made.other, made.reference) if value > 0 else (made.reference, made.other)
        names = [named_level(made.factor, level) for level in (slow, fast)]
        fixed = ", ".join(named_level(key, level) for key, level in made.fixed.items())
        yield (
            f"Of the {number(abs(value), divisor)} {unit} that {names[0]} takes longer than {names[1]}"
            f"{f' at {fixed}' if fixed else ''}, {_parts_text(made, divisor, unit)}."
        )


def _parts_text(made: SpentDifference, divisor: float, unit: str) -> str:
    """The main parts of a difference: "40 ms are handshakes and 30 ms queues, less 9 ms of propagation"."""
    whole = _value(made)
    sign = 1 if whole > 0 else -1
    left = whole * sign
    more: list[str] = []
    less: list[str] = []
    for part in made.parts:
        amount = (part.difference.value or 0.0) * sign
        if amount > 0:
            more.append(_part_text(part, divisor, unit, turned=sign < 0, verb=not more))
        elif amount < 0:
            less.append(f"{_quantity(part.difference, divisor, unit, turned=sign > 0)} of {_NOUNS[part.group]}")
        left -= amount
        if more and (abs(left) <= (1 - _ENOUGH) * abs(whole) or len(more) + len(less) >= MOST):
            break
    said = ", less ".join(listed(parts, MOST) for parts in (more, less) if parts)
    bare = said.replace(_NO_INTERVAL, "")
    return f"{bare} (without intervals)" if said.count(_NO_INTERVAL) > 1 else said


def _quantity(difference: Interval, divisor: float, unit: str, *, turned: bool) -> str:
    """A difference with its interval and its unit."""
    return with_unit(exactly_said(interval(difference.negated() if turned else difference, divisor)), unit)


def _part_text(first: PartOfDifference, divisor: float, unit: str, *, turned: bool, verb: bool) -> str:
    """The main part of a difference: a part with nearly all of its group goes by its own name."""
    said, noun, mostly = first.difference, _NOUNS[first.group], ""
    if first.part is not None and first.part_difference is not None and said.value:
        share = (first.part_difference.value or 0.0) / said.value
        if _ENOUGH <= share <= 1 / _ENOUGH:
            said, noun = first.part_difference, catalog().parts[first.part].noun
        elif _MOST_OF_IT <= share < 1:
            mostly = f" (mostly {catalog().parts[first.part].noun})"
    told = _quantity(said, divisor, unit, turned=turned)
    return f"{told} {'are' if unit != 's' else 'is'} {noun}{mostly}" if verb else f"{told} {noun}{mostly}"


def _is_nothing(made: SpentDifference) -> bool:
    """Whether the whole hardly differs, or its parts far more: transfers of a duration take equally long."""
    if abs(_value(made)) < _NOTHING_NS:
        return True
    most = max(abs(part.difference.value or 0.0) for part in made.parts)
    return most > _CANCELS_OUT * abs(_value(made))


def _value(made: SpentDifference | None) -> float:
    return 0.0 if made is None else made.difference.value or 0.0


def _mean(cell: CellResult, name: str) -> float:
    return (cell.estimates[name].mean.value or 0.0) if name in cell.estimates else 0.0
