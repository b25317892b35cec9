"""Least squares of t = a + b·e^(c·x), for one series or for thousands of resamples of it at once.

For a given c the problem is linear in a and b, so only c is searched: variable projection. With s = (x - x0)/range and
u = c·range the curve is alpha + beta·g(s), g = (e^(u·s) - 1)/u, which passes smoothly through a straight line at u = 0.
A grid over u finds the best valley, bisection of the derivative its bottom.

What holds: where the best u is an end of the grid, the samples do not bound c, and `at_end` says so.
"""

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from crosswind.stats.estimate import Array, TooFewSamples

LEAST_PLACES = 4
"""Three parameters need a fourth place to be wrong at."""
LOW, HIGH = -6.0, 12.0
"""Ends of the search for c·range: the curve's slope changes by e^-6 to e^12 from one end of x to the other."""

_STEP = 0.1
_HALVINGS = 50
_NEARLY_STRAIGHT = 1e-4


@dataclass(frozen=True)
class Exponential:
    """Fitted curves, each array of shape (curves,).

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
    """The curve with the least weighted squares, for each row of t.

    Args:    x: shape (places,), at least LEAST_PLACES different ones. t: shape (curves, places), one mean a place.
             weights: shape (places,), samples behind each mean: the fit is then that of all samples.
    Raises:  TooFewSamples with fewer places; ValueError when shapes disagree.
    Source:  Golub & Pereyra, SIAM J. Numer. Anal. 10 (1973).
    """
    places, rows, weight = (np.asarray(one, dtype=np.float64) for one in (x, t, weights))
    different = np.unique(places).size
    if different < LEAST_PLACES:
        raise TooFewSamples(
            f"not enough places: an exponential needs {LEAST_PLACES}, there are {different}", needed=LEAST_PLACES
        )
    if rows.ndim != 2 or rows.shape[1:] != places.shape or weight.shape != places.shape:
        raise ValueError("t must hold one column, and weights one number, for each place")
    first, reach = float(places.min()), float(np.ptp(places))
    s, share = (places - first) / reach, weight / weight.sum()
    middle = rows @ share
    off = rows - middle[:, None]
    grid = np.arange(round(LOW / _STEP), round(HIGH / _STEP) + 1, dtype=np.float64) * _STEP
    best = np.argmax(_explained(off, share, s, grid), axis=1)
    at_end = (best == 0) | (best == grid.size - 1)
    u = _bottom(off, share, s, grid[np.maximum(best - 1, 0)], grid[np.minimum(best + 1, grid.size - 1)])
    u = np.where(at_end, grid[best], u)
    g, _ = _shape(s, np.where(np.abs(u) < 1e-9, 1e-9, u))
    centred = g - (g @ share)[:, None]
    beta = (off * centred) @ share / (centred**2 @ share)
    u = np.where(np.abs(u) < 1e-9, 1e-9, u)
    total = (off**2 @ share) * weight.sum()
    residual = off - beta[:, None] * centred
    straight = total - _explained(off, share, s, np.zeros(1))[:, 0] * weight.sum()
    return Exponential(
        a=middle - beta * (g @ share) - beta / u,
        b=beta / u * np.exp(-u * first / reach),
        c=u / reach,
        at_end=at_end,
        unexplained=(residual**2 @ share) * weight.sum(),
        straight=np.maximum(straight, 0.0),
        total=total,
    )


def aicc(unexplained: float, samples: int, parameters: int) -> float:
    """Akaike's criterion for a least-squares fit, corrected for few samples; the smaller, the better.

    Args:    unexplained: sum of squares, above 0. parameters: of the curve; the variance is counted besides.
    Returns: infinity where samples are too few for so many parameters.
    Source:  Hurvich & Tsai, Biometrika 76 (1989).
    """
    k = parameters + 1
    if samples <= k + 1:
        return math.inf
    return samples * math.log(unexplained / samples) + 2 * k + 2 * k * (k + 1) / (samples - k - 1)


def _shape(s: Array, u: Array) -> tuple[Array, Array]:
    """g and its derivative by u, each of shape (len(u), places)."""
    uu = u[:, None]
    straight = np.abs(uu) < _NEARLY_STRAIGHT
    safe = np.where(straight, 1.0, uu)
    g = np.where(straight, s + uu * s**2 / 2, np.expm1(safe * s) / safe)
    slope = np.where(straight, s**2 / 2 + uu * s**3 / 3, (s * np.exp(safe * s) - g) / safe)
    return g, slope


def _explained(off: Array, share: Array, s: Array, u: Array) -> Array:
    """Squares that each curve's best fit explains at each u, shape (curves, len(u))."""
    g, _ = _shape(s, u)
    centred = g - (g @ share)[:, None]
    return np.asarray(((off * share) @ centred.T) ** 2 / (centred**2 @ share))


def _bottom(off: Array, share: Array, s: Array, low: Array, high: Array) -> Array:
    """Where what the curve explains stops to grow with u, between low and high."""
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        g, slope = _shape(s, middle)
        g, slope = g - (g @ share)[:, None], slope - (slope @ share)[:, None]
        along, changing = (off * g) @ share, (off * slope) @ share
        growing = along * (2 * changing * (g**2 @ share) - along * 2 * ((g * slope) @ share)) > 0
        low, high = np.where(growing, middle, low), np.where(growing, high, middle)
    return (low + high) / 2
