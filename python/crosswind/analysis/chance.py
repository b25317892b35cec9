"""What chance may do to a statistic of a cell that its repetitions have not shown, from its settings and its ledger.

In a cell that loses packets, a repetition is touched where one was lost. What a loss costs is known: a retransmission
timer, of which the mean over m messages has an m-th, and a quantile nothing unless many are delayed at once.
"""

import math
from collections.abc import Sequence
from dataclasses import replace

from scipy import special

from crosswind.analysis.designs import design_of
from crosswind.analysis.samples import repetition_key
from crosswind.analysis.settings import CellSettings
from crosswind.metrics import Metric
from crosswind.path_effect import DIRECTIONS
from crosswind.quantities import RATE, SIZE
from crosswind.record import CellRun
from crosswind.stats.chance import NO_CHANCE, TOUCHED, Chance
from crosswind.stats.effect import ComparedStatistic
from crosswind.stats.mean import TRIMMED
from crosswind.stats.repetitions import Repetitions

FIRST_TIMER_NS = 1e9
"""Of a SYN, and of a QUIC handshake at most: before the round trip is known (RFC 6298, RFC 9002)."""


def chance_of(
    metric: Metric,
    settings: CellSettings,
    all_runs: Sequence[CellRun],
    statistic: ComparedStatistic,
    units: Repetitions,
) -> Chance:
    """What chance may do to a statistic of a metric in a cell that is not exact. Args: units: of some of its runs."""
    keys = set(units.keys)
    runs = [run for run in all_runs if repetition_key(run) in keys]
    loss = settings.retransmitted_loss
    touched = touched_of(runs, _events(statistic, units)) if loss else None
    # A loss is rarer than what else delays packets.
    enough = TOUCHED if loss else design_of(metric, settings).least or TOUCHED
    is_always_touched = settings.is_delayed_at_random or settings.is_on_machine or (settings.is_over_quic and not loss)
    if not (metric.is_wait or metric.unit is RATE or metric.is_counted_of_packets):
        return NO_CHANCE
    if not loss:
        return Chance(enough=enough) if is_always_touched else NO_CHANCE
    if metric.is_counted_of_packets and metric.unit is SIZE and not is_always_touched:
        return _of_bytes(settings, touched)
    is_unknown = metric.is_counted_of_packets or settings.is_clustered or settings.is_of_others
    if is_unknown or (is_always_touched and units.count < enough):
        return Chance(touched, enough=enough)
    return replace(_of_losses(metric, statistic, settings, runs, units), enough=enough)


def _of_losses(
    metric: Metric, statistic: ComparedStatistic, settings: CellSettings, runs: Sequence[CellRun], units: Repetitions
) -> Chance:
    """Where losses are independent: each costs a timer, which doubles where what is sent again is lost too."""
    events = _events(statistic, units)
    touched, share = touched_of(runs, events), _share(settings, runs, events)
    cost = _timer_ns(metric, settings) / (1 - 2 * settings.retransmitted_loss)
    of_one = 1 / _least_size(units) if statistic == "mean" else 1.0
    if metric.is_wait:
        part = min(1.0, _messages_delayed(settings, cost) * of_one)
        return Chance(touched, more=part * cost, less=0.0, share=share)
    slowest_ns = settings.transfer_ns(float(units.values.min()))
    if slowest_ns is None:
        return Chance(touched)
    return Chance(touched, more=0.0, less=of_one * float(units.values.max()) * cost / (slowest_ns + cost), share=share)


def touched_of(runs: Sequence[CellRun], events: int = 1) -> int:
    """In how many repetitions so many packets were lost; 0 where nobody counted."""
    ledgers = [run.finished.ledger for run in runs if run.finished is not None and run.finished.ledger is not None]
    if len(ledgers) < len(runs):
        return 0
    ways = ((ledger.forward, ledger.reverse) for ledger in ledgers)
    return sum(sum(way.dropped.get("loss", 0) + way.corrupted for way in both) >= events for both in ways)


def _of_bytes(settings: CellSettings, touched: int | None) -> Chance:
    """A packet that is lost is sent once more, and may be acknowledged once more."""
    messages = settings.number("messages") or settings.number("count") or 1.0
    return Chance(touched, more=2 * settings.mtu_bytes / messages, less=0.0)


def _timer_ns(metric: Metric, settings: CellSettings) -> float:
    """How long the timer of a lost packet takes at most."""
    covers_handshakes = metric.is_of_connecting or (settings.opens_for_each and metric.name not in ("rtt", "goodput"))
    return max(FIRST_TIMER_NS if covers_handshakes else 0.0, settings.min_rto_ns + settings.path.round_trip_ns)


def _messages_delayed(settings: CellSettings, cost_ns: float) -> float:
    """How many messages of a repetition one loss delays at most."""
    if settings.kind == "connect" or settings.opens_for_each or settings.is_one_by_one:
        return 1.0
    rate = settings.number("rate_per_s")
    return math.inf if rate is None else 1 + rate * cost_ns / 1e9


def _events(statistic: ComparedStatistic, units: Repetitions) -> int:
    """How many losses move the statistic of a repetition, at least."""
    if statistic == "mean":
        return 1
    beyond = TRIMMED if statistic == "trimmed" else 1 - float(statistic)
    return max(1, math.floor(beyond * _least_size(units)))


def _least_size(units: Repetitions) -> int:
    return max(1, int((units.sizes + units.censored).min()))


def _share(settings: CellSettings, runs: Sequence[CellRun], events: int) -> float:
    """Of repetitions, how many lose so many packets at most; of one packet, how many a repetition loses in the mean."""
    ledgers = [run.finished.ledger for run in runs if run.finished is not None and run.finished.ledger is not None]
    if not ledgers:
        return 1.0
    forward, reverse = (
        sum(getattr(ledger, way).in_ for ledger in ledgers) / len(ledgers) * getattr(settings.path, way).loss
        for way in ("forward", "reverse")
    )
    lost = forward + reverse
    # Of many packets with little loss, Poisson's distribution; the tail of a binomial one is lighter.
    return min(1.0, lost if events == 1 else float(special.pdtrc(events - 1, lost)))


BAD_PERIODS = 10
"""Bad periods to be expected from which on repetitions bound what losses that come together do."""


def least_of_bursts(settings: CellSettings, runs: Sequence[CellRun]) -> int:
    """Repetitions in which BAD_PERIODS are to be expected; 0 where losses do not come together.

    Source: Gilbert's two states. Of the time, a share b is bad, and each period of either begins b (1 - b) times in the
    mean time that the states are remembered for.
    """
    finished = [run.finished for run in runs if run.finished is not None]
    if not finished or not settings.is_clustered:
        return 0
    duration_ns = sum(one.elapsed_ns for one in finished) / len(finished)
    periods = []
    for name in DIRECTIONS:
        way = getattr(settings.path, name)
        if not way.is_clustered or way.loss_after_loss <= way.loss:
            continue
        bad = way.loss / way.loss_after_loss
        packets = sum(getattr(one.ledger, name).in_ for one in finished if one.ledger) / len(finished)
        by_time = way.loss_memory_ns is not None
        periods.append(
            bad * (1 - bad) * duration_ns / way.loss_memory_ns
            if by_time
            else way.loss * packets * (1 - way.loss_after_loss)
        )
    return max((math.ceil(BAD_PERIODS / expected) for expected in periods if expected > 0), default=0)
