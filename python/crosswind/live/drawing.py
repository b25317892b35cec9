"""Round-trip times as characters: a line of bars, and a histogram."""

import numpy as np

from crosswind.live.probes import Slice
from crosswind.report.text.format import number, scale_of
from crosswind.stats.estimate import Array

_BARS = "▁▂▃▄▅▆▇█"
LOST, REFUSED = "×", "!"
_BINS = 8
_BAR_WIDTH = 30


def sparkline(part: Slice, *, probes_a_column: int) -> str:
    """A bar for every so many probes, as high as their longest round trip; a sign where one was lost or refused.

    The scale goes from the shortest to the longest round trip of the part.
    """
    answered = part.answered
    low, high = (float(answered.min()), float(answered.max())) if answered.size else (0.0, 0.0)
    columns = [slice(at, at + probes_a_column) for at in range(0, part.rtt_ns.size, probes_a_column)]
    return "".join(
        LOST if part.is_lost[column].any()
        else REFUSED if part.is_refused[column].any()
        else _bar(float(part.rtt_ns[column].max()), low, high)
        for column in columns
    )  # fmt: skip


def histogram(answered: Array) -> list[tuple[str, str, int]]:
    """Rows of a histogram: (from, bar, how many). The last row has what is above the 99 % quantile.

    Args: answered: round-trip times, ns, at least one.
    """
    top = float(np.quantile(answered, 0.99))
    low = float(answered.min())
    edges = np.linspace(low, max(top, low * 1.001, low + 1), _BINS)
    counts, _ = np.histogram(np.minimum(answered, edges[-1]), bins=[*edges, np.inf])
    divisor, unit = scale_of([float(np.median(answered))], "ns")
    most = int(counts.max())
    return [
        (f"{number(float(edge), divisor)} {unit}", "█" * round(_BAR_WIDTH * int(count) / most), int(count))
        for edge, count in zip(edges, counts, strict=True)
    ]


def _bar(value: float, low: float, high: float) -> str:
    share = (value - low) / (high - low) if high > low else 0.0
    return _BARS[min(len(_BARS) - 1, int(share * len(_BARS)))]
