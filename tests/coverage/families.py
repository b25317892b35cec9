"""False alarms of families of cells that are all the same: what a report of A against A says."""

from collections.abc import Sequence

import numpy as np

from coverage.worlds import SHARED, Size, World
from crosswind.stats.arrays import Array
from crosswind.stats.differences import Side, difference
from crosswind.stats.multiplicity import benjamini_hochberg
from crosswind.stats.repetitions import Repetitions
from crosswind.stats.significance import two_sided_p

CELLS = 4
"""Cells of a family: three are compared with the first."""
ALPHA = 0.05


def false_alarms(world: World, size: Size, *, families: int, seed: int, shared: bool = True) -> float:
    """The share of families in which a comparison shows a difference, corrected as a report does it.

    Args: shared: whether the cells have the same seeds, or all others.
    """
    rng = np.random.default_rng([seed, size.units, shared])
    alarms = 0
    for _ in range(families):
        cells = _family(rng, world, size, shared=shared)
        found = [two_sided_p(difference(cells[0], other)) for other in cells[1:]]
        known = [p for p in found if p is not None]
        alarms += any(p < ALPHA for p in benjamini_hochberg(known))
    return alarms / families


def _family(rng: np.random.Generator, world: World, size: Size, *, shared: bool) -> Sequence[Side]:
    """Identical cells; those with the same seeds have correlated scores, and repetitions are alike inside."""
    common = rng.standard_normal((size.units, size.messages)) if shared else None
    return [_cell(rng, world, size, common, first=0 if shared else 1000 * at) for at in range(CELLS)]


def _cell(rng: np.random.Generator, world: World, size: Size, common: Array | None, *, first: int) -> Side:
    own = rng.standard_normal((size.units, size.messages))
    messages = own if common is None else np.sqrt(SHARED) * common + np.sqrt(1 - SHARED) * own
    repetition = rng.standard_normal((size.units, 1))
    values = world.of_score(np.sqrt(size.icc) * repetition + np.sqrt(1 - size.icc) * messages)
    numbers = first + np.repeat(np.arange(size.units), size.messages)
    return Side(Repetitions.of(values.ravel(), numbers), world.design)
