"""Fits of models to the transfers of a run: which cells can be fitted to, and what came of it, as a result."""

from collections.abc import Mapping, Sequence

import numpy as np

from crosswind.analysis.cells import CellData, collect
from crosswind.analysis.result.estimates import ResultModel
from crosswind.models import Situation, situation
from crosswind.models.fitting import FORMS, Cells, Comparison, Measured, compare
from crosswind.models.fitting.fit import METHOD
from crosswind.models.model import of_sized_transfers
from crosswind.models.numbers import Array
from crosswind.models.simulated import simulated_transfers
from crosswind.models.situation import MEASURED_ROUND_TRIP
from crosswind.record import RunRecord
from crosswind.units import format_rate, format_size

_METRIC = "transfer_time"
_MIN_CELLS = 8


class FitError(ValueError):
    """A run that cannot be fitted to; the message says why, `hint` what would do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


class FittedCoefficient(ResultModel):
    """A coefficient with its 95 % interval.

    Attributes: value, low, high: None where these cells do not tell it, as the exponent of the round trip where all of
        them have the same. at_bound: whether the search ended at one of its bounds, beyond which it did not look.
    """

    name: str
    value: float | None
    low: float | None
    high: float | None
    at_bound: bool


class FittedLevel(ResultModel):
    """The cells of a level of a factor: median error of the fit, and of a fit without them (null: too few others)."""

    factor: str
    level: str
    cells: int
    fitted: float
    held_out: float | None


class ModelFit(ResultModel):
    """One fitted model. Errors are |predicted / measured - 1|; `held_out`: by a fit without the cell's tenth of all.

    Attributes: worst_cell: where the largest held-out error is. levels: errors by factor and level.
    """

    model: str
    title: str
    formula: str
    coefficients: list[FittedCoefficient]
    fitted_median: float
    held_out_median: float
    held_out_mean: float
    worst: float
    worst_cell: int
    levels: list[FittedLevel]


class FitResult(ResultModel):
    """The fits to a run, the best held-out error first. left_out: cells that were not fitted to, and why."""

    schema_: str = "crosswind.fit/1"
    study: str
    simulated: bool
    cells: int
    measured_error: float
    method: str
    left_out: dict[str, int]
    cell_levels: dict[int, dict[str, str]]
    fits: list[ModelFit]


def fit_models(record: RunRecord, names: Sequence[str] = (), *, simulated: bool = False, seed: int = 1) -> FitResult:
    """Fits models to the mean transfer times of a run's cells with loss.

    Args:   names: of FORMS, all by default. simulated: to the times that the simulation has for these cells, instead of
            the measured ones. seed: of resampling and of the tenths.
    Raises: FitError when the run has too few cells that can be fitted to. KeyError for an unknown name.
    """
    data = collect(record)
    usable, left_out = _usable(data)
    if len(usable) < _MIN_CELLS:
        reasons = "; ".join(f"{count} {why}" for why, count in left_out.items())
        raise FitError(
            f"only {len(usable)} of {len(data)} cells can be fitted to" + (f": {reasons}" if reasons else ""),
            f"a fit needs {_MIN_CELLS} cells of tcp transfers of a size, with loss, that differ in size, rate or loss",
        )
    cells = [situation(cell.parameters, cell.smallest_round_trip_ns) for cell in usable]
    seconds = [_simulated(cell) for cell in cells] if simulated else [_seconds(cell) for cell in usable]
    measured = Measured(Cells.of(cells), tuple(seconds))
    factors = _factors(cells)
    forms = [FORMS[name] for name in names] if names else list(FORMS.values())
    fits = [_model_fit(compare(form, measured, factors, seed=seed), usable) for form in forms]
    return FitResult(
        study=record.name,
        simulated=simulated,
        cells=len(usable),
        measured_error=float(np.median(measured.errors)),
        method=METHOD,
        left_out=left_out,
        cell_levels={cell.cell: cell.levels for cell in usable},
        fits=sorted(fits, key=lambda made: made.held_out_median),
    )


def _usable(data: Sequence[CellData]) -> tuple[list[CellData], dict[str, int]]:
    """The cells that can be fitted to, and how many cannot for each reason."""
    usable: list[CellData] = []
    left_out: dict[str, int] = {}
    for cell in data:
        why = _unusable(cell)
        if why is None:
            usable.append(cell)
        else:
            left_out[why] = left_out.get(why, 0) + 1
    return usable, left_out


def _unusable(cell: CellData) -> str | None:
    """Why a cell cannot be fitted to; None where it can."""
    read = situation(cell.parameters, cell.smallest_round_trip_ns)
    samples = cell.samples.get(_METRIC)
    times = samples.values if samples is not None else np.empty(0)
    checks = {
        "are no tcp transfers of a size": not of_sized_transfers(read),
        "have no loss": read.loss == 0,
        "lose half of the packets or more, for which no mean is finite": read.loss >= 0.5,
        "have a link without a rate": read.rate_bps is None,
        "have no transfer that succeeded": not times.size or read.rtt_s is None,
        "have transfers that failed, which a mean of the others leaves out": set(cell.outcomes) - {"ok"},
        "have transfers of one packet, which take no time": not times.all(),
    }
    return next((why for why, found in checks.items() if found), None)


def _seconds(cell: CellData) -> Array:
    """Mean of each repetition, s."""
    samples = cell.samples[_METRIC]
    _, member = np.unique(samples.repetitions, return_inverse=True)
    return np.asarray(np.bincount(member, weights=samples.values) / np.bincount(member) / 1e9)


def _simulated(cell: Situation) -> Array:
    """Mean of each tenth of the simulated transfers of a cell, s; of each transfer where there are fewer than ten."""
    times = simulated_transfers(cell).adjusted
    return np.array([float(part.mean()) for part in np.array_split(times, min(10, times.size))])


def _factors(cells: Sequence[Situation]) -> Mapping[str, list[str]]:
    """For each quantity that a model knows, every cell's level. Paths without delay are one level of the round trip."""
    return {
        "size": [format_size(cell.size_bytes or 0) for cell in cells],
        "rate": [format_rate(int(cell.rate_bps or 0)) for cell in cells],
        "loss": [f"{100 * cell.loss:g}%" for cell in cells],
        "round trip": [
            "0ms" if MEASURED_ROUND_TRIP in cell.notes else f"{1e3 * (cell.rtt_s or 0):g}ms" for cell in cells
        ],
        "queue": ["none" if cell.queue_packets is None else f"{cell.queue_packets}p" for cell in cells],
        "congestion control": [cell.congestion_control for cell in cells],
    }


def _model_fit(made: Comparison, cells: Sequence[CellData]) -> ModelFit:
    fitted, held_out = made.fitted, np.abs(made.held_out)
    assert fitted.limits is not None
    rows = zip(fitted.form.coefficients, fitted.values, *fitted.limits, strict=True)
    parts = [(one.name, *(None if one.name in fitted.untold else float(of) for of in own)) for one, *own in rows]
    worst = int(np.argmax(held_out))
    return ModelFit(
        model=fitted.form.name,
        title=fitted.form.title,
        formula=fitted.form.formula,
        coefficients=[
            FittedCoefficient(name=name, value=value, low=low, high=high, at_bound=name in fitted.at_bound)
            for name, value, low, high in parts
        ],
        fitted_median=float(np.median(np.abs(made.errors))),
        held_out_median=float(np.median(held_out)),
        held_out_mean=float(held_out.mean()),
        worst=float(held_out[worst]),
        worst_cell=cells[worst].cell,
        levels=[
            FittedLevel(factor=one.factor, level=one.level, cells=one.cells, fitted=one.fitted, held_out=one.held_out)
            for one in made.levels
        ],
    )
