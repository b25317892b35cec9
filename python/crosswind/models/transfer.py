"""Transfer time over size, rate, loss, round trip and queue in one formula: TCP with selective ACKs and RACK.

slow start up to the first loss, random or from the queue -> then from loss to loss, by link or window -> the lost last
segment
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace

import numpy as np
import numpy.typing as npt

from crosswind.models.cubic import C as CUBIC_C
from crosswind.models.model import Model, known, of_sized_transfers, other_recovery, window_of
from crosswind.models.numbers import Array, require
from crosswind.models.pftk import backoff
from crosswind.models.simulation.congestion import CUBIC_FIRST, hystart_window
from crosswind.models.situation import Situation
from crosswind.models.slow_start import arrivals, first_overflow

SOURCE = "this project: docs/models.md, fitted to simulated transfers"
FORMULA = (
    "T = S + Σ (F_k·max(L, r/W_k) + R_k·max(L, r/V_k) + N_k·max(L, 2r/(V_k + W_k+1))) "
    "+ losses·q·T0·G/(1−p) + last·r + tail·T0·p/(1−2p), "
    "V_k = kept·W_k, R_k = 1.5·V_k, W_k+1² = V_k² + 2·growth·N_k (CUBIC: at least the cubic function), "
    "q = (timeout_window/W)^timeout_power"
)
_NO_LOSS = 1e-9
"""In place of no loss; the formula divides by it."""
_TOLD_APART, _LATER_STRETCHES = 100_000, 10_000
"""The first segments, each one possible place for the first loss, and the stretches of all later ones."""
_PLACES = 12
"""How finely it is told where the first loss is."""
_LOSSES = 8
"""Losses before slow start's window is forgotten: CUBIC keeps 0.7 of it at each, and 0.7^8 = 0.06."""
_REPAIR = 1.5
"""How many windows are sent after a loss is found until the window grows again."""
_MIDDLES = -np.log(1 - (np.arange(6) + 0.5) / 6)
_DISTANCES = _MIDDLES / _MIDDLES.mean()
"""Distances to the next loss, relative to their mean: each stands for a sixth of all."""
_KEPT = {"cubic": 0.7}
"""Share of the window kept after a loss, by congestion control; others keep half."""


@dataclass(frozen=True)
class Coefficients:
    """The fitted coefficients.

    Attributes:
        growth: the window's, in a round trip after a loss, segments. timeout_window, timeout_power: a loss ends in a
        timeout if its repetition is lost as well, without later segments to reveal it. With a window W, this share is
        (timeout_window/W)^timeout_power, at most 1. tail: timeouts taken by a lost last segment.
    """

    growth: float
    timeout_window: float
    timeout_power: float
    tail: float


FITTED: Mapping[str, Coefficients] = {
    "reno": Coefficients(growth=0.859, timeout_window=1.924, timeout_power=3.014, tail=0.475),
    "cubic": Coefficients(growth=0.367, timeout_window=1.868, timeout_power=2.906, tail=0.909),
}
"""By congestion control: fitted to simulated transfers under the profiles `freebsd-8` and `linux`.

docs/models.md has their intervals and errors.
"""


_LEAST_LOSS = 0.001
"""The smallest loss among the tested cells."""
_SOON, _ONE_PACKET = 8, 0.05
"""Relative length of a transfer after the overflow, and a change in time, worth a note."""


@dataclass(frozen=True)
class Begun:
    """Slow start up to the first loss, or to the end without one, and the rest after it.

    The first loss's place decides the window after it. It is one of the segments, or of _PLACES equally likely
    stretches.

    Attributes:
        seconds: mean time from the first arrival to the lost segment's, or the last, shape (n,).
        chance: probability of the first loss in each place, shape (n, _PLACES). window: met by it, segments.
        left: segments from the lost one on. dropped: among these, by a full queue before the loss is found.
        kept: share of the window kept at each loss, shape (n,).
    """

    seconds: Array
    chance: Array
    window: Array
    left: Array
    dropped: Array
    kept: Array

    @classmethod
    def of(cls, cells: list[Situation]) -> "Begun":
        """From sized transfers, with known round trips."""
        rows = [_begun(cell) for cell in cells]
        seconds, chance, window, left, dropped = (np.array(column) for column in zip(*rows, strict=True))
        kept = np.array([_KEPT.get(cell.congestion_control, 0.5) for cell in cells])
        return cls(seconds, chance, window, left, dropped, kept)

    def chosen(self, index: npt.NDArray[np.int64]) -> "Begun":
        """Some transfers."""
        return Begun(*(getattr(self, field.name)[index] for field in fields(self)))


