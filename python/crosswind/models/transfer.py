"""Transfer time over size, rate, loss, round trip and queue in one formula: TCP with selective ACKs and RACK.

slow start up to the first loss -> the rest at the link's rate or the window's -> what each loss costs
"""

import math
from dataclasses import dataclass

import numpy as np

from crosswind.models.cardwell import before_first_loss
from crosswind.models.model import Model, known, of_sized_transfers, window_of
from crosswind.models.numbers import Numbers, reals, require, single
from crosswind.models.pftk import backoff
from crosswind.models.situation import Situation
from crosswind.models.slow_start import slow_start

SOURCE = "this project: docs/models.md, fitted to transfers in virtual time"


@dataclass(frozen=True)
class Coefficients:
    """What is fitted.

    Attributes:
        window: square of the mean window times the loss, segments². repair: of a loss by SACK, round trips.
        timeout_scale, timeout_power: share of losses that end in a timeout, scale · p^power.
    """

    window: float = 2.17
    repair: float = 1.05
    timeout_scale: float = 49.6
    timeout_power: float = 2.40


FITTED = Coefficients()


def transfer_time(
    size_bytes: Numbers,
    *,
    loss: Numbers,
    rtt_s: Numbers,
    rate_bps: Numbers,
    mss_bytes: Numbers,
    packet_bytes: Numbers,
    timeout_s: Numbers,
    initial_window: Numbers,
    window_segments: Numbers = math.inf,
    coefficients: Coefficients = FITTED,
) -> Numbers:
    """Mean time from the first to the last packet with payload, s.

    Args:   size_bytes: at least 1. loss: per packet, [0, 1). rtt_s: propagation both ways. rate_bps: of the link, inf
            for unlimited. timeout_s: first retransmission timeout. The rest is as in `slow_start`.
    Raises: ValueError when an argument is out of range.
    Source: SOURCE.
    """
    size, p, rtt, rate, mss, packet = reals(size_bytes, loss, rtt_s, rate_bps, mss_bytes, packet_bytes)
    require((p >= 0) & (p < 1) & (size >= 1) & (rtt >= 0), f"needs 0 <= loss < 1 and a size, not {loss}, {size_bytes}")
    segments = np.ceil(size / mss)
    early = np.asarray(before_first_loss(segments, p))
    started = slow_start(
        np.where(p > 0, np.maximum(1.0, early * mss), size),
        rtt_s=rtt,
        rate_bps=rate,
        mss_bytes=mss,
        packet_bytes=packet,
        initial_window=initial_window,
        window_segments=window_segments,
    )
    lossy = np.where(p > 0, p, 0.5)  # any number: what follows is not used without loss
    serialisation = 8 * packet / rate
    round_trip = rtt + serialisation
    window = np.minimum(np.sqrt(coefficients.window / lossy), window_segments)
    rest = (segments - early) * np.maximum(serialisation, round_trip / window)
    share = np.minimum(1.0, coefficients.timeout_scale * lossy**coefficients.timeout_power)
    timeout = share * np.asarray(timeout_s) * backoff(lossy) / (1 - lossy)
    repairs = segments * lossy * (timeout + coefficients.repair * round_trip)
    return single(started + np.where(p > 0, rest + repairs, 0.0))


def _predicted(cell: Situation) -> float:
    seconds = transfer_time(
        cell.size_bytes or 0,
        loss=cell.loss,
        rtt_s=known(cell.rtt_s),
        rate_bps=cell.rate_bps or math.inf,
        mss_bytes=cell.mss_bytes,
        packet_bytes=cell.packet_bytes,
        timeout_s=known(cell.timeout_s),
        initial_window=cell.initial_window,
        window_segments=window_of(cell),
    )
    return float(seconds) * 1e9


def _violated(cell: Situation) -> list[str]:
    broken = []
    if cell.congestion_control != "reno":
        broken.append(f"fitted to Reno, not {cell.congestion_control}")
    if cell.loss > 0.1:
        broken.append("fitted up to 10 % loss")
    return broken


MODEL = Model(
    name="transfer",
    title="Transfer time, one formula",
    source=SOURCE,
    metric="transfer_time",
    assumptions="TCP with selective ACKs and RACK that is alone on its link",
    valid_range="5 kB to 20 MB, 1.5 to 25 Mbit/s, up to 10 % loss, round trips up to 100 ms",
    applies=of_sized_transfers,
    predicted=_predicted,
    violated=_violated,
)
