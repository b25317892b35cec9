"""A statistic's unseen events, from its cell's settings and ledger.

In a lossy cell, a repetition with a lost packet is touched by chance. A loss costs a retransmission timer; a mean over
m messages pays 1/m of it, a quantile nothing below a certain number of losses.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from scipy import special

from crosswind.analysis.designs import design_of
from crosswind.analysis.samples import repetition_key
from crosswind.analysis.settings import CellSettings
from crosswind.catalog.metrics import Metric
from crosswind.catalog.path_effect import DIRECTIONS
from crosswind.cell.record import CellRun
from crosswind.cell.result import Ledger
from crosswind.stats.chance import NO_CHANCE, TOUCHED, Chance
from crosswind.stats.effect import ComparedStatistic
from crosswind.stats.mean import TRIMMED
from crosswind.stats.repetitions import Repetitions
from crosswind.text.quantities import RATE, SIZE

FIRST_TIMER_NS = 1e9
"""A handshake's first timer: TCP (RFC 6298), and at most QUIC (RFC 9002)."""


def chance_of(
    metric: Metric,
    settings: CellSettings,
    all_runs: Sequence[CellRun],
    statistic: ComparedStatistic,
    units: Repetitions,
) -> Chance:
    """A statistic's unseen events in an inexact cell. Args: units: repetitions from some runs."""
    if not (metric.is_wait or metric.unit is RATE or metric.is_counted_of_packets):
        return NO_CHANCE
    loss = settings.retransmitted_loss
    is_always_touched = settings.is_delayed_at_random or settings.is_on_machine
    if not loss:
        is_touched = is_always_touched or settings.is_over_quic
        return Chance(enough=design_of(metric, settings).least or TOUCHED) if is_touched else NO_CHANCE
    keys = set(units.keys)
    runs = [run for run in all_runs if repetition_key(run) in keys]
    events = _events(statistic, units)
    unknown = Chance(touched_of(runs, events))
    if metric.is_counted_of_packets:
        of_bytes = metric.unit is SIZE and not is_always_touched
        return replace(unknown, more=_retransmitted_bytes(settings), less=0.0) if of_bytes else unknown
    # Other delays are more frequent than losses: this many repetitions show them.
    is_unknown = settings.is_clustered or settings.is_of_others or (is_always_touched and units.count < TOUCHED)
    if is_unknown:
        return unknown
    more, less = _cost_of_loss(metric, statistic, settings, units)
    return replace(unknown, more=more, less=less, share=_share(settings, runs, events))


def _cost_of_loss(
    metric: Metric, statistic: ComparedStatistic, settings: CellSettings, units: Repetitions
) -> tuple[float, float]:
    """By how much one independent loss raises and lowers a repetition's statistic; infinite if unknown."""
    # The timer doubles if the retransmission is lost too.
    cost = _timer_ns(metric, settings) / (1 - 2 * settings.retransmitted_loss)
    of_one = 1 / _least_size(units) if statistic == "mean" else 1.0
    if metric.is_wait:
        return min(1.0, _messages_delayed(settings, cost) * of_one) * cost, 0.0
    slowest_ns = settings.transfer_ns(float(units.values.min()))
    if slowest_ns is None:
        return math.inf, math.inf
    return 0.0, of_one * float(units.values.max()) * cost / (slowest_ns + cost)


def touched_of(runs: Sequence[CellRun], events: int = 1) -> int:
    """Repetitions with at least this many lost packets; 0 unless each has a ledger."""
    ledgers = _ledgers(runs)
    if len(ledgers) < len(runs):
        return 0
    ways = ((ledger.forward, ledger.reverse) for ledger in ledgers)
    return sum(sum(way.dropped.get("loss", 0) + way.corrupted for way in both) >= events for both in ways)


def _ledgers(runs: Sequence[CellRun]) -> list[Ledger]:
    return [run.finished.ledger for run in runs if run.finished is not None and run.finished.ledger is not None]


def _mean_packets(runs: Sequence[CellRun], direction: str) -> float:
    """Packets into one direction, the mean over repetitions; 0 without a ledger."""
    packets = [getattr(ledger, direction).in_ for ledger in _ledgers(runs)]
    return sum(packets) / len(packets) if packets else 0.0


def _retransmitted_bytes(settings: CellSettings) -> float:
    """Bytes per message for a retransmission and its acknowledgement, at most."""
    messages = settings.number("messages") or settings.number("count") or 1.0
    return 2 * settings.mtu_bytes / messages


def _timer_ns(metric: Metric, settings: CellSettings) -> float:
    """A first loss's longest retransmission timer."""
    covers_handshakes = metric.is_of_connecting or (settings.opens_for_each and metric.name not in ("rtt", "goodput"))
    return max(FIRST_TIMER_NS if covers_handshakes else 0.0, settings.min_rto_ns + settings.path.round_trip_ns)


def _messages_delayed(settings: CellSettings, cost_ns: float) -> float:
    """Messages in a repetition delayed by one loss, at most."""
    if settings.opens_for_each or settings.is_one_by_one:
        return 1.0
    rate = settings.number("rate_per_s")
    return math.inf if rate is None else 1 + rate * cost_ns / 1e9


def _events(statistic: ComparedStatistic, units: Repetitions) -> int:
    """Losses needed to move a repetition's statistic."""
    if statistic == "mean":
        return 1
    beyond = TRIMMED if statistic == "trimmed" else 1 - float(statistic)
    return max(1, math.floor(beyond * _least_size(units)))


def _least_size(units: Repetitions) -> int:
    return max(1, int((units.sizes + units.censored).min()))


def _share(settings: CellSettings, runs: Sequence[CellRun], events: int) -> float:
    """The share of repetitions with at least this many losses, an upper bound; for one loss, the expected losses."""
    if not _ledgers(runs):
        return 1.0
    lost = sum(_mean_packets(runs, way) * getattr(settings.path, way).loss for way in DIRECTIONS)
    # Poisson: the tail of the binomial distribution is lighter.
    return min(1.0, lost if events == 1 else float(special.pdtrc(events - 1, lost)))


BURSTS = 15
"""Expected loss bursts needed for an interval (docs/statistics-reference.md): with 10, the limits of a claim err in up
to 4 %."""


def least_of_bursts(settings: CellSettings, runs: Sequence[CellRun]) -> int:
    """Repetitions with BURSTS expected loss bursts; 0 for independent losses.

    Source: the Gilbert model. With a share b of time in the bad state, n packets, each a time t after the one before,
        meet n b (1 - b) (1 - exp(-t / memory)) bad periods, but no more than they meet losses.
    """
    finished = [run.finished for run in runs if run.finished is not None]
    if not finished or not settings.is_clustered:
        return 0
    duration_ns = sum(one.elapsed_ns for one in finished) / len(finished)
    expected = []
    for name in DIRECTIONS:
        way = getattr(settings.path, name)
        if not way.is_clustered or way.loss_after_loss <= way.loss:
            continue
        packets = _mean_packets(runs, name)
        losses = way.loss * packets
        if way.loss_memory_ns is not None and packets:
            bad = way.loss / way.loss_after_loss
            met = -math.expm1(-duration_ns / packets / way.loss_memory_ns)
            expected.append(min(losses, bad * (1 - bad) * packets * met))
        else:
            expected.append(losses * (1 - way.loss_after_loss))
    return max((math.ceil(BURSTS / bursts) for bursts in expected if bursts > 0), default=0)
