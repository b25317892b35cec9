"""Intervals for a proportion, such as the fraction of exchanges that were lost."""

import math

from scipy import stats

from crosswind.stats.estimate import Estimate, TooFewSamples, check_level


def clopper_pearson(successes: int, n: int, *, level: float = 0.95, unit: str = "1") -> Estimate:
    """Exact binomial interval: never covers less than `level`, at the price of being wide.

    Args:    successes: how many of n. n: trials, taken as independent.
    Returns: Estimate of the proportion, a fraction of 1.
    Raises:  TooFewSamples when n is 0; ValueError unless 0 <= successes <= n.
    Source:  Clopper & Pearson, Biometrika 26 (1934).
    """
    _check(successes, n)
    tail = (1.0 - check_level(level)) / 2.0
    low = 0.0 if successes == 0 else float(stats.beta.ppf(tail, successes, n - successes + 1))
    high = 1.0 if successes == n else float(stats.beta.ppf(1.0 - tail, successes + 1, n - successes))
    return Estimate(successes / n, low, high, n, level, "Clopper-Pearson (exact binomial)", unit)


def wilson(successes: int, n: int, *, level: float = 0.95, unit: str = "1") -> Estimate:
    """Wilson's score interval: covers `level` on average, narrower than Clopper-Pearson.

    Args, Returns, Raises: as `clopper_pearson`.
    Source:  Wilson, JASA 22 (1927).
    """
    _check(successes, n)
    z = float(stats.norm.ppf((1.0 + check_level(level)) / 2.0))
    share = successes / n
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    low = 0.0 if successes == 0 else min(share, centre - half)
    high = 1.0 if successes == n else max(share, centre + half)
    return Estimate(share, low, high, n, level, "Wilson score", unit)


def _check(successes: int, n: int) -> None:
    if n == 0:
        raise TooFewSamples("not enough samples: a proportion needs at least 1, there are 0", needed=1)
    if not 0 <= successes <= n:
        raise ValueError(f"{successes} of {n} is not a proportion")
