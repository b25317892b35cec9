"""Intervals of runs that end where these are narrow (`[[precision]]`), of a statistic that jumps in some repetitions.

    PYTHONPATH=python:tests python -m coverage.jumps

A repetition is 1 with a noise of 0.1 %, and some are larger by the cost of an event, which the cell knows or does not
know. A run counts where it says that its precision is reached.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from coverage.tally import Tally
from crosswind.analysis.precision import Support
from crosswind.stats.chance import Chance
from crosswind.stats.estimate import Interval
from crosswind.stats.sequential import METHOD, repeated_interval
from crosswind.study.precision import look_schedule

LOOKS = look_schedule(5, 100)
SHARES = (0.003, 0.01, 0.03, 0.1, 0.3)
COSTS = (0.25, 0.5, 2.0)
WANTED = (0.05, 0.2)
_NOISE = 0.001
_LEVEL = 0.95


@dataclass(frozen=True)
class Jumps:
    """Repetitions of which some are larger. share: of them. cost: by how much. wanted: relative half-width."""

    share: float
    cost: float
    wanted: float

    @property
    def mean(self) -> float:
        """The truth."""
        return 1 + self.share * self.cost


def ended(jumps: Jumps, *, trials: int, seed: int, known: float | None) -> tuple[Tally, int]:
    """What came of runs that say that their precision is reached, and how many say that it is not.

    Args: known: what an event costs at most, as the limits allow for; None: they allow for nothing.
    """
    rng = np.random.default_rng([seed, round(1000 * jumps.share), round(100 * jumps.cost)])
    found, unreached = Tally(), 0
    for _ in range(trials):
        jumped = rng.random(LOOKS[-1]) < jumps.share
        values = 1 + _NOISE * rng.standard_normal(LOOKS[-1]) + jumps.cost * jumped
        for look, units in enumerate(LOOKS):
            made = repeated_interval(values[:units], look, LOOKS, is_positive=True, level=_LEVEL)
            if known is not None:
                touched = int(jumped[:units].sum())
                support = Support(0, units, touched, Chance(touched, more=known, less=0.0))
                made = made.widened(*support.allowance(units), is_positive=True)
            if made.half_width <= jumps.wanted * made.value:
                found.add(Interval(made.value, made.low, made.high, made.units, _LEVEL, METHOD), jumps.mean)
                break
        else:
            unreached += 1
    return found, unreached


def table(trials: int) -> Iterator[str]:
    """Rows of what came of every case, in Markdown: coverage, and in brackets how many runs reach their precision."""
    yield "| precision | share that jumps | cost | limits of the values alone | cost known | cost not known |"
    yield f"|{' --- |' * 6}"
    for wanted, share, cost in product(WANTED, SHARES, COSTS):
        cells = [f"{100 * number:g} %" for number in (wanted, share, cost)]
        for known in (None, cost, math.inf):
            tally, unreached = ended(Jumps(share, cost, wanted), trials=trials, seed=1, known=known)
            covered = f"{100 * tally.rate:.1f}" if tally.trials else "–"
            cells.append(f"{covered} ({100 * (trials - unreached) / trials:.0f})")
        yield f"| {' | '.join(cells)} |"


if __name__ == "__main__":
    print("\n".join(table(1000)))
