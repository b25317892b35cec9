"""Time of one transfer without loss: slow start against a link, segment by segment."""

import math

import numpy as np
import numpy.typing as npt

from crosswind.models.model import Model, known, of_sized_transfers, window_of
from crosswind.models.numbers import Array, Numbers, single
from crosswind.models.situation import Situation

SOURCE = "RFC 5681, section 3.1, with one window increment per segment acknowledged and one ACK per segment"


QUICK_ACKS = 16
"""Undelayed ACKs in a new connection, or after a duplicate: Linux's TCP_MAX_QUICKACKS."""


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
    """From the first data packet's arrival to the last one's, s.

    Every ACK lets the window grow by one segment up to window_segments and is sent at once; the queue drops nothing.
    The last segment may be shorter.

    Args:   size_bytes: at least 1. rtt_s: propagation both ways, s, at least 0. rate_bps: the link's, None for
            unlimited. mss_bytes: a segment's payload. packet_bytes: its size on the link. initial_window: segments.
            window_segments: the smaller of the receiver's window and the sender's buffer.
    Raises: ValueError when a size or a window is below 1, or a time negative.
    Source: SOURCE; reproduces the published cells of docs/models.md within 7 %.
    """
    rate = math.inf if rate_bps is None else rate_bps
    every = np.broadcast_arrays(size_bytes, rtt_s, rate, mss_bytes, packet_bytes, initial_window, window_segments)
    columns = [np.asarray(column, dtype=np.float64) for column in every]
    times = [_duration([float(number) for number in row]) for row in zip(*(c.ravel() for c in columns), strict=True)]
    return single(np.asarray(times).reshape(columns[0].shape))


def arrivals(
    index: npt.NDArray[np.int64],
    *,
    rtt_s: float,
    serialisation_s: float,
    initial_window: float,
    window_segments: float = math.inf,
) -> Array:
    """Departure times of full segments from the link, s after the first; their flight to the receiver is equal.

    An ACK releases two segments, at the window's limit one. ACKs come as segments left, one behind the other, so a
    round's segments leave without a gap, and the first a round trip and its own time on the wire after the first of the
    round before: until a round lasts that long, and the link is busy.

    Args, Raises: as `slow_start`; index: segment numbers, from 0, at least one, shape (n,).
            serialisation_s: a segment's time on the link.
    """
    period = rtt_s + serialisation_s
    most = math.floor(window_segments) if math.isfinite(window_segments) else math.inf
    size = min(math.floor(initial_window), most)
    firsts, last = [0], int(index.max())
    while size < most and size * serialisation_s < period and firsts[-1] + size <= last:
        firsts.append(firsts[-1] + int(size))
        size = min(2 * size, most)
    rounds = np.searchsorted(firsts, index, side="right") - 1
    within = index - np.asarray(firsts)[rounds]
    if size == most and size * serialisation_s < period:  # a window in each round, from then on
        rounds, within = rounds + within // int(most), within % int(most)
    return np.asarray(rounds * period + within * serialisation_s)


def first_overflow(
    queue_packets: float,
    *,
    rtt_s: float,
    serialisation_s: float,
    initial_window: float,
    window_segments: float = math.inf,
) -> tuple[float, float]:
    """Index of the first segment finding a full queue before the link, and the number of such segments; inf for none.

    While the window grows, each departing segment brings two. So a round adds to the queue its growth over the round
    before; some of these segments may still wait when it begins. Once the queue is full, one in two finds no place,
    until the loss is found a round trip later: as many as the segments of the round before, unless the window stops
    growing earlier. The first round after Linux's QUICK_ACKS begins with an ACK for two segments, with one more waiting
    behind it; then the receiver's window grows, and ACKs are for one again.

    Args: queue_packets: capacity, without the one in transmission. The others: as `arrivals`.
    """
    if serialisation_s == 0:
        return math.inf, 0.0
    held = (rtt_s + serialisation_s) / serialisation_s
    before, size, first = 0.0, min(initial_window, window_segments), 0.0
    if size > queue_packets + 1:
        return math.floor(queue_packets + 1), size - queue_packets - 1
    while True:
        before, first, size = size, first + size, min(2 * size, window_segments)
        waiting = max(0.0, before - held) + (first - 1.5 * before < QUICK_ACKS <= first - before)
        beyond = waiting + size - before - queue_packets
        if beyond > 0:
            dropped = before if size < window_segments else min(before, beyond)
            return math.floor(first + 2 * max(0.0, queue_packets - waiting)), dropped
        if size == before:
            return math.inf, 0.0


def _duration(row: list[float]) -> float:
    """One transfer's time, from the arguments of `slow_start` in order."""
    size, rtt_s, rate_bps, mss, packet, initial_window, window = row
    if min(size, mss, packet, initial_window, window) < 1 or rtt_s < 0 or not rate_bps > 0:
        raise ValueError("slow start needs sizes and windows of at least 1 and a round trip of at least 0")
    segments = math.ceil(size / mss)
    if segments == 1:
        return 0.0
    last = arrivals(
        np.array([segments - 1]),
        rtt_s=rtt_s,
        serialisation_s=8 * packet / rate_bps,
        initial_window=initial_window,
        window_segments=window,
    )
    return float(last[0]) - (segments * mss - size) * 8 / rate_bps  # the last segment is shorter by this


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
