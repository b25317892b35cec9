"""CUBIC's mean window under a steady loss rate, beside the Reno it falls back to."""

import math

C = 0.4
BETA = 0.7
SOURCE = "RFC 9438, section 5.1"


def cubic_window(rtt_s: float, loss: float) -> float:
    """Mean window of the cubic function, segments: (C(3+beta) / (4(1-beta)))^(1/4) · (RTT/p)^(3/4).

    Args:   rtt_s: s. loss: per packet, (0, 1], taken as evenly spaced.
    Raises: ValueError out of range.
    Source: RFC 9438, equation 6.
    """
    if rtt_s <= 0 or not 0 < loss <= 1:
        raise ValueError(f"CUBIC's window needs RTT and loss above 0, not {rtt_s}, {loss}")
    return float((C * (3 + BETA) / (4 * (1 - BETA))) ** 0.25 * (rtt_s / loss) ** 0.75)


def cubic(mss_bytes: float, rtt_s: float, loss: float) -> float:
    """Throughput, bit/s: the larger of the cubic and the Reno-friendly window, once a round trip.

    Args, Raises: as `cubic_window`; mss_bytes above 0.
    Source: RFC 9438, sections 4.3 and 5.1; Reno's window is sqrt(3/(2p)).
    """
    if mss_bytes <= 0:
        raise ValueError(f"CUBIC needs an MSS above 0, not {mss_bytes}")
    window = max(cubic_window(rtt_s, loss), math.sqrt(1.5 / loss))
    return 8 * mss_bytes * window / rtt_s


def valid(rtt_s: float, loss: float, congestion_control: str) -> list[str]:
    """Assumptions that do not hold, in words; empty when all do."""
    broken = []
    if congestion_control != "cubic":
        broken.append(f"the model describes CUBIC, not {congestion_control}")
    if loss > 0.01:
        broken.append(f"loss {loss:.3g} is above 1 %: there timeouts matter most, which the model leaves out")
    if math.sqrt(1.5 / loss) >= cubic_window(rtt_s, loss):
        broken.append("CUBIC is in its Reno-friendly region here: the formula is Reno's")
    return broken
