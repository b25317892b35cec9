"""Models beside the measurement of a cell."""

from collections.abc import Iterable, Mapping

from crosswind.analysis.cells import CellData
from crosswind.analysis.network import inferred_situation
from crosswind.analysis.result import Interval, MetricEstimates, ModelPrediction
from crosswind.ends import NETWORK
from crosswind.models import Prediction, predict, predict_situation
from crosswind.models.model import packets_of_each


def predictions_of(
    models: Iterable[str], estimates: Mapping[str, MetricEstimates], data: CellData
) -> list[ModelPrediction]:
    """What each named model says of a cell; models that do not apply to its workload are left out.

    The cells of a run share what is simulated, so that a report is quick.

    Raises: KeyError for an unknown model.
    """
    packets = packets_of_each(data.cells)
    if (data.parameters.get("path") or {}).get("backend") == NETWORK:
        cell = inferred_situation(data.parameters, [run.finished for run in data.runs if run.finished is not None])
        inferred = [] if cell is None else [predict_situation(name, cell, packets=packets) for name in models]
        return [_beside(each, estimates.get(each.metric)) for each in inferred if each is not None]
    own = data.smallest_round_trip_ns
    made = (predict(name, data.parameters, measured_rtt_ns=own, packets=packets) for name in models)
    return [_beside(prediction, estimates.get(prediction.metric)) for prediction in made if prediction is not None]


def _beside(prediction: Prediction, estimates: MetricEstimates | None) -> ModelPrediction:
    measured = estimates.mean if estimates else None
    return ModelPrediction(
        model=prediction.model,
        title=prediction.title,
        metric=prediction.metric,
        statistic=prediction.statistic,
        unit=prediction.unit,
        value=prediction.value,
        uncapped=prediction.uncapped,
        measured=measured,
        observed=(estimates.smallest, estimates.largest) if estimates else None,
        ratio=_ratio(measured, prediction.value),
        inside=_inside(measured, prediction.value),
        inputs=prediction.inputs,
        violated=list(prediction.violated),
        notes=list(prediction.notes),
        source=prediction.source,
    )


def _ratio(measured: Interval | None, predicted: float | None) -> float | None:
    return measured.value / predicted if measured and measured.value is not None and predicted else None


def _inside(measured: Interval | None, predicted: float | None) -> bool | None:
    if predicted is None or measured is None or measured.low is None or measured.high is None:
        return None
    return measured.low <= predicted <= measured.high
