"""Numbers, levels and cells as people read them: one unit for a row, as many digits as the interval supports."""

import math
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from crosswind.quantities import UNITS

if TYPE_CHECKING:
    from crosswind.analysis.result import CellResult, Interval, MetricEstimates

MINUS = "−"
NOTHING = "–"
EXACT = "exact"
"""What stands in the place of an interval where nothing is left to chance."""
NOT_MEASURED = "not measured"
"""What stands in the place of a number that has no meaning in virtual time."""
_OUTCOMES = {
    "timeout": "timed out",
    "refused": "refused",
    "reset": "reset",
    "closed": "closed too early",
    "certificate": "with a certificate that is not trusted",
    "protocol": "against the protocol",
    "too_large": "too large",
    "error": "with another error",
}
_THIN_SPACE = "\u202f"
SMALL_RATIO = 0.1
"""Below this a ratio is said as one part in so many."""
_INVERSE_RESOLUTION = 0.3
"""Of such a number two digits are shown where it has no interval."""
_EXACT_RESOLUTION = 3e-6
"""Of an exact number six digits are shown."""


def scale_of(values: Iterable[float | None], unit: str) -> tuple[float, str]:
    """The scale in which the median of some values reads best.

    Returns: (divisor, label): values are divided by the divisor; (1, unit) for a unit without scales.
    """
    known = UNITS.get(unit)
    return known.scale_for(values) if known else (1.0, unit)


def scale_of_metric(name: str, cells: "Iterable[CellResult]") -> tuple[float, str]:
    """The one scale of all that shows a metric of some cells: that of their means and medians.

    Returns: as `scale_of`. At least one cell has the metric.
    """
    found = [cell.estimates[name] for cell in cells if name in cell.estimates]
    middles = [part.value for one in found for part in (one.median, one.mean) if part.value is not None]
    return scale_of(middles or [one.smallest for one in found], found[0].unit)


def number(value: float | None, divisor: float = 1.0, *, resolution: float | None = None) -> str:
    """A number with a typographic minus: four significant digits, or as many as `resolution` deserves.

    Args: resolution: half the width of the number's interval, in the value's unit: two digits of it, or one from 3 on.
    """
    if value is None:
        return NOTHING
    scaled = value / divisor
    fine = resolution / divisor if resolution else 0.0
    digits = math.ceil(-math.log10(fine / 3)) if fine > 0 else 3 - math.floor(math.log10(abs(scaled) or 1.0))
    digits = max(0, min(digits, 3 - math.floor(math.log10(abs(scaled) or 1.0)) + 2, 6))
    text = f"{abs(scaled):,.{digits}f}".replace(",", _THIN_SPACE)
    return f"{MINUS}{text}" if scaled < 0 and text.strip("0.") else text


def three_digits(value: float | None) -> str:
    """A ratio or a coefficient: three significant digits, or a dash."""
    return NOTHING if value is None else f"{value or 0.0:.3g}".replace("-", MINUS)


def interval(estimate: "Interval | None", divisor: float = 1.0) -> str:
    """An estimate with its limits: "20.11 [20.09, 20.14]"; or what there is of them.

    An exact one: "20.0064 exact". With a bound alone: "20.11 (at least 19.87)". Without an interval the smallest and
    the largest of the repetitions' values: "20.11 (19.9 to 20.3)". Of exchanges that timed out:
    "over 5 000".
    """
    if estimate is None:
        return NOTHING
    e = estimate
    if e.value is None:
        return NOTHING if e.low is None else f"over {number(e.low, divisor)}"
    if e.is_exact:
        return f"{number(e.value, divisor, resolution=_EXACT_RESOLUTION * abs(e.value))} {EXACT}"
    if e.low is not None and e.high is not None:
        return _between(e.value, e.low, e.high, divisor) if e.low < e.high else _every_time(e.value, e.units, divisor)
    if e.low is None and e.high is None:
        return f"{number(e.value, divisor)} ({_spread(e, divisor)})"
    return f"{number(e.value, divisor)} ({bound(e, divisor)})"


def _between(value: float, low: float, high: float, divisor: float) -> str:
    texts = [number(part, divisor, resolution=(high - low) / 2) for part in (value, low, high)]
    return f"{texts[0]} [{texts[1]}, {texts[2]}]"


