"""Numbers as people read them: one unit for a row, as many digits as the interval supports."""

import math
from collections.abc import Iterable

from crosswind.analysis.result import Interval

_SCALES: dict[str, tuple[tuple[float, str], ...]] = {
    "ns": ((1e9, "s"), (1e6, "ms"), (1e3, "µs"), (1.0, "ns")),
    "bit/s": ((1e9, "Gbit/s"), (1e6, "Mbit/s"), (1e3, "kbit/s"), (1.0, "bit/s")),
    "1": ((0.01, "%"),),
}
MINUS = "−"
NOTHING = "–"


def scale_of(values: Iterable[float | None], unit: str) -> tuple[float, str]:
    """The scale in which the median of some values reads best.

    Returns: (divisor, label): values are divided by the divisor; (1, unit) for a unit without scales.
    """
    sizes = sorted(abs(value) for value in values if value)
    if unit not in _SCALES or not sizes:
        return 1.0, _SCALES[unit][-1][1] if unit in _SCALES else ("" if unit == "1" else unit)
    middle = sizes[len(sizes) // 2]
    return next((scale for scale in _SCALES[unit] if middle >= scale[0]), _SCALES[unit][-1])


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
    text = f"{abs(scaled):,.{digits}f}".replace(",", "\u202f")
    return f"{MINUS}{text}" if scaled < 0 and text.strip("0.") else text


def interval(one: Interval | None, divisor: float = 1.0) -> str:
    """An estimate with its limits: "20.11 [20.09, 20.14]", or a dash."""
    if one is None or one.value is None:
        return NOTHING
    return f"{number(one.value, divisor, resolution=half_width(one))} {limits(one, divisor)}"


def limits(one: Interval | None, divisor: float = 1.0) -> str:
    """The limits alone: "[20.09, 20.14]", or a dash."""
    if one is None or one.low is None or one.high is None:
        return NOTHING
    half = half_width(one)
    return f"[{number(one.low, divisor, resolution=half)}, {number(one.high, divisor, resolution=half)}]"


def point(one: Interval | None, divisor: float = 1.0) -> str:
    """The value alone, with the digits its interval deserves."""
    return NOTHING if one is None else number(one.value, divisor, resolution=half_width(one))


def observed(extremes: tuple[float, float] | None, divisor: float = 1.0) -> str:
    """Samples too few for an interval: "53.1 … 54.9 (no interval)", or a dash."""
    if extremes is None:
        return NOTHING
    ends = list(dict.fromkeys(number(end, divisor) for end in extremes))
    return f"{' … '.join(ends)} (no interval)"


def half_width(one: Interval) -> float | None:
    """Half the width of the interval, None when there is none."""
    return None if one.low is None or one.high is None else (one.high - one.low) / 2 or None


def quantity(value: float | None, unit: str) -> str:
    """A number of three digits with its unit: 20110000 ns -> "20.1 ms"."""
    divisor, label = scale_of([value], unit)
    return NOTHING if value is None else f"{value / divisor:.3g} {label}".rstrip()


def percent(share: float | None) -> str:
    """A fraction as a percentage: 0.0503 -> "5.03 %"."""
    return NOTHING if share is None else f"{100 * share:.3g} %"


def p_value(p: float | None) -> str:
    """A p-value: three digits, never 0."""
    if p is None:
        return NOTHING
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


def factor_name(factor: str) -> str:
    """The last part of a factor's key in words: "host.congestion_control" -> "congestion control"."""
    return factor.rsplit(".", 1)[-1].replace("_", " ")


def factor_names(factors: Iterable[str]) -> dict[str, str]:
    """A short name for each factor, the whole key where two would share one."""
    keys = list(factors)
    short = [factor_name(key) for key in keys]
    return {key: name if short.count(name) == 1 else key for key, name in zip(keys, short, strict=True)}


def levels(of: dict[str, str]) -> str:
    """A cell in words: "tcp · 5%"; "the only cell" without factors."""
    return " · ".join(of.values()) or "the only cell"
