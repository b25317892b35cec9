"""PFTK: the throughput of a Reno flow, timeouts included.

Transcriptions of these formulas are often wrong in their brackets; golden vectors in tests/unit/models are the guard.
"""

import math

SOURCE = "Padhye, Firoiu, Towsley & Kurose, IEEE/ACM Transactions on Networking 8(2), 2000"


def pftk(loss: float, rtt_s: float, timeout_s: float, *, acked: int = 2, window_segments: float = math.inf) -> float:
    """Sending rate, segments/s, lost ones included.

    Args:   loss: probability that a packet is the first lost of its round, (0, 1). rtt_s: round-trip time, s.
            timeout_s: first retransmission timeout T0, s. acked: segments per ACK, 2 with delayed ACKs.
            window_segments: the receiver's window.
    Raises: ValueError when an argument is out of range: the model gives no number without loss.
    Source: SOURCE, equations 29-32.
    """
    w, q = _window(loss, rtt_s, timeout_s, acked, window_segments)
    return ((1 - loss) / loss + w + q / (1 - loss)) / _period(loss, rtt_s, timeout_s, acked, window_segments)


def pftk_goodput(
    loss: float, rtt_s: float, timeout_s: float, *, acked: int = 2, window_segments: float = math.inf
) -> float:
    """Rate at which segments reach the receiver, segments/s (SOURCE, section V). Arguments and errors as `pftk`."""
    w, q = _window(loss, rtt_s, timeout_s, acked, window_segments)
    return ((1 - loss) / loss + w / 2 + q) / _period(loss, rtt_s, timeout_s, acked, window_segments)


def pftk_approximate(
    loss: float, rtt_s: float, timeout_s: float, *, acked: int = 2, window_segments: float = math.inf
) -> float:
    """Sending rate, segments/s, by the short formula that TFRC uses (RFC 5348). Arguments, errors: as `pftk`."""
    _check(loss, rtt_s, timeout_s, acked, window_segments)
    timeouts = min(1.0, 3 * math.sqrt(3 * acked * loss / 8)) * loss * (1 + 32 * loss**2)
    rate = 1 / (rtt_s * math.sqrt(2 * acked * loss / 3) + timeout_s * timeouts)
    return min(window_segments / rtt_s, rate)


def expected_window(loss: float, acked: int = 2) -> float:
    """Mean window at the end of a congestion-avoidance period, segments, without a receiver's limit (equation 13)."""
    k = (2 + acked) / (3 * acked)
    return k + math.sqrt(8 * (1 - loss) / (3 * acked * loss) + k**2)


def timeout_share(loss: float, window: float) -> float:
    """Share of losses that end in a timeout, about min(1, 3/window) (equation 24)."""
    if window <= 3:
        return 1.0
    kept = 1 - loss
    above = (1 - kept**3) * (1 + kept**3 * (1 - kept ** (window - 3)))
    return float(min(1.0, above / (1 - kept**window)))


def backoff(loss: float) -> float:
    """Mean length of a run of doubling timeouts, in first timeouts, times (1 - loss); six doublings (equation 27)."""
    return 1 + loss + 2 * loss**2 + 4 * loss**3 + 8 * loss**4 + 16 * loss**5 + 32 * loss**6


def valid(loss: float, congestion_control: str, sack: bool) -> list[str]:
    """Assumptions that do not hold, in words; empty when all do."""
    broken = []
    if congestion_control != "reno":
        broken.append(f"the model describes Reno, not {congestion_control}")
    if sack:
        broken.append("the model has no selective ACKs and no tail loss probe: it counts more timeouts than there are")
    if loss > 0.05:
        broken.append(f"loss {loss:.3g} is above the 5 % up to which it was mostly checked")
    return broken


def _window(loss: float, rtt_s: float, timeout_s: float, acked: int, limit: float) -> tuple[float, float]:
    _check(loss, rtt_s, timeout_s, acked, limit)
    window = min(expected_window(loss, acked), limit)
    return window, timeout_share(loss, window)


def _period(loss: float, rtt_s: float, timeout_s: float, acked: int, limit: float) -> float:
    """Mean time from one timeout's recovery to the next, s."""
    window = expected_window(loss, acked)
    share = timeout_share(loss, min(window, limit))
    congested = acked / 2 * window + 1
    rounds = congested if window < limit else acked / 8 * limit + (1 - loss) / (loss * limit) + 2
    return rtt_s * rounds + share * timeout_s * backoff(loss) / (1 - loss)


def _check(loss: float, rtt_s: float, timeout_s: float, acked: int, window: float) -> None:
    if not 0 < loss < 1 or rtt_s <= 0 or timeout_s <= 0 or acked < 1 or window < 1:
        raise ValueError(f"PFTK needs 0 < loss < 1 and times above 0, not {loss}, {rtt_s}, {timeout_s}")
