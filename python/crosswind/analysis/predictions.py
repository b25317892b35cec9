"""Models beside the measurement of a cell."""

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import Cell, ModelPrediction
from crosswind.models import predict


def predictions(names: list[str], cell: Cell, data: CellData) -> list[ModelPrediction]:
    """What each named model says of a cell; models that do not apply to its workload are left out.

    Raises: KeyError for an unknown model.
    """
    found = []
    for name in names:
        made = predict(name, data.parameters, measured_rtt_ns=data.smallest_round_trip_ns)
        if made is None:
            continue
        metric = cell.estimates.get(made.metric)
        measured = metric.mean if metric else None
        ours = measured.value if measured else None
        ratio = ours / made.value if ours is not None and made.value else None
        inside = None
        if made.value is not None and measured and measured.low is not None and measured.high is not None:
            inside = measured.low <= made.value <= measured.high
        found.append(
            ModelPrediction(
                model=made.model, title=made.title, metric=made.metric, statistic=made.statistic, unit=made.unit,
                value=made.value, uncapped=made.uncapped, measured=measured, ratio=ratio, inside=inside,
                observed=(metric.smallest, metric.largest) if metric else None,
                inputs=made.inputs, violated=list(made.violated), notes=list(made.notes), source=made.source,
            )
        )  # fmt: skip
    return found
