"""Time of one transfer without loss: slow start against a link, segment by segment."""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosswind.models.model import Model, known, of_sized_transfers, window_of
from crosswind.models.numbers import Array, Numbers, single
from crosswind.models.situation import Situation

SOURCE = "RFC 5681, section 3.1, with one window increment per segment acknowledged and one ACK per segment"


def slow_start(
    size_bytes: Numbers,
    *,
    rtt_s: Numbers,
    rate_bps: Numbers | None,
    mss_bytes: Numbers,
    packet_bytes: Numbers,
    initial_window: Numbers,
    window_segments: Numbers = math.inf,
) -> Numbers:
    """From the arrival of the first data packet to that of the last, s.

    Every ACK lets the window grow by one segment up to window_segments and is sent at once; the queue drops nothing.
    The last segment is as long as what is left for it.

    Args:   size_bytes: at least 1. rtt_s: propagation both ways, s, at least 0. rate_bps: of the link, None for
            unlimited. mss_bytes: payload of a segment. packet_bytes: what it occupies on the link.
            initial_window: segments. window_segments: the smaller of the receiver's window and the sender's buffer.
    Raises: ValueError when a size or a window is below 1, or a time negative.
    Source: SOURCE; reproduces the published cells of docs/models.md within 7 %.
    """
    rate = math.inf if rate_bps is None else rate_bps
    every = np.broadcast_arrays(size_bytes, rtt_s, rate, mss_bytes, packet_bytes, initial_window, window_segments)
    columns = [np.asarray(column, dtype=np.float64) for column in every]
    times = [_one([float(number) for number in row]) for row in zip(*(c.ravel() for c in columns), strict=True)]
    return single(np.asarray(times).reshape(columns[0].shape))


def arrivals(
    segments: int, *, rtt_s: float, serialisation_s: float, initial_window: float, window_segments: float = math.inf
) -> Array:
    """When each of some full segments has left the link, s after the first one did, shape (segments,).

    Args, Raises: as `slow_start`; serialisation_s: how long a segment occupies the link.
    """
    begun = _departures(segments, rtt_s, serialisation_s, initial_window, window_segments)
    done = len(begun.left)
    times = np.empty(segments)
    times[:done] = begun.left
    times[done:] = begun.later(np.arange(done, segments))
    times -= times[0]
    return times


def _one(row: list[float]) -> float:
    """Of one transfer, given the arguments of `slow_start` in their order."""
    size, rtt_s, rate_bps, mss, packet, initial_window, window = row
    if min(size, mss, packet, initial_window, window) < 1 or rtt_s < 0 or not rate_bps > 0:
        raise ValueError("slow start needs sizes and windows of at least 1 and a round trip of at least 0")
    segments = math.ceil(size / mss)
    if segments == 1:
        return 0.0
    begun = _departures(segments, rtt_s, 8 * packet / rate_bps, initial_window, window)
    whole = len(begun.left) == segments
    last = begun.left[-1] if whole else float(begun.later(np.array([segments - 1]))[0])
    unused = (segments * mss - size) * 8 / rate_bps  # the last segment is that much shorter
    return last - begun.left[0] - unused


@dataclass(frozen=True)
class _Departures:
    """When the first segments leave the link; the flight to the receiver is the same for all and drops out.

    `period`: of the later ones, each leaves `period_s` after the one so many before it.
    """

    left: list[float]
    period: int
    period_s: float

    def later(self, indices: npt.NDArray[np.int64]) -> Array:
        """When segments leave that are not among the first, s."""
        periods = -(-(indices - len(self.left) + 1) // self.period)
        return np.asarray(np.asarray(self.left)[indices - periods * self.period] + periods * self.period_s)


def _departures(segments: int, rtt_s: float, on_wire: float, initial_window: float, window: float) -> _Departures:
    """Ends early where the rest repeats itself: on a busy link each segment, at the limit of the window each window."""
    left: list[float] = []
    acked = 0  # ACKs needed before the next segment may go
    busy_since = capped_since = -1
    for index in range(segments):
        while acked + min(initial_window + acked, window) < index + 1:
            acked += 1
        released = left[acked - 1] + rtt_s if acked else 0.0
        waits = bool(left) and released <= left[-1]
        busy_since = (busy_since if busy_since >= 0 else index) if waits else -1
        if capped_since < 0 and initial_window + acked >= window:
            capped_since = index
        left.append(max(released, left[-1] if left else 0.0) + on_wire)
        if 0 <= busy_since < acked:
            return _Departures(left, 1, on_wire)
        if 0 <= capped_since < index - 3 * window:
            return _Departures(left, int(window), rtt_s + on_wire)
    return _Departures(left, 1, on_wire)


def _predicted(cell: Situation) -> float:
    seconds = slow_start(
        cell.size_bytes or 0,
        rtt_s=known(cell.rtt_s),
        rate_bps=cell.rate_bps,
        mss_bytes=cell.mss_bytes,
        packet_bytes=cell.packet_bytes,
        initial_window=cell.initial_window,
        window_segments=window_of(cell),
    )
    return float(seconds) * 1e9


def _violated(cell: Situation) -> list[str]:
    broken = []
    if cell.loss > 0 or cell.loss_back > 0:
        broken.append("the model describes transfers without loss: it is the least time that they take")
    if cell.congestion_control == "cubic":
        broken.append("CUBIC's HyStart may leave slow start early")
    return broken


MODEL = Model(
    name="slow-start",
    title="Slow start, no loss",
    source=SOURCE,
    metric="transfer_time",
    assumptions="no loss, a queue that drops nothing, slow start until the window or the link is full",
    valid_range="no loss",
    applies=of_sized_transfers,
    predicted=_predicted,
    violated=_violated,
)
