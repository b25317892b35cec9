"""One message in flight, lost in both directions, retransmitted on a doubling timer: TCP's."""

import math

import numpy as np

from crosswind.models.model import Model, known
from crosswind.models.numbers import Numbers, reals, require, single
from crosswind.models.situation import Situation

SOURCE = "geometric sum over a doubling timer; docs/models.md"
DELAYED_ACK_S = 0.040


def ping_pong(base_s: Numbers, loss: Numbers, timeouts_s: Numbers) -> Numbers:
    """Mean round-trip time, s: R0 + (Tc + Ts) · p / (1 - 2p).

    Args:   base_s: round trip without loss, s. loss: per packet in each direction, [0, 0.5).
            timeouts_s: sum of the client's and the server's first retransmission timeout, s.
    Raises: ValueError from 50 % loss, where the mean is infinite, or when an argument is negative.
    """
    base, p, timeouts = reals(base_s, loss, timeouts_s)
    require(
        (p >= 0) & (p < 0.5) & (base >= 0) & (timeouts >= 0),
        "the formula needs a loss from 0 to below 50 %, and times of at least 0",
    )
    return base + timeouts * p / (1 - 2 * p)


def deviation(loss: Numbers, timeout_s: Numbers) -> Numbers:
    """Standard deviation of one direction's delay, s; infinite from 25 % loss.

    Raises: ValueError when loss is outside [0, 1) or the timeout negative.
    """
    p, timeout = reals(loss, timeout_s)
    require(
        (p >= 0) & (p < 1) & (timeout >= 0), f"needs 0 <= loss < 1 and a timeout of at least 0, not {loss}, {timeout_s}"
    )
    finite = np.where(p < 0.25, p, 0.0)
    spread = timeout * np.sqrt((1 - finite) / (1 - 4 * finite) - ((1 - finite) / (1 - 2 * finite)) ** 2)
    return single(np.where(p < 0.25, spread, math.inf))


def undelayed(loss: Numbers, packets: int = 1) -> Numbers:
    """Probability of no loss in a round trip with `packets` packets each way."""
    return (1 - loss) ** (2 * packets)


def broken_by_size_or_loss(cell: Situation) -> list[str]:
    """Broken assumptions common to all ping-pongs, in words."""
    broken = []
    packets = math.ceil((cell.size_bytes or 1) / cell.mss_bytes)
    if packets > 1:
        broken.append(f"a message of {packets} packets can be repaired by duplicate ACKs, without the timer")
    if not cell.closed_loop:
        broken.append("more than one message may be in flight: later ones repair earlier ones")
    if cell.loss >= 0.25:
        broken.append("from 25 % loss the variance is infinite: a measured mean will not settle")
    if cell.loss != cell.loss_back:
        broken.append("loss differs between the directions")
    return broken


def _predicted(cell: Situation) -> float:
    """A server with a silent client waits for a delayed ACK: its round trip, at least."""
    base = known(cell.rtt_s)
    server = base if cell.closed_loop else max(base, DELAYED_ACK_S)
    return float(ping_pong(base, cell.loss, 2 * cell.min_rto_s + base + server)) * 1e9


MODEL = Model(
    name="ping-pong",
    title="Doubling timer",
    source=SOURCE,
    metric="rtt",
    assumptions="one message of one packet each way in flight over TCP, equal loss in both directions",
    valid_range="loss below 25 %",
    applies=lambda cell: cell.kind == "echo" and cell.transport == "tcp",
    predicted=_predicted,
    violated=broken_by_size_or_loss,
)
