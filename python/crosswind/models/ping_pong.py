"""One message in flight, lost in both directions, resent on a doubling timer."""

import math

SOURCE = "geometric sum over a doubling timer; docs/statistics.md"


def ping_pong(base_s: float, loss: float, timeouts_s: float) -> float:
    """Mean round-trip time, s: R0 + (Tc + Ts) · p / (1 - 2p).

    Args:   base_s: round trip without loss, s. loss: per packet in each direction, [0, 0.5).
            timeouts_s: sum of the client's and the server's first retransmission timeout, s.
    Raises: ValueError from 50 % loss, where the mean is infinite, or when an argument is negative.
    """
    if not 0 <= loss < 0.5 or base_s < 0 or timeouts_s < 0:
        raise ValueError(f"ping-pong needs 0 <= loss < 0.5 and times of at least 0, not {loss}, {base_s}, {timeouts_s}")
    return base_s + timeouts_s * loss / (1 - 2 * loss)


def deviation(loss: float, timeout_s: float) -> float:
    """Standard deviation of one direction's delay, s; infinite from 25 % loss.

    Raises: ValueError when loss is outside [0, 1) or the timeout negative.
    """
    if not 0 <= loss < 1 or timeout_s < 0:
        raise ValueError(f"needs 0 <= loss < 1 and a timeout of at least 0, not {loss}, {timeout_s}")
    if loss >= 0.25:
        return math.inf
    return timeout_s * math.sqrt((1 - loss) / (1 - 4 * loss) - ((1 - loss) / (1 - 2 * loss)) ** 2)


def undelayed(loss: float, packets: int = 1) -> float:
    """Probability that a round trip of `packets` packets each way meets no loss."""
    return float((1 - loss) ** (2 * packets))


def valid(loss: float, packets: int, closed_loop: bool) -> list[str]:
    """Assumptions that do not hold, in words; empty when all do."""
    broken = []
    if packets > 1:
        broken.append(f"a message of {packets} packets can be repaired by duplicate ACKs, without the timer")
    if not closed_loop:
        broken.append("more than one message may be in flight: later ones repair earlier ones")
    if loss >= 0.25:
        broken.append("from 25 % loss the variance is infinite: a measured mean will not settle")
    return broken
