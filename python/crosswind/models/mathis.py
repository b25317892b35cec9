"""Mathis's square-root law: congestion avoidance's throughput on a path with occasional loss."""

import math

import numpy as np

from crosswind.models.model import Model, known, link_and_window, of_transfers, other_control, too_lossy, window_of
from crosswind.models.numbers import Numbers, reals, require
from crosswind.models.situation import Situation

C_EVERY_SEGMENT = math.sqrt(3 / 2)
"""Periodic loss; the window grows by a segment a round trip (`ACKED_SEGMENTS` = 1)."""
VALID_LOSS = 0.01
"""Above about 1 % timeouts decide, and the law does not cover them."""

SOURCE = "Mathis, Semke, Mahdavi & Ott, Computer Communication Review 27(3), 1997"


def mathis(
    mss_bytes: Numbers,
    rtt_s: Numbers,
    loss: Numbers,
    *,
    c: float = C_EVERY_SEGMENT,
    window_segments: Numbers = math.inf,
) -> Numbers:
    """Throughput, bit/s: 8 · MSS / RTT · min(C / sqrt(p), window).

    Args:   mss_bytes: a full segment's payload. rtt_s: round-trip time, s. loss: congestion events per packet, (0, 1].
            c: sqrt(3/2) for a window growing by a segment a round trip. window_segments: the receiver's.
    Raises: ValueError when an argument is not above 0, or loss is above 1: the law gives no number without loss.
    Source: SOURCE, equation 3; its section on limits names the receiver's window.
    """
    mss, rtt, p, window = reals(mss_bytes, rtt_s, loss, window_segments)
    require(
        (mss > 0) & (rtt > 0) & (p > 0) & (p <= 1) & (window > 0),
        f"Mathis needs MSS, RTT, window and loss above 0, not {mss_bytes}, {rtt_s}, {window_segments}, {loss}",
    )
    return np.minimum(c / np.sqrt(p), window) * 8 * mss / rtt


def _violated(cell: Situation) -> list[str]:
    why = f"{100 * VALID_LOSS:.3g} %: there timeouts matter most, which the law leaves out"
    return too_lossy(cell, VALID_LOSS, why) + other_control(cell, "Reno", what="law")


def _model(name: str, title: str, c: float) -> Model:
    return Model(
        name=name,
        title=title,
        source=SOURCE,
        metric="goodput",
        assumptions="a long Reno flow, single losses far apart, all repaired without a timeout",
        valid_range="loss above 0 and up to 1 %",
        applies=of_transfers,
        predicted=lambda cell: float(
            mathis(cell.mss_bytes, known(cell.rtt_s), cell.loss, c=c, window_segments=window_of(cell))
        ),
        violated=_violated,
        without_loss=link_and_window,
    )


MODEL = _model("mathis", "Mathis, C = sqrt(3/2)", C_EVERY_SEGMENT)
MODEL_C1 = _model("mathis-c1", "Mathis, C = 1", 1.0)
