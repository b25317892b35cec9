"""Where one more repetition's value would lie.

The logarithm of a repetition's mean is taken as normal: a value x of n more is within Student's t times s sqrt(1 + 1/n)
of the mean logarithm (Hahn and Meeker, Statistical Intervals, 1991, section 4.7). The range of n values, whatever their
distribution, holds the next one with a probability of (n - 1) / (n + 1) only.
"""

import numpy as np

from crosswind.stats.arrays import Array
from crosswind.stats.estimate import Interval, exactly, refused
from crosswind.stats.linearised import student

FEWEST = 5
METHOD = "prediction of one more repetition, by Student's t on logarithms"


def next_value(values: Array, *, level: float) -> Interval:
    """The prediction interval of one more value.

    Args:    values: shape (n,). level: its probability.
    Returns: Interval whose value is the geometric mean; exact where all values are equal.
    """
    n = int(values.size)
    if n < FEWEST or not (values > 0).all():
        why = f"a prediction takes {FEWEST} repetitions with values above 0"
        return refused(why, n=n, level=level, units=n)
    if not np.ptp(values):
        return exactly(float(values[0]), n=n, level=level)
    logs = np.log(values)
    middle, spread = float(logs.mean()), float(logs.std(ddof=1))
    half = student(level, n - 1) * spread * np.sqrt(1 + 1 / n)
    low, value, high = (float(np.exp(middle + at)) for at in (-half, 0.0, half))
    return Interval(value, low, high, n, level, METHOD, None, n)