@dataclass(frozen=True)
class Columns:
    """Transfers as arrays, shape (n,): the formula's inputs. Times in s."""

    segments: Array
    loss: Array
    rtt: Array
    serialisation: Array
    timeout: Array
    window: Array
    begun: Begun

    @classmethod
    def of(cls, cells: list[Situation]) -> "Columns":
        """From sized transfers. Raises: ValueError for an unknown round trip."""
        rows = [
            (
                math.ceil((cell.size_bytes or 0) / cell.mss_bytes),
                cell.loss,
                known(cell.rtt_s),
                cell.serialisation_s,
                known(cell.timeout_s),
                window_of(cell),
            )
            for cell in cells
        ]
        segments, loss, rtt, serialisation, timeout, window = np.array(rows, dtype=np.float64).reshape(-1, 6).T
        return cls(segments, loss, rtt, serialisation, timeout, window, Begun.of(cells))

    def chosen(self, index: npt.NDArray[np.int64]) -> "Columns":
        """Some transfers."""
        columns = (self.segments, self.loss, self.rtt, self.serialisation, self.timeout, self.window)
        segments, loss, rtt, serialisation, timeout, window = (column[index] for column in columns)
        return Columns(segments, loss, rtt, serialisation, timeout, window, self.begun.chosen(index))


def transfer_time(columns: Columns, coefficients: Coefficients) -> Array:
    """Mean time from the first to the last packet with payload, s, shape (n,).

    Args:   columns: loss in [0, 0.5). coefficients: FITTED[...], or others.
    Raises: ValueError when a loss is 0.5 or more: a lost last segment's mean wait is infinite.
    Source: SOURCE; FORMULA. G is from PFTK (equation 27).
    """
    p = columns.loss
    require((p >= 0) & (p < 0.5), "the formula needs a loss from 0 to below 50 %")
    later = _after_first_loss(columns.begun, _Lossy.of(columns, coefficients, np.maximum(p, _NO_LOSS)))
    tail = coefficients.tail * columns.timeout * p / (1 - 2 * p)
    return np.asarray(columns.begun.seconds + (columns.begun.chance * later).sum(axis=1) + tail)


def _after_first_loss(begun: Begun, path: "_Lossy") -> Array:
    """Time from a first loss's missing arrival to the last one, by place of the loss, s, shape (n, _PLACES).

    A loss is found a round trip later. Data in flight then still belongs to the window at the loss, and its own losses
    do not reduce the window again. After its repair, the window grows up to the next loss.
    """
    met = goal = np.clip(begun.window, 1.0, path.limit)
    dropped = begun.dropped
    left, chance = begun.left, np.ones_like(met)
    later = path.repaired(met, np.where(left <= met, 1.0, 0.0))
    for _ in range(_LOSSES):
        flight = np.minimum(met, left)
        free = left - flight
        none = (1 - path.loss) ** free
        length = (1 - none) / path.loss
        ended = np.where(none < 1, 1 - none, 1.0)
        each, peak = path.regrown(met, goal, free)
        near_end = ((1 - path.loss) ** np.maximum(free - peak, 0.0) - none) / ended
        later += chance * (path.sent(flight, met) + length * each)
        later += chance * (1 - none) * path.repaired(peak, near_end)
        again = np.minimum(flight * path.loss + dropped, flight)
        left = np.maximum(0.0, left - flight + again - (length - free * none) / ended + 1)
        dropped = np.zeros_like(dropped)
        chance = chance * (1 - none)
        met, goal = peak, path.goal(peak, goal)
    each, peak = path.regrown(met, goal, np.full_like(met, np.inf))
    cycle = path.sent(met, met) + each / path.loss + path.repaired(peak, 0.0)
    return np.asarray(later + chance * left * cycle / (met + 1 / path.loss) / (1 - path.loss))


