"""A permutation test of two independent sets: exact whatever the distribution, if both have the same one.

Source: Pitman, Suppl. J. R. Stat. Soc. 4 (1937); the studentised statistic is Janssen's, Stat. Probab. Lett. 36 (1997),
which makes it hold for equal means of unequal spread too, as sets grow.
"""

import functools
import math
from itertools import combinations

import numpy as np
import numpy.typing as npt

from crosswind.stats.estimate import Array

PERMUTATIONS = 9999
MAX_PERMUTED = 500
"""Units of both sets that are permuted; with more, Welch's t is as good."""
_ALL = 20_000  # up to so many divisions all of them are counted


def permutation_p(a: Array, b: Array) -> float:
    """Two-sided p-value of both sets having the same distribution, by Welch's t of their divisions.

    Args: a, b: shape (n,) and (m,), at least 2 values each.
    """
    together = np.concatenate([a, b])
    together = together - together.mean()
    scale = float(np.abs(together).max())
    if scale == 0:
        return 1.0
    members, exact = _divisions(a.size, b.size)
    t = _welch_t(together / scale, members)
    observed = _welch_t(together / scale, _own(a.size, b.size))[0]
    beyond = int(np.sum(np.abs(t) >= abs(observed) * (1 - 1e-9)))
    return beyond / t.size if exact else (beyond + 1) / (t.size + 1)


def _welch_t(values: Array, members: npt.NDArray[np.float64]) -> Array:
    """Welch's t of each division, whose rows mark the second set."""
    m = members.sum(axis=1)
    n = values.size - m
    sums, squares = (members @ np.stack([values, values**2], axis=1)).T
    other, other_squares = values.sum() - sums, (values**2).sum() - squares
    variance = (squares - sums**2 / m) / (m * (m - 1)) + (other_squares - other**2 / n) / (n * (n - 1))
    difference = sums / m - other / n
    tiny = 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / np.sqrt(np.maximum(variance, 0.0))
    return np.where(variance > tiny**2, t, np.where(np.abs(difference) > tiny, np.sign(difference) * np.inf, 0.0))


def _own(n: int, m: int) -> npt.NDArray[np.float64]:
    return np.concatenate([np.zeros(n), np.ones(m)])[None, :]


@functools.lru_cache(maxsize=2)
def _divisions(n: int, m: int) -> tuple[npt.NDArray[np.float64], bool]:
    """Rows that mark a second set of m among n + m; and whether they are all that there are."""
    size = n + m
    if math.comb(size, m) <= _ALL:
        rows = np.zeros((math.comb(size, m), size))
        for row, chosen in enumerate(combinations(range(size), m)):
            rows[row, list(chosen)] = 1.0
        return rows, True
    order = np.random.default_rng(size).random((PERMUTATIONS, size)).argpartition(m - 1, axis=1)[:, :m]
    rows = np.zeros((PERMUTATIONS, size))
    np.put_along_axis(rows, order, 1.0, axis=1)
    return rows, False
