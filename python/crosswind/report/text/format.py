"""Numbers, levels and cells as people read them: one unit for a row, as many digits as the interval supports."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from crosswind.text.quantities import UNITS

if TYPE_CHECKING:
    from crosswind.analysis.result import CellResult, MetricEstimates
    from crosswind.stats.estimate import Interval

MINUS = "−"
NOTHING = "–"
EXACT = "exact"
"""Replaces an interval without randomness."""
_WORDS_AFTER_NUMBER = re.compile(rf" ({EXACT}|\(no interval\)|\(in all \d+ repetitions\))$")
NOT_MEASURED = "not measured"
"""Replaces a number without meaning in virtual time."""
_OUTCOMES = {
    "timeout": ("timed out", "timed out"),
    "refused": ("refused", "were refused"),
    "reset": ("reset", "were reset"),
    "closed": ("closed early", "were closed early"),
    "certificate": ("with an untrusted certificate", "failed with an untrusted certificate"),
    "protocol": ("violated the protocol", "violated the protocol"),
    "too_large": ("too large", "were too large"),
    "error": ("with an error", "failed with an error"),
}
"""Outcomes: after their number, and as a verb."""
_THIN_SPACE = "\u202f"
SMALL_RATIO = 0.1
"""Below this a ratio is said as one part in so many."""
_INVERSE_RESOLUTION = 0.3
"""Of such a number two digits are shown where it has no interval."""
_EXACT_RESOLUTION = 3e-6
"""Of an exact number six digits are shown, without zeros at its end."""
MOST_DECIMALS = 6


def scale_of(values: Iterable[float | None], unit: str) -> tuple[float, str]:
    """The scale best suited to some values' median.

    Returns: (divisor, label): values are divided by the divisor; (1, unit) for a unit without scales.
    """
    known = UNITS.get(unit)
    return known.scale_for(values) if known else (1.0, unit)


def number(
    value: float | None, divisor: float = 1.0, *, resolution: float | None = None, finest: int = MOST_DECIMALS
) -> str:
    """A number with a typographic minus: four significant digits, or as many as `resolution` deserves, six at most.

    Args: resolution: half the number's interval, in the value's unit: two digits of it, or one from 3 on. finest:
        maximum decimals.
    """
    if value is None:
        return NOTHING
    scaled = value / divisor
    fine = resolution / divisor if resolution else 0.0
    digits = math.ceil(-math.log10(fine / 3)) if fine > 0 else 3 - math.floor(math.log10(abs(scaled) or 1.0))
    digits = max(0, min(digits, 3 - math.floor(math.log10(abs(scaled) or 1.0)) + 2, finest))
    text = f"{abs(scaled):,.{digits}f}".replace(",", _THIN_SPACE)
    return f"{MINUS}{text}" if scaled < 0 and text.strip("0.") else text


def exact_number(value: float, divisor: float = 1.0, *, finest: int = MOST_DECIMALS) -> str:
    """A number equal every time, without trailing zeros."""
    text = number(value, divisor, resolution=_EXACT_RESOLUTION * abs(value), finest=finest)
    return text.rstrip("0").rstrip(".") if "." in text else text


def three_digits(value: float | None) -> str:
    """A ratio or a coefficient: three significant digits, or a dash."""
    return NOTHING if value is None else f"{value or 0.0:.3g}".replace("-", MINUS)


def interval(estimate: "Interval | None", divisor: float = 1.0, *, finest: int = MOST_DECIMALS) -> str:
    """An estimate with its limits: "20.11 [20.09, 20.14]"; or its known parts.

    An exact one: "20.0064 exact". With a bound alone: "20.11 (at least 19.87)". Without an interval the repetitions'
    smallest and largest values: "20.11 (19.9 to 20.3)". Timed-out exchanges: "over 5 000".

    Args: finest: maximum decimals.
    """
    if estimate is None:
        return NOTHING
    e = estimate
    if e.value is None:
        return NOTHING if e.low is None else f"over {number(e.low, divisor, finest=finest)}"
    if e.is_exact:
        return f"{exact_number(e.value, divisor, finest=finest)} {EXACT}"
    if e.low is not None and e.high is not None and e.low < e.high:
        return _between(e.value, e.low, e.high, divisor, finest)
    if e.low is not None and e.low == e.high and e.spread is not None and e.spread[0] < e.spread[1]:
        return f"{number(e.value, divisor, finest=finest)} [{', '.join(2 * [number(e.low, divisor, finest=finest)])}]"
    return f"{number(e.value, divisor, finest=finest)} ({_instead(e, divisor, finest)})"


def _between(value: float, low: float, high: float, divisor: float, finest: int = MOST_DECIMALS) -> str:
    """An interval too narrow for six digits has four: more would only be longer."""
    texts = [number(part, divisor, resolution=(high - low) / 2, finest=finest) for part in (value, low, high)]
    if len(set(texts)) == 1:
        texts = [number(part, divisor, finest=finest) for part in (value, low, high)]
    return f"{texts[0]} [{texts[1]}, {texts[2]}]"


def _instead(estimate: "Interval", divisor: float, finest: int) -> str:
    """An interval's substitute: one limit, or the repetitions' smallest and largest values."""
    if (estimate.low is None) != (estimate.high is None):
        return bound(estimate, divisor, finest=finest)
    ends = (estimate.low, estimate.high) if estimate.low is not None else estimate.spread
    if ends is None:
        return "no interval"
    if ends[0] == ends[1]:
        return f"in all {estimate.units} repetitions"
    low, high = (number(end, divisor, finest=finest) for end in ends)
    # "20.00 (20.00 to 20.00)" would be useless for differences below the shown digits.
    return f"{low} to {high}" if low != high else f"in all {estimate.units} repetitions"


def bound(estimate: "Interval", divisor: float = 1.0, *, finest: int = MOST_DECIMALS) -> str:
    """An estimate's only limit: "at least 19.87"."""
    if estimate.low is not None:
        return f"at least {number(estimate.low, divisor, finest=finest)}"
    return f"at most {number(estimate.high, divisor, finest=finest)}"