@dataclass(frozen=True)
class _Lossy:
    """Effects of losses on some paths, as columns of shape (n, 1). Windows have the shape (n, _PLACES), times are in s.

    `waited`: for a timeout with its repetitions. `limit`: the window's.
    """

    coefficients: Coefficients
    loss: Array
    serialisation: Array
    round_trip: Array
    waited: Array
    limit: Array
    kept: Array

    @classmethod
    def of(cls, columns: Columns, coefficients: Coefficients, loss: Array) -> "_Lossy":
        round_trip = columns.rtt + columns.serialisation
        waited = columns.timeout * backoff(loss) / (1 - loss)
        columns_of_cells = (loss, columns.serialisation, round_trip, waited, columns.window, columns.begun.kept)
        return cls(coefficients, *(column[:, None] for column in columns_of_cells))

    def each(self, window: Array) -> Array:
        """Time for a segment: the link's, or its share of a round trip."""
        return np.maximum(self.serialisation, self.round_trip / window)

    def sent(self, segments: Array, window: Array) -> Array:
        """Time for data in flight when a loss is found, with its own losses."""
        return np.asarray(segments * (self.each(window) + self.loss * self.repaired(window, 0.0)))

    def repaired(self, window: Array, near_end: Array | float) -> Array:
        """Time for a loss: a timeout in some cases, and a round trip where nothing is left to send in the meantime."""
        share = np.minimum(1.0, (self.coefficients.timeout_window / window) ** self.coefficients.timeout_power)
        return np.asarray(share * self.waited + near_end * self.round_trip)

    def goal(self, met: Array, before: Array) -> Array:
        """The cubic function's goal after a loss: the window at the loss, unless it was below the old goal.

        Then other flows presumably need room, and it is less (fast convergence: RFC 9438, section 4.7).
        """
        return np.where(met < before, (1 + self.kept) / 2 * met, met)

    def regrown(self, met: Array, goal: Array, free: Array) -> tuple[Array, Array]:
        """Time for a segment from a found loss to the next, or to the end of so many, and the window then.

        Both are means over the next loss's place. A round trip has W segments. CUBIC's window is the larger of two, as
        in RFC 9438: Reno-like growth, and the cubic function, back at its goal after K seconds.
        """
        start = np.maximum(self.kept * met, 1.0)
        slow = self.each(start)
        k_s = np.cbrt(np.maximum(goal - start, 0.0) / CUBIC_C)
        sent, taken, reached = np.zeros((3, *start.shape))
        for distance in _DISTANCES:
            segments = np.minimum(distance / self.loss, np.maximum(free, 1.0))
            growing = np.maximum(segments - _REPAIR * start, 0.0)
            steady = np.sqrt(start**2 + 2 * self.coefficients.growth * growing)
            cubic = goal + CUBIC_C * (growing * slow - k_s) ** 3
            peak = np.minimum(np.where(self.kept > 0.5, np.maximum(steady, cubic), steady), self.limit)
            sent += segments
            taken += (segments - growing) * slow + growing * self.each((start + peak) / 2)
            reached += peak / _DISTANCES.size
        return taken / sent, reached


def _begun(cell: Situation) -> tuple[float, Array, Array, Array, Array]:
    """A row of `Begun`, without `kept`."""
    size, mss = cell.size_bytes or 0, cell.mss_bytes
    require(size >= 1, f"the formula needs a size, not {size}")
    segments = math.ceil(size / mss)
    window, on_wire, initial = window_of(cell), cell.serialisation_s, cell.initial_window
    ends, overflow, dropped = _slow_start_ends(cell)
    starts = _starts(segments, overflow)
    lengths = np.diff(starts, append=segments)
    index = starts + (lengths - 1) // 2
    index[-1] = segments - 1
    times = arrivals(
        index,
        rtt_s=known(cell.rtt_s),
        serialisation_s=on_wire,
        initial_window=initial,
        window_segments=window,
    )
    times[-1] -= on_wire * (segments * mss - size) / cell.packet_bytes if segments > 1 else 0.0
    arrive = 1 - cell.loss
    chance = arrive**starts * np.where(starts == overflow, 1.0, 1 - arrive**lengths) * (starts <= overflow)
    none = arrive**segments if overflow >= segments else 0.0
    before = (1 - arrive**index) / (1 - none) if cell.loss else index / segments
    place = index if segments <= _PLACES else np.minimum(_PLACES * before, _PLACES - 1).astype(np.int64)
    grown = index + initial  # each segment acknowledged adds one
    met = np.minimum(np.minimum(grown, ends) + np.maximum(0.0, grown - ends) / CUBIC_FIRST, window)
    in_place = np.asarray(np.bincount(place, chance, _PLACES), dtype=np.float64)
    of_one = np.where(in_place > 0, in_place, 1.0)
    return (
        float(chance @ times + none * times[-1]),
        in_place,
        np.bincount(place, chance * met, _PLACES) / of_one,
        np.bincount(place, chance * (segments - index), _PLACES) / of_one,
        np.bincount(place, chance * dropped * (starts == overflow), _PLACES) / of_one,
    )


