"""How heavy the tail of a metric may be, from the settings of a cell alone: decided before anything is measured."""

from crosswind.analysis.settings import CellSettings
from crosswind.metrics import Metric, Per
from crosswind.quantities import RATE
from crosswind.stats import LIGHT, Design, Tail

HEAVY_LOSS = 0.125
"""At this loss of retransmissions, in one direction, a wait for them with a doubling timer has no finite third moment:
8 p >= 1."""


MACHINE_SHARE = 0.1
"""The least share of exchanges that are taken to be delayed by a machine that does something else too: what it does is
skewed, as are lognormal times with sigma 1, and how often it happens is not known before."""

INFINITE_LOSS = 0.25
"""At this one it has no finite variance: 4 p >= 1."""


def design_of(metric: Metric, settings: CellSettings) -> Design:
    """The design of a metric in a cell: skewed where losses or random elements delay exchanges.

    At least the share p of exchanges is delayed where every packet is lost with probability p, and nearly all transfers
    of many packets are, though not their handshakes. On the machine's clock its noise is skewed without any loss. A
    datagram that is lost is not retransmitted, so that it delays nothing; bytes, packets and processor time by message
    are sums over many of them.
    """
    if not (metric.is_wait or metric.unit is RATE):
        return LIGHT
    loss = settings.retransmitted_loss
    of_exchanges = metric.per in (Per.EXCHANGE, Per.REPORTED)
    if loss == 0 and not settings.is_delayed_at_random:
        if not settings.is_on_machine:
            return LIGHT
        return Design(Tail.SKEWED, MACHINE_SHARE if of_exchanges else 1.0, is_wait=metric.is_wait)
    delayed_share = loss if metric.is_of_connecting else settings.delayed_share
    rate = delayed_share if of_exchanges and loss > 0 else 1.0
    return Design(_tail(metric, settings.repeated_loss), rate, is_wait=metric.is_wait)


def _tail(metric: Metric, loss: float) -> Tail:
    if loss >= INFINITE_LOSS and metric.is_wait:
        return Tail.INFINITE
    return Tail.HEAVY if loss >= HEAVY_LOSS else Tail.SKEWED
