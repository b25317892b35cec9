"""Fits between models and a run's transfers: suitable cells, and the fits as a result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from crosswind.analysis.cells import CellData, collect
from crosswind.analysis.designs import design_of
from crosswind.analysis.fit_result import FitResult, FittedCoefficient, ModelFit
from crosswind.catalog.metrics import METRICS
from crosswind.cell.record import RunRecord
from crosswind.models import Situation, situation
from crosswind.models.fitting import FORMS, Cells, Fitted, Form, FormComparison, MeasuredCells, compare
from crosswind.models.fitting.fit import METHOD
from crosswind.models.model import of_sized_transfers
from crosswind.models.numbers import Array
from crosswind.models.simulated import simulated_transfers
from crosswind.models.situation import MEASURED_ROUND_TRIP
from crosswind.stats.design import Amount, Shortage, coefficient_shortage
from crosswind.text.units import format_rate, format_size

_METRIC = "transfer_time"
_MIN_CELLS = 8
_SIMULATED_PARTS = 20
UNTOLD = "these cells do not determine it: its input varies too little in them"
AT_BOUND = "the search ended at one of its bounds"


class FitError(ValueError):
    """A run unsuitable for a fit; `hint`: the remedy."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def fit_models(record: RunRecord, names: Sequence[str] = (), *, simulated: bool = False, seed: int = 1) -> FitResult:
    """Fits models to the mean transfer times in a run's cells with loss.

    Args: names: from FORMS, all by default. simulated: to these cells' simulated times, instead of the measured ones.
        seed: the tenths'.
    Raises: FitError for a run with too few suitable cells. KeyError for an unknown name.
    """
    data = collect(record)
    usable, left_out = _usable(data)
    groups = _groups([_Transfers.of(cell, simulated=simulated) for cell in usable], left_out)
    if not groups:
        reasons = "; ".join(f"{count} {why}" for why, count in left_out.items())
        raise FitError(
            "there are too few cells to fit to" + (f": of {len(data)}, {reasons}" if reasons else ""),
            f"a fit needs {_MIN_CELLS} cells of tcp transfers of a size, with loss, under one congestion control, that "
            "differ in size, rate or loss",
        )
    forms = [FORMS[name] for name in names] if names else list(FORMS.values())
    fitted = [cell for group in groups for cell in group]
    return FitResult(
        study=record.name,
        simulated=simulated,
        cells=len(fitted),
        measured_error=float(np.median(_measured(fitted).errors)),
        method=METHOD,
        left_out=left_out,
        cell_levels={cell.data.cell: cell.data.levels for cell in fitted},
        fits=[fit for group in groups for fit in _fits(group, forms, simulated=simulated, seed=seed)],
    )


@dataclass(frozen=True)
class _Transfers:
    """A cell suitable for a fit.

    Attributes: seconds: each repetition's mean, or each simulated part's. n: transfers in these.
    """

    data: CellData
    situation: Situation
    seconds: Array
    n: int

    @classmethod
    def of(cls, cell: CellData, *, simulated: bool) -> "_Transfers":
        read = situation(cell.parameters, cell.effect, cell.smallest_round_trip_ns)
        if simulated:
            times = simulated_transfers(read).adjusted
            parts = np.array_split(times, min(_SIMULATED_PARTS, times.size))
            return cls(cell, read, np.array([float(part.mean()) for part in parts]), times.size)
        samples = cell.samples[_METRIC]
        _, member = np.unique(samples.repetitions, return_inverse=True)
        means = np.bincount(member, weights=samples.values) / np.bincount(member) / 1e9
        return cls(cell, read, np.asarray(means), samples.values.size)

    @property
    def amount(self) -> Amount:
        """Its repetitions and samples."""
        return Amount(design_of(METRICS[_METRIC], self.data.settings), self.seconds.size, self.n)


def _groups(cells: Sequence[_Transfers], left_out: dict[str, int]) -> list[list[_Transfers]]:
    """Each congestion control's cells, if enough for a fit; no formula knows its behaviour."""
    groups: dict[str, list[_Transfers]] = {}
    for cell in cells:
        groups.setdefault(cell.situation.congestion_control, []).append(cell)
    for name, group in groups.items():
        if len(group) < _MIN_CELLS:
            left_out[f"under {name}, too few cells"] = len(group)
    return [group for group in groups.values() if len(group) >= _MIN_CELLS]


