"""The CAIA exponential: transfer time as a curve through measurements, t = a + b·e^(c·loss).

It is a fit to one host pair at 1 ms round trip and 0-10 % loss, not a model of TCP. Its unstated units, found by trying
all readings against its own coefficient table: bytes, bytes per second, loss as a fraction, natural logarithm.
"""

import numpy as np

from crosswind.models.model import Model, of_sized_transfers
from crosswind.models.numbers import Numbers, reals, require
from crosswind.models.situation import Situation

SOURCE = "CAIA technical report on TCP transfer times under loss (S1), equations 2-5"

FORMULA = "t = a + b·e^(c·p)"
HOW_FITTED = (
    "The report fitted this curve with gnuplot to each data series, one file size at one link rate, and averaged b and "
    "c over the rates; a “served as an offset”. Weights, starting values and errors of its fits are not given."
)


def coefficient_b(size_bytes: Numbers) -> Numbers:
    """b in equation 3, s."""
    return 0.02 + 3.48e-7 * size_bytes


def coefficient_c(size_bytes: Numbers) -> Numbers:
    """c in equation 4, per unit of loss."""
    return 0.02 + 1.15 * np.log((size_bytes + 1) * 13600)


def coefficient_c_corrected(size_bytes: Numbers) -> Numbers:
    """c in equation 5, a correction to equation 4 for small files."""
    return coefficient_c(size_bytes) + 40 / np.log(2 * size_bytes)


def caia(size_bytes: Numbers, rate_bps: Numbers, loss: Numbers) -> Numbers:
    """Transfer time, s, first to last data packet.

    Args:   size_bytes: at least 1. rate_bps: the link's, bit/s. loss: per packet, a fraction.
    Raises: ValueError when an argument is out of range.
    Source: SOURCE.
    """
    size, rate, p = reals(size_bytes, rate_bps, loss)
    require(
        (size >= 1) & (rate > 0) & (p >= 0) & (p <= 1),
        f"CAIA needs size >= 1, rate > 0 and 0 <= loss <= 1, not {size_bytes}, {rate_bps}, {loss}",
    )
    b = coefficient_b(size)
    return 8 * size / rate - b + b * np.exp(coefficient_c_corrected(size) * p)


def _violated(cell: Situation) -> list[str]:
    broken = []
    if not 5_000 <= (cell.size_bytes or 0) <= 20_000_000:
        broken.append("fitted from 5 kB to 20 MB")
    if not 1.5e6 <= (cell.rate_bps or 0) <= 25e6:
        broken.append("fitted from 1.5 to 25 Mbit/s")
    if cell.loss > 0.10:
        broken.append("fitted up to 10 % loss; beyond, an exponential grows without bound")
    if cell.rtt_s is None or cell.rtt_s > 0.0015:
        broken.append("fitted at a round trip of about 1 ms")
    return broken


MODEL = Model(
    name="caia",
    title="CAIA exponential",
    source=SOURCE,
    metric="transfer_time",
    assumptions="the hosts and the path of the report",
    valid_range="5 kB to 20 MB, 1.5 to 25 Mbit/s, up to 10 % loss, a round trip of 1 ms",
    applies=lambda cell: of_sized_transfers(cell) and cell.rate_bps is not None,
    predicted=lambda cell: float(caia(cell.size_bytes or 0, cell.rate_bps or 0, cell.loss)) * 1e9,
    violated=_violated,
)
