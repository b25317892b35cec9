"""The mean over the independent loss rate, from single losses and pairs."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import log1p

import numpy as np

from crosswind.analysis.disturbed import Disturbance
from crosswind.findings.each_packet.result import CurvePoint, LossCurve
from crosswind.stats.linearised import student

_RATES = np.geomspace(1e-7, 0.5, 400)
_SHOWN = 40
_TENTH = 0.1
"""A small error, relative to the added time."""
_TWO = (1.0, 2.0, 4.0)
"""Two losses cost so many times as much as one: at least, if they meet by chance, and with every timer doubled."""
_FEWEST_PAIRS = 8
_MORE = (1.0, 1.5, 3.0)
"""The same of more than two, beside two."""


@dataclass(frozen=True)
class _Costs:
    """Repetitions by their losses. Attributes: per exchange, in ns; three: least, middle, most."""

    packets: int
    weights: np.ndarray
    sent: np.ndarray
    one: np.ndarray
    pairs: int
    pairs_sent: float
    two: tuple[float, float, float]

    def adds(self, rate: float) -> tuple[float, float, float]:
        """The mean's increase at a loss rate: least, middle, most."""
        kept = log1p(-rate)
        single = self.weights * rate * np.exp(kept * (self.sent - 1))
        none = float(np.exp(kept * self.packets))
        several = max(1.0 - none - float(single.sum()), 0.0)
        pair = min(self.pairs * rate**2 * float(np.exp(kept * (self.pairs_sent - 2))), several)
        first = float((single * self.one).sum())
        least, middle, most = (
            first + pair * two + (several - pair) * two * more for two, more in zip(self.two, _MORE, strict=True)
        )
        return least, middle, most


def loss_curve(
    mean_ns: float, exchanges: int, singles: Sequence[Disturbance], pairs: Sequence[Disturbance], *, level: float
) -> LossCurve | None:
    """The curve; None where an exchange fails, or nothing costs anything.

    Args: mean_ns: an exchange's, without loss. singles, pairs: as in crosswind.analysis.disturbed.
    """
    one = _of_exchange(singles, exchanges)
    if one is None or not one.any():
        return None
    weights = np.array([cost.weight for cost in singles])
    packets = round(float(weights.sum()))
    sent = np.array([float(cost.sent) for cost in singles])
    # A pair is two packets of the clean repetition, or one and a later one, sent because that one was lost.
    later = weights * np.maximum(sent - packets, 0)
    all_pairs = packets * (packets - 1) // 2 + int(later.sum())
    shares = ((packets - 1) * weights + later) / max(all_pairs, 1)
    two = _pair_cost(singles, one, pairs, exchanges=exchanges, shares=shares, all_pairs=all_pairs, level=level)
    known = two is not None
    if two is None:
        mean_one = float((weights * one).sum() / packets)
        two = (mean_one * _TWO[0], mean_one * _TWO[1], mean_one * _TWO[2])
    pairs_sent = float(np.mean([cost.sent for cost in pairs])) if pairs else float((weights * sent).sum() / packets)
    costs = _Costs(packets, weights, sent, one, all_pairs, pairs_sent, two)
    adds = [costs.adds(float(rate)) for rate in _RATES]
    slope = float((weights * one).sum())
    line = [
        max(abs(rate * slope - low), abs(rate * slope - high)) <= _TENTH * abs(middle)
        for rate, (low, middle, high) in zip(_RATES, adds, strict=True)
    ]
    narrow = [max(high - middle, middle - low) <= _TENTH * abs(middle) for low, middle, high in adds]
    last = _until(narrow)
    points = [
        CurvePoint(rate=float(_RATES[at]), mean_ns=mean_ns + adds[at][1], low_ns=low, high_ns=high)
        for at in np.unique(np.linspace(0, last, _SHOWN).astype(int))
        for low, high in [sorted((mean_ns + adds[at][0], mean_ns + adds[at][2]))]
    ]
    return LossCurve(
        pairs=len(pairs) if known else 0,
        all_pairs=all_pairs,
        pair_ns=two[1] if known else None,
        line_to=float(_RATES[_until(line)]),
        points=points,
    )


def _pair_cost(
    singles: Sequence[Disturbance],
    one: np.ndarray,
    pairs: Sequence[Disturbance],
    *,
    exchanges: int,
    shares: np.ndarray,
    all_pairs: int,
    level: float,
) -> tuple[float, float, float] | None:
    """What two losses add to an exchange's mean, with limits; None where too few pairs tell.

    The two single costs are known for all pairs; only their interaction is a mean over those tried.

    Args: shares: of all pairs, those with each single packet. level: of the limits.
    """
    both = _of_exchange(pairs, exchanges)
    if both is None or len(both) < _FEWEST_PAIRS:
        return None
    alone = {cost.packets[0]: adds for cost, adds in zip(singles, one, strict=True)}
    beyond = both - [sum(alone.get(packet, 0.0) for packet in cost.packets) for cost in pairs]
    middle = float((shares * one).sum() + beyond.mean())
    # All pairs leave no error.
    left = max(1.0 - len(both) / all_pairs, 0.0)
    error = float(beyond.std(ddof=1)) * (left / len(both)) ** 0.5
    half = student(level, len(both) - 1) * error
    return middle - half, middle, middle + half


def _of_exchange(costs: Sequence[Disturbance], exchanges: int) -> np.ndarray | None:
    """What an exchange took longer, by repetition; None without any, or where one failed."""
    known = [(cost.total_ns - cost.connect_ns) / exchanges for cost in costs if cost.total_ns is not None]
    return np.array(known) if known and len(known) == len(costs) else None


def _until(holds: Sequence[bool]) -> int:
    """The last place before the first that does not hold."""
    return max(next((at for at, one in enumerate(holds) if not one), len(holds)) - 1, 0)
