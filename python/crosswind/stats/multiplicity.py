"""Correction for many comparisons made at once."""

from collections.abc import Sequence

import numpy as np

from crosswind.stats.arrays import Array


def holm(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted to keep the chance of any false positive in the family below the level.

    Args:    p_values: one declared family's, any order.
    Returns: adjusted p-values in the same order, in [0, 1], never smaller than those given.
    Raises:  ValueError when one is not in [0, 1].
    Source:  Holm, Scandinavian Journal of Statistics 6 (1979).
    """
    given = _checked(p_values)
    order = np.argsort(given, kind="stable")
    scaled = given[order] * np.arange(given.size, 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.maximum.accumulate(scaled), 1.0)
    return [float(p) for p in adjusted]


def benjamini_hochberg(p_values: Sequence[float]) -> list[float]:
    """P-values adjusted to keep the expected share of false positives below the level, among those below it.

    For exploring: the comparisons worth a look. It does not make any single one sure.

    Args, Returns, Raises: as `holm`.
    Source:  Benjamini & Hochberg, J. R. Stat. Soc. B 57 (1995).
    """
    given = _checked(p_values)
    order = np.argsort(given, kind="stable")[::-1]
    scaled = given[order] * given.size / np.arange(given.size, 0, -1)
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(np.minimum.accumulate(scaled), 1.0)
    return [float(p) for p in adjusted]


def _checked(p_values: Sequence[float]) -> Array:
    given = np.asarray(p_values, dtype=np.float64)
    if not np.all((given >= 0.0) & (given <= 1.0)):
        raise ValueError("a p-value is not between 0 and 1")
    return given
