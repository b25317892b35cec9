"""Correction for many comparisons made at once."""

from collections.abc import Sequence

import numpy as np


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted so that the chance of any false positive in the family stays below the level.

    Args:    p_values: of one declared family, any order.
    Returns: adjusted p-values in the same order, in [0, 1], never smaller than those given.
    Raises:  ValueError when one is not in [0, 1].
    Source:  Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    given = np.asarray(p_values, dtype=np.float64)
    if not np.all((given >= 0.0) & (given <= 1.0)):
        raise ValueError("a p-value is not between 0 and 1")
    order = np.argsort(given, kind="stable")
    scaled = given[order] * np.arange(given.size, 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(p) for p in adjusted]
