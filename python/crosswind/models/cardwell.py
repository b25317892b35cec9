"""Cardwell's latency of short flows: slow start up to the first loss, its repair, and PFTK for the rest."""

import math

import numpy as np

from crosswind.models.model import Model, known, of_sized_transfers, other_control, remembered, too_lossy, window_of
from crosswind.models.numbers import Numbers, reals, require, single
from crosswind.models.pftk import backoff, pftk_goodput, timeout_share
from crosswind.models.situation import Situation

SOURCE = "Cardwell, Savage & Anderson, IEEE INFOCOM 2000"
GROWTH = 2.0
"""The window's growth factor in each round of slow start; 1.5 with slowing delayed ACKs."""


def before_first_loss(segments: Numbers, loss: Numbers) -> Numbers:
    """Mean number of segments sent in slow start, including the first loss, at most all (equation 5)."""
    d, p = reals(segments, loss)
    small = np.where(p > 0, p, 1.0)
    return single(np.minimum(d, np.where(p > 0, (1 - (1 - p) ** d) * (1 - small) / small + 1, d)))


def slow_start_window(segments: Numbers, *, initial_window: Numbers, window_segments: Numbers = math.inf) -> Numbers:
    """Slow start's window after so many segments, at most the receiver's (equation 11)."""
    d, first, most = reals(segments, initial_window, window_segments)
    return single(np.minimum(d * (GROWTH - 1) / GROWTH + first / GROWTH, most))


def slow_start_latency(
    segments: Numbers, rtt_s: Numbers, *, initial_window: Numbers, window_segments: Numbers = math.inf
) -> Numbers:
    """Time to send so many segments in slow start and have them acknowledged, s (equations 11 and 15)."""
    d, rtt, first, most = reals(segments, rtt_s, initial_window, window_segments)
    reached = d * (GROWTH - 1) / GROWTH + first / GROWTH
    free = np.log(d * (GROWTH - 1) / first + 1) / math.log(GROWTH)
    limit = np.where(np.isfinite(most), np.maximum(most, first), 1.0)
    at_limit = np.log(limit / first) / math.log(GROWTH) + 1 + (d - (GROWTH * limit - first) / (GROWTH - 1)) / limit
    return rtt * np.where(reached > most, at_limit, free)


def cardwell(
    segments: Numbers,
    *,
    rtt_s: Numbers,
    timeout_s: Numbers,
    loss: Numbers,
    initial_window: Numbers,
    window_segments: Numbers = math.inf,
) -> Numbers:
    """From the first segment to the ACK of the last, s, on a link without a rate limit; no handshake.

    Args:   segments: at least 1. rtt_s, timeout_s: s, above 0. loss: per packet, [0, 1).
            initial_window, window_segments: at least 1.
    Raises: ValueError when an argument is out of range.
    Source: SOURCE, equation 25 without its handshake and its delayed ACK for a one-segment window. The first loss meets
            slow start's window (equation 20), later ones congestion avoidance's (PFTK).
    """
    d, rtt, timeout, p, first, most = reals(segments, rtt_s, timeout_s, loss, initial_window, window_segments)
    require(
        (d >= 1) & (rtt > 0) & (timeout > 0) & (p >= 0) & (p < 1) & (first >= 1) & (most >= 1),
        f"Cardwell needs segments and windows of at least 1, times above 0 and 0 <= loss < 1, not {segments}, "
        f"{initial_window}, {window_segments}, {rtt_s}, {timeout_s}, {loss}",
    )
    early = before_first_loss(d, p)
    started = slow_start_latency(early, rtt, initial_window=first, window_segments=most)
    lossy = np.where(p > 0, p, 0.5)  # any number: unused without loss
    share = timeout_share(lossy, slow_start_window(early, initial_window=first, window_segments=most))
    repair = (1 - (1 - p) ** d) * (share * backoff(p) * timeout / (1 - p) + (1 - share) * rtt)
    rest = (d - early) / pftk_goodput(lossy, rtt, timeout, window_segments=most)
    return started + np.where(p > 0, repair + rest, 0.0)


def _predicted(cell: Situation) -> float:
    """From first to last arrival: without the last ACK's round trip; at least the link's time."""
    rtt_s, timeout_s = known(cell.rtt_s), known(cell.timeout_s)
    segments = math.ceil((cell.size_bytes or 0) / cell.mss_bytes)
    latency = cardwell(
        segments,
        rtt_s=rtt_s,
        timeout_s=timeout_s,
        loss=cell.loss,
        initial_window=cell.initial_window,
        window_segments=window_of(cell),
    )
    return 1e9 * max(float(latency) - rtt_s, (segments - 1) * cell.serialisation_s)


def _violated(cell: Situation) -> list[str]:
    broken = []
    if cell.rate_bps is not None:
        broken.append("the model knows no link rate: what the link takes for all packets is the least that is shown")
    broken += other_control(cell, "Reno")
    if cell.sack and cell.loss > 0:
        broken.append("the model has no selective ACKs: it counts more timeouts than there are")
    return broken + remembered(cell) + too_lossy(cell, 0.05, "the 5 % up to which its PFTK was mostly checked")


MODEL = Model(
    name="cardwell",
    title="Cardwell, short flows",
    source=SOURCE,
    metric="transfer_time",
    assumptions="a Reno flow without selective ACKs on a link that is never full",
    valid_range="loss up to 5 %",
    applies=of_sized_transfers,
    predicted=_predicted,
    violated=_violated,
)
