"""Summary of some probes: loss and round-trip time with their intervals, jitter, reordering, duplicates.

Neighbouring probes are not independent: losses come in bursts, queues fill and drain. So the probes are divided into
consecutive blocks, and the intervals rest on the differences between blocks, as a study's rest on its repetitions
(docs/statistics.md): 20 blocks, or 10 longer ones below 400 probes, too few for an interval of p95 anyway. Fewer than
40 probes are taken one by one.
"""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from crosswind.live.one_way import BACK, THERE
from crosswind.live.probes import Flags, Slice
from crosswind.stats.arrays import Array
from crosswind.stats.design import TAIL_VALUES, quantile_name
from crosswind.stats.estimate import Interval
from crosswind.stats.quantile import quantile_interval, quantile_size
from crosswind.stats.repetitions import Integers, Repetitions
from crosswind.stats.share import Share, share_interval

BLOCKS, BLOCKS_OF_FEW = 20, 10
FEWEST_FOR_BLOCKS, FEWEST_FOR_ALL_BLOCKS = 40, 400


@dataclass(frozen=True)
class Summary:
    """Some probes. Times are ns.

    Attributes:
        sent, lost, answered, late: probes. refused: probes; None where impossible. duplicates, reordered: replies; None
            where invisible.
        loss, refusal: shares of lost and of refused ones among decided probes; None without any.
        median, p95: round-trip time; None without an answer. smallest, largest: the extremes.
        jitter_ns: RFC 3550's interarrival jitter at the end, a moving mean without an interval. variation_p95: the 95 %
            quantile of RFC 3393's absolute delay variation; None without two answers in a row.
        reordering: share of reordered replies among the answered probes; None where invisible.
        loss_there, loss_back: share of probes lost forward, and share lost in reverse among those arrived; None where
            replies do not tell. Both leave out unlocated probes.
    """

    sent: int
    lost: int
    answered: int
    late: int
    duplicates: int | None
    reordered: int | None
    loss: Interval | None
    median: Interval | None
    p95: Interval | None
    smallest_ns: float | None
    largest_ns: float | None
    jitter_ns: float | None
    variation_p95: Interval | None
    reordering: Interval | None
    loss_there: Interval | None = None
    loss_back: Interval | None = None
    refused: int | None = None
    refusal: Interval | None = None

    def as_dict(self) -> dict[str, Any]:
        """As plain data."""
        plain = {key: value for key, value in vars(self).items() if not isinstance(value, Interval)}
        return plain | {key: estimate_as_dict(getattr(self, key)) for key in _ESTIMATES}


_ESTIMATES = ("loss", "refusal", "loss_there", "loss_back", "median", "p95", "variation_p95", "reordering")


def summarise(
    part: Slice, *, jitter_ns: float, keeps_order: bool, tells_ways: bool = False, can_be_refused: bool = False
) -> Summary:
    """Summarises some probes."""
    answered = part.answered
    ways = losses_of_ways(part) if tells_ways else (None, None)
    return Summary(
        sent=part.sent,
        lost=part.lost,
        answered=answered.size,
        late=part.late,
        duplicates=part.duplicates if keeps_order else None,
        reordered=part.reordered if keeps_order else None,
        loss=loss_of(part),
        median=quantile_of_times(answered, 0.5),
        p95=quantile_of_times(answered, 0.95),
        smallest_ns=float(answered.min()) if answered.size else None,
        largest_ns=float(answered.max()) if answered.size else None,
        jitter_ns=jitter_ns if answered.size > 1 else None,
        variation_p95=quantile_of_times(np.abs(part.delay_variation), 0.95),
        reordering=_share_of(part.is_reordered[part.is_answered]) if keeps_order else None,
        loss_there=ways[0],
        loss_back=ways[1],
        refused=part.refused if can_be_refused else None,
        refusal=refusal_of(part) if can_be_refused else None,
    )


def loss_of(part: Slice, *, level: float = 0.95) -> Interval | None:
    """The share of lost probes; None where no probe has a verdict."""
    return _share_of(part.is_lost, level=level)


def refusal_of(part: Slice, *, level: float = 0.95) -> Interval | None:
    """The share of refused probes; None where no probe has a verdict."""
    return _share_of(part.is_refused, level=level)


def answer_of(part: Slice, *, level: float = 0.95) -> Interval | None:
    """The share of answered probes; None where no probe has a verdict."""
    return _share_of(part.is_answered, level=level)


def losses_of_ways(part: Slice, *, level: float = 0.95) -> tuple[Interval | None, Interval | None]:
    """Forward loss among probes, and reverse loss among answers."""
    is_there, is_back = part.way == THERE, part.way == BACK
    is_known = part.is_answered | is_there | is_back
    return _share_of(is_there[is_known], level=level), _share_of(is_back[is_known & ~is_there], level=level)


def quantile_of_times(times: Array, q: float, *, level: float = 0.95) -> Interval | None:
    """A quantile of times, ns; None without any. Args: times: shape (n,), in sending order."""
    if not times.size:
        return None
    units = Repetitions.of(times, _members(times.size))
    needed = quantile_size(q, level=level)
    if needed >= FEWEST_FOR_BLOCKS or units.count < units.n:
        needed = math.ceil(TAIL_VALUES / min(q, 1 - q))
    interval = quantile_interval(units, q, level=level)
    return _of_probes(interval, f"an interval of {quantile_name(q)}", needed)


def estimate_as_dict(estimate: Interval | None) -> dict[str, Any] | None:
    """An estimate as plain data, without fields common to all."""
    if estimate is None:
        return None
    names = ("value", "low", "high", "n", "level", "method", "reason")
    return {name: getattr(estimate, name) for name in names}


def _share_of(flags: Flags, *, level: float = 0.95) -> Interval | None:
    """The share of flagged probes. Args: flags: shape (n,), in sending order."""
    if not flags.size:
        return None
    member = _members(flags.size)
    share = Share.of(np.bincount(member, weights=flags.astype(np.float64)), np.bincount(member))
    return _of_probes(share_interval(share, level=level), "an interval of a share", 3)


def _members(n: int) -> Integers:
    """Each probe's block."""
    numbers = np.arange(n, dtype=np.int64)
    if n < FEWEST_FOR_BLOCKS:
        return numbers
    return numbers * (BLOCKS if n >= FEWEST_FOR_ALL_BLOCKS else BLOCKS_OF_FEW) // n


def _of_probes(estimate: Interval, what: str, needed: int) -> Interval:
    """An estimate with its reason in probes: the statistics count repetitions, here blocks."""
    if estimate.reason is None or estimate.n >= needed:
        return estimate
    more = needed - estimate.n
    return replace(estimate, reason=f"{what} needs {needed} probes, there are {estimate.n}: {more} more")
