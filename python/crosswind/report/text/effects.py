"""Words for effects: levels, ratios, and ranges of numbers."""

import math
from dataclasses import replace

from crosswind.report.text.format import EXACT, SMALL_RATIO, factor_and_level, three_digits
from crosswind.stats.estimate import Interval

_BY_NAME = ("transport", "congestion_control", "network", "part")
"""Last words of keys with self-explanatory level names."""

_NEARLY_1 = (0.95, 1.05)
"""Ratios shown with four digits: three may hide a difference from 1."""


def named_level(key: str, level: str) -> str:
    """A level as a sentence names it: "http3", "loss 5%", "window scaling on"."""
    return level if key.rsplit(".", 1)[-1] in _BY_NAME else factor_and_level(key, level)


def bare(text: str) -> str:
    """An estimate without words repeated in the rest of the sentence."""
    return exactly_said(text).replace(" (no interval)", "")


def exactly_said(text: str) -> str:
    """An estimate, with "exactly" before an exact number instead of a word behind it."""
    exact = text.removesuffix(f" {EXACT}")
    return text if exact == text else f"exactly {exact}"


def range_text(low: float, high: float) -> str:
    """From a positive number to a larger one, with as many decimals as the larger deserves: "0.15 to 2.86"."""
    decimals = max(0, 2 - math.floor(math.log10(high))) if high > 0 else 0
    texts = [f"{end:.{decimals}f}" for end in (low, high)]
    if low > 0 and not texts[0].strip("0."):
        texts[0] = three_digits(low)
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def ratios_text(low: float, high: float) -> str:
    """From a ratio to a larger one: both with the same decimals, unless one of them is small or they are far apart."""
    if low < SMALL_RATIO or high > 10 * low:
        texts = [number_of_ratio(end) for end in (low, high)]
    else:
        decimals = max(0, 2 - math.floor(math.log10(low)))
        if any(_NEARLY_1[0] < end < _NEARLY_1[1] for end in (low, high)):
            decimals = max(decimals, 3)
        texts = [f"{end:.{decimals}f}" for end in (low, high)]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def number_of_ratio(value: float) -> str:
    """A ratio with three digits; near 1 four, since three may hide a difference; a small one as "1/97.1"."""
    if 0 < value < SMALL_RATIO:
        return f"1/{1 / value:#.3g}".rstrip(".")
    return f"{value:#.{4 if _NEARLY_1[0] < value < _NEARLY_1[1] else 3}g}".rstrip(".")


def inverse(effect: Interval) -> Interval:
    """The ratio the other way round."""

    def turned(end: float | None) -> float | None:
        return None if not end else 1 / end

    spread = effect.spread and all(effect.spread) and (1 / effect.spread[1], 1 / effect.spread[0])
    ends = turned(effect.value), turned(effect.high), turned(effect.low)
    return replace(effect, value=ends[0], low=ends[1], high=ends[2], spread=spread or None)