def with_unit(text: str, unit: str) -> str:
    """A number and its unit: "20.1 ms exact", "20.1 ms (no interval)", "20.1 [19.9, 20.3] ms".

    The unit stands after limits, since they have it too, but before words. Without a number it is a dash alone.
    """
    if text == NOTHING:
        return text
    bare = _WORDS_AFTER_NUMBER.sub("", text)
    return f"{bare} {unit}".rstrip() + text[len(bare) :]


def observed(extremes: tuple[float, float] | None, divisor: float = 1.0) -> str:
    """Samples too few for an interval: "53.1 … 54.9 (no interval)", or a dash."""
    if extremes is None:
        return NOTHING
    ends = list(dict.fromkeys(number(end, divisor) for end in extremes))
    return f"{' … '.join(ends)} (no interval)"


def interval_or_observed(
    estimate: "Interval | None", extremes: tuple[float, float] | None, divisor: float = 1.0
) -> str:
    """An estimate with its limits, or its known parts; without a value the samples, else a dash."""
    if estimate is None or (estimate.value is None and estimate.low is None):
        return observed(extremes, divisor)
    return interval(estimate, divisor)


def mean_or_observed(estimates: "MetricEstimates | None", divisor: float = 1.0) -> str:
    """The mean of a metric with its limits, else its smallest and largest sample, else a dash."""
    if estimates is None:
        return NOTHING
    return interval_or_observed(estimates.mean, (estimates.smallest, estimates.largest), divisor)


def quantity(value: float | None, unit: str) -> str:
    """A three-digit number with its unit: 20110000 ns -> "20.1 ms"."""
    divisor, label = scale_of([value], unit)
    return NOTHING if value is None else f"{short_number(value / divisor)} {label}".rstrip()


