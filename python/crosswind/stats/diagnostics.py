"""Checks the exchangeability of a cell's repetitions, assumed by every interval over them.

None is slower for being later, and none resembles its neighbour. Messages in one repetition need not be independent;
their similarity decides their effective number.
"""

import math

import numpy as np

from crosswind.stats.arrays import Array
from crosswind.stats.exchangeability import MIN_ORDERED, Diagnostics
from crosswind.stats.linearised import mean_of
from crosswind.stats.permutation import order_p
from crosswind.stats.repetitions import Repetitions


def diagnostics_of(units: Repetitions) -> Diagnostics:
    """A cell's diagnostics. Raises: TooFewSamples without a value."""
    means = units.means
    ordered = means.size >= MIN_ORDERED and float(np.ptp(means)) > 0
    ranks = _centred_ranks(means)
    drift, drift_p = _drift(ranks) if ordered else (None, None)
    lag1, lag1_p = _lag1(ranks) if ordered else (None, None)
    error = mean_of(units).error
    variance = float(units.values.var())
    worth = variance / error**2 if error > 0 and variance > 0 else None
    return Diagnostics(drift, drift_p, lag1, lag1_p, intraclass_correlation(units), worth)


def intraclass_correlation(units: Repetitions) -> float | None:
    """The share of variance between repetitions, by one-way analysis of variance.

    Returns: None below two repetitions, with one message in each, or with equal values.
    Source:  Donner, International Statistical Review 54 (1986), eq. 2.1.
    """
    sizes = units.sizes[units.sizes > 0]
    count, n = sizes.size, units.values.size
    if count < 2 or n == count:
        return None
    between = float(np.sum(sizes * (units.means - units.centre) ** 2)) / (count - 1)
    within = (float(units.values.var()) * n - between * (count - 1)) / (n - count)
    usual = (n - float(np.sum(sizes**2)) / n) / (count - 1)
    total = between + (usual - 1) * within
    return (between - within) / total if total > 0 else None


def _centred_ranks(values: Array) -> Array:
    """Ranks less their mean, equal values sharing theirs, shape (n,)."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place] - (values.size + 1) / 2)


def _drift(ranks: Array) -> tuple[float, float]:
    """Spearman's rank correlation with the order, and its p-value: Student's t exceeds its level over many tested
    cells, for 8 repetitions more than twofold.
    """
    order = np.arange(ranks.size) - (ranks.size - 1) / 2
    correlation = float(ranks @ order) / math.sqrt(float(ranks @ ranks) * float(order @ order))
    return min(max(correlation, -1.0), 1.0), order_p(ranks, lambda rows: np.asarray(rows @ order))


def _lag1(ranks: Array) -> tuple[float, float]:
    """Correlation between neighbours' ranks; ranks, because one slow repetition would hide it."""
    square = float(ranks @ ranks)
    correlation = float(ranks[1:] @ ranks[:-1]) / square
    # Wald & Wolfowitz (1943): the mean is -1/n.
    above_mean = square / ranks.size
    return correlation, order_p(ranks, lambda rows: np.asarray(np.sum(rows[:, 1:] * rows[:, :-1], axis=1) + above_mean))
