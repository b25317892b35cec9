"""The cells for a fit: their times, and the errors of these."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosswind.models.fitting.forms import Cells
from crosswind.models.numbers import Array

_SMALLEST_ERROR = 1e-3
_FEWEST_FOR_USUAL = 20  # cells


@dataclass(frozen=True)
class MeasuredCells:
    """Cells to fit to.

    Attributes: cells: sized transfers with loss. seconds: for each, the mean transfer time per repetition.
    """

    cells: Cells
    seconds: tuple[Array, ...]

    def __len__(self) -> int:
        return len(self.seconds)

    @property
    def means(self) -> Array:
        """Each cell's mean time, s, shape (n,)."""
        return np.array([float(np.mean(times)) for times in self.seconds])

    @property
    def errors(self) -> Array:
        """Each mean's relative standard error, shape (n,); with one repetition the others' median, or 0.1."""
        known = [
            float(np.std(times, ddof=1) / np.sqrt(times.size) / np.mean(times)) if times.size > 1 else np.nan
            for times in self.seconds
        ]
        usual = float(np.nanmedian(known)) if not np.all(np.isnan(known)) else 0.1
        return np.where(np.isnan(known), usual, known)

    @property
    def usual_errors(self) -> Array:
        """The relative standard error usual for similar cells, shape (n,): a power law fitted to `errors`.

        A cell without a slow transfer, by luck, has a low mean and a small error of its own. Weights by this error
        would let such cells decide.
        """
        own, path = np.log(np.maximum(self.errors, _SMALLEST_ERROR)), self.cells.path
        if len(self) < _FEWEST_FOR_USUAL:
            return np.full(len(self), np.exp(np.median(own)))
        known = (path.segments, path.loss, path.serialisation, path.rtt + path.serialisation)
        rows = np.column_stack([np.ones(len(self)), *(np.log(column) for column in known)])
        return np.asarray(np.exp(rows @ np.linalg.lstsq(rows, own)[0]))

    def chosen(self, index: npt.NDArray[np.int64]) -> "MeasuredCells":
        """Some of the cells, in any order and as often as wanted."""
        return MeasuredCells(self.cells.chosen(index), tuple(self.seconds[i] for i in index))