def _every_time(value: float, units: int, divisor: float) -> str:
    return f"{number(value, divisor)} (in all {units} repetitions)"


def _spread(estimate: "Interval", divisor: float) -> str:
    """What stands in the place of an interval: the smallest and the largest of the repetitions' values."""
    ends = estimate.spread
    if ends is None:
        return "no interval"
    if ends[0] == ends[1]:
        return f"in all {estimate.units} repetitions"
    return f"{number(ends[0], divisor)} to {number(ends[1], divisor)}"


def bound(estimate: "Interval", divisor: float = 1.0) -> str:
    """The one limit that an estimate has: "at least 19.87"."""
    if estimate.low is not None:
        return f"at least {number(estimate.low, divisor)}"
    return f"at most {number(estimate.high, divisor)}"


def with_unit(text: str, unit: str) -> str:
    """A number and its unit; where there is no number a dash alone."""
    return text if text == NOTHING else f"{text} {unit}".rstrip()


def observed(extremes: tuple[float, float] | None, divisor: float = 1.0) -> str:
    """Samples too few for an interval: "53.1 … 54.9 (no interval)", or a dash."""
    if extremes is None:
        return NOTHING
    ends = list(dict.fromkeys(number(end, divisor) for end in extremes))
    return f"{' … '.join(ends)} (no interval)"


def interval_or_observed(
    estimate: "Interval | None", extremes: tuple[float, float] | None, divisor: float = 1.0
) -> str:
    """An estimate with its limits, or what there is of them; without a value the samples, else a dash."""
    if estimate is None or (estimate.value is None and estimate.low is None):
        return observed(extremes, divisor)
    return interval(estimate, divisor)


def mean_or_observed(estimates: "MetricEstimates | None", divisor: float = 1.0) -> str:
    """The mean of a metric with its limits, else its smallest and largest sample, else a dash."""
    if estimates is None:
        return NOTHING
    return interval_or_observed(estimates.mean, (estimates.smallest, estimates.largest), divisor)


def quantity(value: float | None, unit: str) -> str:
    """A number of three digits with its unit: 20110000 ns -> "20.1 ms"."""
    divisor, label = scale_of([value], unit)
    return NOTHING if value is None else f"{value / divisor:.3g} {label}".rstrip()


def ratio_in_words(value: float, low: float | None = None, high: float | None = None) -> tuple[str, str]:
    """A ratio as a clause before "that with ...", and its interval in the same form: ("3.2 times", "3.1 to 3.4").

    A ratio below a tenth is read as its inverse: 0.0100 -> ("1/100 of", "1/110 to 1/95").
    """
    if not 0 < value < SMALL_RATIO:
        half = None if low is None or high is None else (high - low) / 2
        numbers = [number(end, resolution=half) for end in (value, low, high)]
        return f"{numbers[0]} times", f"{numbers[1]} to {numbers[2]}"
    inverse = [None if end is None else 1 / end if end > 0 else math.inf for end in (value, low, high)]
    half = None if None in inverse or math.inf in inverse else (inverse[1] - inverse[2]) / 2  # type: ignore[operator]
    texts = [_inverse(end, half) for end in inverse]
    return f"{texts[0]} of", f"{texts[1]} to {texts[2]}"


def times(ratio: "Interval", text: str | None = None) -> str:
    """A ratio before what it is a multiple of: "3.2 [3.1, 3.4] times", "1/100 of (95 % interval 1/110 to 1/95 of)".

    Args: text: of a ratio that is not small; `interval(ratio)` where it is None.
    """
    if ratio.value is None or not 0 < ratio.value < SMALL_RATIO:
        return f"{interval(ratio) if text is None else text} times"
    clause, ends = ratio_in_words(ratio.value, ratio.low, ratio.high)
    return f"{clause} (95 % interval {ends} of)" if ratio.is_whole else clause


def without_middle(text: str, most: int) -> str:
    """A text of at most so many characters: what distinguishes names stands at their ends."""
    kept = most // 2
    return text if len(text) <= most else f"{text[: most - kept - 1]}…{text[-kept:]}"


def _inverse(value: float | None, half: float | None) -> str:
    if value is None:
        return NOTHING
    return "0" if math.isinf(value) else f"1/{number(value, resolution=half or _INVERSE_RESOLUTION * value)}"