def _slow_start_ends(cell: Situation) -> tuple[float, float, float]:
    """The window at HyStart's end of slow start; the first segment finding a full queue, and the number of those."""
    rtt_s, on_wire, initial = known(cell.rtt_s), cell.serialisation_s, cell.initial_window
    ends = hystart_window(initial, rtt_s, on_wire) if cell.congestion_control == "cubic" else math.inf
    if cell.queue_packets is None:
        return ends, math.inf, 0.0
    window = min(window_of(cell), ends)
    path = {"rtt_s": rtt_s, "serialisation_s": on_wire, "initial_window": initial}
    return ends, *first_overflow(cell.queue_packets, **path, window_segments=window)


def _starts(segments: int, overflow: float) -> npt.NDArray[np.int64]:
    """Beginnings of the segments' stretches, the places for a first loss: each segment, then ever more."""
    starts = np.arange(min(segments, _TOLD_APART))
    if segments > _TOLD_APART:
        later = np.geomspace(_TOLD_APART, segments - 1, _LATER_STRETCHES).astype(np.int64)
        starts = np.concatenate([starts, later, [segments - 1]])
    return np.unique(np.append(starts, int(overflow)) if overflow < segments else starts)


def coefficients_of(cell: Situation) -> Coefficients:
    """Coefficients for the cell's congestion control; Reno's where none were fitted."""
    return FITTED.get(cell.congestion_control, FITTED["reno"])


def _predicted(cell: Situation) -> float:
    return 1e9 * float(transfer_time(Columns.of([cell]), coefficients_of(cell))[0])


def _violated(cell: Situation) -> list[str]:
    broken = []
    if cell.congestion_control not in FITTED:
        broken.append(f"fitted to {' and '.join(FITTED)}, not {cell.congestion_control}")
    if cell.loss > 0.1 or 0 < cell.loss < _LEAST_LOSS:
        broken.append(f"tested from {100 * _LEAST_LOSS:g} to 10 % loss")
    if not cell.sack and cell.loss > 0:
        broken.append("fitted to TCP with selective ACKs, without which there are more timeouts")
    if known(cell.rtt_s) > 0.1:
        broken.append("fitted up to a round trip of 100 ms")
    if not 5_000 <= (cell.size_bytes or 0) <= 20_000_000:
        broken.append("fitted from 5 kB to 20 MB")
    return broken + other_recovery(cell) + _violated_by_queue(cell)


def _violated_by_queue(cell: Situation) -> list[str]:
    segments, overflow = (cell.size_bytes or 0) / cell.mss_bytes, _slow_start_ends(cell)[1]
    broken = []
    if overflow < segments and cell.loss < _LEAST_LOSS:
        broken.append("the queue may overflow again after slow start: the formula leaves that out and is too fast then")
    elif overflow < segments < _SOON * overflow:
        broken.append("slow start overflows the queue soon before the end: off by up to 24 %, mostly too fast")
    if cell.queue_packets:
        shorter, longer = (_predicted(replace(cell, queue_packets=cell.queue_packets + more)) for more in (-1, 1))
        if abs(shorter - longer) > _ONE_PACKET * longer:
            broken.append(
                "one packet decides in which round trip slow start overflows the queue: with one less and one more "
                f"of queue the formula has {shorter / 1e9:.3g} and {longer / 1e9:.3g} s"
            )
    return broken


MODEL = Model(
    name="transfer",
    title="Transfer time, one formula",
    source=SOURCE,
    metric="transfer_time",
    assumptions="TCP with selective ACKs and RACK that is alone on its link",
    valid_range="5 kB to 20 MB, 0.1 to 10 % loss, round trips up to 100 ms; CUBIC: no queue that overflows soon before "
    "the end",
    applies=of_sized_transfers,
    predicted=_predicted,
    violated=_violated,
)
