"""Break-evens in sentences."""

from collections.abc import Sequence

from crosswind.catalog.metrics import STATISTICS, metric_named
from crosswind.findings.break_even.result import Better, BreakEven, BreakEvenGroup, BreakEvenStretch
from crosswind.report.text.effects import bare, named_level
from crosswind.report.text.format import (
    bytes_text,
    count,
    count_of,
    factor_and_level,
    interval,
    short_number,
    varied_levels,
)
from crosswind.report.text.overall import is_speed
from crosswind.text.lists import begun

_MOST_GROUPS = 4
_BACK = " there and back"


def break_even_sentence(made: BreakEven) -> str:
    """A clause for each combination of the other levels, four at most."""
    absent = _absent(made)
    if not made.groups:
        return f"Cannot tell: {made.reason}{absent}."
    varied = varied_levels(group.levels for group in made.groups)
    said = [f"{_name(group, varied)}{group_text(made, group)}" for group in made.groups[:_MOST_GROUPS]]
    left = len(made.groups) - len(said)
    more = f"; {count(left)} more are in the table" if left else ""
    return f"{begun(_what(made))}{', ' if any(varied) else ': '}{'; '.join(said)}{more}{absent}."


def _absent(made: BreakEven) -> str:
    """What is missing from the answer."""
    parts = [
        f"{count_of(made.missing, 'cell')} without a number left out" if made.missing else "",
        f"{count_of(made.alone, 'combination')} with a single place left out" if made.alone else "",
    ]
    return "".join(f"; {part}" for part in parts if part)


def _what(made: BreakEven) -> str:
    """The compared number: "mean round-trip time"."""
    metric = metric_named(made.metric)
    assert metric is not None  # The study was checked.
    return f"{STATISTICS[made.statistic].heading} {metric.title_in_sentence}"


def _name(group: BreakEvenGroup, varied: Sequence[str]) -> str:
    levels = ", ".join(factor_and_level(key, group.levels[key]) for key in varied if key in group.levels)
    return f"{levels}: " if levels else ""


def group_text(made: BreakEven, group: BreakEvenGroup) -> str:
    """The clause on one combination: its stretches."""
    stretches = group.stretches
    if len(stretches) == 1:
        return _throughout(made, group, stretches[0])
    if len(stretches) == 3 and {stretches[0].less, stretches[2].less} == {"reference", "other"}:
        return _break_even(made, group)
    said = [_stretch_text(made, group, number) for number in range(len(stretches))]
    return "; ".join(said)


def _throughout(made: BreakEven, group: BreakEvenGroup, stretch: BreakEvenStretch) -> str:
    ends = _from_to(made, stretch)
    if stretch.less != "unknown":
        return f"{better_text(made, stretch.less)} from {ends} throughout"
    reasons = dict.fromkeys(point.effect.reason for point in group.points if point.effect.reason)
    return f"cannot tell from {ends}: {next(iter(reasons), 'more repetitions narrow it (--repetitions)')}"


def _break_even(made: BreakEven, group: BreakEvenGroup) -> str:
    """One level is better below, and the other above."""
    below, middle, above = group.stretches
    sides = f"{better_text(made, below.less)} below, {named_level(made.factor, _better(made, above.less))} above"
    if len(group.crossings) == 1:
        if made.x_unit == "bytes":
            limits = f"[{place_text(made, middle.low)}, {place_text(made, middle.high)}]"
            return f"break-even at {place_text(made, group.crossings[0])} {limits}: {sides}"
        limits = f"[{short_number(middle.low)}, {short_number(middle.high)}]"
        return f"break-even at {short_number(group.crossings[0])} {limits} {_unit(made)}: {sides}"
    where = (
        f"at {place_text(made, middle.low)}"
        if middle.low == middle.high
        else f"between {_from_to(made, middle, 'and')}"
    )
    return f"break-even {where}: {sides}"


def _stretch_text(made: BreakEven, group: BreakEvenGroup, number: int) -> str:
    """One of several stretches."""
    stretch, last = group.stretches[number], len(group.stretches) - 1
    if number == 0:
        where = f"up to {place_text(made, stretch.high)}"
    elif number == last:
        where = "from there on"
    elif stretch.low == stretch.high:
        where = f"at {place_text(made, stretch.low)}"
    else:
        where = f"from {_from_to(made, stretch)}"
    if stretch.less != "unknown":
        return f"{better_text(made, stretch.less)} {where}"
    end = group.points[0] if number == 0 else group.points[-1] if number == last else None
    if end is None or end.effect.value is None:
        return f"cannot tell {where}"
    at = place_text(made, end.x).removesuffix(_BACK)
    return f"cannot tell {where} ({bare(interval(end.effect))} times at {at})"


def better_text(made: BreakEven, less: Better) -> str:
    """The better level, by the smaller side: "quic is faster", "tcp has less"."""
    if less in ("same", "unknown"):
        return "both are exactly the same" if less == "same" else "cannot tell"
    metric = metric_named(made.metric)
    assert metric is not None  # The study was checked.
    return f"{named_level(made.factor, _better(made, less))} {'is faster' if is_speed(metric) else 'has less'}"


def _better(made: BreakEven, less: Better) -> str:
    """The level to name: for a time or a rate the better one, else the one with less."""
    metric = metric_named(made.metric)
    assert metric is not None  # The study was checked.
    is_other = (less == "other") != (is_speed(metric) and metric.more_is_better)
    return made.other if is_other else made.reference


def _from_to(made: BreakEven, stretch: BreakEvenStretch, word: str = "to") -> str:
    low = place_text(made, stretch.low) if made.x_unit == "bytes" else short_number(stretch.low)
    return f"{low} {word} {place_text(made, stretch.high)}"


def place_text(made: BreakEven, x: float) -> str:
    """A place with its unit: "165 ms there and back"."""
    if made.x_unit == "bytes":
        return bytes_text(round(x))
    return f"{short_number(x)} {_unit(made)}"


def _unit(made: BreakEven) -> str:
    """With what the places count: "ms there and back"."""
    return f"{made.x_unit}{_BACK if made.x_title.endswith(_BACK) else ''}"
