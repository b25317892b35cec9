"""Models' errors over a run's cells: |predicted / measured - 1|, with and without loss apart."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.result import CellResult, ModelErrors, ModelPrediction
from crosswind.stats.repetitions import Repetitions


@dataclass(frozen=True)
class _Compared:
    """One model in one cell. spread: the measured mean's relative standard error, None with one repetition."""

    prediction: ModelPrediction
    cell: int
    ratio: float
    spread: float | None
    whole: bool

    @property
    def error(self) -> float:
        return abs(self.ratio - 1)


def model_errors(cells: Sequence[CellResult], data: Sequence[CellData]) -> list[ModelErrors]:
    """A row for each model, with and without loss, in the study's order; none for a single cell.

    Measured is the mean over all samples in a cell, bounded or not: its error averages out over cells, and refusing the
    wildest cells would flatter every model.
    """
    groups: dict[tuple[str, bool], list[_Compared]] = {}
    for cell, own in zip(cells, data, strict=True):
        if own.settings.is_over_network:
            continue  # What its models predict from is itself inferred from the measurement.
        lossy = own.settings.data_direction.loss > 0
        for prediction in cell.models:
            compared = _compared(prediction, cell, own)
            if compared is not None:
                groups.setdefault((prediction.model, lossy), []).append(compared)
    order = sorted(groups, key=lambda group: not group[1])
    return [_row(groups[group], lossy=group[1]) for group in order if len(groups[group]) > 1]


def relative_error(samples: Repetitions) -> float | None:
    """The standard error of all samples' mean over that mean, from the repetitions' means."""
    means = samples.means
    if means.size < 2:
        return None
    return float(means.std(ddof=1) / math.sqrt(means.size) / samples.values.mean())


def _compared(prediction: ModelPrediction, cell: CellResult, data: CellData) -> _Compared | None:
    samples = data.samples.get(prediction.metric)
    if samples is None or not samples.values.size or prediction.value is None or not samples.values.mean() > 0:
        return None
    return _Compared(
        prediction=prediction,
        cell=cell.cell,
        ratio=prediction.value / float(samples.values.mean()),
        spread=0.0 if data.is_exact else relative_error(samples),
        whole=cell.lost == 0,
    )


def _row(compared: Sequence[_Compared], *, lossy: bool) -> ModelErrors:
    used = [cell for cell in compared if cell.whole] or list(compared)
    worst = max(used, key=lambda cell: cell.error)
    spreads = [cell.spread for cell in used if cell.spread is not None]
    first = used[0].prediction
    return ModelErrors(
        model=first.model,
        title=first.title,
        metric=first.metric,
        lossy=lossy,
        cells=len(used),
        median=float(np.median([cell.error for cell in used])),
        mean=float(np.mean([cell.error for cell in used])),
        worst=worst.error,
        worst_cell=worst.cell,
        bias=float(np.median([cell.ratio for cell in used])) - 1,
        measured=float(np.median(spreads)) if len(spreads) == len(used) else None,
        outside=sum(bool(cell.prediction.violated) for cell in used),
        left_out=len(compared) - len(used),
    )
