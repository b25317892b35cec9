"""CUBIC's mean window under a steady loss rate, beside the Reno it falls back to."""

import math

import numpy as np

from crosswind.models.model import Model, known, link_and_window, of_transfers, other_control, too_lossy, window_of
from crosswind.models.numbers import Numbers, reals, require, single
from crosswind.models.situation import Situation

C = 0.4
BETA = 0.7
SOURCE = "RFC 9438, section 5.1"


def cubic_window(rtt_s: Numbers, loss: Numbers) -> Numbers:
    """Mean window of the cubic function, segments: (C(3+beta) / (4(1-beta)))^(1/4) · (RTT/p)^(3/4).

    Args:   rtt_s: s. loss: per packet, (0, 1], evenly spaced by assumption.
    Raises: ValueError out of range.
    Source: RFC 9438, equation 6.
    """
    rtt, p = reals(rtt_s, loss)
    require((rtt > 0) & (p > 0) & (p <= 1), f"CUBIC's window needs RTT and loss above 0, not {rtt_s}, {loss}")
    return single((C * (3 + BETA) / (4 * (1 - BETA))) ** 0.25 * (rtt / p) ** 0.75)


def cubic(mss_bytes: Numbers, rtt_s: Numbers, loss: Numbers, *, window_segments: Numbers = math.inf) -> Numbers:
    """Throughput, bit/s: the larger of the cubic and the Reno-friendly window, and at most the receiver's, in one RTT.

    Args, Raises: as `cubic_window`; mss_bytes and window_segments above 0.
    Source: RFC 9438, sections 4.3 and 5.1; Reno's window is sqrt(3/(2p)).
    """
    mss, rtt, p, limit = reals(mss_bytes, rtt_s, loss, window_segments)
    require((mss > 0) & (limit > 0), f"CUBIC needs an MSS and a window above 0, not {mss_bytes}, {window_segments}")
    window = np.minimum(np.maximum(cubic_window(rtt, p), np.sqrt(1.5 / p)), limit)
    return 8 * mss * window / rtt


def _violated(cell: Situation) -> list[str]:
    broken = other_control(cell, "CUBIC")
    broken += too_lossy(cell, 0.01, "1 %: there timeouts matter most, which the model leaves out")
    if math.sqrt(1.5 / cell.loss) >= cubic_window(known(cell.rtt_s), cell.loss):
        broken.append("CUBIC is in its Reno-friendly region here: the formula is Reno's")
    return broken


MODEL = Model(
    name="cubic",
    title="CUBIC, RFC 9438",
    source=SOURCE,
    metric="goodput",
    assumptions="a long CUBIC flow, evenly spaced losses, all repaired without a timeout",
    valid_range="loss above 0 and up to 1 %",
    applies=of_transfers,
    predicted=lambda cell: float(cubic(cell.mss_bytes, known(cell.rtt_s), cell.loss, window_segments=window_of(cell))),
    violated=_violated,
    without_loss=link_and_window,
)
