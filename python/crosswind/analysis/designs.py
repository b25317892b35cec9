"""A metric's possible tail, from its cell's settings alone: decided before any measurement."""

from crosswind.analysis.settings import CellSettings
from crosswind.catalog.metrics import Metric, Per
from crosswind.stats.design import LIGHT, Design, Tail
from crosswind.text.quantities import RATE

HEAVY_LOSS = 0.125
"""At this loss of retransmissions, in one direction, a wait with a doubling timer has no finite third moment: 8 p >= 1.
"""


MACHINE_SHARE = 0.1
"""The least share of exchanges assumed delayed by a busy machine: a skewed delay, as lognormal times with sigma 1, with
an unknown frequency."""

INFINITE_LOSS = 0.25
"""At this one it has no finite variance: 4 p >= 1."""


LEAST = {
    "jumps": 100,
    "packets": 30,
    "transfers with jitter": 30,
    "background": 15,
    "quic": 15,
    "unknown": 15,
    "others": 5,
}
"""A mean's minimum repetitions under randomness other than loss, from a bootstrap over 300 real repetitions per element
and metric: below it, 95 % intervals cover less than 93 %, or a 1 % limit errs in more than 2.5 %
(docs/statistics-reference.md). Real networks were not measured."""


def design_of(metric: Metric, settings: CellSettings) -> Design:
    """A metric's design in a cell: skewed where losses or random elements delay exchanges.

    At packet loss p at least the share p of exchanges is delayed, and nearly all long transfers, though not their
    handshakes. The machine's clock has skewed noise without any loss. A lost datagram is not retransmitted, and delays
    nothing. Counts over packets are skewed where these are left to chance, and so is processor time.
    """
    loss = settings.retransmitted_loss
    if metric.is_counted_of_packets:
        is_left_to_chance = settings.loses_packets or settings.is_delayed_at_random or settings.is_over_quic
        return Design(Tail.SKEWED, is_wait=False, least=_least(metric, settings)) if is_left_to_chance else LIGHT
    if metric.name.startswith("cpu") and settings.is_on_machine:
        return Design(Tail.SKEWED, is_wait=False, least=_least(metric, settings))
    if not (metric.is_wait or metric.unit is RATE):
        return LIGHT
    of_exchanges = metric.per in (Per.EXCHANGE, Per.REPORTED)
    if loss == 0 and not settings.is_delayed_at_random:
        if not settings.is_on_machine:
            # QUIC packet sizes differ between repetitions.
            quic = Design(Tail.SKEWED, is_wait=metric.is_wait, least=_least(metric, settings))
            return quic if settings.is_over_quic else LIGHT
        return Design(Tail.SKEWED, MACHINE_SHARE if of_exchanges else 1.0, is_wait=metric.is_wait)
    delayed_share = loss if metric.is_of_connecting else settings.delayed_share
    rate = delayed_share if of_exchanges and loss > 0 else 1.0
    return Design(_tail(metric, settings.repeated_loss), rate, metric.is_wait, _least(metric, settings))


def _least(metric: Metric, settings: CellSettings) -> int:
    """The mean's minimum repetitions: the first matching row."""
    is_of_queues = metric.name.startswith("queueing")
    # Bimodal: a few repetitions are far from all others.
    jumps = metric.name.startswith(("utilisation", "queueing_p99"))
    rows = {
        "jumps": jumps or (is_of_queues and (settings.has_background or not settings.has_flows)),
        "packets": metric.is_counted_of_packets
        and not is_of_queues
        and (settings.has_background or settings.has_jitter),
        "transfers with jitter": metric.is_of_transfers and settings.has_jitter,
        "unknown": settings.is_over_network or settings.is_on_machine,
        "background": settings.has_background,
        "quic": settings.is_over_quic,
        "others": settings.is_delayed_at_random or metric.is_counted_of_packets,
    }
    return next((LEAST[name] for name, holds in rows.items() if holds), 0)


def _tail(metric: Metric, loss: float) -> Tail:
    if loss >= INFINITE_LOSS and metric.is_wait:
        return Tail.INFINITE
    return Tail.HEAVY if loss >= HEAVY_LOSS else Tail.SKEWED
