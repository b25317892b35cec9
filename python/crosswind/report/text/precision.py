"""An interval's width, against its target, in words."""

from crosswind.catalog.precision import CellPrecision, Ended, PrecisionReached
from crosswind.report.text.format import count_of, quantity

ENDED = {
    Ended.PRECISION: "precision reached",
    Ended.CAP: "most repetitions reached",
    Ended.EXACT: "exact",
    Ended.NO_VALUE: "no interval",
}
"""A cell's end, in tables."""


def precision_text(state: CellPrecision) -> str:
    """A precision as it is now: "mean(rtt) 42.9 ms ± 32 % (asked: ± 10 %), 5 repetitions, probably 22 in all"."""
    name = f"{state.statistic}({state.metric})"
    repetitions = count_of(state.units, "repetition")
    if state.value is None:
        return f"{name}: {state.reason or 'no interval yet'}, {repetitions}"
    value = f"{name} {quantity(state.value, state.unit)}"
    if state.ended is Ended.EXACT:
        return f"{value}, exact"
    asked = f"(asked: ± {asked_text(state)})"
    if state.half_width is None:
        parts = [f"{value}: {state.reason} {asked}"]
    elif state.half_width == 0:
        parts = [f"{value} in all of {repetitions} {asked}"]
    else:
        parts = [f"{value} ± {half_width_text(state)} {asked}", repetitions]
    if state.reason is not None and state.half_width is not None and state.units >= state.least:
        parts.append(state.reason)
    if state.ended is not None:
        parts.append(ENDED[state.ended])
    elif state.units < state.least:
        parts.append(f"uncertain below {count_of(state.least, 'repetition')}")
    elif state.likely is not None and state.likely > state.units:
        parts.append(f"probably {state.likely} in all")
    elif not state.is_reached:
        parts.append("probably more than the limit")
    return ", ".join(parts)


def half_width_text(state: PrecisionReached) -> str:
    """Half the interval's width, in the target's form: a share of the value, or a size."""
    return _text(state, state.half_width)


def asked_text(state: PrecisionReached) -> str:
    """The requested half-width."""
    return _text(state, state.wanted)


def _text(state: PrecisionReached, half: float | None) -> str:
    if state.unit == "1":
        return "–" if half is None else f"{100 * half:.2g} points"
    if half is not None and state.value and state.target.endswith("%"):
        return f"{100 * half / abs(state.value):.2g} %"
    return quantity(half, state.unit)
