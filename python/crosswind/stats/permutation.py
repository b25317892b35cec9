"""Permutation tests: exact whatever the distribution, if two independent sets have the same one, or if the differences
within pairs are symmetric.

Source: Pitman, Suppl. J. R. Stat. Soc. 4 (1937); the studentised statistic is Janssen's, Stat. Probab. Lett. 36 (1997),
valid asymptotically for equal means with unequal spread too.
"""

import functools
import math
from collections.abc import Callable
from itertools import combinations, permutations

import numpy as np
import numpy.typing as npt

from crosswind.stats.arrays import Array

PERMUTATIONS = 9999
MAX_PERMUTED = 500
"""Maximum units in both sets, or pairs, for permutation; with more, t is as good."""
_ALL = 20_000  # up to so many divisions all are counted
_SAME = 1e-9  # relative to the largest: rounding between equal sizes

_ALL_ORDERS = 8
"""Maximum values for counting all orders, 40,320, after few extreme ones in a first draw."""
_ORDERS = (1_000, 10_000, 100_000)
"""Orders drawn until enough are as extreme: the smaller the p-value, the more."""
_AS_EXTREME = 20
_PLACES = 4_000_000
"""Maximum elements over all drawn orders: the memory limit."""


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


def sign_flip_p(distances: Array) -> float:
    """One-sided p-value of distances from a place being symmetric about it: small if they are clearly above.

    Given their sizes every sign is as likely as the other, so the sum has a known distribution, also with a few
    repeated values, unlike Student's t.

    Args:   distances: shape (n,), n at least 1.
    Source: Fisher, The Design of Experiments (1935), section 21.
    """
    sizes = np.abs(distances)
    scale = float(sizes.max())
    if scale == 0:
        return 1.0
    signs, exact = _signs(distances.size)
    drawn = signs @ (sizes / scale)
    beyond = int(np.sum(drawn >= distances.sum() / scale - _SAME * distances.size))
    return beyond / drawn.size if exact else (beyond + 1) / (drawn.size + 1)


def is_tied(distances: Array) -> bool:
    """Whether at most half of the distances from a place have different sizes.

    Sizes are independent of the side, so choosing a test by them takes no side either. Above MAX_PERMUTED no ties
    count: Student's t is as good there.
    """
    if distances.size > MAX_PERMUTED:
        return False
    sizes = np.sort(np.abs(distances))
    different = 1 + int(np.sum(np.diff(sizes) > _SAME * sizes[-1]))
    return 2 * different <= distances.size


def order_p(values: Array, statistic: Callable[[Array], Array]) -> float:
    """Two-sided p-value of values having no order, with or without ties; a small one is exact for up to 8.

    Args:   values: shape (n,). statistic: of each row of shape (orders, n), with a mean of 0 over all orders.
    Source: Besag & Clifford, Biometrika 78 (1991), on when to stop drawing.
    """
    observed = abs(float(statistic(values[None, :])[0])) * (1 - _SAME)
    beyond = drawn = 0
    for orders in _ORDERS:
        if drawn and values.size <= _ALL_ORDERS:
            return float(np.mean(np.abs(statistic(values[_orders(values.size)])) >= observed))
        rows = _orders(values.size, min(orders, max(_ORDERS[0], _PLACES // values.size)))[drawn:]
        beyond += int(np.sum(np.abs(statistic(values[rows])) >= observed))
        drawn += len(rows)
        if beyond >= _AS_EXTREME:
            break
    return (beyond + 1) / (drawn + 1)


def _welch_t(values: Array, members: npt.NDArray[np.float64]) -> Array:
    """Welch's t of each division; rows mark the second set."""
    m = members.sum(axis=1)
    n = values.size - m
    sums, squares = (members @ np.stack([values, values**2], axis=1)).T
    other, other_squares = values.sum() - sums, (values**2).sum() - squares
    variance = (squares - sums**2 / m) / (m * (m - 1)) + (other_squares - other**2 / n) / (n * (n - 1))
    difference = sums / m - other / n
    tiny = 1e-12
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / np.sqrt(np.maximum(variance, 0.0))
    return np.where(variance > tiny**2, t, np.where(np.abs(difference) > tiny, np.copysign(np.inf, difference), 0.0))


def _own(n: int, m: int) -> npt.NDArray[np.float64]:
    return np.concatenate([np.zeros(n), np.ones(m)])[None, :]


@functools.lru_cache(maxsize=2)
def _divisions(n: int, m: int) -> tuple[npt.NDArray[np.float64], bool]:
    """Rows marking a second set with m among n + m; and whether they are all."""
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


@functools.lru_cache(maxsize=4)
def _orders(size: int, drawn: int = 0) -> npt.NDArray[np.int16]:
    """Rows of places in another order: so many, or all. A larger number begins with the same ones."""
    if not drawn:
        return np.array(list(permutations(range(size))), dtype=np.int16)
    rows = np.tile(np.arange(size, dtype=np.int16), (drawn, 1))
    return np.random.default_rng(size).permuted(rows, axis=1)


@functools.lru_cache(maxsize=4)
def _signs(size: int) -> tuple[npt.NDArray[np.float64], bool]:
    """Rows of signs; and whether they are all."""
    if 2**size <= _ALL:
        rows = np.arange(2**size)[:, None] >> np.arange(size) & 1
        return (1 - 2 * rows).astype(np.float64), True
    return np.random.default_rng(size).choice((-1.0, 1.0), (PERMUTATIONS, size)), False
