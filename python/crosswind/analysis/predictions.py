"""Models beside a cell's measurement."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from crosswind.analysis.cells import CellData
from crosswind.analysis.network import inferred_situation
from crosswind.analysis.result import MetricEstimates, ModelPrediction, SimulatedInterval
from crosswind.catalog.endpoints import NETWORK
from crosswind.models import Prediction, predict, predict_situation
from crosswind.models.model import packets_of_each

NOTABLE = 0.1
"""Relative to the random loss: the least reported excess of drops."""
MORE_DROPPED = "the path dropped more than its random loss (column “dropped”): the model knows that loss alone"


def predictions_of(
    models: Iterable[str], estimates: Mapping[str, MetricEstimates], data: CellData
) -> list[ModelPrediction]:
    """Each named model's prediction for a cell, if it applies to the workload.

    A run's cells share the simulated packets, for a quick report.

    Raises: KeyError for an unknown model.
    """
    if data.parameters.get("flows"):
        return []  # Every model has the path to itself.
    packets = packets_of_each(data.cells)
    drops = _Drops.of(data)
    if (data.parameters.get("path") or {}).get("backend") == NETWORK:
        cell = inferred_situation(data.parameters, data.finished)
        inferred = [] if cell is None else [predict_situation(name, cell, packets=packets) for name in models]
        return [_beside(prediction, estimates.get(prediction.metric), drops) for prediction in inferred if prediction]
    measured = data.smallest_round_trip_ns
    made = (predict(name, data.parameters, data.effect, measured_rtt_ns=measured, packets=packets) for name in models)
    return [_beside(prediction, estimates.get(prediction.metric), drops) for prediction in made if prediction]


@dataclass(frozen=True)
class _Drops:
    """The path's drops among packets in the data's direction.

    Attributes: share: for any cause; None if uncounted. beyond_loss: whether it notably exceeds the path's random loss,
        by a tenth and by more than chance.
    """

    share: float | None
    beyond_loss: bool

    @classmethod
    def of(cls, data: CellData) -> "_Drops":
        """Over a cell's repetitions."""
        ledgers = [end.ledger for end in data.finished if end.ledger]
        ways = [ledger.reverse if data.settings.is_download else ledger.forward for ledger in ledgers]
        entered, dropped = sum(way.in_ for way in ways), sum(sum(way.dropped.values()) for way in ways)
        if not entered:
            return cls(None, beyond_loss=False)
        effect = data.settings.data_direction
        loss = effect.loss_of(data.settings.mtu_bytes)
        lost = loss * entered
        # Losses that come together vary as much more as a process that remembers one packet (a Markov chain).
        memory = min(max(effect.loss_after_loss - effect.loss, 0.0) / (1 - min(effect.loss, 0.99)), 0.99)
        spread = math.sqrt(lost * (1 - loss) * (1 + memory) / (1 - memory))
        return cls(dropped / entered, beyond_loss=dropped - lost > max(NOTABLE * lost, 4 * spread))


def _beside(prediction: Prediction, estimates: MetricEstimates | None, drops: _Drops) -> ModelPrediction:
    measured = estimates.mean if estimates else None
    knows_loss_alone = prediction.metric == "goodput" and prediction.uncapped is not None
    said = {name: value for name, value in vars(prediction).items() if name not in ("simulated", "notes")}
    limits = (prediction.simulated and prediction.simulated.limits) or (prediction.value, prediction.value)
    return ModelPrediction(
        **said,
        measured=measured,
        observed=(estimates.smallest, estimates.largest) if estimates else None,
        ratio=measured.over(prediction.value) if measured else None,
        inside=measured.meets(*limits) if measured and prediction.value is not None else None,
        simulated=_simulated(prediction),
        notes=[*prediction.notes, *([MORE_DROPPED] if knows_loss_alone and drops.beyond_loss else [])],
        dropped=drops.share,
    )


def _simulated(prediction: Prediction) -> SimulatedInterval | None:
    made = prediction.simulated
    if made is None:
        return None
    low, high = made.limits or (None, None)
    return SimulatedInterval(low=low, high=high, runs=made.runs, touched=made.touched)
