"""From a cell's parameters to a prediction, comparable with the measurement.

A prediction names its inputs and the broken assumptions. Outside its range a model still gives its number, with broken
assumptions beside it; where a formula has no number at all, a note says why.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.catalog.path_effect import PathEffect
from crosswind.models.model import MOST_PACKETS, Model, SimulatedMean
from crosswind.models.registry import model_named
from crosswind.models.situation import Situation, situation


@dataclass(frozen=True)
class Prediction:
    """A model's prediction for one cell.

    Attributes:
        metric, statistic, unit: predicted, e.g. goodput, mean, bit/s.
        value: capped by the link, None where the model gives none. uncapped: by the formula alone.
        simulated: a simulating model's mean with its interval.
        inputs: with units in the names. violated: assumptions the cell breaks. notes: other remarks.
    """

    model: str
    title: str
    source: str
    metric: str
    statistic: str
    unit: str
    value: float | None
    uncapped: float | None
    simulated: SimulatedMean | None
    inputs: dict[str, float]
    violated: tuple[str, ...]
    notes: tuple[str, ...]


def predict(
    name: str,
    parameters: Mapping[str, Any],
    effect: PathEffect,
    *,
    measured_rtt_ns: float | None = None,
    packets: int = MOST_PACKETS,
) -> Prediction | None:
    """One model's prediction for one cell, or None when the model does not apply to the workload.

    Args:   name: as for `model_named`. parameters: the cell (docs/cell-protocol.md). effect: its path's.
            measured_rtt_ns: smallest round trip seen in the cell, used where the path has no delay.
            packets: how many a simulating model simulates.
    Raises: KeyError for an unknown name.
    """
    return predict_situation(name, situation(parameters, effect, measured_rtt_ns), packets=packets)


def predict_situation(name: str, cell: Situation, *, packets: int = MOST_PACKETS) -> Prediction | None:
    """As `predict`, for a cell in the models' terms."""
    model = model_named(name)
    if not model.applies(cell):
        return None
    uncapped, simulated, violated, notes = _formula(model, cell, packets)
    value, more = _capped(model, cell, uncapped)
    return Prediction(
        model=model.name,
        title=model.title,
        source=model.source,
        metric=model.metric,
        statistic="mean",
        unit=model.unit,
        value=value,
        uncapped=uncapped,
        simulated=simulated,
        inputs=_inputs(cell),
        violated=tuple(violated),
        notes=(*cell.notes, *notes, *more),
    )


def _formula(
    model: Model, cell: Situation, packets: int
) -> tuple[float | None, SimulatedMean | None, list[str], list[str]]:
    """The formula's own number, the simulated mean behind it, broken assumptions, and notes."""
    if model.without_loss is not None and cell.loss == 0:
        return None, None, [], []
    try:
        simulated = model.simulated(cell, packets) if model.simulated else None
        number = model.predicted(cell) if simulated is None else simulated.value
        return number, simulated, [*model.violated(cell), *_beyond_models(cell)], _too_few(simulated)
    except ValueError as error:
        return None, None, [], [str(error)]


def _too_few(simulated: SimulatedMean | None) -> list[str]:
    """Why a simulated mean has no interval; nothing where it has one, or needs none."""
    if simulated is None or simulated.limits is not None or simulated.runs == 1:
        return []
    said = f"{simulated.runs} simulated transfers, {simulated.touched} with a loss"
    return [f"{said}, are too few for an interval of their mean"]


def _beyond_models(cell: Situation) -> list[str]:
    """Path features outside all models."""
    return [
        *(["losses depend on each other, and the model takes them to be independent"] if cell.clustered else []),
        *(["delays differ at random, and the model takes them to be the same"] if cell.random_delay else []),
        *(["the path changes over time, and the model takes it to stay as it is"] if cell.changes else []),
        *(["background traffic takes a share of the link, and the model has all of it"] if cell.background else []),
        *(
            ["the queue may drop or mark packets before it is full, and the model waits until then"]
            if cell.manages_queue
            else []
        ),
        *(["the link sends bursts faster than at its rate, and the model knows the rate alone"] if cell.bursts else []),
        *(["packets overtake each other, and the model takes them to arrive in order"] if cell.reorders else []),
    ]


def _capped(model: Model, cell: Situation, uncapped: float | None) -> tuple[float | None, list[str]]:
    """A throughput capped by the link and, without loss, the window; and notes on the cap."""
    if uncapped is None and model.without_loss is not None and cell.loss == 0:
        value, note = model.without_loss(cell)
        return value, [note]
    limit = cell.link_goodput_bps
    if model.metric == "goodput" and limit is not None and uncapped is not None and uncapped > limit:
        return limit, ["capped by the link"]
    return uncapped, []


def _inputs(cell: Situation) -> dict[str, float]:
    inputs = {
        "loss": cell.loss,
        "rtt_s": cell.rtt_s,
        "mss_bytes": cell.mss_bytes,
        "timeout_s": cell.timeout_s,
        "rate_bps": cell.rate_bps,
        "window_segments": cell.window_segments,
    }
    return {name: float(number) for name, number in inputs.items() if number is not None}