def _fits(cells: Sequence[_Transfers], forms: Sequence[Form], *, simulated: bool, seed: int) -> list[ModelFit]:
    """Fits to one congestion control's cells, the best first."""
    measured, factors = _measured(cells), _factors([cell.situation for cell in cells])
    short = coefficient_shortage(cell.amount for cell in cells)
    # What is expected of coefficients comes from simulations, to which it has nothing to add.
    made = [compare(form, measured, factors, seed=seed, alone=simulated) for form in forms]
    return sorted((_model_fit(fitted, cells, short) for fitted in made), key=lambda fit: fit.held_out_median)


def _measured(cells: Sequence[_Transfers]) -> MeasuredCells:
    return MeasuredCells(Cells.of([cell.situation for cell in cells]), tuple(cell.seconds for cell in cells))


def _usable(data: Sequence[CellData]) -> tuple[list[CellData], dict[str, int]]:
    """The suitable cells, and the others' number by reason."""
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
    """Why a cell is unsuitable; None for a suitable one."""
    read = situation(cell.parameters, cell.effect, cell.smallest_round_trip_ns)
    samples = cell.samples.get(_METRIC)
    times = samples.values if samples is not None else np.empty(0)
    checks = {
        "of other workloads than tcp transfers of a size": not of_sized_transfers(read),
        "without loss": read.loss == 0,
        "with half of the packets lost or more, for which no mean is finite": read.loss >= 0.5,
        "over a link without a rate": read.rate_bps is None,
        "without a transfer that succeeded": not times.size or read.rtt_s is None,
        "with transfers that failed, which a mean of the others leaves out": set(cell.outcomes) - {"ok"},
        "with transfers of one packet, which take no time": not times.all(),
    }
    return next((why for why, applies in checks.items() if applies), None)


def _factors(cells: Sequence[Situation]) -> Mapping[str, list[str]]:
    """Every cell's level for each quantity in a model. Paths without delay are one level."""
    return {
        "size": [format_size(cell.size_bytes or 0) for cell in cells],
        "rate": [format_rate(int(cell.rate_bps or 0)) for cell in cells],
        "loss": [f"{100 * cell.loss:g}%" for cell in cells],
        "round trip": [
            "0ms" if MEASURED_ROUND_TRIP in cell.notes else f"{1e3 * (cell.rtt_s or 0):g}ms" for cell in cells
        ],
        "queue": ["none" if cell.queue_packets is None else f"{cell.queue_packets}p" for cell in cells],
    }


def _coefficients(fitted: Fitted, short: Shortage | None) -> list[FittedCoefficient]:
    """Args: short: why the cells' design supports no interval."""
    assert fitted.limits is not None
    made = []
    for coefficient, value, low, high in zip(fitted.form.coefficients, fitted.values, *fitted.limits, strict=True):
        is_untold, at_bound = coefficient.name in fitted.untold, coefficient.name in fitted.at_bound
        reason = UNTOLD if is_untold else short.message if short else AT_BOUND if at_bound else None
        made.append(
            FittedCoefficient(
                name=coefficient.name,
                value=None if is_untold else float(value),
                low=None if reason else float(low),
                high=None if reason else float(high),
                reason=reason,
                at_bound=at_bound,
            )
        )
    return made


def _model_fit(made: FormComparison, cells: Sequence[_Transfers], short: Shortage | None) -> ModelFit:
    fitted, held_out = made.fitted, np.abs(made.held_out)
    worst = int(np.argmax(held_out))
    return ModelFit(
        congestion_control=cells[0].situation.congestion_control,
        cells=len(cells),
        model=fitted.form.name,
        title=fitted.form.title,
        formula=fitted.form.formula,
        coefficients=_coefficients(fitted, short),
        fitted_median=float(np.median(np.abs(made.errors))),
        held_out_median=float(np.median(held_out)),
        held_out_mean=float(held_out.mean()),
        worst=float(held_out[worst]),
        worst_cell=cells[worst].data.cell,
        levels=list(made.levels),
    )
