"""What came of a procedure in many runs."""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from crosswind.stats.estimate import Interval


@dataclass
class Tally:
    """What came of a procedure: trials whose interval enclosed the truth, whose interval has one end, that had none."""

    covered: int = 0
    one_sided: int = 0
    refused: int = 0
    trials: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, made: Interval, truth: float) -> None:
        """Count an interval."""
        self.trials += 1
        if made.low is None and made.high is None:
            self.refused += 1
            return
        self.one_sided += made.low is None or made.high is None
        slack = 1e-9 * max(abs(truth), 1.0)
        low = -np.inf if made.low is None else made.low - slack
        high = np.inf if made.high is None else made.high + slack
        self.covered += low <= truth <= high

    def add_test(self, p: float | None, *, below: float) -> None:
        """Count a test that found something."""
        self.trials += 1
        self.refused += p is None
        self.covered += p is not None and p < below

    @property
    def rate(self) -> float:
        """Share of the trials with an interval that enclosed the truth; of a test, that found something."""
        return self.covered / max(self.trials - self.refused, 1)


def shown(tally: Tally, *, is_test: bool = False) -> str:
    """A number of the table."""
    if tally.refused > tally.trials // 2:
        return "–"
    rate = f"{tally.rate:.3f}".removeprefix("0")
    if is_test:
        return rate
    if tally.one_sided == tally.trials - tally.refused:
        return f"≥ {rate}"
    return f"{rate}*" if tally.one_sided > tally.trials / 100 else rate
