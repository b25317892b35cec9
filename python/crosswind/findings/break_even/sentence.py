"""Where two levels may take the same, in sentences."""

from collections.abc import Sequence

from crosswind.catalog.metrics import metric_named
from crosswind.findings.break_even.result import BreakEven, BreakEvenGroup, BreakEvenPiece
from crosswind.report.text.effects import named_level
from crosswind.report.text.format import count, factor_and_level, interval, number, varied_levels
from crosswind.report.text.overall import is_speed
from crosswind.text.lists import begun

_MOST_GROUPS = 4


def break_even_sentence(made: BreakEven) -> str:
    """The set of each combination of the other levels; of many, the first ones."""
    if not made.groups:
        return f"Cannot tell: {made.reason}."
    varied = varied_levels(group.levels for group in made.groups)
    said = [f"{_name(group, varied)}{group_text(made, group)}" for group in made.groups[:_MOST_GROUPS]]
    left = len(made.groups) - len(said)
    text = "; ".join(said)
    names = tuple(_named(made, level) for level in (made.reference, made.other))
    more = f"; {count(left)} more are in the table" if left else ""
    return f"{text if text.startswith(names) else begun(text)}{more}."


def _name(group: BreakEvenGroup, varied: Sequence[str]) -> str:
    levels = ", ".join(factor_and_level(key, group.levels[key]) for key in varied if key in group.levels)
    return f"{levels}: " if levels else ""


def group_text(made: BreakEven, group: BreakEvenGroup) -> str:
    """A combination's set, as a clause."""
    if group.always is not None:
        return f"{_wins(made, group.always)} from {_from_to(made, group.points[0].x, group.points[-1].x)} throughout"
    if len(group.pieces) == 1:
        return _one_piece(made, group)
    pieces = " and ".join(_piece_text(made, piece) for piece in group.pieces)
    return f"{pieces} may be break-even; {_wins(made, str(_outside(group)))} elsewhere"


def _one_piece(made: BreakEven, group: BreakEvenGroup) -> str:
    (piece,) = group.pieces
    if piece.low is None and piece.high is None:
        return f"cannot tell at any {made.x_title}: more repetitions narrow it (--repetitions)"
    if piece.low is None:
        there = interval(group.points[0].effect)
        until = f"cannot tell up to {_place(made, piece.high)} (at {_place(made, group.points[0].x)} {there} times)"
        return f"{until}; beyond, {_wins(made, str(piece.above))}"
    if piece.high is None:
        until = f"{_wins(made, str(piece.below))} up to {_place(made, piece.low)}"
        there = interval(group.points[-1].effect)
        return f"{until}; from there on it cannot tell (at {_place(made, group.points[-1].x)} {there} times)"
    if piece.below == piece.above:
        return f"may be break-even {_between(made, piece)}; {_wins(made, str(piece.below))} elsewhere"
    better = f"{_wins(made, str(piece.below))} below, {_named(made, str(piece.above))} above"
    if len(group.crossings) == 1 and piece.low < piece.high:
        limits = f"[{place_number(piece.low)}, {place_number(piece.high)}]"
        return f"break-even at {place_number(group.crossings[0])} {limits} {made.x_unit}: {better}"
    return f"break-even {_between(made, piece)}: {better}"


def _outside(group: BreakEvenGroup) -> str | None:
    """The level that is better outside of the pieces."""
    sides = [side for piece in group.pieces for side in (piece.below, piece.above) if side is not None]
    return next(iter(dict.fromkeys(sides)), None)


def _piece_text(made: BreakEven, piece: BreakEvenPiece) -> str:
    if piece.low is None:
        return f"up to {_place(made, piece.high)}"
    return f"from {_place(made, piece.low)} on" if piece.high is None else _between(made, piece)


def _between(made: BreakEven, piece: BreakEvenPiece) -> str:
    assert piece.low is not None and piece.high is not None
    if piece.low == piece.high:
        return f"at exactly {_place(made, piece.low)}"
    return f"between {_from_to(made, piece.low, piece.high)}".replace(" to ", " and ")


def _from_to(made: BreakEven, low: float, high: float) -> str:
    return f"{place_number(low)} to {_place(made, high)}"


def _place(made: BreakEven, x: float | None) -> str:
    return "" if x is None else f"{place_number(x)} {made.x_unit}"


def place_number(x: float) -> str:
    """A place with three digits, without zeros at the end."""
    if x == int(x):
        return number(x).partition(".")[0]
    return f"{x:.3g}"


def _named(made: BreakEven, level: str) -> str:
    return named_level(made.factor, level)


def _wins(made: BreakEven, less: str) -> str:
    """Which level is better, by the one whose number is less: "quic is faster", "tcp has less"."""
    metric = metric_named(made.metric)
    assert metric is not None  # The study was checked.
    more = made.other if less == made.reference else made.reference
    if is_speed(metric):
        return f"{_named(made, more if metric.more_is_better else less)} is faster"
    return f"{_named(made, less)} has less"


def winner_text(made: BreakEven, less: str | None) -> str:
    """The same for a table; "cannot tell" for none."""
    return "cannot tell" if less is None else _wins(made, less)