def outcome_text(outcome: str, number_of: int) -> str:
    """How some exchanges ended, in words: "12 timed out"."""
    return f"{count(number_of)} {_OUTCOMES.get(outcome, outcome)}"


def percent(share: float | None) -> str:
    """A fraction as a percentage: 0.0503 -> "5.03 %"."""
    return NOTHING if share is None else f"{100 * share:.3g} %"


def percent_interval(share: "Interval") -> str:
    """A fraction with its limits as percentages: "6 % [4.24 %, 8.21 %]"; an exact one: "6 % exact"."""
    if share.is_exact:
        return f"{percent(share.value)} {EXACT}"
    if share.is_whole:
        return f"{percent(share.value)} [{percent(share.low)}, {percent(share.high)}]"
    return f"{percent(share.value)} (no interval)"


def p_value(p: float | None) -> str:
    """A p-value: three digits, never 0."""
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def count(number_of_things: int) -> str:
    """A count with thin spaces: 24 000."""
    return f"{number_of_things:,}".replace(",", _THIN_SPACE)


def count_of(number_of_things: int, noun: str) -> str:
    """A count of things: 1 cell, 24 000 cells."""
    return f"{count(number_of_things)} {noun}{'' if number_of_things == 1 else 's'}"


def count_range(counts: Iterable[int]) -> str:
    """The least and the largest of some counts: "30", or "30 to 1 200"."""
    ordered = sorted(set(counts))
    return count(ordered[0]) + (f" to {count(ordered[-1])}" if len(ordered) > 1 else "")


def listed(names: list[str], most: int = 6) -> str:
    """Names in a row, of more than `most` the first ones and how many there are besides."""
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more"


def sentence(text: str) -> str:
    """A text as a sentence: with a capital, unless it begins with a name that has none, and a full stop."""
    first = text.split(" ", 1)[0]
    begun = text if not first.isalpha() or first in _LOWER_CASE else text[:1].upper() + text[1:]
    return begun if begun.endswith((".", "?", "!", "”")) else f"{begun}."


_LOWER_CASE = ("bbr", "cubic", "reno", "tcp", "quic", "http", "websocket")
"""Names that stay as they are at the beginning of a sentence."""


def plural_of(statistic: str) -> str:
    """What is compared by a statistic: "means", "medians", "p95"."""
    name = statistic.replace("_", " ")
    return name if name[-1].isdigit() else f"{name}s"


def factor_name(factor: str) -> str:
    """The last part of a factor's key in words: "host.congestion_control" -> "congestion control"."""
    return factor.rsplit(".", 1)[-1].replace("_", " ")


def factor_names(factors: Iterable[str]) -> dict[str, str]:
    """A short name for each factor, the whole key where two would share one."""
    keys = list(factors)
    short = [factor_name(key) for key in keys]
    return {key: name if short.count(name) == 1 else key for key, name in zip(keys, short, strict=True)}


def levels(of_cell: Mapping[str, str]) -> str:
    """A cell in words: "tcp · 5%"; "all" without factors, since there is no other cell.

    A number without a unit, and on and off, say nothing without the name of their factor.
    """
    return " · ".join(_level(key, value) for key, value in of_cell.items()) or "all"


def varied_levels(of_cells: Iterable[Mapping[str, str]]) -> list[str]:
    """The factors in whose levels some cells differ, for the others tell none of them from another; all if none do."""
    found: dict[str, set[str | None]] = {}
    known = list(of_cells)
    for key in dict.fromkeys(key for of_cell in known for key in of_cell):
        found[key] = {of_cell.get(key) for of_cell in known}
    return [key for key, levels_of in found.items() if len(levels_of) > 1] or list(found)


def factor_and_level(key: str, value: str) -> str:
    """A level with the name of its factor: "loss 5%", "window scaling on"."""
    return f"{factor_name(key)} {level_text(value)}"


def level_text(value: str) -> str:
    """A level as people read it: a switch is on or off."""
    return _SWITCHES.get(value, value)


_SWITCHES = {"true": "on", "false": "off"}


def _level(key: str, value: str) -> str:
    return factor_and_level(key, value) if value in _SWITCHES or value.isdecimal() else value


def about(of_cell: Mapping[str, str], text: str) -> str:
    """What is said of a cell, with its name where there are others: "tcp · 5%: no exchange succeeded"."""
    return f"{levels(of_cell)}: {text}" if of_cell else text
