"""An exchange's number of round trips: its time's slope over the path's round trip."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from crosswind.analysis.cells import CellData
from crosswind.analysis.comparisons import groups_of_levels, other_levels
from crosswind.analysis.designs import design_of
from crosswind.analysis.result import RoundTrips
from crosswind.catalog.metrics import METRICS
from crosswind.catalog.path_effect import PathEffect
from crosswind.stats.arrays import Array
from crosswind.stats.design import Design
from crosswind.stats.estimate import Interval, exactly
from crosswind.stats.mean import mean_interval
from crosswind.stats.repetitions import Repetitions
from crosswind.text.quantities import TIME


def round_trips(data: Sequence[CellData], *, level: float) -> list[RoundTrips]:
    """For each group of cells different in delay alone, and each main time."""
    return [made for factor, cells in _groups(data) for made in _of_group(factor, cells, level=level)]


def _groups(data: Sequence[CellData]) -> Iterator[tuple[str, list[CellData]]]:
    for factor, group in groups_of_levels(data):
        cells = sorted(group.values(), key=lambda cell: cell.effect.round_trip_ns)
        trips = {cell.effect.round_trip_ns for cell in cells}
        if len(trips) == len(cells) > 1 and len({_without_delay(cell.effect) for cell in cells}) == 1:
            yield factor, cells


def _without_delay(effect: PathEffect) -> str:
    return repr(PathEffect(replace(effect.forward, delay_ns=0), replace(effect.reverse, delay_ns=0)))


def _of_group(factor: str, cells: Sequence[CellData], *, level: float) -> Iterator[RoundTrips]:
    kind = cells[0].settings.kind
    for name, metric in METRICS.items():
        is_main = kind in metric.compared_in and metric.unit is TIME and not metric.is_difference
        if is_main and all(name in cell.samples for cell in cells):
            line = _Line.of(cells, name)
            if line is not None:
                design = design_of(metric, cells[-1].settings)
                yield RoundTrips(
                    factor=factor,
                    fixed=other_levels(cells[0], factor),
                    cells=[cell.cell for cell in cells],
                    metric=name,
                    trips=line.estimate(line.slopes, design, level=level),
                    offset=line.estimate(line.offsets, design, level=level),
                    deviation=line.deviation,
                )


@dataclass(frozen=True)
class _Line:
    """Straight lines through cells' means, one for each common repetition.

    Attributes: slopes, offsets: shape (repetitions,). deviation: a cell mean's largest distance from the mean line. n:
        values.
    """

    slopes: Array
    offsets: Array
    deviation: float
    n: int
    exact: bool

    @classmethod
    def of(cls, cells: Sequence[CellData], name: str) -> Self | None:
        """None where the cells have no repetition in common."""
        by_cell = [dict(zip(_keys(cell, name), cell.samples[name].means.tolist(), strict=True)) for cell in cells]
        # An exact cell comes out the same in every repetition.
        chance = [repetitions for repetitions, cell in zip(by_cell, cells, strict=True) if not cell.is_exact]
        common = sorted(set.intersection(*(set(repetitions) for repetitions in chance))) if chance else [0]
        if not common:
            return None
        times = np.array(
            [
                [next(iter(repetitions.values())) if cell.is_exact else repetitions[key] for key in common]
                for repetitions, cell in zip(by_cell, cells, strict=True)
            ]
        )
        trips = np.array([float(cell.effect.round_trip_ns) for cell in cells])
        centred = trips - trips.mean()
        slopes = centred @ times / (centred @ centred)
        offsets = times.mean(axis=0) - slopes * trips.mean()
        off = times.mean(axis=1) - (offsets.mean() + slopes.mean() * trips)
        n = sum(cell.samples[name].n for cell in cells)
        return cls(slopes, offsets, float(np.abs(off).max()) if len(cells) > 2 else 0.0, n, not chance)

    def estimate(self, values: Array, design: Design, *, level: float) -> Interval:
        """The mean over repetitions, with the interval supported by their design."""
        if self.exact:
            return exactly(float(values[0]), n=self.n, level=level)
        return replace(mean_interval(Repetitions.of(values), design=design, level=level), n=self.n)


def _keys(cell: CellData, name: str) -> list[int]:
    """A cell's repetitions with values."""
    units = cell.samples[name]
    return [repetition for (repetition, _), size in zip(units.keys, units.sizes, strict=True) if size > 0]
