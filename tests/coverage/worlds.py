"""Repetitions drawn from known distributions, and the numbers that their intervals should enclose.

Dependence inside a repetition is a Gaussian copula: normal scores of its messages have a correlation (ICC) in common.
Of two cells that share their seeds the scores of both are correlated, as with common random numbers.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import integrate, special

from crosswind.stats.arrays import Array
from crosswind.stats.design import Design, Tail

SHARED = 0.8
"""Correlation of the scores of two cells with the same seeds."""


@dataclass(frozen=True)
class World:
    """A distribution of one message. of_score: its value at a normal score. design: what a study would know of it."""

    name: str
    of_score: Callable[[Array], Array]
    mean: float
    design: Design

    def quantile(self, q: float) -> float:
        """The true q-quantile."""
        return float(self.of_score(np.array([special.ndtri(q)]))[0])

    def trimmed(self, share: float) -> float:
        """The true mean of what is left without a share of both ends."""
        ends = special.ndtri(share), special.ndtri(1 - share)

        def density(z: float) -> float:
            return float(self.of_score(np.array([z]))[0]) * math.exp(-z * z / 2) / math.sqrt(2 * math.pi)

        kink = [place for place in (special.ndtri(0.9),) if ends[0] < place < ends[1]]
        total, _ = integrate.quad(density, *ends, points=kink, limit=200)
        return float(total / (1 - 2 * share))


def _mix(score: Array) -> Array:
    beyond = np.maximum(special.ndtr(-score), 1e-300)
    return np.asarray(40.0 + np.where(beyond < 0.1, -200.0 * np.log(np.minimum(beyond / 0.1, 1.0)), 0.0))


NORMAL = World("normal", lambda score: np.asarray(10.0 + score), 10.0, Design())
LN1 = World("LN1", lambda score: np.asarray(np.exp(score)), math.exp(0.5), Design(Tail.SKEWED))
MIX = World("mix", _mix, 60.0, Design(Tail.SKEWED, 0.1))
LN2 = World("LN2", lambda score: np.asarray(np.exp(2 * score)), math.exp(2.0), Design(Tail.HEAVY))

WORLDS = (NORMAL, LN1, MIX, LN2)


@dataclass(frozen=True)
class Size:
    """How much is measured: repetitions, messages in each, and how alike the messages of one are."""

    units: int
    messages: int
    icc: float


def scores(rng: np.random.Generator, trials: int, size: Size) -> tuple[Array, Array, Array]:
    """Normal scores of a cell, of one with the same seeds, and of one with others, each (trials, units, messages)."""
    first, own, apart = (scores_of_cell(rng, trials, size) for _ in range(3))
    return first, SHARED * first + math.sqrt(1 - SHARED**2) * own, apart


def scores_of_cell(rng: np.random.Generator, trials: int, size: Size) -> Array:
    """Normal scores of one cell, shape (trials, units, messages)."""
    drawn = rng.standard_normal((trials, size.units, size.messages))
    if size.messages == 1 or not size.icc:
        return drawn
    common = rng.standard_normal((trials, size.units, 1))
    return np.asarray(math.sqrt(size.icc) * common + math.sqrt(1 - size.icc) * drawn)
