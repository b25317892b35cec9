"""The CAIA exponential: transfer time as a curve through measurements, t = a + b·e^(c·loss).

It is a fit to one host pair at 1 ms round trip and 0-10 % loss, not a model of TCP. Its unstated units, found by trying
all readings against its own table of coefficients: bytes, bytes per second, loss as a fraction, natural logarithm.
"""

import math

SOURCE = "CAIA technical report on TCP transfer times under loss (S1), equations 2-5"

FORMULA = "t = a + b·e^(c·p)"
HOW_FITTED = (
    "The report fitted this curve with gnuplot to each data series, one file size at one link rate, and averaged b and "
    "c over the rates; a “served as an offset”. Weights, starting values and errors of its fits are not given."
)


def coefficient_b(size_bytes: float) -> float:
    """b of equation 3, s."""
    return 0.02 + 3.48e-7 * size_bytes


def coefficient_c(size_bytes: float) -> float:
    """c of equation 4, per unit of loss."""
    return 0.02 + 1.15 * math.log((size_bytes + 1) * 13600)


def coefficient_c_corrected(size_bytes: float) -> float:
    """c of equation 5, which corrects equation 4 for small files."""
    return coefficient_c(size_bytes) + 40 / math.log(2 * size_bytes)


def caia(size_bytes: float, rate_bps: float, loss: float, *, corrected: bool = True) -> float:
    """Transfer time, s, first to last data packet.

    Args:   size_bytes: at least 1. rate_bps: of the link, bit/s. loss: per packet, a fraction. corrected: equation 5.
    Raises: ValueError when an argument is out of range.
    Source: SOURCE.
    """
    if size_bytes < 1 or rate_bps <= 0 or not 0 <= loss <= 1:
        raise ValueError(f"CAIA needs size >= 1, rate > 0 and 0 <= loss <= 1, not {size_bytes}, {rate_bps}, {loss}")
    b = coefficient_b(size_bytes)
    c = coefficient_c_corrected(size_bytes) if corrected else coefficient_c(size_bytes)
    return 8 * size_bytes / rate_bps - b + b * math.exp(c * loss)


def valid(size_bytes: float, rate_bps: float, loss: float, rtt_s: float) -> list[str]:
    """Bounds of the measurements that are left, in words; empty when inside all."""
    broken = []
    if not 5_000 <= size_bytes <= 20_000_000:
        broken.append("fitted from 5 kB to 20 MB")
    if not 1.5e6 <= rate_bps <= 25e6:
        broken.append("fitted from 1.5 to 25 Mbit/s")
    if loss > 0.10:
        broken.append("fitted up to 10 % loss; beyond, an exponential grows without bound")
    if rtt_s > 0.0015:
        broken.append("fitted at a round trip of about 1 ms")
    return broken
