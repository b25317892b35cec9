"""Least squares of t = a + b·e^(c·x), for one series or thousands of its resamples at once.

For a given c the problem is linear in a and b, so only c is searched: variable projection. With s = (x - x0)/range and
u = c·range the curve is alpha + beta·g(s), g = (e^(u·s) - 1)/u, with a smooth passage through a straight line at u = 0.
A grid over u finds the best interval, bisection of the derivative the maximum in it.

If the best u is an end of the grid, the samples do not bound c, and `at_end` says so.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosswind.stats.arrays import Array
from crosswind.stats.estimate import TooFewSamples

MIN_PLACES = 4
"""Three parameters fit any three places, so only a fourth can show them to be wrong."""
LOW, HIGH = -6.0, 12.0
"""Ends for the search over c·range: the curve's slope changes by e^-6 to e^12 from one end of x to the other."""

_STEP = 0.1
_BISECTIONS = 50
_NEARLY_STRAIGHT = 1e-4  # a smaller |u| is replaced by the first terms of the series in u
_ZERO = 1e-9  # the u in place of 0, where a and b have no value


@dataclass(frozen=True)
class Exponential:
    """Fitted curves, each array with shape (curves,).

    Attributes:
        a, b: in the unit of t. c: per unit of x. at_end: whether c is an end of the search, and so no estimate.
        unexplained: weighted squares about the curve. straight: the same about the best straight line.
        total: the same about the mean.
    """

    a: Array
    b: Array
    c: Array
    at_end: npt.NDArray[np.bool_]
    unexplained: Array
    straight: Array
    total: Array


def fit_exponential(x: npt.ArrayLike, t: npt.ArrayLike, weights: npt.ArrayLike) -> Exponential:
    """The curve with the least weighted squares, for each row in t.

    Args:    x: shape (places,), at least MIN_PLACES different ones. t: shape (curves, places), one mean a place.
             weights: shape (places,), samples behind each mean: the fit is then over all samples.
    Raises:  TooFewSamples with fewer places; ValueError when shapes disagree.
    Source:  Golub & Pereyra, SIAM J. Numer. Anal. 10 (1973).
    """
    places, rows, samples = (np.asarray(given, dtype=np.float64) for given in (x, t, weights))
    different = np.unique(places).size
    if different < MIN_PLACES:
        raise TooFewSamples(
            f"not enough places: an exponential needs {MIN_PLACES}, there are {different}", needed=MIN_PLACES
        )
    if rows.ndim != 2 or rows.shape[1:] != places.shape or samples.shape != places.shape:
        raise ValueError("t must hold one column, and weights one number, for each place")
    first, width = float(places.min()), float(np.ptp(places))
    s, weight = (places - first) / width, samples / samples.sum()
    means = rows @ weight
    deviations = rows - means[:, None]
    u, at_end = _best_u(deviations, weight, s)
    u = np.where(np.abs(u) < _ZERO, _ZERO, u)
    g, _ = _shape(s, u)
    centred = g - (g @ weight)[:, None]
    beta = (deviations * centred) @ weight / (centred**2 @ weight)
    total = (deviations**2 @ weight) * samples.sum()
    residual = deviations - beta[:, None] * centred
    straight = total - _explained(deviations, weight, s, np.zeros(1))[:, 0] * samples.sum()
    return Exponential(
        a=means - beta * (g @ weight) - beta / u,
        b=beta / u * np.exp(-u * first / width),
        c=u / width,
        at_end=at_end,
        unexplained=(residual**2 @ weight) * samples.sum(),
        straight=np.maximum(straight, 0.0),
        total=total,
    )


def aicc(unexplained: float, samples: int, parameters: int) -> float:
    """Akaike's criterion for a least-squares fit, corrected for few samples; the smaller, the better.

    Args:    unexplained: sum of squares, above 0. parameters: the curve's; the variance is counted besides.
    Returns: infinity with too few samples for so many parameters.
    Source:  Hurvich & Tsai, Biometrika 76 (1989).
    """
    k = parameters + 1
    if samples <= k + 1:
        return math.inf
    return samples * math.log(unexplained / samples) + 2 * k + 2 * k * (k + 1) / (samples - k - 1)


def _shape(s: Array, u: Array) -> tuple[Array, Array]:
    """g and its derivative by u, each with shape (len(u), places)."""
    uu = u[:, None]
    straight = np.abs(uu) < _NEARLY_STRAIGHT
    safe = np.where(straight, 1.0, uu)
    g = np.where(straight, s + uu * s**2 / 2, np.expm1(safe * s) / safe)
    slope = np.where(straight, s**2 / 2 + uu * s**3 / 3, (s * np.exp(safe * s) - g) / safe)
    return g, slope


def _best_u(deviations: Array, weight: Array, s: Array) -> tuple[Array, npt.NDArray[np.bool_]]:
    """Each curve's best u, and whether it is an end of the search, each with shape (curves,)."""
    grid = np.arange(round(LOW / _STEP), round(HIGH / _STEP) + 1, dtype=np.float64) * _STEP
    best = np.argmax(_explained(deviations, weight, s, grid), axis=1)
    at_end = (best == 0) | (best == grid.size - 1)
    low, high = grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, grid.size - 1)]
    return np.where(at_end, grid[best], _maximum(deviations, weight, s, low, high)), at_end


def _explained(deviations: Array, weight: Array, s: Array, u: Array) -> Array:
    """Squares explained by each curve's best fit at each u, shape (curves, len(u))."""
    g, _ = _shape(s, u)
    centred = g - (g @ weight)[:, None]
    return np.asarray(((deviations * weight) @ centred.T) ** 2 / (centred**2 @ weight))


def _maximum(deviations: Array, weight: Array, s: Array, low: Array, high: Array) -> Array:
    """The maximum over u of the explained squares, between low and high."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        g, slope = _shape(s, middle)
        g, slope = g - (g @ weight)[:, None], slope - (slope @ weight)[:, None]
        along, changing = (deviations * g) @ weight, (deviations * slope) @ weight
        growing = along * (2 * changing * (g**2 @ weight) - along * 2 * ((g * slope) @ weight)) > 0
        low, high = np.where(growing, middle, low), np.where(growing, high, middle)
    return (low + high) / 2
