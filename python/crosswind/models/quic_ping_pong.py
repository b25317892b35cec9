"""One message in flight, lost in both directions, retransmitted by QUIC's probe timeout."""

from crosswind.models.model import Model, known, too_lossy
from crosswind.models.numbers import Numbers, reals, require
from crosswind.models.ping_pong import broken_by_size_or_loss
from crosswind.models.situation import Situation

SOURCE = "RFC 9002, section 6.2: two probes each time the doubling probe timeout expires"
MAX_ACK_DELAY_S = 0.025  # RFC 9000, section 18.2
GRANULARITY_S = 0.001  # RFC 9002, section 6.1.2
VALID_LOSS = 0.05
"""At 5, 10 and 15 % a round trip of 20 ms took 1.09, 1.32 and 1.66 times as long as predicted (docs/models.md)."""
_TRANSPORTS = ("quic", "webtransport", "http3", "socketio-webtransport")


def probe_timeout(rtt_s: Numbers) -> Numbers:
    """First probe timeout with steady round trips, s: rtt + 1 ms + 25 ms (RFC 9002, 6.2.1)."""
    (rtt,) = reals(rtt_s)
    return rtt + GRANULARITY_S + MAX_ACK_DELAY_S


def quic_ping_pong(base_s: Numbers, loss: Numbers, timeout_s: Numbers) -> Numbers:
    """Mean round-trip time, s: R0 + 2 T p / (1 - 2 p²).

    A lost message is late by T, and by T (2^k - 1) where both probes of the first k - 1 timeouts are lost as well.

    Args:   base_s: round trip without loss, s. loss: per packet in each direction, [0, 0.7).
            timeout_s: each side's probe timeout, s.
    Raises: ValueError from a loss of 0.7 on, with a nearly infinite mean, or when an argument is negative.
    """
    base, p, timeout = reals(base_s, loss, timeout_s)
    require(
        (p >= 0) & (p < 0.7) & (base >= 0) & (timeout >= 0),
        "the formula needs a loss from 0 to below 70 %, and times of at least 0",
    )
    return base + 2 * timeout * p / (1 - 2 * p**2)


def _predicted(cell: Situation) -> float:
    base = known(cell.rtt_s)
    return float(quic_ping_pong(base, cell.loss, probe_timeout(base))) * 1e9


def _violated(cell: Situation) -> list[str]:
    why = "round trips that losses delay make the timer longer, which the model leaves out"
    return broken_by_size_or_loss(cell) + too_lossy(cell, VALID_LOSS, f"{100 * VALID_LOSS:.3g} %: {why}")


MODEL = Model(
    name="quic-ping-pong",
    title="Doubling probe timer of QUIC",
    source=SOURCE,
    metric="rtt",
    assumptions="one message of one packet each way in flight over a QUIC stream, equal loss in both directions",
    valid_range="loss up to 5 %",
    applies=lambda cell: cell.kind == "echo" and cell.transport in _TRANSPORTS,
    predicted=_predicted,
    violated=_violated,
)
