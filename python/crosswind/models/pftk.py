"""PFTK: the throughput of a Reno flow, timeouts included.

Transcriptions of these formulas often have wrong brackets; golden vectors in tests/unit/models are the guard.
"""

import math
from collections.abc import Callable

import numpy as np

from crosswind.models.model import Model, known, link_and_window, of_transfers, other_control, too_lossy, window_of
from crosswind.models.numbers import Numbers, reals, require, single
from crosswind.models.situation import ACKED_SEGMENTS, Situation

SOURCE = "Padhye, Firoiu, Towsley & Kurose, IEEE/ACM Transactions on Networking 8(2), 2000"


def pftk(
    loss: Numbers,
    rtt_s: Numbers,
    timeout_s: Numbers,
    *,
    acked: int = ACKED_SEGMENTS,
    window_segments: Numbers = math.inf,
) -> Numbers:
    """Sending rate, segments/s, lost ones included.

    Args:   loss: probability of a packet being the first lost in its round, (0, 1). rtt_s: round-trip time, s.
            timeout_s: first retransmission timeout T0, s. acked: b, 2 where delayed ACKs slow the window down.
            window_segments: the receiver's window.
    Raises: ValueError when an argument is out of range: the model gives no number without loss.
    Source: SOURCE, equations 29-32.
    """
    w, q = _window(loss, rtt_s, timeout_s, acked, window_segments)
    return ((1 - loss) / loss + w + q / (1 - loss)) / _period(loss, rtt_s, timeout_s, acked, window_segments)


def pftk_goodput(
    loss: Numbers,
    rtt_s: Numbers,
    timeout_s: Numbers,
    *,
    acked: int = ACKED_SEGMENTS,
    window_segments: Numbers = math.inf,
) -> Numbers:
    """Arrival rate at the receiver, segments/s (SOURCE, section V). Arguments and errors as `pftk`."""
    w, q = _window(loss, rtt_s, timeout_s, acked, window_segments)
    return ((1 - loss) / loss + w / 2 + q) / _period(loss, rtt_s, timeout_s, acked, window_segments)


def pftk_approximate(
    loss: Numbers,
    rtt_s: Numbers,
    timeout_s: Numbers,
    *,
    acked: int = ACKED_SEGMENTS,
    window_segments: Numbers = math.inf,
) -> Numbers:
    """Sending rate, segments/s, by TFRC's short formula (RFC 5348). Arguments, errors: as `pftk`."""
    _check(loss, rtt_s, timeout_s, acked, window_segments)
    p, rtt, timeout, window = reals(loss, rtt_s, timeout_s, window_segments)
    timeouts = np.minimum(1.0, 3 * np.sqrt(3 * acked * p / 8)) * p * (1 + 32 * p**2)
    rate = 1 / (rtt * np.sqrt(2 * acked * p / 3) + timeout * timeouts)
    return single(np.minimum(window / rtt, rate))


def expected_window(loss: Numbers, acked: int = ACKED_SEGMENTS) -> Numbers:
    """Mean window at the end of a congestion-avoidance period, segments, without a receiver's limit (equation 13)."""
    (p,) = reals(loss)
    k = (2 + acked) / (3 * acked)
    return single(k + np.sqrt(8 * (1 - p) / (3 * acked * p) + k**2))


def timeout_share(loss: Numbers, window: Numbers) -> Numbers:
    """Share of losses ending in a timeout, about min(1, 3/window) (equation 24)."""
    p, w = reals(loss, window)
    kept, large = 1 - p, np.maximum(w, 3.0)
    above = (1 - kept**3) * (1 + kept**3 * (1 - kept ** (large - 3)))
    return single(np.where(w <= 3, 1.0, np.minimum(1.0, above / (1 - kept**large))))


def backoff(loss: Numbers) -> Numbers:
    """Mean length of a run of doubling timeouts, in first timeouts, times (1 - loss); six doublings (equation 27)."""
    return 1 + loss + 2 * loss**2 + 4 * loss**3 + 8 * loss**4 + 16 * loss**5 + 32 * loss**6


def _violated(cell: Situation) -> list[str]:
    broken = other_control(cell, "Reno")
    if cell.sack:
        broken.append("the model has no selective ACKs and no tail loss probe: it counts more timeouts than there are")
    return broken + too_lossy(cell, 0.05, "the 5 % up to which it was mostly checked")


def _window(loss: Numbers, rtt_s: Numbers, timeout_s: Numbers, acked: int, limit: Numbers) -> tuple[Numbers, Numbers]:
    _check(loss, rtt_s, timeout_s, acked, limit)
    window = np.minimum(expected_window(loss, acked), limit)
    return window, timeout_share(loss, window)


def _period(loss: Numbers, rtt_s: Numbers, timeout_s: Numbers, acked: int, limit: Numbers) -> Numbers:
    """Mean time from one loss event to the next, s."""
    p, rtt, timeout, most = reals(loss, rtt_s, timeout_s, limit)
    _, share = _window(p, rtt, timeout, acked, most)
    free = np.asarray(expected_window(p, acked))
    capped = np.minimum(most, free)  # finite where the limit is not
    rounds = np.where(free < most, acked / 2 * free + 1, acked / 8 * capped + (1 - p) / (p * capped) + 2)
    return rtt * rounds + share * timeout * backoff(p) / (1 - p)


def _check(loss: Numbers, rtt_s: Numbers, timeout_s: Numbers, acked: int, window: Numbers) -> None:
    p, rtt, timeout, most = reals(loss, rtt_s, timeout_s, window)
    require(
        (p > 0) & (p < 1) & (rtt > 0) & (timeout > 0) & (acked >= 1) & (most >= 1),
        f"PFTK needs 0 < loss < 1, RTT and timeout above 0 and a window of at least 1, not {loss}, {rtt_s}, "
        f"{timeout_s}, {window}",
    )


def _model(name: str, title: str, formula: Callable[..., Numbers]) -> Model:
    def predicted(cell: Situation) -> float:
        rate = formula(cell.loss, known(cell.rtt_s), known(cell.timeout_s), window_segments=window_of(cell))
        return 8 * cell.mss_bytes * float(rate)

    return Model(
        name=name,
        title=title,
        source=SOURCE,
        metric="goodput",
        assumptions="a long Reno flow without selective ACKs; a loss takes the rest of its round with it",
        valid_range="loss above 0 and up to 5 %",
        applies=of_transfers,
        predicted=predicted,
        violated=_violated,
        without_loss=link_and_window,
    )


MODEL = _model("pftk", "PFTK, sending rate", pftk)
MODEL_GOODPUT = _model("pftk-goodput", "PFTK, goodput", pftk_goodput)
MODEL_APPROXIMATE = _model("pftk-approximate", "PFTK, short form", pftk_approximate)
