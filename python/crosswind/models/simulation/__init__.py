"""A small simulation of one TCP transfer, packet by packet: it gives a distribution, and nothing in it is fitted."""

import math
from dataclasses import dataclass
from random import Random

import numpy as np

from crosswind.models.numbers import Array
from crosswind.models.simulation.path import ACK_BYTES, PathSettings, SimulatedPath
from crosswind.models.simulation.sender import Sender, SenderSettings
from crosswind.models.situation import Situation

_DEFAULT_QUEUE = 1000
_MOST_LOSS = 0.8
_LARGEST_BYTES = 1_000_000_000
_RUNS_A_SLOPE = 10


@dataclass(frozen=True)
class Simulated:
    """Simulated transfers, from the first to the last packet with payload, s, shape (runs,).

    Attributes:
        times: unadjusted. adjusted: without the known part of chance. Both have the same mean but for chance; it moves
            `adjusted` less.
        touched: transfers with a packet lost at random.
    """

    times: Array
    adjusted: Array
    touched: int

    @property
    def mean_s(self) -> float:
        """Mean over all possible transfers, s."""
        return float(self.adjusted.mean())

    @property
    def error_s(self) -> float | None:
        """Its standard error, s; None with one transfer."""
        runs = self.adjusted.size
        return float(self.adjusted.std(ddof=1)) / math.sqrt(runs) if runs > 1 else None

    @property
    def limits_s(self) -> tuple[float, float] | None:
        """95 % interval for the mean, s: from the unadjusted times, moved to `mean_s`; None below TOUCHED transfers.

        Limits from the adjusted times cover 72 to 93 %: a rare timeout is not in their spread.
        """
        from crosswind.stats.chance import TOUCHED  # formulas do without scipy
        from crosswind.stats.design import Design, Tail
        from crosswind.stats.linearised import Linearised, limits

        if self.touched < TOUCHED:
            return None
        own = Linearised(self.mean_s, self.times - self.times.mean(), self.times.size)
        return limits(own, Design(Tail.SKEWED), 0.95)


def simulate(cell: Situation, *, runs: int, seed: int) -> Simulated:
    """Simulates transfers.

    Args:   cell: a transfer of a size with a known round trip. runs: at least 1. seed: the same gives the same times.
    Raises: ValueError when the cell has no size or round trip, or more size or loss than can be simulated.
    """
    if not cell.size_bytes or cell.rtt_s is None:
        raise ValueError("the simulation needs a size and a round-trip time")
    if max(cell.loss, cell.loss_back) > _MOST_LOSS:
        raise ValueError(f"the simulation needs a loss of at most {_MOST_LOSS:.0%}: beyond, it takes too long")
    if cell.size_bytes > _LARGEST_BYTES:
        raise ValueError("the simulation needs a size of at most 1 GB: beyond, it takes too long")
    segments = math.ceil(cell.size_bytes / cell.mss_bytes)
    path = _path(cell, segments)
    sender = SenderSettings(
        cubic=cell.congestion_control == "cubic",
        initial_window=cell.initial_window,
        window_segments=cell.window_segments or math.inf,
        min_rto_s=cell.min_rto_s,
        probes=cell.tail_loss_probe,
        handshake_s=cell.rtt_s + path.ack_s * 2,
    )
    random = Random(seed)
    times, waits, losses, touched = np.empty(runs), np.empty(runs), np.empty((runs, 2)), 0
    for run in range(runs):
        way = SimulatedPath(path, segments, random.random)
        flow = Sender(sender, way)
        flow.run()
        times[run] = way.last_arrival_s - way.first_arrival_s
        waits[run] = flow.excess_wait_s
        losses[run] = way.excess_losses, way.excess_last
        touched += way.lost > 0
    return Simulated(times, _adjusted(times - waits, losses), touched)


def _adjusted(times: Array, losses: Array) -> Array:
    """Times without the cost of losses beyond the expected number, by regression on as many as the runs support.

    Source: control variates, Glasserman 2003, section 4.1: the regressors have mean 0.
    """
    known = losses[:, : times.size // _RUNS_A_SLOPE]
    slopes = np.linalg.lstsq(np.column_stack([np.ones(times.size), known]), times)[0][1:]
    return np.asarray(times - known @ slopes)


def _path(cell: Situation, segments: int) -> PathSettings:
    header = cell.packet_bytes - cell.mss_bytes
    last_bytes = (cell.size_bytes or 0) - (segments - 1) * cell.mss_bytes + header
    rate, back = cell.rate_bps or math.inf, cell.rate_back_bps or math.inf
    return PathSettings(
        rtt_s=cell.rtt_s or 0.0,
        loss=cell.loss,
        loss_back=cell.loss_back,
        serialisation_s=8 * cell.packet_bytes / rate,
        last_s=8 * last_bytes / rate,
        ack_s=8 * ACK_BYTES / back,
        queue_packets=_DEFAULT_QUEUE if cell.queue_packets is None else cell.queue_packets,
        tuned=cell.window_segments is None,
    )
