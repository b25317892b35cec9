"""Models beside the measurement of a cell."""

import polars as pl

from crosswind.analysis.cells import CellData
from crosswind.models import predict
from crosswind.result import Cell, ModelPrediction


def predictions(names: list[str], cell: Cell, data: CellData) -> list[ModelPrediction]:
    """What each named model says of a cell; models that do not apply to its workload are left out.

    Raises: KeyError for an unknown model.
    """
    measured_rtt_ns = _smallest_round_trip(data)
    found = []
    for name in names:
        made = predict(name, data.parameters, measured_rtt_ns=measured_rtt_ns)
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


def _smallest_round_trip(data: CellData) -> float | None:
    """Smallest connection set-up or echo: the nearest thing to a round trip without loss and queue."""
    smallest: list[float] = []
    for run in data.runs:
        ok = run.samples.filter(pl.col("outcome") == "ok")
        for value in ok.select(pl.col("connect_ns").min(), (pl.col("received_ns") - pl.col("sent_ns")).min()).row(0):
            if value is not None:
                smallest.append(float(value))
    return min(smallest, default=None)