def bytes_text(size_bytes: int) -> str:
    """Three digits, or four: 1810 -> "1.81 kB"."""
    power = min(3, (len(str(size_bytes)) - 1) // 3)
    return f"{size_bytes / 1000**power:.{4 if power else 3}g} {('B', 'kB', 'MB', 'GB')[power]}"


def short_number(value: float) -> str:
    """Three significant digits, and never an exponent: "0.0503", "2 700"."""
    text = f"{value:.3g}"
    return number(value) if "e" in text else text


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
    """A ratio before its reference: "3.2 [3.1, 3.4] times", "1/100 of (95 % interval 1/110 to 1/95 of)".

    Args: text: for a ratio above a tenth; None for `interval(ratio)`.
    """
    if ratio.value is None or not 0 < ratio.value < SMALL_RATIO:
        return f"{interval(ratio) if text is None else text} times"
    clause, ends = ratio_in_words(ratio.value, ratio.low, ratio.high)
    return f"{clause} (95 % interval {ends} of)" if ratio.is_whole else clause


def without_middle(text: str, most: int) -> str:
    """A text cut to a maximum length: names differ at their ends."""
    kept = most // 2
    return text if len(text) <= most else f"{text[: most - kept - 1]}…{text[-kept:]}"


def _inverse(value: float | None, half: float | None) -> str:
    if value is None:
        return NOTHING
    return "0" if math.isinf(value) else f"1/{number(value, resolution=half or _INVERSE_RESOLUTION * value)}"


def outcome_text(outcome: str, number_of: int) -> str:
    """How some exchanges ended, in words: "12 timed out"."""
    after_number, _ = _OUTCOMES.get(outcome, (outcome, ""))
    return f"{count(number_of)} {after_number}"


def failures_text(failed: int, outcomes: Sequence[tuple[str, int]]) -> str:
    """The failures among some exchanges, in words: "none of them failed", "33 of them timed out".

    Args: outcomes: each with its count.
    """
    if len(outcomes) == 1 and outcomes[0][0] in _OUTCOMES and outcomes[0][1] == failed:
        return f"{count(failed)} of them {_OUTCOMES[outcomes[0][0]][1]}"
    named = ", ".join(outcome_text(outcome, number_of) for outcome, number_of in outcomes)
    return f"{count(failed) if failed else 'none'} of them failed{f': {named}' if named else ''}"


def percent(share: float | None) -> str:
    """A fraction as a percentage: 0.0503 -> "5.03 %"."""
    if share is None:
        return NOTHING
    return f"{short_number(100 * share)} %"


def percent_interval(share: "Interval") -> str:
    """A fraction with its limits as percentages: "6.0 [4.2, 8.2] %"; an exact one: "6 % exact"."""
    if share.is_exact:
        return f"{percent(share.value)} {EXACT}"
    if share.value is not None and share.low is not None and share.high is not None and share.low < share.high:
        return f"{_between(share.value, share.low, share.high, 0.01)} %"
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
    """A count with its noun: 1 cell, 24 000 cells."""
    return f"{count(number_of_things)} {noun}{'' if number_of_things == 1 else 's'}"


def count_range(counts: Iterable[int]) -> str:
    """The least and the largest count: "30", or "30 to 1 200"."""
    ordered = sorted(set(counts))
    return count(ordered[0]) + (f" to {count(ordered[-1])}" if len(ordered) > 1 else "")


def listed(names: list[str], most: int = 6) -> str:
    """Names in a row, of more than `most` the first ones and how many there are besides."""
    return ", ".join(names) if len(names) <= most else f"{', '.join(names[:most])} and {len(names) - most} more"


def plural_of(statistic: str) -> str:
    """A statistic's plural: "means", "medians", "p95"."""
    name = statistic.replace("_", " ")
    return name if name[-1].isdigit() else f"{name}s"


def factor_name(factor: str) -> str:
    """The last part of a factor's key in words: "host.congestion_control" -> "congestion control".

    A flow's name stays: "flow.upload.count" -> "upload count".
    """
    if factor.startswith("flow."):
        return " ".join(factor.split(".")[1:]).replace("_", " ")
    return factor.rsplit(".", 1)[-1].replace("_", " ")


def factor_names(factors: Iterable[str]) -> dict[str, str]:
    """A short name for each factor, the whole key where two would share one."""
    keys = list(factors)
    short = [factor_name(key) for key in keys]
    return {key: name if short.count(name) == 1 else key for key, name in zip(keys, short, strict=True)}


def levels(of_cell: Mapping[str, str]) -> str:
    """A cell in words: "tcp · 5%"; "all" without factors, since there is no other cell.

    A bare number, on and off, and a program possible at either end need their factor's name.
    """
    return " · ".join(_level(key, value) for key, value in of_cell.items()) or "all"


def factor_and_level(key: str, value: str) -> str:
    """A level with the name of its factor: "loss 5%", "window scaling on"."""
    return f"{factor_name(key)} {level_text(value)}"


def named_levels(of_cell: Mapping[str, str]) -> str:
    """A cell with the names of its factors: "loss 5%, transport tcp"; empty without factors."""
    return ", ".join(factor_and_level(key, value) for key, value in of_cell.items())


def level_text(value: str) -> str:
    """A level as people read it: a switch is on or off."""
    return _SWITCHES.get(value, value)


_SWITCHES = {"true": "on", "false": "off"}


def _level(key: str, value: str) -> str:
    needs_name = value in _SWITCHES or value.isdecimal() or key in _ENDS
    return factor_and_level(key, value) if needs_name else value


_ENDS = ("workload.client", "workload.server")


def about(of_cell: Mapping[str, str], text: str) -> str:
    """A cell's text, with its name if there are others: "tcp · 5%: no exchange succeeded"."""
    return f"{levels(of_cell)}: {text}" if of_cell else text


_LOWER_CASE = ("bbr", "cubic", "reno", "tcp", "quic", "http", "websocket")
"""Names unchanged at the beginning of a sentence."""


def sentence(text: str) -> str:
    """A text as a sentence: with a capital, unless it begins with an uncapitalised name, and a full stop."""
    first = text.split(" ", 1)[0].rstrip(",:")
    begun = text if not first.isalpha() or first in _LOWER_CASE else text[:1].upper() + text[1:]
    return begun if begun.endswith((".", "?", "!", "”")) else f"{begun}."


def varied_levels(of_cells: Iterable[Mapping[str, str]]) -> list[str]:
    """The factors with differences among some cells, as their distinction; all without any difference."""
    levels: dict[str, set[str | None]] = {}
    known = list(of_cells)
    for key in dict.fromkeys(key for of_cell in known for key in of_cell):
        levels[key] = {of_cell.get(key) for of_cell in known}
    return [key for key, levels_of in levels.items() if len(levels_of) > 1] or list(levels)


_DECIMALS = {"ms": 3, "µs": 3, "ns": 0}
"""Maximum decimals for times: a microsecond, and a nanosecond for times in microseconds."""


def scale_of_metric(name: str, cells: "Iterable[CellResult]") -> tuple[float, str]:
    """The common scale for a metric over some cells: their means' and medians'.

    Returns: as `scale_of`. At least one cell has the metric.
    """
    of_cells = [cell.estimates[name] for cell in cells if name in cell.estimates]
    middles = [part.value for estimates in of_cells for part in (estimates.median, estimates.mean) if part.value]
    # With most exchanges timed out, there is no median, and the timeout is the smallest known number.
    middles = middles or [estimates.median.low for estimates in of_cells if estimates.median.low]
    return scale_of(middles or [estimates.smallest for estimates in of_cells], of_cells[0].unit)


def finest_of(unit: str) -> int:
    """Maximum decimals of a number in a unit."""
    return _DECIMALS.get(unit, MOST_DECIMALS)
