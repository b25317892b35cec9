"""A claim's verdict in one sentence, made by rule from its numbers."""

import math
from collections import Counter

from crosswind.analysis.result import ClaimPart, ClaimResult
from crosswind.factors import factor_scale
from crosswind.metrics import METRICS, STATISTICS
from crosswind.report.text.format import (
    EXACT,
    MINUS,
    NOTHING,
    count,
    factor_name,
    interval,
    named_levels,
    number,
    quantity,
    scale_of,
    three_digits,
    times,
    with_unit,
)

VERDICTS = {"holds": "Holds", "does not hold": "Does not hold", "cannot tell": "Cannot tell"}

_PLAIN = ("ratio", "exponent", "error")
"""Scales without a unit."""


def claim_sentence(claim: ClaimResult) -> str:
    """The verdict, the statement, the number that decides it, and what it needed to be."""
    says = claim.says.rstrip(".")
    part = decisive(claim)
    if part is None:
        return f"{VERDICTS[claim.verdict]}: “{says}”: {claim.reason}."
    reasons = (claim.reason, part.effect.reason) if claim.verdict == "cannot tell" else ()
    why = "".join(f"; {reason}" for reason in reasons if reason)
    most = ", the median of the repetitions (sign test)" if part.effect.is_of_most else ""
    needs = f"the statement needs {needed(claim)}{_rest(claim)}"
    return f"{VERDICTS[claim.verdict]}: “{says}”: {_measured(claim, part)}{most}; {needs}{why}."


def decisive(claim: ClaimResult) -> ClaimPart | None:
    """The part that decides: of those with the claim's verdict, the one that is deepest outside the range, or that is
    nearest to its end."""
    parts = [part for part in claim.parts if part.verdict == claim.verdict] or claim.parts
    return min(parts, key=lambda part: _room(claim, part), default=None)


def compared(claim: ClaimResult, part: ClaimPart) -> str:
    """The two levels of a part: "500p / 50p", "25mbit − 6mbit", "1% to 2%"; of a single cell a dash."""
    if part.reference is None:
        return NOTHING
    if claim.scale in ("exponent", "slope"):
        return f"{part.reference} to {part.other}"
    return f"{part.other} {'−' if claim.scale == 'difference' else '/'} {part.reference}"


def effect_text(claim: ClaimResult, part: ClaimPart) -> str:
    """The number of a part with its interval and its unit."""
    if part.effect.value is None and part.effect.low is None:
        return NOTHING
    divisor, unit = _scale(claim, part)
    return with_unit(interval(part.effect, divisor), unit)


def needed(claim: ClaimResult) -> str:
    """The range: "0.909 to 1.1", "at least 5 ms", "outside 0.8 to 1.25"."""
    if claim.rule in ("rises", "falls"):
        return "above 1" if claim.rule == "rises" else "below 1"
    low, high = (_bound(claim, end) for end in (claim.low, claim.high))
    if claim.low is None:
        return f"at most {high}"
    if claim.high is None:
        return f"at least {low}"
    return f"{'' if claim.inside else 'outside '}{low} to {high}"


def tally(claim: ClaimResult) -> str:
    """How many comparisons bear a claim out, contradict it, and cannot tell."""
    found: Counter[str] = Counter(part.verdict for part in claim.parts)
    return ", ".join(f"{count(found[verdict])} {text}" for verdict, text in _TALLY.items() if found[verdict])


_TALLY = {"holds": "bear it out", "does not hold": "contradict it", "cannot tell": "cannot tell"}


def _measured(claim: ClaimResult, part: ClaimPart) -> str:
    """What was measured of a part, as a clause."""
    name = METRICS[claim.metric].title.lower()
    statistic = STATISTICS[claim.statistic].heading
    what = name if METRICS[claim.metric].is_share else f"{statistic} {name}"
    named = named_levels(part.fixed)
    effect, where = _effect_in_words(claim, part), f" ({named})" if named else ""
    factor = factor_name(claim.factor) if claim.factor else ""
    if effect == NOTHING:
        return f"{what} has no number{where}"
    clauses = {
        "value": f"{what} is {effect}",
        "ratio": f"{what} with {factor} {part.other} is {times(part.effect, effect)} that with {part.reference}",
        "difference": f"{what} with {factor} {part.other} less that with {part.reference} is {effect}",
        "exponent": f"from {factor} {part.reference} to {part.other} {what} follows the power {effect}",
        "slope": f"from {factor} {part.reference} to {part.other} {what} grows by {effect} for each {_step(claim)}",
    }
    if claim.scale == "error":
        over = f"over {count(len(part.cells))} cells what {claim.model} predicts of {what}{where}"
        return f"{over} is off by {effect} times what was measured, on average"
    if claim.model is not None:
        broken = f", outside its range ({part.violated[0]})" if part.violated else ""
        return f"{what} is {times(part.effect, effect)} what {claim.model} predicts{where}{broken}"
    return clauses[claim.scale] + where


def _effect_in_words(claim: ClaimResult, part: ClaimPart) -> str:
    """As `effect_text`, "exactly 1.5 s" for an exact one."""
    text = effect_text(claim, part)
    return f"exactly {text.replace(f' {EXACT}', '')}" if part.effect.is_exact else text


def _step(claim: ClaimResult) -> str:
    scale = factor_scale(str(claim.factor))
    return "step" if scale is None else f"{scale.unit} of {scale.title}"


def _rest(claim: ClaimResult) -> str:
    return "" if len(claim.parts) == 1 else f" (of {count(len(claim.parts))} comparisons {tally(claim)})"


def _room(claim: ClaimResult, part: ClaimPart) -> float:
    """How far a part's value is from the end of the range, positive where it is on the claim's side."""
    value = part.effect.value if part.effect.value is not None else part.effect.low
    if value is None:
        return math.inf
    rooms = []
    if claim.low is not None:
        rooms.append(_distance(claim, claim.low, value))
    if claim.high is not None:
        rooms.append(_distance(claim, value, claim.high))
    return min(rooms) if claim.inside else -min(rooms)


def _distance(claim: ClaimResult, start: float, end: float) -> float:
    if claim.scale == "ratio" and start > 0 and end > 0:
        return math.log(end / start)
    return end - start


def _scale(claim: ClaimResult, part: ClaimPart) -> tuple[float, str]:
    if claim.scale in _PLAIN:
        return 1.0, ""
    return scale_of([part.effect.value if part.effect.value is not None else part.effect.low], claim.unit)


def _bound(claim: ClaimResult, end: float | None) -> str:
    if end is None:
        return ""
    if claim.scale in _PLAIN:
        return three_digits(end)
    return number(0.0) if end == 0 else quantity(end, claim.unit).replace("-", MINUS)
