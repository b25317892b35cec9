"""BBR's expected throughput on a lossy link: the link's rate, minus the loss."""

import math

import numpy as np

from crosswind.models.model import Model, known, link_and_window, of_transfers, other_control, window_of
from crosswind.models.numbers import Numbers, reals, require, single
from crosswind.models.situation import Situation

PROBING_GAIN = 1.25
"""By how much a probing round sends faster than the estimated bandwidth."""
CLIFF_LOSS = 1 - 1 / PROBING_GAIN
"""Above this loss, 20 %, even a probing round delivers less than the estimate; the estimate then decays."""

SOURCE = "Cardwell, Cheng, Gunn, Yeganeh & Jacobson, ACM Queue 14(5), 2016, figure 8"


def bbr(
    link_bps: Numbers,
    loss: Numbers,
    *,
    mss_bytes: float = 1448,
    rtt_s: Numbers = 0.0,
    window_segments: Numbers = math.inf,
) -> Numbers:
    """Goodput, bit/s: (1 - p) of the link, and at most a window in one round trip.

    Args:   link_bps: the full link's payload rate, bit/s, above 0. loss: per packet, [0, 1].
            mss_bytes, rtt_s, window_segments: the receiver's window; without a round trip it limits nothing.
    Raises: ValueError out of range.
    Source: SOURCE, version 1, as in Linux. Versions 2 and 3 slow down at 2 % loss a round trip.
    """
    link, p, rtt, window = reals(link_bps, loss, rtt_s, window_segments)
    require(
        (link > 0) & (p >= 0) & (p <= 1) & (rtt >= 0) & (window > 0),
        f"BBR needs a link and a window above 0, RTT and loss of at least 0, not {link_bps}, {window_segments}, "
        f"{rtt_s}, {loss}",
    )
    with np.errstate(divide="ignore"):
        limit = np.where(rtt > 0, 8 * mss_bytes * window / np.where(rtt > 0, rtt, 1.0), math.inf)
    return single(np.minimum((1 - p) * link, limit))


def _predicted(cell: Situation) -> float:
    return float(
        bbr(
            known(cell.link_goodput_bps),
            cell.loss,
            mss_bytes=cell.mss_bytes,
            rtt_s=cell.rtt_s or 0.0,
            window_segments=window_of(cell),
        )
    )


def _violated(cell: Situation) -> list[str]:
    broken = other_control(cell, "BBR", versions=True)
    if cell.loss >= 0.15:
        broken.append(
            f"{100 * cell.loss:.3g} % of loss is near or above {100 * CLIFF_LOSS:.3g} %, "
            "where BBR's bandwidth estimate breaks down"
        )
    return broken


MODEL = Model(
    name="bbr",
    title="BBR, all that is not lost",
    source=SOURCE,
    metric="goodput",
    assumptions="a long BBR flow of version 1 that is alone on its link",
    valid_range="loss up to 15 %",
    applies=lambda cell: of_transfers(cell) and cell.rate_bps is not None,
    predicted=_predicted,
    violated=_violated,
    without_loss=link_and_window,
)
